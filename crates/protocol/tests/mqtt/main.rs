//! Both ends of an MQTT session, packet by packet, and what MQTT 5 demands of them.

#![expect(
    clippy::unwrap_used,
    reason = "what the lines take for granted is the test's own doing"
)]

mod authentication;
mod client;
mod client_line;
mod connecting;
mod ending;
mod publishing;
mod representation;
mod server;
mod server_line;
mod subscribing;
