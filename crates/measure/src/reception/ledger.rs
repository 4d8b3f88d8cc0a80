//! The ledger of what devices get that subscribe to other devices' messages.

use muster_model::{DeviceId, StreamId};
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;
use crate::{DrainSummary, Equation, LatencyView};

/// Most subscribers that are listed one by one.
pub(crate) const ROWS_MAX: usize = 1_000;

/// The account of the subscribers of one scope, over the whole run. What is known from identity
/// sets alone is null for a run that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceptionLedger {
    /// Subscribers: each device counts once for each of its streams.
    pub subscribers: u64,
    /// Accepted or unacknowledged messages that subscribers should receive.
    pub expected: Option<u64>,
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// First copies, per subscriber.
    pub arrived: u64,
    /// First copies of messages that were not accepted or not subscribed to.
    pub unexpected: Option<u64>,
    /// Further copies of messages that the sender sent once.
    pub duplicates: Option<u64>,
    /// Further copies of messages that the sender sent more than once.
    pub duplicate_own: Option<u64>,
    /// Overtaken within one subscriber and sender.
    pub reordered: Option<u64>,
    /// Expected and lost.
    pub lost: Option<u64>,
    /// Expected, not arrived, and may still arrive.
    pub outstanding: Option<u64>,
    /// Copies that name no message of this run.
    pub foreign: u64,
    /// Copies without a readable id.
    pub unstamped: u64,
    /// Altered copies.
    pub corrupted: u64,
    /// Receptions of each subscriber, in the order of devices.
    #[serde(skip)]
    pub by_subscriber: Vec<SubscriberRow>,
    /// True if there are more than 1,000 subscribers.
    pub truncated: bool,
    /// Sum of the absolute differences of all equations; null for a killed run.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    pub equations: Vec<Equation>,
}

/// Receptions of one subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubscriberRow {
    /// The subscriber.
    pub device: DeviceId,
    /// Its stream of kind `receive`.
    pub stream: StreamId,
    /// Messages that it should receive.
    pub expected: u64,
    /// First copies.
    pub arrived: u64,
    /// Further copies.
    pub again: u64,
    /// Expected and absent, and it will not come any more.
    pub lost: u64,
}

/// Ledger and latency of the subscribers of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceptionSummary {
    /// Ledger of the subscribers over the whole run.
    pub ledger: ReceptionLedger,
    /// From due to a subscriber's first copy, measured cohort; none where clocks differ.
    pub end_to_end: Option<LatencyView>,
    /// Draining of what was kept for offline devices; none if none was, on purpose.
    pub drain: Option<DrainSummary>,
}

merge_fields! {
    ReceptionLedger {
        subscribers, expected, consumed, arrived, unexpected, duplicates, duplicate_own, reordered,
        lost, outstanding, foreign, unstamped, corrupted, by_subscriber, truncated, residue,
        equations,
    }
}
