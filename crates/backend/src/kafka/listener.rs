//! What librdkafka says beside messages: errors, assignments and its own statistics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaRespErr;

use super::sample::Sample;
use super::topics::ends;

/// Pieces of news that may wait: minutes of them, since each kind comes about once a second.
const NEWS_MAX: usize = 1_024;

/// What is heard between two messages.
#[derive(Debug)]
pub(crate) enum News {
    /// Something failed; the reason is the library's own words.
    Failed(RDKafkaErrorCode, String),
    /// The group gave the consumer its partitions.
    Assigned,
    /// The group took so many partitions from it.
    Revoked(usize),
    /// The statistics of the last second.
    Sampled(Sample),
}

impl News {
    pub(crate) const fn is_assignment(&self) -> bool {
        matches!(self, Self::Assigned)
    }
}

/// Hears for one consumer. Everything is called on the thread that polls it.
#[derive(Debug)]
pub(crate) struct Listener {
    news: SyncSender<News>,
    /// Whether anything was heard since the last look: a poll that only served this gives no
    /// message, and says nothing of those that wait behind it.
    is_touched: AtomicBool,
    /// Whether messages are due: from then on a partition that comes back goes on where the group
    /// left it, not at its end.
    has_started: AtomicBool,
}

impl Listener {
    pub(crate) fn new() -> (Self, Receiver<News>) {
        let (news, heard) = sync_channel(NEWS_MAX);
        let listener = Self {
            news,
            is_touched: AtomicBool::new(false),
            has_started: AtomicBool::new(false),
        };
        (listener, heard)
    }

    pub(crate) fn start(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Whether anything was heard since this was asked last.
    pub(crate) fn was_touched(&self) -> bool {
        self.is_touched.swap(false, Ordering::Relaxed)
    }

    fn touch(&self) {
        self.is_touched.store(true, Ordering::Relaxed);
    }

    fn tell(&self, news: News) {
        self.touch();
        // Beyond the bound only the same would be said again.
        let _ = self.news.try_send(news);
    }

    /// Before messages are due a partition begins at its end, and the group knows it from there on.
    fn assign(
        &self,
        consumer: &BaseConsumer<Self>,
        partitions: &TopicPartitionList,
    ) -> KafkaResult<()> {
        if self.has_started.load(Ordering::Relaxed) || partitions.count() == 0 {
            return consumer.assign(partitions);
        }
        let from = ends(consumer, partitions)?;
        consumer.assign(&from)?;
        consumer.commit(&from, CommitMode::Sync)
    }
}

impl ClientContext for Listener {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {
        self.touch();
    }

    fn stats(&self, statistics: Statistics) {
        self.tell(News::Sampled(Sample::of(&statistics)));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        let code = code.unwrap_or(RDKafkaErrorCode::Unknown);
        self.tell(News::Failed(code, reason.to_owned()));
    }
}

impl ConsumerContext for Listener {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let count = partitions.count();
        let is_given = what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        let (done, news) = if is_given {
            (self.assign(consumer, partitions), News::Assigned)
        } else {
            (consumer.unassign(), News::Revoked(count))
        };
        match done {
            Ok(()) => self.tell(news),
            Err(error) => self.error(error, "the group's partitions cannot be taken up"),
        }
    }

    fn commit_callback(&self, _: KafkaResult<()>, _: &TopicPartitionList) {
        self.touch();
    }
}
