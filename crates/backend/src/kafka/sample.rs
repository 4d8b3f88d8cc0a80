//! Statistics of librdkafka on a consumer, once a second.

use muster_model::Micros;
use rdkafka::statistics::{Broker, Partition, Statistics};

use super::layout::TopicView;

/// Time without an answer after which a broker counts as silent. A fetch is answered after half a
/// second even if there is nothing to fetch.
pub(crate) const SILENT: Micros = Micros::from_secs(3);

/// One look at a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Messages between what was consumed and the ends of its partitions, as the last answers had
    /// them; none where nothing was consumed or fetched yet.
    pub(crate) lag: Option<u64>,
    /// Age of the oldest last answer of the brokers that lead its partitions and owe an answer.
    pub(crate) last_answer_age: Micros,
    /// A broker that leads one of its partitions and does not answer, and why that is thought.
    pub(crate) silent: Option<String>,
    /// Connections that ended since the consumer began, by broker: which of them lead changes.
    pub(crate) connections: Vec<Connections>,
    /// Topics as in the last answer of the brokers.
    pub(crate) topics: Vec<TopicView>,
}

/// Connections to one broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connections {
    pub(crate) broker: i32,
    pub(crate) ended: i64,
    /// True if it leads one of the consumer's partitions.
    pub(crate) is_leader: bool,
}

impl Sample {
    pub(crate) fn of(statistics: &Statistics) -> Self {
        let topics = statistics.topics.values();
        let partitions = || {
            let all = topics.clone().flat_map(|topic| topic.partitions.values());
            all.filter(|partition| partition.partition >= 0 && partition.desired)
        };
        let leads = |broker: &&Broker| partitions().any(|it| it.leader == broker.nodeid);
        // Connections to a coordinator or to an address alone are numbered -1, as is the leader where there is none.
        let brokers = || {
            statistics
                .brokers
                .values()
                .filter(|broker| broker.nodeid >= 0)
        };
        let connections = |broker: &Broker| Connections {
            broker: broker.nodeid,
            ended: broker.disconnects.unwrap_or(0),
            is_leader: leads(&broker),
        };
        Self {
            lag: partitions().filter_map(lag).reduce(|sum, more| sum + more),
            last_answer_age: last_answer_age(brokers().filter(leads)),
            silent: brokers().filter(leads).find_map(silence),
            connections: brokers().map(connections).collect(),
            topics: topics.clone().map(TopicView::of).collect(),
        }
    }
}

/// None where nothing was consumed or fetched yet.
fn lag(partition: &Partition) -> Option<u64> {
    let is_known = partition.app_offset >= 0 && partition.hi_offset >= 0;
    let behind = partition.hi_offset - partition.app_offset;
    is_known.then(|| u64::try_from(behind).unwrap_or(0))
}

/// A fetch waits for half a second at the broker, so that this is hardly ever more.
fn last_answer_age<'a>(leaders: impl Iterator<Item = &'a Broker>) -> Micros {
    let owing = leaders.filter(|broker| broker.waitresp_cnt > 0);
    let longest = owing.map(|broker| broker.rxidle).max();
    Micros(longest.unwrap_or(0).max(0).unsigned_abs())
}

fn silence(broker: &Broker) -> Option<String> {
    let name = &broker.nodename;
    if broker.state != "UP" {
        let state = broker.state.to_lowercase();
        return Some(format!(
            "the connection to broker {name} is not up ({state})"
        ));
    }
    let owed = owed(broker);
    let silent_s = owed / 1_000_000;
    (owed >= SILENT.get().cast_signed())
        .then(|| format!("broker {name} has not answered for {silent_s} s"))
}

