//! What goes to the devices, as it is written: commands, and other devices' messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Equation, Latency, LostIds};

/// Where commands and queries went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommandLedger {
    /// Queries that devices asked.
    pub queries: u64,
    /// Commands received as the answer of a query.
    pub received_by_query: u64,
    /// Queries answered without a command.
    pub no_command: u64,
    /// Queries refused.
    pub query_rejected: u64,
    /// Queries refused, by wire code.
    pub query_rejected_by_code: BTreeMap<String, u64>,
    /// Queries without an answer in time.
    pub query_timed_out: u64,
    /// Queries whose link ended before the answer.
    pub query_broken: u64,
    /// Queries open at the end of settling.
    pub query_in_flight: u64,
    /// The queries kept apart as cold; null where none are, or there are no queries.
    #[serde(default)]
    pub queries_cold: Option<QueriesDue>,
    /// The queries due while measuring without them; null likewise.
    #[serde(default)]
    pub queries_warm: Option<QueriesDue>,
    /// Commands that came due by the schedule; null where they follow queries.
    #[serde(default)]
    pub scheduled: Option<u64>,
    /// Commands that came due and were never issued.
    #[serde(default)]
    pub withheld: u64,
    /// Never issued, by cause.
    #[serde(default)]
    pub withheld_by_cause: BTreeMap<String, u64>,
    /// Commands that the backend issued.
    pub issued: u64,
    /// Commands that the platform says it delivered.
    pub delivered: u64,
    /// Commands that expired.
    pub expired: u64,
    /// Commands that could not be delivered.
    pub undeliverable: u64,
    /// Commands that could not be delivered, by status.
    pub undeliverable_by_status: BTreeMap<String, u64>,
    /// Commands whose fate the platform never told.
    pub unknown: u64,
    /// Commands that devices received.
    pub received: u64,
    /// Further copies that came to devices.
    #[serde(default)]
    pub received_again: u64,
    /// Copies at devices that name no command of this run for that device.
    #[serde(default)]
    pub received_foreign: u64,
    /// Copies at devices whose id may not be believed.
    #[serde(default)]
    pub received_damaged: u64,
    /// Delivered, as the platform says, and not received; null for a run that was killed.
    #[serde(default)]
    pub delivered_not_received: Option<u64>,
    /// Received, and not delivered as far as the platform said.
    #[serde(default)]
    pub received_not_delivered: Option<u64>,
    /// Received, and no reply is expected.
    pub one_way: u64,
    /// Replies that the platform accepted.
    pub answered: u64,
    /// Replies refused.
    pub answer_rejected: u64,
    /// Replies refused, by wire code.
    pub answer_rejected_by_code: BTreeMap<String, u64>,
    /// Replies without an answer in time.
    pub answer_timed_out: u64,
    /// Replies whose link ended before the answer.
    pub answer_broken: u64,
    /// Replies open at the end of settling.
    pub answer_in_flight: u64,
    /// Replies that were never sent.
    #[serde(default)]
    pub answer_shed: u64,
    /// Never sent, by cause.
    #[serde(default)]
    pub answer_shed_by_cause: BTreeMap<String, u64>,
    /// Replies that the platform accepted and that reached the backend.
    pub replies_arrived: Option<u64>,
    /// Replies accepted and absent.
    pub replies_lost: Option<u64>,
    /// Replies absent, and perhaps still under way.
    pub replies_outstanding: Option<u64>,
    /// Replies that reached the backend although the platform was not known to accept them.
    #[serde(default)]
    pub replies_unanswered: Option<u64>,
    /// Replies that reached the backend, by the status that they tell; empty where they tell none.
    #[serde(default)]
    pub replies_by_status: BTreeMap<String, u64>,
    /// Further copies of replies.
    #[serde(default)]
    pub replies_again: u64,
    /// Replies that name no command of this run.
    #[serde(default)]
    pub replies_foreign: u64,
    /// Replies whose id may not be believed.
    #[serde(default)]
    pub replies_damaged: u64,
    /// By where the device stood when the command came due: `online`, `offline` or `reconnected`;
    /// empty where commands follow queries.
    #[serde(default)]
    pub by_presence: BTreeMap<String, PresenceRow>,
    /// Which commands were delivered and not received.
    #[serde(default)]
    pub not_received_ids: LostIds,
    /// How the commands drained that were kept for devices that were offline on purpose; null where
    /// none were.
    #[serde(default)]
    pub offline_queue: Option<DrainLedger>,
    /// Sum of the absolute differences of all equations: 0 if the ledger closes; null if it was
    /// never closed.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    #[serde(default)]
    pub equations: Vec<Equation>,
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

