//! The ledgers as they are written (docs/result.md; meaning: docs/semantics.md#states-and-sums).

use std::collections::BTreeMap;

use muster_measure::{Arrivals, Ledger, TableRow};
use serde::{Deserialize, Serialize};

use crate::{CommandAccount, Latencies, Rates, ReceiveAccount};

/// All ledgers of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ledgers {
    /// Warm-up and measure: what the platform's own account must equal.
    pub uplink: Ledger,
    /// The cohort due while measuring.
    pub measured: Ledger,
    /// Commands and queries, whole run; null if the scenario has none.
    pub command: Option<CommandAccount>,
    /// Messages that subscribing devices received, whole run; null if none subscribes.
    pub receive: Option<ReceiveAccount>,
    /// Each stream by `<fleet>/<stream>`.
    pub by_stream: BTreeMap<String, StreamAccount>,
    /// Each backend by its name.
    pub by_backend: BTreeMap<String, BackendAccount>,
}

/// One stream's ledger, rates and latencies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamAccount {
    /// Warm-up and measure.
    pub ledger: Ledger,
    /// The measured phase.
    pub rates: Rates,
    /// The measured cohort.
    pub latency: Latencies,
    /// The cold messages; null if the scenario keeps none apart.
    pub latency_cold: Option<Latencies>,
    /// The other messages of the measured cohort; null likewise.
    pub latency_warm: Option<Latencies>,
    /// Its commands or queries; null if it has none.
    pub command: Option<CommandAccount>,
    /// Messages that its subscribers received; null if it has none.
    pub receive: Option<ReceiveAccount>,
    /// The longest burst, from due to the last byte sent; null without bursts.
    pub burst_us: Option<u64>,
}

/// One backend's account of arrivals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackendAccount {
    /// Its place in the scenario; the ledgers hold the arrival figures of 0.
    pub number: u32,
    /// True if it is the platform's store, which was read back: *arrived* is stored, and *lost* is accepted but not
    /// stored.
    pub is_store: bool,
    /// Its arrival figures.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// Arrivals by state on the device side; empty for a killed run.
    pub table: BTreeMap<String, TableRow>,
    /// Messages whose first copy two processes counted: the windows exceed the ledger by them.
    pub split: Option<u64>,
    /// Ids of lost messages.
    pub lost_ids: LostIds,
    /// Messages, accepted or unacknowledged, that a store lacks, and whose instant it holds for another message of their
    /// device; null where no store was read.
    #[serde(default)]
    pub overwritten: Option<u64>,
    /// Ids of overwritten messages.
    #[serde(default)]
    pub overwritten_ids: LostIds,
    /// The devices that were read of a store; null if all were.
    pub sample: Option<SampleAccount>,
}

/// A sample of devices, which alone were read of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SampleAccount {
    /// Number of its devices, spread evenly over the fleets.
    pub devices: u32,
    /// Number of devices of all fleets.
    pub of: u32,
    /// Messages of the other devices, accepted or unacknowledged: nobody looked for them.
    pub outside: u64,
}

/// Ids of messages as ranges of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LostIds {
    /// Ranges `[first, last]`; the key is `<device>/<stream>`.
    #[serde(flatten)]
    pub ranges: BTreeMap<String, Vec<[u32; 2]>>,
    /// True if there are more than the 1,000 listed ranges.
    pub truncated: bool,
}
