//! Rates, latencies, links, events and what was used, as they are written.

use std::collections::BTreeMap;

use muster_measure::{LatencyFigures, Percentiles};
use serde::{Deserialize, Serialize};

use crate::ServerCount;
use crate::number::latency;

/// A phase as it ran, in seconds since T0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `provision`, `connect`, `warm-up`, `measure` or `settle`.
    pub phase: String,
    /// Its begin.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
}

/// One latency a leg; null where the leg does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// Due to answer.
    pub response: Option<LatencyFigures>,
    /// Sent to answer.
    pub service: Option<LatencyFigures>,
    /// Due to taken: the generator's own.
    pub lateness: Option<LatencyFigures>,
    /// Taken to sent: the platform's, or what the scenario declared.
    pub held: Option<LatencyFigures>,
    /// Due to arrival at the first backend; null if its clock is another.
    pub end_to_end: Option<LatencyFigures>,
    /// Begin of the connection to a usable link; null of cold and warm messages.
    pub connect: Option<LatencyFigures>,
    /// A query's due to its answer.
    pub command_request: Option<LatencyFigures>,
    /// A reply's due to its answer.
    pub command_response: Option<LatencyFigures>,
    /// A command issued to its reply seen.
    pub command_loop: Option<LatencyFigures>,
}

/// A percentile in words by its field's name, such as `p99_us`: `12.3 ms`, `>= 12.3 ms`, or `-`.
pub(crate) fn in_words(of: &Percentiles, name: &str) -> String {
    let us = of.us(name);
    let words = latency(us);
    match us {
        Some(_) if of.at_least.holds(name) => format!(">= {words}"),
        Some(_) | None => words,
    }
}

/// Resources that the generator itself used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// CPU-seconds of the whole generator.
    pub cpu_s: Option<f64>,
    /// CPU-seconds of the device shards.
    pub shards_cpu_s: Option<f64>,
    /// CPU-seconds of the consumer threads.
    pub consumers_cpu_s: Option<f64>,
    /// Largest resident set, summed over processes.
    pub peak_rss_bytes: Option<u64>,
    /// Anonymous memory of the links, per device; null below 5,000 devices.
    pub user_bytes_per_device: Option<u64>,
    /// 99th percentile of lateness.
    pub lateness_p99_us: Option<u64>,
    /// Messages sent per CPU-second of the device shards.
    pub messages_per_cpu_s: Option<f64>,
    /// Health figures of the measured phase; empty if nothing was sampled.
    pub health: Vec<HealthFigure>,
}

/// One health figure of the measured phase, of the thread or host with the largest share. No rule judges
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthFigure {
    /// `cpu`, `cpu-wait`, `cpu of consumers`, `cpu-wait of consumers`, `steal`.
    pub figure: String,
    /// The thread or host.
    pub name: String,
    /// Share of a second: of a thread its 95th percentile, of a host the mean.
    pub share: f64,
    /// The least share that causes a warning.
    pub harmful: f64,
}

impl From<&muster_judge::Strain> for HealthFigure {
    fn from(strain: &muster_judge::Strain) -> Self {
        Self {
            figure: strain.kind.name().to_owned(),
            name: strain.name.clone(),
            share: strain.share,
            harmful: strain.kind.harmful(),
        }
    }
}

/// Resources that the target used, by process; null if `monitor` watches nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TargetUse {
    /// CPU-seconds by process.
    pub cpu: Option<BTreeMap<String, f64>>,
    /// Largest resident set in bytes by process.
    pub memory: Option<BTreeMap<String, u64>>,
    /// Growth of the platform's own counters; null if the scenario names none.
    pub counters: Option<Vec<CounterGrowth>>,
    /// Messages counted in the platform's rule engine; null without `provision.count`.
    pub counted: Option<ServerCount>,
}

/// Growth of one of the platform's own counters, from before the first link until settling has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterGrowth {
    /// Platform that the counter belongs to: the dialect's name.
    pub platform: String,
    /// Kind of messages counted, in the platform's word.
    #[serde(rename = "type")]
    pub kind: String,
    /// Outcome of the messages, in the platform's word.
    pub status: String,
    /// Its growth; null if a page was not read or began anew.
    pub grown: Option<u64>,
    /// The ledger's count, warm-up and measured phase: accepted, or rejected with such a code; null if it has none.
    pub ledger: Option<u64>,
    /// Sent messages without an answer; the platform may have counted them or not.
    pub unanswered: u64,
    /// True if `grown` lies between `ledger` and `ledger + unanswered`, or if a counter of failures is 0; null if
    /// undecidable, such as when messages of others may be among at least `ledger`.
    pub agrees: Option<bool>,
}

/// Something that happened, in seconds since T0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its begin; negative before the start of the run.
    pub t_s: f64,
    /// Its end; null for an instant, or if it did not end.
    pub until_s: Option<f64>,
    /// The kind of event; see the table of events.
    pub kind: String,
    /// Description in words.
    pub detail: String,
    /// Time until rate and latency were normal again; null if the event is no outage.
    pub recovery: Option<Recovery>,
}

impl Event {
    /// An event at one instant.
    pub fn new(t_s: f64, kind: &str, detail: String) -> Self {
        Self {
            t_s,
            until_s: None,
            kind: kind.to_owned(),
            detail,
            recovery: None,
        }
    }

    /// The same event with an end.
    #[must_use]
    pub fn until(self, until_s: f64) -> Self {
        let until_s = Some(until_s);
        Self { until_s, ..self }
    }
}

/// The end of an outage as rate and latency show it: answers and arrivals are at 90 % of their usual
/// share, and medians below twice the usual ones or 1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// From the begin of the event until then; null if not while measuring.
    pub after_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_that_is_a_lower_bound_says_so() {
        let json = "{\"p50_us\":749,\"p90_us\":null,\"p95_us\":null,\"p99_us\":12345,\"p99_9_us\":null,\"at_least\":[\"p99_us\"]}";
        let read: Percentiles = serde_json::from_str(json).expect("percentiles");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), json);
        assert_eq!(in_words(&read, "p50_us"), "749 us");
        assert_eq!(in_words(&read, "p99_us"), ">= 12.3 ms");
        assert_eq!(in_words(&read, "p90_us"), "-");
        let exact = Percentiles::default();
        let text = serde_json::to_string(&exact).expect("JSON");
        assert!(!text.contains("at_least"), "{text}");
    }
}
