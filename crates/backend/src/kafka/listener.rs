//! Callbacks of librdkafka besides messages: errors, assignments and its own statistics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaRespErr;

use super::sample::Sample;

/// Pieces of news that may wait: minutes of them, since each kind comes about once a second.
const NEWS_MAX: usize = 1_024;

/// News between two messages.
#[derive(Debug)]
pub(crate) enum News {
    /// Something failed; the reason is the library's own words.
    Failed(RDKafkaErrorCode, String),
    /// The group revoked this number of partitions.
    Revoked(usize),
    /// The statistics of the last second.
    Sampled(Sample),
}

impl News {
    pub(crate) const fn is_revocation(&self) -> bool {
        matches!(self, Self::Revoked(_))
    }
}

/// Receives the callbacks of one consumer, all of them on the thread that polls it.
#[derive(Debug)]
pub(crate) struct Listener {
    news: SyncSender<News>,
    given: SyncSender<TopicPartitionList>,
    /// True if a callback came since the last look: a poll that only served one gives no message,
    /// and does not show the messages that wait behind it.
    is_touched: AtomicBool,
    /// True once the consumer takes up no more partitions of the group.
    is_leaving: AtomicBool,
}

/// News of a consumer.
pub(crate) struct Callbacks {
    pub(crate) news: Receiver<News>,
    /// The partitions that the group gives. The library waits until they are assigned, which is the
    /// only answer that it takes; till then the consumer stays in its group, and nothing is taken back.
    pub(crate) given: Receiver<TopicPartitionList>,
}

impl Listener {
    pub(crate) fn new() -> (Self, Callbacks) {
        let (news, reported) = sync_channel(NEWS_MAX);
        // No more are given before these are assigned.
        let (given, assigned) = sync_channel(1);
        let listener = Self {
            news,
            given,
            is_touched: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
        };
        let callbacks = Callbacks {
            news: reported,
            given: assigned,
        };
        (listener, callbacks)
    }

    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Returns true if a callback came since the last call.
    pub(crate) fn was_touched(&self) -> bool {
        self.is_touched.swap(false, Ordering::Relaxed)
    }

    fn touch(&self) {
        self.is_touched.store(true, Ordering::Relaxed);
    }

    fn report(&self, news: News) {
        self.touch();
        // Beyond the bound only the same would be said again.
        let _ = self.news.try_send(news);
    }

    fn give(
        &self,
        consumer: &BaseConsumer<Self>,
        partitions: &TopicPartitionList,
    ) -> KafkaResult<()> {
        self.touch();
        let is_running = !self.is_leaving.load(Ordering::Relaxed);
        if is_running && self.given.try_send(partitions.clone()).is_ok() {
            return Ok(());
        }
        consumer.assign(partitions)
    }
}

impl ClientContext for Listener {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {
        self.touch();
    }

    fn stats(&self, statistics: Statistics) {
        self.report(News::Sampled(Sample::of(&statistics)));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        let code = code.unwrap_or(RDKafkaErrorCode::Unknown);
        self.report(News::Failed(code, reason.to_owned()));
    }
}

impl ConsumerContext for Listener {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let done = if what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.give(consumer, partitions)
        } else {
            self.report(News::Revoked(partitions.count()));
            consumer.unassign()
        };
        if let Err(error) = done {
            self.error(
                error,
                "the group's partitions cannot be taken up or given back",
            );
        }
    }

    fn commit_callback(&self, _: KafkaResult<()>, _: &TopicPartitionList) {
        self.touch();
    }
}
