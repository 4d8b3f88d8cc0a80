//! Replaces Kafka's consumers in a build without them.

use muster_conduct::{Dispatch, FactWriter, Order};
use muster_model::{BackendId, RunId};
use muster_net::{Loop, Mailbox};
use muster_plan::BackendPlan;

use crate::consumers::{ConsumersError, ConsumersSpec, Look};
use crate::mqtt::MqttConsumers;
use crate::northbound::ConsumerLoop;

/// Stands for a consumer of Kafka, which this build does not have.
pub type KafkaConsumer = MqttConsumers;

/// Says that there is none.
///
/// # Errors
/// [`ConsumersError::NoKafka`], always.
pub fn kafka_loop(
    spec: &ConsumersSpec,
    _: Option<Box<dyn FactWriter>>,
    _: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<KafkaConsumer>>, ConsumersError> {
    let consumer = spec.consumers.first().ok_or(ConsumersError::NoConsumer)?;
    let backend = &spec.plan.backends[consumer.backend.index()];
    Err(ConsumersError::NoKafka(backend.endpoint.to_string()))
}

/// Checks that this build can consume what a backend needs.
///
/// # Errors
/// [`ConsumersError::NoKafka`] if that is Kafka's.
pub fn kafka_is_built(backend: &BackendPlan) -> Result<(), ConsumersError> {
    match backend.kafka() {
        Some(_) => Err(ConsumersError::NoKafka(backend.endpoint.to_string())),
        None => Ok(()),
    }
}

/// Finds nothing.
pub fn look(backend: &BackendPlan, _: BackendId, _: RunId) -> Look {
    Look::Refused(ConsumersError::NoKafka(backend.endpoint.to_string()).to_string())
}
