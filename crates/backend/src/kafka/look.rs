//! Looks at a cluster and its topics for a backend; nothing is created or consumed.

use std::time::Duration;

use muster_conduct::{RefusalCause, RefusalKind};
use muster_model::{BackendId, ConsumerId, RunId};
use muster_plan::{BackendPlan, KafkaNorthbound};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;

use super::client::config;
use super::listener::{Callbacks, Listener, News};
use super::refusal;
use super::rights::may_read;
use super::topics::{REQUEST_MAX, code_of, difference, find, new_tenant, new_tenants};
use crate::consumers::{ConsumerPlan, Look};

/// Longest wait for brokers at a time, after which their refusals are checked.
const GREETING: Duration = Duration::from_secs(1);
/// Number of such waits.
const GREETINGS: usize = 5;

/// Looks for the topics of a plan's run.
pub fn look(backend: &BackendPlan, id: BackendId, run: RunId) -> Look {
    let Some(kafka) = backend.kafka() else {
        return Look::Found {
            topics: Vec::new(),
            warnings: Vec::new(),
        };
    };
    let consumer = ConsumerPlan {
        backend: id,
        consumer: ConsumerId(0),
        target: ([0, 0, 0, 0], 0).into(),
    };
    let config = config(backend, kafka, &consumer, run);
    let (listener, callbacks) = Listener::new();
    let found = config
        .create_with_context(listener)
        .map_err(|error| refusal::unbuilt(&error))
        .and_then(|consumer| {
            let looking = Looking {
                consumer,
                callbacks,
                has_group: backend.shared.is_some(),
            };
            looking.greet(kafka)?;
            let found = looking.topics(kafka)?;
            may_read(&config, &found.consumed)?;
            looking.group(&found)?;
            Ok(found)
        });
    match found {
        Ok(Found {
            topics, warnings, ..
        }) => Look::Found { topics, warnings },
        Err(cause) if is_silence(&cause) => Look::Silent(cause.to_string()),
        Err(cause) => Look::Refused(cause.to_string()),
    }
}

fn is_silence(cause: &RefusalCause) -> bool {
    cause.kind == RefusalKind::Unreachable
}

struct Looking {
    consumer: BaseConsumer<Listener>,
    callbacks: Callbacks,
    has_group: bool,
}

#[derive(Default)]
struct Found<'a> {
    /// Existing topics that are consumed.
    consumed: Vec<&'a str>,
    topics: Vec<String>,
    warnings: Vec<String>,
}

impl Looking {
    /// Waits for an answer, whatever it is.
    fn greet(&self, kafka: &KafkaNorthbound) -> Result<(), RefusalCause> {
        let first = kafka.topics.first().map(|topic| topic.name.as_str());
        let mut silence = None;
        for _ in 0..GREETINGS {
            let Err(error) = self.consumer.fetch_metadata(first, GREETING) else {
                return Ok(());
            };
            let asked = refusal::failed(code_of(&error), "ask for the topics");
            if !is_silence(&asked) {
                return Err(asked);
            }
            for said in self.said() {
                if !is_silence(&said) {
                    return Err(said);
                }
                // The first says why; what follows is that nobody is left.
                silence.get_or_insert(said);
            }
            silence.get_or_insert(asked);
        }
        silence.map_or(Ok(()), Err)
    }

    /// Returns the library's own reports.
    fn said(&self) -> Vec<RefusalCause> {
        let consumer = &self.consumer;
        while consumer.poll(Duration::ZERO).is_some() || consumer.context().was_touched() {}
        let said = self
            .callbacks
            .news
            .try_iter()
            .filter_map(|news| match news {
                News::Failed(code, _) if !self.has_group && refusal::is_of_group(code) => None,
                News::Failed(code, reason) => Some(refusal::reported(code, &reason)),
                News::Revoked(_) | News::Sampled(_) => None,
            });
        said.collect()
    }

    fn topics<'a>(&self, kafka: &'a KafkaNorthbound) -> Result<Found<'a>, RefusalCause> {
        let (mut missing, mut found) = (Vec::new(), Found::default());
        for topic in &kafka.topics {
            let (name, wanted) = (&topic.name, topic.partitions);
            let Some(known) = find(&self.consumer, topic)? else {
                missing.push(topic);
                let line = format!("the run creates topic `{name}` with {wanted} partitions");
                found.topics.push(line);
                continue;
            };
            let count = known.partitions;
            let line = format!("topic `{name}` has {count} partitions");
            found.topics.push(line);
            found.warnings.extend(difference(topic, count));
            if topic.records.are_consumed() {
                found.consumed.push(name);
            }
        }
        let tenants = new_tenants(kafka, &missing);
        found.warnings.extend(tenants.map(new_tenant));
        Ok(found)
    }

    /// Checks that the group may be described, which needs the right to read it. Joining it would
    /// take partitions from others.
    fn group(&self, found: &Found<'_>) -> Result<(), RefusalCause> {
        let Some(topic) = found.consumed.first().filter(|_| self.has_group) else {
            return Ok(());
        };
        let mut asked = TopicPartitionList::new();
        asked.add_partition(topic, 0);
        let offsets = self.consumer.committed_offsets(asked, REQUEST_MAX);
        let checked =
            offsets.and_then(|offsets| offsets.elements().iter().try_for_each(|it| it.error()));
        match checked.map_err(|error| code_of(&error)) {
            Err(code) if refusal::is_of_group(code) => {
                Err(refusal::failed(code, "ask for what the group has read"))
            }
            // Why nothing was callbacks is said beside it.
            Ok(()) | Err(_) => {
                let mut said = self.said().into_iter();
                said.find(|it| !is_silence(it)).map_or(Ok(()), Err)
            }
        }
    }
}
