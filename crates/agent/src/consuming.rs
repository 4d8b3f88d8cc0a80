//! The threads of an agent's consumers: ours, and those of the library.

use muster_backend::{ConsumerPlan, ConsumersSpec, consumers_loop, kafka_loop};
use muster_judge::ThreadRole;
use muster_model::Micros;
use muster_monitor::GeneratorSample;
use muster_plan::Plan;
use muster_protocol::layer::Plain;
use muster_transport::Clients;

use crate::agent::{Agent, AgentError, ThreadChannels};
use crate::{Assignment, LayersError, consumer_layers};

/// Start of the names of librdkafka's threads, which do a good part of a consumer's work.
const LIBRARY_THREADS: &str = "rdk:";
/// Their numbers begin here, above those of the consumers' own threads.
const LIBRARY_FIRST: u16 = 10_000;

impl Agent {
    /// MQTT's consumers share a thread; Kafka's have one each, in addition to those of their library.
    pub(crate) fn start_consumers(
        &mut self,
        spec: &ConsumersSpec,
        consumers: &[ConsumerPlan],
        channels: ThreadChannels<'_>,
    ) -> Result<(), AgentError> {
        let is_kafka =
            |it: &&ConsumerPlan| spec.plan.backends[it.backend.index()].kafka().is_some();
        let (kafka, mqtt): (Vec<ConsumerPlan>, Vec<ConsumerPlan>) =
            consumers.iter().partition(is_kafka);
        let of = |consumers: &[ConsumerPlan]| ConsumersSpec {
            consumers: consumers.to_vec(),
            ..spec.clone()
        };
        for (index, consumer) in (1..).zip(&kafka) {
            let spec = of(std::slice::from_ref(consumer));
            let place = (ThreadRole::Consumer, index);
            let writer = (channels.writer)();
            self.start_thread(place, channels, move |mailbox| {
                Ok(kafka_loop(&spec, writer, mailbox)?)
            })?;
        }
        if mqtt.is_empty() {
            return Ok(());
        }
        let layers = layers_of(&spec.plan, &mqtt)?;
        let spec = of(&mqtt);
        let writer = (channels.writer)();
        self.start_thread((ThreadRole::Consumer, 0), channels, move |mailbox| {
            Ok(consumers_loop(&spec, layers, writer, mailbox)?)
        })
    }

    /// A thread that a library has started since the last look is watched from now on.
    pub(crate) fn sample(&mut self, now: Micros) -> GeneratorSample {
        if self
            .threads
            .iter()
            .any(|thread| thread.role == ThreadRole::Consumer)
        {
            let name = LIBRARY_THREADS;
            self.monitor
                .watch_named(ThreadRole::Consumer, name, LIBRARY_FIRST);
        }
        let sample = self.monitor.sample(now);
        let libraries = sample.threads.iter().filter(|it| it.index >= LIBRARY_FIRST);
        let cpu: f64 = libraries.map(|thread| thread.cpu).sum();
        self.library_cpu_us += (cpu * sample.passed_us as f64) as u64;
        sample
    }
}

/// The most threads that the consumers of an assignment have.
pub(crate) fn consumer_threads(assignment: &Assignment) -> usize {
    let backends = &assignment.plan.backends;
    let consumers = assignment.consumers.iter();
    let of_kafka =
        consumers.filter(|((backend, _), _)| backends[backend.index()].kafka().is_some());
    of_kafka.count() + 1
}

/// Sets up the layers of the consumers, one for each backend.
fn layers_of(plan: &Plan, consumers: &[ConsumerPlan]) -> Result<Vec<Clients>, LayersError> {
    let backends = (0u8..).zip(&plan.backends);
    let layers = backends.map(|(id, backend)| {
        if backend.mqtt().is_none() {
            return Ok(Clients::Plain(Plain));
        }
        let of_backend = consumers.iter().filter(|it| it.backend.0 == id);
        consumer_layers(plan, backend, of_backend.map(|it| u32::from(it.consumer.0)))
    });
    layers.collect()
}
