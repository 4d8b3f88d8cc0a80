//! A consumer at librdkafka.

use std::sync::Arc;
use std::time::Duration;

use muster_conduct::RefusalCause;
use muster_net::Waker;
use muster_plan::KafkaNorthbound;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::fetched::{Fetched, Record};
use super::layout::Layout;
use super::listener::{Callbacks, Listener, News};
use super::refusal;
use super::rights::may_read;
use super::topics::{Finding, code_of, ends, topics};

/// A consumer with its queue of records and its callbacks.
pub(crate) struct Line {
    consumer: Arc<BaseConsumer<Listener>>,
    fetched: Arc<Fetched>,
    callbacks: Callbacks,
}

/// Source of a consumer's partitions.
#[derive(Debug, Clone)]
pub(crate) enum Share {
    /// Nobody: it is alone, and they are all.
    All,
    /// Its group, which it is to join.
    Asked,
    /// Its group has given it these, for the first time or once more.
    Given(TopicPartitionList, Turn),
    /// Nobody: these were added to its topics, besides those that it has.
    Further(TopicPartitionList),
}

/// Number of times that a group has given a consumer its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Begins at their ends, which the group keeps from there on.
    First,
    /// Continues where the group left them.
    Later,
}

/// Partitions of a consumer.
pub(crate) struct Prepared {
    /// Findings worth reporting, in any case.
    pub(crate) findings: Vec<Finding>,
    /// The partitions of the topics that it consumes, where it has looked for all of them.
    pub(crate) layout: Option<Layout>,
    /// True if it has its partitions now, false if it has only asked its group for them.
    pub(crate) has_all: Result<bool, RefusalCause>,
    /// The share that was to be taken up.
    pub(crate) share: Share,
}

/// Finds a consumer's partitions and takes them up. It may take seconds, and belongs on a separate
/// thread.
pub(crate) struct Preparation {
    consumer: Arc<BaseConsumer<Listener>>,
    fetched: Arc<Fetched>,
    config: ClientConfig,
    plan: KafkaNorthbound,
    share: Share,
}

impl Line {
    /// Nothing is consumed yet. `waker` is called when something waits to be taken.
    pub(crate) fn open(config: &ClientConfig, waker: Waker) -> Result<Self, RefusalCause> {
        let (listener, callbacks) = Listener::new();
        let made: KafkaResult<BaseConsumer<Listener>> = config.create_with_context(listener);
        let mut consumer = made.map_err(|error| refusal::unbuilt(&error))?;
        let also = waker.clone();
        consumer.set_nonempty_callback(move || also.wake());
        let consumer = Arc::new(consumer);
        let wake = Box::new(move || waker.wake());
        let fetched = Arc::new(Fetched::new(Arc::clone(&consumer), wake));
        Ok(Self {
            consumer,
            fetched,
            callbacks,
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

    /// Hands over at most `most` of the copies that wait. Returns true if more may wait. Errors,
    /// assignments and statistics that waited are news afterwards.
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
                // The listener has callbacks of it.
                Some(Err(_)) => {}
                None if self.consumer.context().was_touched() => {}
                None => return None,
            }
        }
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.callbacks.news.try_recv().ok()
    }

