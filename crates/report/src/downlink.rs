//! Messages to the devices, as the result shows them: commands, and other devices' messages.

use std::collections::BTreeMap;

use muster_measure::{CommandLedger, DrainLedger, ReceptionLedger};
use serde::{Deserialize, Serialize};

use crate::{LatencyFigures, LostIds};

/// Commands and queries by where they ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommandAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: CommandLedger,
    /// The cold queries; null if there are none.
    pub queries_cold: Option<QueriesDue>,
    /// The other queries due while measuring; null likewise.
    pub queries_warm: Option<QueriesDue>,
    /// Commands that were delivered and not received.
    pub not_received_ids: LostIds,
    /// Commands kept for devices that were offline on purpose; null without such devices.
    pub offline_queue: Option<DrainAccount>,
}

/// Queries that were due, sent or not, by their end.
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

impl QueriesDue {
    pub(crate) const fn total(&self) -> u64 {
        let answered = self.received_by_query + self.no_command + self.rejected;
        answered + self.timed_out + self.broken + self.in_flight + self.shed
    }
}

/// Messages that subscribing devices received, summed over all subscribers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiveAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: ReceptionLedger,
    /// Due to a subscriber's first copy, measured cohort; null where clocks differ.
    pub end_to_end: Option<LatencyFigures>,
    /// The first 1,000 subscribers, by `<device>/<stream>`.
    pub by_subscriber: BTreeMap<String, SubscriberRow>,
    /// Messages kept for subscribers that were offline on purpose; null without such devices.
    pub offline_queue: Option<DrainAccount>,
}

/// Messages that one subscriber received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubscriberRow {
    /// Messages that the subscriber should receive.
    pub expected: u64,
    /// First copies.
    pub arrived: u64,
    /// Further copies.
    pub again: u64,
    /// Expected and absent.
    pub lost: u64,
}

/// Queues that the platform kept for devices that were offline on purpose. It holds what was due between
/// the end of a link and the answer to its next connect.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DrainAccount {
    /// The counts.
    #[serde(flatten)]
    pub ledger: DrainLedger,
    /// Instant at which the platform answered the first returned device, in seconds since T0.
    pub began_s: Option<f64>,
    /// Instant at which the last kept message arrived, in seconds since T0.
    pub ended_s: Option<f64>,
    /// Kept messages per second between these two instants.
    pub rate: Option<f64>,
    /// Per device, from its return to its last kept message.
    pub took: Option<LatencyFigures>,
    /// The device that took longest.
    pub slowest: Option<String>,
}