/// For how long it has owed an answer, at the most. What is asked of a connection that was idle is not owed
/// since something came the last time, but since it was sent: so is the first fetch after a pause, after its
/// group was given out anew, or of a broker that leads since now. Answers come in the order of the requests,
/// so that a single one is that to the last; of several the first may be older.
fn owed(broker: &Broker) -> i64 {
    match broker.waitresp_cnt {
        ..=0 => 0,
        1 => broker.rxidle.min(broker.txidle),
        _ => broker.rxidle,
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::Topic;

    use super::*;

    /// One topic of two partitions that a broker leads, so far consumed.
    fn statistics(consumed: [i64; 2], broker: Broker) -> Statistics {
        let partition = |(number, app_offset)| Partition {
            partition: number,
            leader: broker.nodeid,
            desired: true,
            app_offset,
            hi_offset: 100,
            ..Partition::default()
        };
        let partitions = (0..).zip(consumed).map(partition);
        let topic = Topic {
            partitions: partitions.map(|it| (it.partition, it)).collect(),
            ..Topic::default()
        };
        Statistics {
            topics: [("t".to_owned(), topic)].into(),
            brokers: [("b".to_owned(), broker)].into(),
            ..Statistics::default()
        }
    }

    fn broker(state: &str, waiting: i64, idle_s: i64) -> Broker {
        Broker {
            nodeid: 1,
            nodename: "h:9092".to_owned(),
            state: state.to_owned(),
            waitresp_cnt: waiting,
            txidle: idle_s * 1_000_000,
            rxidle: idle_s * 1_000_000,
            ..Broker::default()
        }
    }

    #[test]
    fn lag_is_the_sum_over_the_partitions_of_which_something_is_known() {
        let of = |consumed| Sample::of(&statistics(consumed, broker("UP", 1, 0))).lag;
        assert_eq!(of([100, 93]), Some(7));
        assert_eq!(of([40, 60]), Some(100));
        assert_eq!(of([100, 100]), Some(0));
        // Nothing of the first was consumed yet, and then of neither.
        assert_eq!(of([-1_001, 99]), Some(1));
        assert_eq!(of([-1_001, -1_001]), None);
    }

    #[test]
    fn a_broker_is_silent_if_it_owes_an_answer_for_long_or_is_not_connected() {
        let of = |state, waiting, idle_s| {
            Sample::of(&statistics([0, 0], broker(state, waiting, idle_s))).silent
        };
        assert_eq!(of("UP", 1, 2), None);
        assert_eq!(
            of("UP", 0, 60),
            None,
            "a consumer that is paused asks for nothing"
        );
        let silent = of("UP", 1, 4).expect("it owes an answer");
        assert_eq!(silent, "broker h:9092 has not answered for 4 s");
        let down = of("DOWN", 0, 0).expect("there is no connection");
        assert_eq!(down, "the connection to broker h:9092 is not up (down)");
    }

    /// As the first fetch after a group was given out anew.
    #[test]
    fn what_is_owed_since_a_moment_ago_is_not_owed_since_something_came() {
        let of = |waiting, sent_ago| {
            let mut broker = broker("UP", waiting, 7);
            broker.txidle = sent_ago;
            Sample::of(&statistics([0, 0], broker)).silent
        };
        assert_eq!(of(1, 400_000), None);
        assert!(of(1, 3_000_000).is_some(), "it has owed it for long by now");
        assert!(of(2, 400_000).is_some(), "the first may be as old");
    }

    #[test]
    fn a_consumer_has_listened_until_the_leader_that_was_heard_longest_ago_was() {
        let mut statistics = statistics([0, 0], broker("UP", 1, 2));
        assert_eq!(
            Sample::of(&statistics).last_answer_age,
            Micros::from_secs(2)
        );
        let idle = broker("UP", 0, 60);
        statistics.brokers.insert("b".to_owned(), idle);
        let ago = Sample::of(&statistics).last_answer_age;
        assert_eq!(ago, Micros::ZERO, "it owes nothing");
    }

    #[test]
    fn brokers_that_lead_nothing_of_the_consumer_may_be_silent() {
        let mut statistics = statistics([0, 0], broker("UP", 1, 0));
        let other = Broker {
            nodeid: 2,
            ..broker("DOWN", 0, 0)
        };
        statistics.brokers.insert("o".to_owned(), other);
        assert_eq!(Sample::of(&statistics).silent, None);
    }

    #[test]
    fn a_coordinator_leads_no_partition_that_has_no_leader() {
        let mut statistics = statistics([0, 0], broker("UP", 1, 0));
        for topic in statistics.topics.values_mut() {
            topic.partitions.values_mut().for_each(|it| it.leader = -1);
        }
        let coordinator = Broker {
            nodeid: -1,
            ..broker("UP", 2, 7)
        };
        statistics.brokers.insert("c".to_owned(), coordinator);
        assert_eq!(Sample::of(&statistics).silent, None);
    }

    #[test]
    fn connections_are_told_of_each_broker_and_who_leads() {
        let mut statistics = statistics([0, 0], broker("UP", 1, 0));
        for (name, nodeid) in [("o", 2), ("address", -1)] {
            let other = Broker {
                nodeid,
                disconnects: Some(3),
                ..broker("UP", 0, 0)
            };
            statistics.brokers.insert(name.to_owned(), other);
        }
        let mut told = Sample::of(&statistics).connections;
        told.sort_by_key(|it| it.broker);
        let told: Vec<_> = told
            .iter()
            .map(|it| (it.broker, it.ended, it.is_leader))
            .collect();
        assert_eq!(told, [(1, 0, true), (2, 3, false)]);
    }
}
