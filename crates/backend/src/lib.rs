//! The business application's side: consumers whose arrivals join the ledger.
//!
//! Layer 6. Consumers run on event loops on separate threads, so that their CPU time is not counted
//! with that of the devices. A kind of backend implements [`Northbound`]; [`ConsumerLoop`] owns what all
//! kinds share. This crate must never know the answers that devices received: arrivals are counted
//! here without looking there.

#![cfg_attr(
    not(feature = "kafka"),
    allow(
        dead_code,
        reason = "the loop offers what Kafka needs; not every backend needs all of it"
    )
)]

mod amqp;
mod consumer;
mod consumers;
mod intake;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "no_kafka.rs"]
mod kafka;
mod loss;
mod mqtt;
mod northbound;
mod rpc;
mod webhook;

pub use amqp::{AmqpConsumer, amqp_loop};
pub use consumers::{ConsumerPlan, ConsumersError, ConsumersSpec, Look};
#[cfg(feature = "kafka")]
pub use kafka::KAFKA_SETTINGS;
pub use kafka::{KafkaConsumer, kafka_is_built, kafka_loop, look};
pub use mqtt::{MqttConsumers, consumers_loop};
pub use northbound::{ConsumerLoop, Context, Core, Northbound};
pub use rpc::{RpcConsumer, rpc_loop};
pub use webhook::{WebhookBounds, WebhookEnds, Webhooks, webhooks_loop};
