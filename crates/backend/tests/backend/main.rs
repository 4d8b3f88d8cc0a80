//! Consumers of each kind on their threads, before peers of the tests.

#![expect(
    clippy::unwrap_used,
    reason = "what the helpers take for granted is the test's own doing"
)]

mod amqp;
mod free_port;
#[cfg(feature = "kafka")]
mod kafka;
mod mqtt;
mod rig;
mod webhook;
