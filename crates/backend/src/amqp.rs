//! Consumers of AMQP 1.0: a thread of the library receives and settles, a thread of ours reads and counts.
//!
//! Each address has one receiver with a stated credit. Deliveries travel in batches to the loop, which counts
//! them, and back to the library, which accepts and drops them. A delivery that was not counted is never accepted.

mod command_sender;
mod content;
mod driver;
mod news;
mod receiving;
mod refusal;
mod sasl;
mod sending;
mod target;
mod worker;

pub use driver::{AmqpConsumer, amqp_loop};
