//! A consumer at librdkafka.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use muster_net::Waker;
use muster_scenario::KafkaNorthbound;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::listener::{Listener, News};
use super::refusal::Refusal;
use super::topics::{code_of, ends, topics};

/// The consumer, and what it says beside messages.
pub(crate) struct Line {
    consumer: Arc<BaseConsumer<Listener>>,
    news: Receiver<News>,
}

/// What a consumer is to consume.
pub(crate) struct Prepared {
    /// What was found that is worth a word, whatever came of it.
    pub(crate) told: Vec<String>,
    /// From where; none where the group gives out the partitions.
    pub(crate) from: Result<Option<TopicPartitionList>, Refusal>,
}

/// What finds out what a consumer is to consume. It may take seconds, and belongs on a thread of
/// its own.
pub(crate) struct Preparation {
    consumer: Arc<BaseConsumer<Listener>>,
    config: ClientConfig,
    plan: KafkaNorthbound,
    has_group: bool,
}

impl Line {
    /// Nothing is consumed yet. `waker` is called when something waits to be taken.
    pub(crate) fn open(config: &ClientConfig, waker: Waker) -> Result<Self, Refusal> {
        let (listener, news) = Listener::new();
        let made: KafkaResult<BaseConsumer<Listener>> = config.create_with_context(listener);
        let mut consumer = made.map_err(|error| Refusal::unbuilt(&error))?;
        consumer.set_nonempty_callback(move || waker.wake());
        let consumer = Arc::new(consumer);
        Ok(Self { consumer, news })
    }

    pub(crate) fn prepare(
        &self,
        config: &ClientConfig,
        plan: &KafkaNorthbound,
        has_group: bool,
    ) -> Preparation {
        Preparation {
            consumer: Arc::clone(&self.consumer),
            config: config.clone(),
            plan: plan.clone(),
            has_group,
        }
    }

    /// Takes the partitions up, or asks the group for them.
    pub(crate) fn take_up(
        &self,
        plan: &KafkaNorthbound,
        from: Option<&TopicPartitionList>,
    ) -> Result<(), Refusal> {
        let consumed = plan
            .topics
            .iter()
            .filter(|topic| topic.records.are_consumed());
        let consumed: Vec<&str> = consumed.map(|topic| topic.name.as_str()).collect();
        let done = match from {
            Some(from) => self.consumer.assign(from),
            None => self.consumer.subscribe(&consumed),
        };
        done.map_err(|error| Refusal::of(code_of(&error), "take the partitions up"))
    }

    /// Messages are due from now on.
    pub(crate) fn start(&self) {
        self.consumer.context().start();
    }

    /// The next copy; none once nothing waits. What else waited before it is news then.
    pub(crate) fn next(&self) -> Option<BorrowedMessage<'_>> {
        loop {
            match self.consumer.poll(Duration::ZERO) {
                Some(Ok(message)) => return Some(message),
                // The listener has heard of it.
                Some(Err(_)) => {}
                None if self.consumer.context().was_touched() => {}
                None => return None,
            }
        }
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// Fetches nothing for a while, or again, of what it has now. What was fetched and not taken
    /// is fetched a second time then.
    pub(crate) fn pause(&self, is_paused: bool) -> KafkaResult<()> {
        let partitions = self.consumer.assignment()?;
        if is_paused {
            self.consumer.pause(&partitions)
        } else {
            self.consumer.resume(&partitions)
        }
    }
}

impl Preparation {
    /// Finds the topics and where they end; creates those that are missing.
    pub(crate) fn carry_out(&self) -> Prepared {
        let mut told = Vec::new();
        let from = self.find(&mut told);
        Prepared { told, from }
    }

    fn find(&self, told: &mut Vec<String>) -> Result<Option<TopicPartitionList>, Refusal> {
        let topics = topics(&self.consumer, &self.config, &self.plan, told)?;
        let from = match self.has_group {
            true => None,
            false => Some(ends(&self.consumer, &topics.consumed)),
        };
        let refused = |error| Refusal::of(code_of(&error), "find where the topics end");
        let from = from.transpose().map_err(refused)?;
        told.extend(topics.differences);
        Ok(from)
    }
}
