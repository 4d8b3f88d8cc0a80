//! Consumers of MQTT brokers: sessions on one event loop.

mod consumer;
mod driver;
mod ending;
mod issuer;
mod session;

#[cfg(feature = "kafka")]
pub(crate) use consumer::client_id;
pub use driver::{MqttConsumers, consumers_loop};
