//! The ledger of commands (docs/semantics.md#commands).

use std::collections::BTreeMap;

use muster_model::Presence;
use serde::{Deserialize, Serialize};

use super::{Leg, LegSummary, PRESENCES, QueriesDue};
use crate::merge::merge_fields;
use crate::{DrainSummary, Equation, LatencyView, LostIds};

/// The account of the commands of one scope, over the whole run.
///
/// `received` is counted at the devices and `delivered` at the backend, independently. What is known
/// from identity sets alone is null for a run that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandLedger {
    /// Queries that were sent, counted at the socket.
    pub queries: u64,
    /// Queries answered with a command.
    pub received_by_query: u64,
    /// Queries accepted without a command in time.
    pub no_command: u64,
    /// Queries refused.
    pub query_rejected: u64,
    /// Queries refused, by code.
    pub query_rejected_by_code: BTreeMap<String, u64>,
    /// Queries without an answer in time.
    pub query_timed_out: u64,
    /// Queries whose link ended before the answer.
    pub query_broken: u64,
    /// Queries open at the end of settling.
    pub query_in_flight: u64,
    /// Commands that came due; null if they follow queries.
    pub scheduled: Option<u64>,
    /// Commands that came due and were never issued.
    pub withheld: u64,
    /// Never issued, by cause.
    pub withheld_by_cause: BTreeMap<String, u64>,
    /// Commands issued, counted at the socket.
    pub issued: u64,
    /// Issued, and delivered according to the platform.
    pub delivered: u64,
    /// Issued, and expired according to the platform.
    pub expired: u64,
    /// Issued, and undeliverable according to the platform.
    pub undeliverable: u64,
    /// Undeliverable, by status.
    pub undeliverable_by_status: BTreeMap<String, u64>,
    /// Issued, without a word of the platform.
    pub unknown: u64,
    /// First copies at devices.
    pub received: u64,
    /// Further copies at devices.
    pub received_again: u64,
    /// Copies at devices that name no command of this run for that device.
    pub received_foreign: u64,
    /// Copies at devices with a damaged id.
    pub received_damaged: u64,
    /// Delivered according to the platform, and not received.
    pub delivered_not_received: Option<u64>,
    /// Received, and not delivered according to the platform.
    pub received_not_delivered: Option<u64>,
    /// Received, and no reply is expected.
    pub one_way: u64,
    /// Received, and the platform accepted the reply.
    pub answered: u64,
    /// Received, and the platform refused the reply.
    pub answer_rejected: u64,
    /// Replies refused, by code.
    pub answer_rejected_by_code: BTreeMap<String, u64>,
    /// Received, and the reply had no answer in time.
    pub answer_timed_out: u64,
    /// Received, and the link ended before the reply was answered.
    pub answer_broken: u64,
    /// Received, and the reply was open at the end.
    pub answer_in_flight: u64,
    /// Received, and the reply was never sent.
    pub answer_shed: u64,
    /// Replies never sent, by cause.
    pub answer_shed_by_cause: BTreeMap<String, u64>,
    /// Answered, and the reply arrived at the backend.
    pub replies_arrived: Option<u64>,
    /// Answered, and the reply is lost.
    pub replies_lost: Option<u64>,
    /// Answered, and the reply may still arrive.
    pub replies_outstanding: Option<u64>,
    /// Replies that arrived although the device does not know them accepted.
    pub replies_unanswered: Option<u64>,
    /// First copies of replies at the backend, by the status in them.
    pub replies_by_status: BTreeMap<String, u64>,
    /// Further copies of replies.
    pub replies_again: u64,
    /// Replies that name no command of this run.
    pub replies_foreign: u64,
    /// Replies with a damaged id.
    pub replies_damaged: u64,
    /// By state of the device at due: `online`, `offline`, `reconnected`, `waiting`.
    pub by_presence: BTreeMap<String, PresenceRow>,
    /// The commands that were delivered and not received.
    #[serde(skip)]
    pub not_received: LostIds,
    /// Sum of the absolute differences of all equations; null for a killed run.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    pub equations: Vec<Equation>,
}

/// Commands that came due while their devices were in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PresenceRow {
    /// Came due.
    pub scheduled: u64,
    /// Delivered according to the platform.
    pub delivered: u64,
    /// Received by the device, at once or later.
    pub received: u64,
    /// Replied to, and the reply arrived at the backend.
    pub replies_arrived: u64,
}

/// Ledger and latencies of the commands of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandSummary {
    /// Ledger of the commands over the whole run.
    pub ledger: CommandLedger,
    /// The times of the measured cohort.
    pub measured: CommandTimes,
    /// Each leg against the registered bounds, measured cohort, at the index of [`Leg`].
    pub legs: [LegSummary; Leg::ALL.len()],
    /// Commands kept apart as cold, wherever they began; none where nothing is.
    pub cold: Option<CommandTimes>,
    /// The measured cohort without that; none likewise.
    pub warm: Option<CommandTimes>,
    /// From when a command could go to its issue, which is our own lateness; measured cohort.
    pub lateness: LatencyView,
    /// Draining of what was kept for offline devices; none if none was, on purpose.
    pub drain: Option<DrainSummary>,
}

/// The times of one part of the queries, commands and replies of a scope, each leg in the part in which it
/// began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandTimes {
    /// From a query's due instant to its answer.
    pub request: LatencyView,
    /// The lower times of the same queries, without our own delay.
    pub request_lower: LatencyView,
    /// From the instant a reply was due to the platform's answer to it.
    pub response: LatencyView,
    /// The lower times of the same replies, without our own delay.
    pub response_lower: LatencyView,
    /// From a command's issue to its reply's arrival.
    pub round: LatencyView,
    /// The queries that were due, by their end.
    pub queries: QueriesDue,
}

/// The rows of every presence, by name.
pub(super) fn by_name(rows: &[PresenceRow; PRESENCES]) -> BTreeMap<String, PresenceRow> {
    let named = Presence::ALL.iter().zip(rows);
    named
        .map(|(presence, row)| (presence.name().to_owned(), *row))
        .collect()
}

merge_fields! {
    CommandLedger {
        queries, received_by_query, no_command, query_rejected, query_rejected_by_code,
        query_timed_out, query_broken, query_in_flight, scheduled, withheld, withheld_by_cause,
        issued, delivered, expired, undeliverable, undeliverable_by_status, unknown, received,
        received_again, received_foreign, received_damaged, delivered_not_received,
        received_not_delivered, one_way, answered, answer_rejected, answer_rejected_by_code,
        answer_timed_out, answer_broken, answer_in_flight, answer_shed, answer_shed_by_cause,
        replies_arrived, replies_lost, replies_outstanding, replies_unanswered, replies_by_status,
        replies_again, replies_foreign, replies_damaged, by_presence, not_received, residue,
        equations,
    }
    PresenceRow { scheduled, delivered, received, replies_arrived }
}
