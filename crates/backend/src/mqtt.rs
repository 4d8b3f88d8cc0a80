//! Consumers of MQTT brokers: sessions on one event loop.

mod connection;
mod driver;
mod ending;
mod events;
mod issuer;
mod session;

pub use driver::{MqttConsumers, consumers_loop};
