//! The threads of an agent's consumers: ours, and those of the library.

use muster_backend::{
    ConsumerPlan, ConsumersSpec, WebhookEnds, amqp_loop, consumers_loop, kafka_is_built,
    kafka_loop, rpc_loop, webhooks_loop,
};
use muster_judge::ThreadRole;
use muster_model::Micros;
use muster_monitor::GeneratorSample;
use muster_plan::{BackendKind, BackendPlan, Plan};
use muster_protocol::layer::Plain;
use muster_transport::{Clients, Servers};

use crate::agent::{Agent, AgentError, ThreadChannels};
use crate::layers::{consumer_layers, webhook_layers};
use crate::{Assignment, LayersError};

/// Starts of the names of the threads of librdkafka, of the library of AMQP and of REST calls, which do a good part
/// of a consumer's work.
const LIBRARY_THREADS: [&str; 3] = ["rdk:", "amqp:", "rpc:"];
/// Their numbers begin here, above those of the consumers' own threads.
const LIBRARY_FIRST: u16 = 10_000;

impl Agent {
    pub(crate) fn start_consumers(
        &mut self,
        spec: &ConsumersSpec,
        consumers: &[ConsumerPlan],
        channels: ThreadChannels<'_>,
    ) -> Result<(), AgentError> {
        let mut index = 0;
        for kind in BackendKind::ALL {
            let backend = |it: &ConsumerPlan| &spec.plan.backends[it.backend.index()];
            let of_kind = consumers.iter().filter(|it| backend(it).kind() == kind);
            let of_kind: Vec<ConsumerPlan> = of_kind.copied().collect();
            let of_a_thread = match kind.shares_a_thread {
                true => of_kind.len(),
                false => 1,
            };
            for consumers in of_kind.chunks(of_a_thread.max(1)) {
                let spec = ConsumersSpec {
                    consumers: consumers.to_vec(),
                    ..spec.clone()
                };
                self.start_thread_of(kind, index, spec, channels)?;
                index += 1;
            }
        }
        Ok(())
    }

    /// Starts a thread of consumers of one kind. [`check_consumers`] makes the same choice without one.
    fn start_thread_of(
        &mut self,
        kind: BackendKind,
        index: u16,
        spec: ConsumersSpec,
        channels: ThreadChannels<'_>,
    ) -> Result<(), AgentError> {
        let place = (ThreadRole::Consumer, index);
        let writer = (channels.writer)();
        match kind {
            BackendKind::Mqtt => {
                let layers = |backend: &_, numbers| consumer_layers(&spec.plan, backend, numbers);
                let layers = of_backends(&spec, || Clients::Plain(Plain), layers)?;
                self.start_thread(place, channels, move |mailbox| {
                    Ok(consumers_loop(&spec, layers, writer, mailbox)?)
                })
            }
            BackendKind::Kafka => self.start_thread(place, channels, move |mailbox| {
                Ok(kafka_loop(&spec, writer, mailbox)?)
            }),
            BackendKind::Amqp => {
                let mut layers = layers_of_first(&spec)?;
                self.start_thread(place, channels, move |mailbox| {
                    Ok(amqp_loop(&spec, &mut layers, writer, mailbox)?)
                })
            }
            BackendKind::Rpc => {
                let mut layers = layers_of_first(&spec)?;
                self.start_thread(place, channels, move |mailbox| {
                    Ok(rpc_loop(&spec, &mut layers, writer, mailbox)?)
                })
            }
            BackendKind::Webhook => {
                let layers = |backend: &_, _| webhook_layers(backend);
                let ends = WebhookEnds {
                    layers: of_backends(&spec, Servers::default, layers)?,
                    ..WebhookEnds::default()
                };
                self.start_thread(place, channels, move |mailbox| {
                    Ok(webhooks_loop(&spec, &ends, writer, mailbox)?)
                })
            }
        }
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

/// The number of threads that the consumers of an assignment have.
pub(crate) fn consumer_threads(assignment: &Assignment) -> usize {
    let backends = &assignment.plan.backends;
    let kinds = assignment.consumers.iter();
    let kinds = kinds.map(|((backend, _), _)| backends[backend.index()].kind());
    let threads = BackendKind::ALL.map(|kind| {
        let consumers = kinds.clone().filter(|it| *it == kind).count();
        match kind.shares_a_thread {
            true => consumers.min(1),
            false => consumers,
        }
    });
    threads.iter().sum()
}

/// Checks that this build, and the files that a plan names, let the consumers of a backend start.
///
/// # Errors
/// [`AgentError`], which names the file, or what this build lacks.
pub fn check_consumers(plan: &Plan, backend: &BackendPlan) -> Result<(), AgentError> {
    match backend.kind() {
        BackendKind::Mqtt | BackendKind::Amqp | BackendKind::Rpc => {
            consumer_layers(plan, backend, [0])?;
        }
        BackendKind::Kafka => kafka_is_built(backend).map_err(|error| {
            let backend = backend.name.clone();
            AgentError::Build { backend, error }
        })?,
        BackendKind::Webhook => {
            webhook_layers(backend)?;
        }
    }
    Ok(())
}

/// Sets up the layers of the only consumer of a thread.
fn layers_of_first(spec: &ConsumersSpec) -> Result<Clients, LayersError> {
    let consumer = spec.consumers[0];
    let backend = &spec.plan.backends[consumer.backend.index()];
    consumer_layers(&spec.plan, backend, [u32::from(consumer.consumer.0)])
}

/// Sets up the layers of a thread's consumers, one for each backend of the plan; `others` are those of backends
/// that other threads consume from.
fn of_backends<L>(
    spec: &ConsumersSpec,
    others: impl Fn() -> L,
    layers: impl Fn(&BackendPlan, Vec<u32>) -> Result<L, LayersError>,
) -> Result<Vec<L>, LayersError> {
    let backends = (0u8..).zip(&spec.plan.backends);
    let layers = backends.map(|(id, backend)| {
        let consumers = spec.consumers.iter().filter(|it| it.backend.0 == id);
        let numbers: Vec<u32> = consumers.map(|it| u32::from(it.consumer.0)).collect();
        match numbers.is_empty() {
            true => Ok(others()),
            false => layers(backend, numbers),
        }
    });
    layers.collect()
}
