//! The business application's side: consumers whose arrivals join the ledger.
//!
//! Layer 6. Each consumer is an MQTT session on an event loop of its own thread, so that its CPU
//! is accounted apart from the devices'. It must never know what the devices were answered: what
//! arrived is counted here without looking there.

mod commanding;
mod consumers;
mod driver;
mod ending;
mod intake;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "no_kafka.rs"]
mod kafka;
mod session;

pub use consumers::{ConsumersError, ConsumersSpec, Look, Seat, client_id, hello};
pub use driver::{Driver, consumers_loop};
pub use ending::{TLS_KEYS, words};
#[cfg(feature = "kafka")]
pub use kafka::KAFKA_SETTINGS;
pub use kafka::{KafkaDriver, kafka_is_built, kafka_loop, look};
pub use session::CREDENTIAL_KEYS;
