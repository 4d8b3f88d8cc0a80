//! The binary as its user meets it: what it prints, writes and ends with.

mod authentication;
mod certificates;
mod check;
mod counters;
mod cpu;
mod credentials;
mod damage;
mod datagrams;
mod downlink;
mod import;
mod interrupt;
mod manual;
mod nobody;
mod parts;
mod processes;
mod program;
mod provision;
mod published;
mod repeat;
mod secured;
mod shared_sockets;
mod slos;
mod texts;
mod transport;
mod warnings;
mod whole_loop;
