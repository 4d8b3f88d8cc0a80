//! The gateway on real loopback sockets, seen from outside and compared with its own account.

mod amqp;
mod application;
mod authentication;
mod behaviour;
mod browser;
mod coap;
mod coap_behaviour;
mod coaps;
mod device;
mod http;
mod http_behaviour;
mod peer;
mod pressure;
mod rig;
mod routing;
mod sap_edge;
mod sessions;
mod standard;
mod tenant;
mod thingsboard;
mod thingsboard_commands;
mod thingsboard_facts;
mod thingsboard_rest;
mod told;
mod webhook;
mod wire;