    /// The partitions that the group gave since this was asked last.
    pub(crate) fn given(&self) -> Option<TopicPartitionList> {
        self.callbacks.given.try_recv().ok()
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
    pub(crate) fn carry_out(self) -> Prepared {
        let (mut findings, mut layout) = (Vec::new(), None);
        let has_all = self.take_up(&mut findings, &mut layout);
        Prepared {
            findings,
            layout,
            has_all,
            share: self.share,
        }
    }

    fn take_up(
        &self,
        findings: &mut Vec<Finding>,
        layout: &mut Option<Layout>,
    ) -> Result<bool, RefusalCause> {
        match &self.share {
            Share::Given(partitions, turn) => {
                self.begin(partitions, *turn)?;
                return Ok(true);
            }
            Share::Further(partitions) => {
                self.add(partitions)?;
                return Ok(true);
            }
            Share::All | Share::Asked => {}
        }
        let partitions = topics(&self.consumer, &self.config, &self.plan, findings)?;
        *layout = Some(Layout::of(&partitions));
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

    fn join(&self, consumed: &[&str]) -> Result<(), RefusalCause> {
        let done = self.consumer.subscribe(consumed);
        done.map_err(|error| refusal::failed(code_of(&error), "join the group"))
    }

    /// Assigns them before the commit to the group, which may refuse that while it rebalances, and
    /// needs the assignment to go on.
    fn begin(&self, partitions: &TopicPartitionList, turn: Turn) -> Result<(), RefusalCause> {
        if turn == Turn::Later || partitions.count() == 0 {
            return self.assign(partitions);
        }
        let from = self.ends(partitions)?;
        self.assign(&from)?;
        let committed = self.consumer.commit(&from, CommitMode::Sync);
        committed.map_err(|error| {
            refusal::failed(code_of(&error), "commit to the group where it begins")
        })
    }

    /// All that is in them came while the run went on: they are consumed from their beginnings.
    fn add(&self, partitions: &TopicPartitionList) -> Result<(), RefusalCause> {
        let new = self.absent(partitions).and_then(|new| {
            self.fetched.gather(&new);
            self.consumer.incremental_assign(&new)?;
            self.consumer.assignment()?;
            Ok(new)
        });
        let failed = |error| refusal::failed(code_of(&error), "take further partitions up");
        self.fetched.gather(&new.map_err(failed)?);
        Ok(())
    }

    /// Returns those that the consumer does not have.
    fn absent(&self, partitions: &TopicPartitionList) -> KafkaResult<TopicPartitionList> {
        let (has, mut absent) = (self.consumer.assignment()?, TopicPartitionList::new());
        for it in partitions.elements() {
            let (topic, number) = (it.topic(), it.partition());
            if has.find_partition(topic, number).is_none() {
                absent.add_partition_offset(topic, number, Offset::Beginning)?;
            }
        }
        Ok(absent)
    }

    /// Records are gathered before the first is fetched, and once more after the library has stopped to fetch
    /// what it fetched until now: it takes a partition's queue back then, a little after it has said so, and
    /// before it answers what is asked next.
    fn assign(&self, from: &TopicPartitionList) -> Result<(), RefusalCause> {
        self.fetched.gather(from);
        let done = self.consumer.assign(from);
        let done = done.and_then(|()| self.consumer.assignment());
        done.map_err(|error| refusal::failed(code_of(&error), "take the partitions up"))?;
        self.fetched.gather(from);
        Ok(())
    }

    fn ends(&self, partitions: &TopicPartitionList) -> Result<TopicPartitionList, RefusalCause> {
        let found = ends(&self.consumer, partitions);
        found.map_err(|error| refusal::failed(code_of(&error), "find where the topics end"))
    }
}

impl Drop for Line {
    /// The library ends no consumer that owes it an answer to what the group gave.
    fn drop(&mut self) {
        self.consumer.context().leave();
        let _ = self.consumer.assign(&TopicPartitionList::new());
    }
}

#[cfg(test)]
mod tests {
    use muster_plan::Sasl;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    use super::*;

    const TURN: Duration = Duration::from_millis(100);

    fn northbound() -> KafkaNorthbound {
        let (servers, topics, sasl) = (Vec::new(), Vec::new(), Sasl::Plain);
        KafkaNorthbound {
            servers,
            topics,
            sasl,
        }
    }

    /// Law: messages on added partitions are consumed from the beginning, and existing partitions
    /// stay as they are.
    #[test]
    fn partitions_that_were_added_are_consumed_from_their_beginnings() {
        let cluster = MockCluster::new(1).expect("a mock cluster");
        cluster.create_topic("t", 4, 1).expect("a topic");
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer: BaseProducer = config.create().expect("a producer");
        for partition in 0..4 {
            let record = BaseRecord::<str, str>::to("t").partition(partition);
            assert!(producer.send(record.key("k").payload("v")).is_ok());
        }
        producer.flush(TURN * 100).expect("they are written");
        config.set("group.id", "g");
        let (listener, _callbacks) = Listener::new();
        let consumer: KafkaResult<BaseConsumer<Listener>> = config.create_with_context(listener);
        let consumer = Arc::new(consumer.expect("a consumer"));
        let fetched = Arc::new(Fetched::new(Arc::clone(&consumer), Box::new(|| {})));
        let preparation = |share| Preparation {
            consumer: Arc::clone(&consumer),
            fetched: Arc::clone(&fetched),
            config: config.clone(),
            plan: northbound(),
            share,
        };
        let range = |from, to| {
            let mut partitions = TopicPartitionList::new();
            partitions.add_partition_range("t", from, to);
            partitions
        };
        let first = preparation(Share::All);
        let ends = first.ends(&range(0, 1)).expect("ends");
        first.assign(&ends).expect("they are taken up");
        for _ in 0..2 {
            let done = preparation(Share::Further(range(1, 3))).carry_out();
            assert!(matches!(done.has_all, Ok(true)), "they are taken up");
            assert!(done.layout.is_none());
        }
        let mut came = Vec::new();
        for _ in 0..300 {
            fetched.take(100, |record| came.push(record.message().partition));
            assert!(consumer.poll(TURN).is_none(), "it is gathered");
            if came.len() >= 2 {
                break;
            }
        }
        came.sort_unstable();
        assert_eq!(came, [2, 3]);
    }
}
