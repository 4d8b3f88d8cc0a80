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
    /// Commands; none where the scenario has none.
    pub command: Option<CommandAccount>,
    /// What devices got that subscribe to other devices' messages; none where none does.
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
    /// The messages kept apart as cold; null where none are.
    pub latency_cold: Option<Latencies>,
    /// The measured cohort without them; null where none are kept apart.
    pub latency_warm: Option<Latencies>,
    /// Its commands or queries; null where it has none.
    pub command: Option<CommandAccount>,
    /// What its subscribers got; null where it has none.
    pub receive: Option<ReceiveAccount>,
    /// The most that a burst took from due to the last byte sent; null where it sends no bursts.
    pub burst_us: Option<u64>,
}

/// One backend's account of arrivals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackendAccount {
    /// Its place in the scenario, from 0; the ledgers above hold the arrival figures of 0.
    pub number: u32,
    /// Its arrival figures.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// What the device side says (row) against what arrived (column).
    pub table: BTreeMap<String, TableRow>,
    /// First copies that more than one process took for the first: by so many the windows exceed
    /// the ledger; null for a run that was killed.
    pub split: Option<u64>,
    /// Which messages are lost.
    pub lost_ids: LostIds,
}

/// Which messages are lost, as runs of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LostIds {
    /// First and last sequence of each run, by `<device>/<stream>`.
    #[serde(flatten)]
    pub ranges: BTreeMap<String, Vec<[u32; 2]>>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}
