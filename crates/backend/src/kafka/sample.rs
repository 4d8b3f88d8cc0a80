//! What librdkafka's statistics tell of a consumer, once a second.

use rdkafka::statistics::{Broker, Partition, Statistics};

/// How long a broker may owe an answer before it is called silent. A fetch is answered after half a
/// second even where there is nothing to fetch.
const SILENT_US: i64 = 3_000_000;

/// One look at a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Messages between what was consumed and the ends of its partitions, as the last answers had
    /// them.
    pub(crate) lag: u64,
    /// A broker that leads one of its partitions and does not answer, and why that is thought.
    pub(crate) silent: Option<String>,
    /// Connections to such brokers that ended since the consumer began.
    pub(crate) disconnects: i64,
}

impl Sample {
    pub(crate) fn of(statistics: &Statistics) -> Self {
        let topics = statistics.topics.values();
        let partitions = || {
            let all = topics.clone().flat_map(|topic| topic.partitions.values());
            all.filter(|partition| partition.partition >= 0 && partition.desired)
        };
        let leads = |broker: &&Broker| partitions().any(|it| it.leader == broker.nodeid);
        let leaders = || statistics.brokers.values().filter(leads);
        Self {
            lag: partitions().map(lag).sum(),
            silent: leaders().find_map(silence),
            disconnects: leaders().filter_map(|broker| broker.disconnects).sum(),
        }
    }
}

/// Zero where nothing was consumed or fetched yet.
fn lag(partition: &Partition) -> u64 {
    let is_known = partition.app_offset >= 0 && partition.hi_offset >= 0;
    let behind = partition.hi_offset - partition.app_offset;
    u64::try_from(behind).unwrap_or(0) * u64::from(is_known)
}

fn silence(broker: &Broker) -> Option<String> {
    let name = &broker.nodename;
    if broker.state != "UP" {
        let state = broker.state.to_lowercase();
        return Some(format!(
            "the connection to broker {name} is not up ({state})"
        ));
    }
    let is_silent = broker.waitresp_cnt > 0 && broker.rxidle >= SILENT_US;
    let silent_s = broker.rxidle / 1_000_000;
    is_silent.then(|| format!("broker {name} has not answered for {silent_s} s"))
}
