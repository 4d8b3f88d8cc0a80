//! The binary as its user meets it: what it prints, writes and ends with.

mod amqps;
mod authentication;
mod certificates;
mod check;
mod counters;
mod cpu;
mod credentials;
mod damage;
mod datagrams;
mod downlink;
#[path = "../../../backend/tests/backend/free_port.rs"]
mod free_port;
mod http_devices;
mod import;
mod import_hono;
mod interrupt;
mod lists;
mod manual;
mod metrics;
mod nobody;
mod parts;
mod processes;
mod program;
mod protocols;
mod provision;
mod published;
mod repeat;
mod secured;
mod shared_sockets;
mod slos;
mod texts;
mod transport;
mod warnings;
mod webhook;
mod whole_loop;
