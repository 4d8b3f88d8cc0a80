//! Rates, latencies, links, events and what was used, as they are written.

use std::collections::BTreeMap;

use muster_measure::{LatencyFigures, Percentiles};
use serde::{Deserialize, Serialize};

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
    /// Due to arrival at the first backend.
    pub end_to_end: Option<LatencyFigures>,
    /// Begin of the TCP handshake to the end of the protocol's.
    pub connect: Option<LatencyFigures>,
    /// A query's due to its answer.
    pub command_request: Option<LatencyFigures>,
    /// A reply's due to its answer.
    pub command_response: Option<LatencyFigures>,
    /// A command issued to its reply seen.
    pub command_loop: Option<LatencyFigures>,
}

impl Latencies {
    /// Every leg with its name, in the order of the result.
    pub fn legs(&self) -> [(&'static str, Option<&LatencyFigures>); 9] {
        [
            ("response", self.response.as_ref()),
            ("service", self.service.as_ref()),
            ("lateness", self.lateness.as_ref()),
            ("held", self.held.as_ref()),
            ("end_to_end", self.end_to_end.as_ref()),
            ("connect", self.connect.as_ref()),
            ("command_request", self.command_request.as_ref()),
            ("command_response", self.command_response.as_ref()),
            ("command_loop", self.command_loop.as_ref()),
        ]
    }
}

/// A percentile in words by its field's name, such as `p99_us`: `12.3 ms`, `>= 12.3 ms`, or `-`.
pub fn in_words(of: &Percentiles, name: &str) -> String {
    let us = of.us(name);
    let words = latency(us);
    match us {
        Some(_) if of.at_least.holds(name) => format!(">= {words}"),
        Some(_) | None => words,
    }
}

/// What the generator itself used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// CPU-seconds of the whole generator.
    pub cpu_s: Option<f64>,
    /// CPU-seconds of the device shards.
    pub shards_cpu_s: Option<f64>,
    /// CPU-seconds of the consumer threads.
    pub consumers_cpu_s: Option<f64>,
    /// Largest resident set.
    pub peak_rss_bytes: Option<u64>,
    /// User memory a device.
    pub user_bytes_per_device: Option<u64>,
    /// 99th percentile of lateness.
    pub lateness_p99_us: Option<u64>,
    /// Messages sent per CPU-second of the device shards.
    pub messages_per_cpu_s: Option<f64>,
    /// How the threads and hosts fared while measuring; empty where nothing was sampled.
    pub health: Vec<HealthFigure>,
}

/// One health figure of the measured phase: of the thread, or host, that it is worst for. It decides
/// nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthFigure {
    /// `cpu`, `cpu-wait`, `cpu of consumers`, `cpu-wait of consumers`, `steal`.
    pub figure: String,
    /// The thread or host.
    pub name: String,
    /// The share of a second: of a thread what 95 % of its seconds do not exceed, of a host the mean.
    pub share: f64,
    /// The share from which on it is warned about.
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

/// What the target used, by process; null where it was not watched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TargetUse {
    /// CPU-seconds by process.
    pub cpu: Option<BTreeMap<String, f64>>,
    /// Largest resident set in bytes by process.
    pub memory: Option<BTreeMap<String, u64>>,
    /// Bytes read and written by process.
    pub io: Option<BTreeMap<String, u64>>,
    /// How the platform's own counters grew, beside the ledger.
    pub counters: Option<Vec<CounterGrowth>>,
}

/// How one of the platform's own counters grew from before the load to after settling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterGrowth {
    /// Whose counter it is: the dialect's name.
    pub platform: String,
    /// Which messages it counts, in the platform's word.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the platform made of them, in its word.
    pub status: String,
    /// By how much it grew; none if that is not known.
    pub grown: Option<u64>,
    /// What the ledger has of that, warm-up and measured phase: accepted, or rejected with a code of
    /// that class.
    pub ledger: u64,
    /// Messages of the type that were sent and of which no answer tells: some may be counted too.
    pub unanswered: u64,
    /// Whether both tell the same; none where that cannot be said.
    pub agrees: Option<bool>,
}

/// Something that happened, in seconds since T0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When it began.
    pub t_s: f64,
    /// When it ended; null for an instant.
    pub until_s: Option<f64>,
    /// What kind of event, such as `links-lost`.
    pub kind: String,
    /// What happened, in words.
    pub detail: String,
    /// When rate and latency were back; null where the event is no outage while measuring.
    pub recovery: Option<Recovery>,
}

/// The end of an outage as rate and latency show it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// From the begin of the event until both were back, to the length of a window; null if they were not
    /// before measuring ended.
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
