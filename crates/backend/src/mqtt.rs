//! Consumers of MQTT brokers: sessions on one event loop.

mod consumer;
mod driver;
mod ending;
mod issuer;
mod session;

pub use consumer::{client_id, hello};
pub use driver::{MqttConsumers, consumers_loop};
pub use ending::{TLS_KEYS, words};
pub use session::CREDENTIAL_KEYS;
