//! Rates, latencies, links, events and what was used, as they are written.

use std::collections::BTreeMap;

use muster_measure::AtLeast;
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

/// The rates of the measured phase, per second (docs/semantics.md#the-four-rates).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Due by the declared rate.
    pub offered: Option<f64>,
    /// Sent.
    pub issued: Option<f64>,
    /// Ended with an answer.
    pub completed: Option<f64>,
    /// Ended with acceptance.
    pub accepted: Option<f64>,
    /// First copies at the first backend; null without one.
    pub arrived: Option<f64>,
}

/// One latency a leg; null where the leg does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// Due to answer.
    pub response: Option<Latency>,
    /// Sent to answer.
    pub service: Option<Latency>,
    /// Due to taken: the generator's own.
    pub lateness: Option<Latency>,
    /// Taken to sent: the platform's, or what the scenario declared.
    pub held: Option<Latency>,
    /// Due to arrival at the first backend.
    pub end_to_end: Option<Latency>,
    /// Begin of the TCP handshake to the end of the protocol's.
    pub connect: Option<Latency>,
    /// A query's due to its answer.
    pub command_request: Option<Latency>,
    /// A reply's due to its answer.
    pub command_response: Option<Latency>,
    /// A command issued to its reply seen.
    pub command_loop: Option<Latency>,
}

impl Latencies {
    /// Every leg with its name, in the order of the result.
    pub fn legs(&self) -> [(&'static str, Option<&Latency>); 9] {
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

/// The distribution of one leg: of the answered, and of all that were due.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// How many were answered.
    pub count: u64,
    /// How many were not, and stand in `all_due` at their lower bound.
    pub censored: u64,
    /// Mean of the answered.
    pub mean_us: Option<u64>,
    /// Percentiles of the answered.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// How many lie above the histogram's top, one hour.
    pub above_top: u64,
    /// Largest of the answered.
    pub max_us: Option<u64>,
    /// Percentiles of all due; null where it is not known how many were due.
    pub all_due: Option<Percentiles>,
    /// Percentiles of the answered without the generator's own delay; null for a leg that has no
    /// second time.
    pub lower: Option<Percentiles>,
}

/// Percentiles; null where there are fewer than 10 / (1 - X) values (docs/semantics.md#when-a-percentile-is-printed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50_us: Option<u64>,
    /// 90 %.
    pub p90_us: Option<u64>,
    /// 95 %.
    pub p95_us: Option<u64>,
    /// 99 %.
    pub p99_us: Option<u64>,
    /// 99.9 %.
    pub p99_9_us: Option<u64>,
    /// Which of them are lower bounds, since messages without an end are among the values.
    #[serde(default, skip_serializing_if = "AtLeast::is_none")]
    pub at_least: AtLeast,
}

impl Percentiles {
    /// One of them by its field's name.
    pub fn us(&self, name: &str) -> Option<u64> {
        match name {
            "p50_us" => self.p50_us,
            "p90_us" => self.p90_us,
            "p95_us" => self.p95_us,
            "p99_us" => self.p99_us,
            "p99_9_us" => self.p99_9_us,
            _ => None,
        }
    }

    /// One of them in words by its field's name, such as `p99_us`: `12.3 ms`, `>= 12.3 ms`, or `-`.
    pub fn in_words(&self, name: &str) -> String {
        let us = self.us(name);
        let words = latency(us);
        match us {
            Some(_) if self.at_least.holds(name) => format!(">= {words}"),
            Some(_) | None => words,
        }
    }
}

/// Links opened, refused and lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Links {
    /// Links that the plan wants.
    pub wanted: u64,
    /// Links up at the end of the connect phase.
    pub up_at_start: u64,
    /// Handshakes begun, counted at the socket.
    pub opened: u64,
    /// Handshakes completed.
    pub connected: u64,
    /// Handshakes that failed, by cause.
    pub connect_failures: BTreeMap<String, u64>,
    /// Links that ended before the run did, by cause.
    pub disconnects: BTreeMap<String, u64>,
    /// Messages without an answer by design that were the last sent on links that the platform
    /// ended, by the cause of that end.
    pub last_sent: BTreeMap<String, u64>,
    /// Links up at the end, counted by walking them.
    pub open_at_end: Option<u64>,
    /// Acknowledgements of MQTT for a packet id that was answered before.
    pub mqtt_again: Option<u64>,
    /// Acknowledgements of MQTT for a packet id that was never used.
    pub mqtt_unknown: Option<u64>,
    /// Flights of DTLS handshakes that were said again (RFC 6347 section 4.2.4).
    pub dtls_retransmitted: Option<u64>,
    /// Datagrams that are no message of CoAP.
    pub coap_malformed: Option<u64>,
    /// Answers of CoAP that nobody waited for, also those to copies of a request that had its answer.
    pub coap_stray: Option<u64>,
    /// Pings and requests of the platform, for which a device has no use.
    pub coap_unexpected: Option<u64>,
    /// Responses of CoAP that came again, whether or not it is known to which message.
    pub coap_duplicates: Option<u64>,
    /// Records of DTLS that did not open, could not be read, or were nobody's.
    pub dtls_discarded: Option<u64>,
    /// Records of DTLS that came again.
    pub dtls_replayed: Option<u64>,
    /// Errors that datagrams brought back (ICMP), such as that nobody listens; of several between two calls
    /// of the kernel one counts.
    pub icmp_errors: Option<u64>,
    /// Datagrams that the kernel refused: no route, a firewall.
    pub datagrams_refused: Option<u64>,
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
        assert_eq!(read.in_words("p50_us"), "749 us");
        assert_eq!(read.in_words("p99_us"), ">= 12.3 ms");
        assert_eq!(read.in_words("p90_us"), "-");
        let exact = Percentiles::default();
        let text = serde_json::to_string(&exact).expect("JSON");
        assert!(!text.contains("at_least"), "{text}");
    }
}