/// What became of the commands that came due while their devices stood in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PresenceRow {
    /// Came due.
    pub scheduled: u64,
    /// Delivered, as the platform says.
    pub delivered: u64,
    /// Received by the device, then or later.
    pub received: u64,
    /// Replied to, and the reply reached the backend.
    pub replies_arrived: u64,
}

/// What devices got that subscribe to other devices' messages: each subscriber is an account of
/// its own, and the sums are over all of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiveLedger {
    /// Subscriptions: each device by each of its streams.
    pub subscribers: u64,
    /// Accepted or unacknowledged messages that they are to get; null for a run that was killed.
    pub expected: Option<u64>,
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// First copies.
    pub arrived: u64,
    /// First copies of what was not accepted, or not asked for.
    pub unexpected: Option<u64>,
    /// Further copies of messages sent once.
    pub duplicates: Option<u64>,
    /// Further copies of messages sent more than once.
    pub duplicate_own: Option<u64>,
    /// Out of order (RFC 4737), within one subscriber and sender.
    pub reordered: Option<u64>,
    /// Expected and absent.
    pub lost: Option<u64>,
    /// Absent, and perhaps still under way.
    pub outstanding: Option<u64>,
    /// Of another run.
    pub foreign: u64,
    /// Without a readable id.
    pub unstamped: u64,
    /// Altered.
    pub corrupted: u64,
    /// Due to a subscriber's first copy, measured cohort; null where clocks differ.
    pub end_to_end: Option<Latency>,
    /// What each subscription got, by `<device>/<stream>`: the first 1,000.
    pub by_subscriber: BTreeMap<String, SubscriberRow>,
    /// Whether there are more subscribers than are listed.
    pub truncated: bool,
    /// How the messages drained that were kept for subscribers that were offline on purpose; null
    /// where none were.
    #[serde(default)]
    pub offline_queue: Option<DrainLedger>,
    /// Sum of the absolute differences of all equations: 0 if the ledger closes; null if it was
    /// never closed.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    pub equations: Vec<Equation>,
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
pub struct DrainLedger {
    /// Devices that went offline, each by each of its streams.
    pub devices: u64,
    /// Those of them that the platform answered when they came back.
    pub returned: u64,
    /// Those of them whose session it had no more.
    pub forgotten: u64,
    /// Due while their device was offline, and taken by the platform; null where the schedule does
    /// not tell (closed loops, commands that follow queries).
    pub expected: Option<u64>,
    /// Expected, and came.
    pub drained: Option<u64>,
    /// Expected, and will not come any more.
    pub lost: Option<u64>,
    /// Expected, and may still come.
    pub outstanding: Option<u64>,
    /// Further copies of what was due while the device was offline.
    pub duplicates: u64,
    /// Of that, out of order within one subscriber and sender.
    pub reordered: u64,
    /// Devices to which some of it did not come.
    pub incomplete: u64,
    /// When the platform answered the first device that came back, in seconds since T0.
    pub began_s: Option<f64>,
    /// When the last of it came, in seconds since T0.
    pub ended_s: Option<f64>,
    /// What came a second between these two.
    pub rate: Option<f64>,
    /// From a device's return to the last of what came to it: of each device to which anything came.
    pub took: Option<Latency>,
    /// The device that took longest.
    pub slowest: Option<String>,
}
