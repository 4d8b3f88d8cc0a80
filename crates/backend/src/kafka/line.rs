//! A consumer at librdkafka.

use std::sync::Arc;
use std::time::Duration;

use muster_net::Waker;
use muster_scenario::KafkaNorthbound;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::fetched::{Fetched, Record};
use super::listener::{Heard, Listener, News};
use super::refusal::Refusal;
use super::rights::may_read;
use super::topics::{Finding, code_of, ends, topics};

/// The consumer, and what it says beside messages.
pub(crate) struct Line {
    consumer: Arc<BaseConsumer<Listener>>,
    fetched: Arc<Fetched>,
    heard: Heard,
}

/// Who says which partitions a consumer consumes.
#[derive(Debug, Clone)]
pub(crate) enum Share {
    /// Nobody: it is alone, and they are all.
    All,
    /// Its group, which it is to join.
    Asked,
    /// Its group has given it these, for the first time or once more.
    Given(TopicPartitionList, Turn),
}

/// How often a group has given a consumer its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// They begin at their ends, and the group knows it from there on.
    First,
    /// They go on where the group left them.
    Later,
}

/// What a consumer is to consume.
pub(crate) struct Prepared {
    /// What was found that is worth a word, whatever came of it.
    pub(crate) told: Vec<Finding>,
    /// Whether it has its partitions now, or has only asked its group for them.
    pub(crate) has_all: Result<bool, Refusal>,
}

/// What finds out what a consumer is to consume, and takes it up. It may take seconds, and belongs on a
/// thread of its own.
pub(crate) struct Preparation {
    consumer: Arc<BaseConsumer<Listener>>,
    fetched: Arc<Fetched>,
    config: ClientConfig,
    plan: KafkaNorthbound,
    share: Share,
}

impl Line {
    /// Nothing is consumed yet. `waker` is called when something waits to be taken.
    pub(crate) fn open(config: &ClientConfig, waker: Waker) -> Result<Self, Refusal> {
        let (listener, heard) = Listener::new();
        let made: KafkaResult<BaseConsumer<Listener>> =
            config.create_with_context(listener.with(config));
        let mut consumer = made.map_err(|error| Refusal::unbuilt(&error))?;
        let also = waker.clone();
        consumer.set_nonempty_callback(move || also.wake());
        let consumer = Arc::new(consumer);
        let wake = Box::new(move || waker.wake());
        let fetched = Arc::new(Fetched::new(Arc::clone(&consumer), wake));
        Ok(Self {
            consumer,
            fetched,
            heard,
        })
    }

    pub(crate) fn prepare(
        &self,
        config: &ClientConfig,
        plan: &KafkaNorthbound,
        share: Share,
    ) -> Preparation {
        Preparation {
            consumer: Arc::clone(&self.consumer),
            fetched: Arc::clone(&self.fetched),
            config: config.clone(),
            plan: plan.clone(),
            share,
        }
    }

    /// Hands over the copies that wait, at most so many; whether more may wait. What else waited is
    /// news then.
    pub(crate) fn take(&self, most: usize, mut each: impl FnMut(&Record<'_>)) -> bool {
        // What was fetched before a partition's records were gathered comes first.
        for _ in 0..most {
            match self.next() {
                Some(message) => each(&Record::of(&message)),
                None => return self.fetched.take(most, each),
            }
        }
        true
    }

    /// The next copy in the consumer's own queue; none once nothing waits there.
    fn next(&self) -> Option<BorrowedMessage<'_>> {
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
        self.heard.news.try_recv().ok()
    }

    /// The partitions that the group gave since this was asked last.
    pub(crate) fn given(&self) -> Option<TopicPartitionList> {
        self.heard.given.try_recv().ok()
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
    /// Finds the topics and where they end, creates those that are missing, and takes the partitions up.
    pub(crate) fn carry_out(&self) -> Prepared {
        let mut told = Vec::new();
        let has_all = self.take_up(&mut told);
        Prepared { told, has_all }
    }

    fn take_up(&self, told: &mut Vec<Finding>) -> Result<bool, Refusal> {
        match &self.share {
            Share::Given(partitions, turn) => {
                self.begin(partitions, *turn)?;
                return Ok(true);
            }
            Share::All | Share::Asked => {}
        }
        let partitions = topics(&self.consumer, &self.config, &self.plan, told)?;
        let topics = self.plan.topics.iter();
        let consumed = topics.filter(|topic| topic.records.are_consumed());
        let consumed: Vec<&str> = consumed.map(|topic| topic.name.as_str()).collect();
        may_read(&self.config, &consumed)?;
        let is_alone = matches!(self.share, Share::All);
        if is_alone {
            self.assign(&self.ends(&partitions)?)?;
        } else {
            self.join(&consumed)?;
        }
        Ok(is_alone)
    }

    fn join(&self, consumed: &[&str]) -> Result<(), Refusal> {
        let done = self.consumer.subscribe(consumed);
        done.map_err(|error| Refusal::of(code_of(&error), "join the group"))
    }

    /// They are assigned before the group is told: it may refuse that while it is given out anew, which
    /// goes on only when they are.
    fn begin(&self, partitions: &TopicPartitionList, turn: Turn) -> Result<(), Refusal> {
        if turn == Turn::Later || partitions.count() == 0 {
            return self.assign(partitions);
        }
        let from = self.ends(partitions)?;
        self.assign(&from)?;
        let committed = self.consumer.commit(&from, CommitMode::Sync);
        committed.map_err(|error| Refusal::of(code_of(&error), "tell the group where it begins"))
    }

    /// Records are gathered before the first is fetched, and once more after the library has stopped to fetch
    /// what it fetched until now: it takes a partition's queue back then, a little after it has said so, and
    /// before it answers what is asked next.
    fn assign(&self, from: &TopicPartitionList) -> Result<(), Refusal> {
        self.fetched.gather(from);
        let done = self.consumer.assign(from);
        let done = done.and_then(|()| self.consumer.assignment());
        done.map_err(|error| Refusal::of(code_of(&error), "take the partitions up"))?;
        self.fetched.gather(from);
        Ok(())
    }

    fn ends(&self, partitions: &TopicPartitionList) -> Result<TopicPartitionList, Refusal> {
        let found = ends(&self.consumer, partitions);
        found.map_err(|error| Refusal::of(code_of(&error), "find where the topics end"))
    }
}

impl Drop for Line {
    /// The library ends no consumer that owes it an answer to what the group gave.
    fn drop(&mut self) {
        self.consumer.context().leave();
        let _ = self.consumer.assign(&TopicPartitionList::new());
    }
}
