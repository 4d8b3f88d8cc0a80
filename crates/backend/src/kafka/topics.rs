//! The topics of a backend: created where they are missing, and found with their ends.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

use muster_conduct::RefusalCause;
use muster_plan::{KafkaNorthbound, KafkaTopic};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::MetadataPartition;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::listener::Listener;
use super::refusal;

/// Longest request to the brokers.
pub(crate) const REQUEST_MAX: Duration = Duration::from_secs(5);

/// Placeholder for a broker's default number of replicas.
const REPLICAS_OF_BROKER: i32 = -1;

/// A finding on topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// One was created.
    Created(String),
    /// One has other partitions than the scenario says.
    Differs(String),
    /// None of a tenant's was there.
    NewTenant(String),
}

/// A topic at the brokers.
pub(crate) struct Known {
    pub(crate) partitions: usize,
    /// The first partition without a leader.
    leaderless: Option<i32>,
}

/// Finds the topics of a backend, creates those that are missing, and adds findings. Each topic needs all
/// its leaders, even if it is not consumed. Returns every partition of the consumed topics.
pub(crate) fn topics(
    consumer: &BaseConsumer<Listener>,
    config: &ClientConfig,
    plan: &KafkaNorthbound,
    findings: &mut Vec<Finding>,
) -> Result<TopicPartitionList, RefusalCause> {
    let mut missing = Vec::new();
    for topic in &plan.topics {
        if find(consumer, topic)?.is_none() {
            missing.push(topic);
        }
    }
    create(config, &missing)?;
    findings.extend(missing.iter().map(|topic| created(topic)));
    let tenants = new_tenants(plan, &missing);
    findings.extend(tenants.map(|tenant| Finding::NewTenant(new_tenant(tenant))));
    let (mut consumed, mut differences) = (TopicPartitionList::new(), Vec::new());
    for topic in &plan.topics {
        let Some(known) = find(consumer, topic)? else {
            return Err(refusal::missing(&topic.name));
        };
        if let Some(partition) = known.leaderless {
            return Err(refusal::leaderless(&topic.name, partition));
        }
        let count = known.partitions;
        differences.extend(difference(topic, count).map(Finding::Differs));
        if topic.records.are_consumed() {
            let last = i32::try_from(count).unwrap_or(i32::MAX) - 1;
            consumed.add_partition_range(&topic.name, 0, last);
        }
    }
    // Whoever finds all of it tries no more.
    findings.extend(differences);
    Ok(consumed)
}

/// Returns the difference from the scenario.
pub(crate) fn difference(topic: &KafkaTopic, count: usize) -> Option<String> {
    let (name, wanted) = (&topic.name, topic.partitions as usize);
    (count != wanted).then(|| {
        format!(
            "topic `{name}` has {count} partitions, not {wanted} as platform.backend.topics has it, \
             and is left as it is"
        )
    })
}

/// Returns the tenants without any topic, each once.
pub(crate) fn new_tenants<'a>(
    plan: &'a KafkaNorthbound,
    missing: &[&KafkaTopic],
) -> impl Iterator<Item = &'a str> {
    let tenants = plan.topics.iter().filter_map(|it| it.tenant.as_deref());
    let tenants: BTreeSet<&str> = tenants.collect();
    let is_new = move |tenant: &&str| {
        let mut topics = plan.topics.iter();
        topics.all(|it| it.tenant.as_deref() != Some(tenant) || missing.contains(&it))
    };
    let new: Vec<&str> = tenants.into_iter().filter(is_new).collect();
    new.into_iter()
}

pub(crate) fn new_tenant(tenant: &str) -> String {
    format!(
        "the platform had no topic of tenant `{tenant}`: is it spelt under `tenant` of the fleet as the \
         platform has it?"
    )
}

fn created(topic: &KafkaTopic) -> Finding {
    let (name, partitions) = (&topic.name, topic.partitions);
    Finding::Created(format!(
        "topic `{name}` was created with {partitions} partitions"
    ))
}

/// The same partitions, each at its end: what comes from here on is consumed, and nothing before.
/// Leaders that are not known yet are waited for.
pub(crate) fn ends(
    consumer: &BaseConsumer<Listener>,
    partitions: &TopicPartitionList,
) -> KafkaResult<TopicPartitionList> {
    let mut asked = partitions.clone();
    asked.set_all_offsets(Offset::End)?;
    let found = consumer.offsets_for_times(asked, REQUEST_MAX)?;
    for partition in found.elements() {
        partition.error()?;
        if !matches!(partition.offset(), Offset::Offset(_)) {
            return Err(KafkaError::OffsetFetch(RDKafkaErrorCode::NoOffset));
        }
    }
    Ok(found)
}

/// Returns a topic at the brokers; none if there is no such topic.
pub(crate) fn find(
    consumer: &BaseConsumer<Listener>,
    topic: &KafkaTopic,
) -> Result<Option<Known>, RefusalCause> {
    let about = |code| refusal::failed(code, format!("find topic `{}`", topic.name));
    let metadata = consumer.fetch_metadata(Some(&topic.name), REQUEST_MAX);
    let metadata = metadata.map_err(|error| about(code_of(&error)))?;
    let Some(found) = metadata.topics().first() else {
        return Ok(None);
    };
    match found.error().map(RDKafkaErrorCode::from) {
        None => Ok(known(found.partitions())),
        Some(code) if refusal::is_of_missing_topic(code) => Ok(None),
        Some(code) => Err(about(code)),
    }
}

fn known(partitions: &[MetadataPartition]) -> Option<Known> {
    let mut leaderless = partitions.iter().filter(|it| it.leader() < 0);
    let known = Known {
        partitions: partitions.len(),
        leaderless: leaderless.next().map(MetadataPartition::id),
    };
    Some(known).filter(|known| known.partitions > 0)
}

fn create(config: &ClientConfig, missing: &[&KafkaTopic]) -> Result<(), RefusalCause> {
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|topic| format!("`{}`", topic.name));
    let names = names.collect::<Vec<_>>().join(", ");
    let about = |code| refusal::failed(code, format!("create topic {names}"));
    let admin: AdminClient<DefaultClientContext> =
        config.create().map_err(|error| about(code_of(&error)))?;
    let wanted = missing.iter().map(|topic| {
        let replicas = TopicReplication::Fixed(REPLICAS_OF_BROKER);
        NewTopic::new(&topic.name, topic.partitions.cast_signed(), replicas)
    });
    let wanted: Vec<NewTopic<'_>> = wanted.collect();
    let options = AdminOptions::new()
        .request_timeout(Some(REQUEST_MAX))
        .operation_timeout(Some(REQUEST_MAX));
    let created = wait(admin.create_topics(&wanted, &options));
    for topic in created.map_err(|error| about(code_of(&error)))? {
        match topic {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => {
                return Err(refusal::failed(code, format!("create topic `{name}`")));
            }
        }
    }
    Ok(())
}

pub(crate) fn code_of(error: &KafkaError) -> RDKafkaErrorCode {
    let code = error.rdkafka_error_code();
    code.unwrap_or(RDKafkaErrorCode::Unknown)
}

/// Waits on this thread for what the library's own threads will do.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
