//! The threads of an agent's consumers: ours, and those of the library.

use muster_backend::{
    ConsumerPlan, ConsumersSpec, WebhookEnds, amqp_loop, consumers_loop, kafka_loop, webhooks_loop,
};
use muster_judge::ThreadRole;
use muster_model::Micros;
use muster_monitor::GeneratorSample;
use muster_plan::Plan;
use muster_protocol::layer::Plain;
use muster_transport::{Clients, Servers};

use crate::agent::{Agent, AgentError, ThreadChannels};
use crate::{Assignment, LayersError, consumer_layers, webhook_layers};

/// Starts of the names of the threads of librdkafka and of the library of AMQP, which do a good part of a
/// consumer's work.
const LIBRARY_THREADS: [&str; 2] = ["rdk:", "amqp:"];
/// Their numbers begin here, above those of the consumers' own threads.
const LIBRARY_FIRST: u16 = 10_000;

impl Agent {
    /// MQTT's consumers share a thread, and webhooks another; those of Kafka and AMQP have one each, in addition to
    /// those of
    /// their library.
    pub(crate) fn start_consumers(
        &mut self,
        spec: &ConsumersSpec,
        consumers: &[ConsumerPlan],
        channels: ThreadChannels<'_>,
    ) -> Result<(), AgentError> {
        let backend = |it: &ConsumerPlan| &spec.plan.backends[it.backend.index()];
        let (mqtt, others): (Vec<ConsumerPlan>, Vec<ConsumerPlan>) = consumers
            .iter()
            .partition(|it| backend(it).mqtt().is_some());
        let (webhooks, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|it| backend(it).webhook().is_some());
        let of = |consumers: &[ConsumerPlan]| ConsumersSpec {
            consumers: consumers.to_vec(),
            ..spec.clone()
        };
        for (index, consumer) in (1..).zip(&others) {
            let place = (ThreadRole::Consumer, index);
            let writer = (channels.writer)();
            let backend = backend(consumer);
            if backend.amqp().is_some() {
                let number = u32::from(consumer.consumer.0);
                let mut layers = consumer_layers(&spec.plan, backend, [number])?;
                let spec = of(std::slice::from_ref(consumer));
                self.start_thread(place, channels, move |mailbox| {
                    Ok(amqp_loop(&spec, &mut layers, writer, mailbox)?)
                })?;
            } else {
                let spec = of(std::slice::from_ref(consumer));
                self.start_thread(place, channels, move |mailbox| {
                    Ok(kafka_loop(&spec, writer, mailbox)?)
                })?;
            }
        }
        if !webhooks.is_empty() {
            let ends = WebhookEnds {
                layers: servers_of(&spec.plan)?,
                ..WebhookEnds::default()
            };
            let spec = of(&webhooks);
            let writer = (channels.writer)();
            let place = (ThreadRole::Consumer, others.len() as u16 + 1);
            self.start_thread(place, channels, move |mailbox| {
                Ok(webhooks_loop(&spec, &ends, writer, mailbox)?)
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
            for name in LIBRARY_THREADS {
                self.monitor
                    .watch_named(ThreadRole::Consumer, name, LIBRARY_FIRST);
            }
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
    let others = consumers.filter(|((backend, _), _)| backends[backend.index()].mqtt().is_none());
    // MQTT's and the webhooks' have one each.
    others.count() + 2
}

/// Sets up the layers of webhooks, one for each backend.
fn servers_of(plan: &Plan) -> Result<Vec<Servers>, LayersError> {
    let backends = plan.backends.iter();
    let servers = backends.map(|backend| match backend.webhook() {
        Some(_) => webhook_layers(backend),
        None => Ok(Servers::default()),
    });
    servers.collect()
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
