//! Consumers of Kafka: the threads of librdkafka fetch and unpack, one of ours reads and counts.
//!
//! Without a group a consumer takes up every partition at the end that it had before the load began,
//! so that what it consumes is what the topics grow by, to the unit. In a group the partitions are
//! the group's, and what it had not heard of when it takes one away comes again.

mod client;
mod commanding;
mod courier;
mod driver;
mod line;
mod listener;
mod look;
mod refusal;
mod sample;
mod standing;
mod topics;

use muster_scenario::Endpoint;

use crate::consumers::ConsumersError;

pub use client::KAFKA_SETTINGS;
pub use driver::{KafkaDriver, kafka_loop};
pub use look::look;

/// Whether this build can consume from such an address.
///
/// # Errors
/// [`ConsumersError::NoKafkaTls`], which says what build can.
pub fn kafka_is_built(endpoint: &Endpoint) -> Result<(), ConsumersError> {
    if endpoint.scheme.is_tls() && !cfg!(feature = "kafka-tls") {
        return Err(ConsumersError::NoKafkaTls(endpoint.to_string()));
    }
    Ok(())
}
