//! What goes to the devices, as it is written: commands, and other devices' messages.

use std::collections::BTreeMap;

use muster_measure::{CommandLedger, DrainLedger, ReceptionLedger};
use serde::{Deserialize, Serialize};

use crate::{LatencyFigures, LostIds};

/// Where commands and queries went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommandAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: CommandLedger,
    /// The queries kept apart as cold; null where none are, or there are no queries.
    pub queries_cold: Option<QueriesDue>,
    /// The queries due while measuring without them; null likewise.
    pub queries_warm: Option<QueriesDue>,
    /// Which commands were delivered and not received.
    pub not_received_ids: LostIds,
    /// How the commands drained that were kept for devices that were offline on purpose; null where
    /// none were.
    pub offline_queue: Option<DrainAccount>,
}

/// What became of queries that were due, whether they could be sent or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueriesDue {
    /// A command came.
    pub received_by_query: u64,
    /// Answered without a command.
    pub no_command: u64,
    /// Refused.
    pub rejected: u64,
    /// No answer in time.
    pub timed_out: u64,
    /// The link ended before the answer.
    pub broken: u64,
    /// Open at the end of settling.
    pub in_flight: u64,
    /// Never sent.
    pub shed: u64,
}

/// What devices got that subscribe to other devices' messages: each subscriber is an account of
/// its own, and the sums are over all of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiveAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: ReceptionLedger,
    /// Due to a subscriber's first copy, measured cohort; null where clocks differ.
    pub end_to_end: Option<LatencyFigures>,
    /// What each subscription got, by `<device>/<stream>`: the first 1,000.
    pub by_subscriber: BTreeMap<String, SubscriberRow>,
    /// How the messages drained that were kept for subscribers that were offline on purpose; null
    /// where none were.
    pub offline_queue: Option<DrainAccount>,
}

/// What one subscriber got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubscriberRow {
    /// Was to get so many.
    pub expected: u64,
    /// First copies.
    pub arrived: u64,
    /// Further copies.
    pub again: u64,
    /// Expected and absent.
    pub lost: u64,
}

/// How the queues drained that the platform kept while devices were offline on purpose.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DrainAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: DrainLedger,
    /// When the platform answered the first device that came back, in seconds since T0.
    pub began_s: Option<f64>,
    /// When the last of it came, in seconds since T0.
    pub ended_s: Option<f64>,
    /// What came a second between these two.
    pub rate: Option<f64>,
    /// From a device's return to the last of what came to it: of each device to which anything came.
    pub took: Option<LatencyFigures>,
    /// The device that took longest.
    pub slowest: Option<String>,
}
