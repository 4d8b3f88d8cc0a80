//! Truth by the gateway: for each misbehaviour the ledger of a run equals the gateway's own
//! account, to the unit, and names the same messages.
//!
//! The gateway names a message by the FNV-1a hash of its payload as it came. Here every payload
//! is known beforehand from device and sequence number, and its id travels beside it in a user
//! property, so that hashes lead back to ids without anything that Muster computes.

mod commands;
mod conformance;
mod hono;
mod hono_amqp;
mod hono_carriers;
mod hono_commands;
mod hono_http;
mod hono_mqtt;
mod hono_service;
mod mqtt;
mod sap_edge;
mod shared_sockets;
mod thingsboard;
mod thingsboard_rpc;
mod truth;
