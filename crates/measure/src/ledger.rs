//! The ledger: what became of every message, and whether the account closes.

use std::collections::BTreeMap;

use muster_model::{DeviceId, DeviceSample, ShedCause, StreamId};
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;
use crate::set_merge::{len, merge_runs};
use crate::{SeqSet, SessionCounts, State};

/// The account of one scope and cohort. Arrival figures are those of the first backend; they are
/// null without a backend. Overwritten messages, and those outside the sample of a store, stand in `by_backend` alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Messages the nominal schedule wanted.
    pub nominal: Option<u64>,
    /// Messages that came due.
    pub scheduled: Option<u64>,
    /// Messages a closed loop left out: `nominal - scheduled`; 0 for open loops.
    pub omitted: Option<u64>,
    /// Failures that rule `failure-ratio` counts (docs/semantics.md#the-other-slos).
    pub failed: u64,
    /// Never sent.
    pub shed: u64,
    /// Never sent, by cause.
    pub shed_by_cause: BTreeMap<String, u64>,
    /// First transmissions taken by the kernel, counted at the socket.
    pub sent: u64,
    /// Counts by sessions and sockets.
    #[serde(flatten)]
    pub session: SessionCounts,
    /// The platform took responsibility.
    pub accepted: u64,
    /// Refused NON messages whose answer nobody waits for; they are unacknowledged.
    pub refused_unawaited: u64,
    /// Refusals of such messages, by code.
    pub refused_unawaited_by_code: BTreeMap<String, u64>,
    /// The platform answered no.
    pub rejected: u64,
    /// Rejected, by code.
    pub rejected_by_code: BTreeMap<String, u64>,
    /// No answer in time.
    pub timed_out: u64,
    /// The link ended before the answer.
    pub broken: u64,
    /// Broken, by cause.
    pub broken_by_cause: BTreeMap<String, u64>,
    /// Sent, with no answer by design.
    pub unacknowledged: u64,
    /// Open at the end of settling.
    pub in_flight: u64,
    /// The arrival figures of the first backend.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// Sum of the absolute differences of all equations; null for a killed run.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    pub equations: Vec<Equation>,
}

/// The copies that a backend received, of one scope and cohort. Every figure is null without a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Every copy that the backend received, counted before decoding.
    pub consumed: Option<u64>,
    /// First copies, whatever the device side says.
    pub arrived: Option<u64>,
    /// Accepted and absent.
    pub lost: Option<u64>,
    /// Unacknowledged and absent.
    pub lost_unacknowledged: Option<u64>,
    /// Accepted or unacknowledged, not arrived, and may still arrive.
    pub outstanding: Option<u64>,
    /// Arrived beyond the stream's deadline; null where no stream has one.
    pub late: Option<u64>,
    /// Further copies of messages that we sent once.
    pub duplicates: Option<u64>,
    /// Further copies of messages that we sent more than once.
    pub duplicate_own: Option<u64>,
    /// Overtaken within a consumer session and partition (RFC 4737 section 3.3).
    pub reordered: Option<u64>,
    /// Altered copies; null for one fleet or stream.
    pub corrupted: Option<u64>,
    /// Copies that name no message of this run; null for one fleet or stream.
    pub foreign: Option<u64>,
    /// Copies without a readable id; null for one fleet or stream.
    pub unstamped: Option<u64>,
    /// Rejected, and arrived all the same.
    pub rejected_but_arrived: Option<u64>,
    /// Timed out, and arrived all the same.
    pub timed_out_but_arrived: Option<u64>,
    /// Broken, and arrived all the same.
    pub broken_but_arrived: Option<u64>,
}

/// An equation that does not hold (docs/semantics.md#states-and-sums).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equation {
    /// Name of the comparison, with its stream or backend.
    pub name: String,
    /// The left side's count.
    pub left: u64,
    /// The right side's count.
    pub right: u64,
    /// Its part of the residue; at least 1 if equal counts are of different messages.
    pub difference: u64,
}

/// Arrivals of the messages of one final state at one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableRow {
    /// Arrived.
    pub arrived: u64,
    /// Not arrived, and will not arrive.
    pub absent: u64,
    /// Not arrived, and may still arrive.
    pub outstanding: u64,
    /// Accepted or unacknowledged messages that a store lacks, and whose instant it holds for another message of their
    /// device.
    #[serde(default)]
    pub overwritten: u64,
    /// Messages of devices outside the sample of a store: nobody looked for them.
    #[serde(default)]
    pub outside_sample: u64,
}

/// Final states against arrival, at one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// One row per state of [`State::SENT`], in its order.
    pub rows: [TableRow; State::SENT.len()],
}

/// The arrival figures of one scope and cohort at one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArrivalFigures {
    /// Copies with a known id.
    pub copies: u64,
    /// First copies.
    pub arrived: u64,
    /// Arrived beyond the deadline.
    pub late: u64,
    /// Further copies of messages that we sent once.
    pub duplicates: u64,
    /// Further copies of messages that we sent more than once.
    pub duplicate_own: u64,
    /// Came after a later one of their stream.
    pub reordered: u64,
    /// States against arrival.
    pub table: Table,
}

/// The account of one backend.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackendLedger {
    /// True if it is the platform's store, which was read back.
    pub is_store: bool,
    /// Devices that were read of a store, if not all were.
    pub sample: Option<DeviceSample>,
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// Copies that name no message of this run.
    pub foreign: u64,
    /// Copies without a readable id.
    pub unstamped: u64,
    /// Altered copies.
    pub corrupted: u64,
    /// The whole run.
    pub uplink: ArrivalFigures,
    /// The measured cohort.
    pub measured: ArrivalFigures,
    /// Per stream, the whole run; the index is the `StreamId`.
    pub streams: Vec<ArrivalFigures>,
    /// Per stream, the measured cohort; the index is the `StreamId`.
    pub streams_measured: Vec<ArrivalFigures>,
    /// The messages that were lost, by device and stream, accepted or unacknowledged.
    pub lost_ids: LostIds,
    /// The messages that were overwritten in a store, likewise.
    pub overwritten_ids: LostIds,
    /// First copies that more than one process took for the first. The sums of the windows exceed
    /// the ledger by this number.
    pub split: u64,
    /// Copies in the last second that had any, if messages are outstanding: per second.
    pub still_delivering_per_s: u64,
}

/// Lost messages, as ranges of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LostIds {
    /// By stream, then by device.
    pub lost: Vec<LostOf>,
    /// True if there are more than these.
    pub truncated: bool,
}

/// The lost messages of one device and stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostOf {
    /// The device.
    pub device: DeviceId,
    /// The stream.
    pub stream: StreamId,
    /// Closed ranges `[from, to]` of sequence numbers, ascending.
    pub ranges: Vec<[u32; 2]>,
}

impl Table {
    /// The row of a state; none for shed messages, which have none.
    pub fn row(&self, state: State) -> Option<&TableRow> {
        self.rows.get(state.index())
    }
}

impl TableRow {
    /// Compares what was expected of a device with what arrived. Numbers from `border` on may still
    /// arrive.
    pub(crate) fn compare(expected: &SeqSet, arrived: &SeqSet, border: u32) -> Self {
        let mut row = Self::default();
        let expected = merge_runs(expected.runs(), arrived.runs()).filter(|part| part.in_first);
        for part in expected {
            let range = part.range;
            if part.in_second {
                row.arrived += len(&range);
            } else {
                let absent = len(&(range.start..range.end.min(border)));
                row.absent += absent;
                row.outstanding += len(&range) - absent;
            }
        }
        row
    }

    /// All messages of the state.
    pub fn total(&self) -> u64 {
        self.arrived + self.absent + self.outstanding + self.overwritten + self.outside_sample
    }
}

impl ArrivalFigures {
    /// Accepted and absent.
    pub fn lost(&self) -> u64 {
        self.of(State::Accepted).absent
    }

    /// Unacknowledged and absent.
    pub fn lost_unacknowledged(&self) -> u64 {
        self.of(State::Unacknowledged).absent
    }

    /// Accepted or unacknowledged, not arrived, and may still arrive.
    pub fn outstanding(&self) -> u64 {
        self.of(State::Accepted).outstanding + self.of(State::Unacknowledged).outstanding
    }

    /// Accepted or unacknowledged, and absent: what rule `loss` counts.
    pub fn all_lost(&self) -> u64 {
        self.lost() + self.lost_unacknowledged()
    }

    /// Accepted or unacknowledged: what every backend is to get, without overwritten messages and those outside the
    /// sample of a store.
    pub fn expected(&self) -> u64 {
        let all = self.of(State::Accepted).total() + self.of(State::Unacknowledged).total();
        all - self.overwritten() - self.outside_sample()
    }

    /// Accepted or unacknowledged messages that another message of their device replaced in a store.
    pub fn overwritten(&self) -> u64 {
        self.of(State::Accepted).overwritten + self.of(State::Unacknowledged).overwritten
    }

    /// Accepted or unacknowledged messages of devices outside the sample of a store.
    pub fn outside_sample(&self) -> u64 {
        self.of(State::Accepted).outside_sample + self.of(State::Unacknowledged).outside_sample
    }

    /// The row of a state; zeros for shed messages, which have none.
    pub fn of(&self, state: State) -> TableRow {
        self.table.row(state).copied().unwrap_or_default()
    }
}

impl Ledger {
    /// The count of one final state.
    pub fn state(&self, state: State) -> u64 {
        match state {
            State::Accepted => self.accepted,
            State::Rejected => self.rejected,
            State::TimedOut => self.timed_out,
            State::Broken => self.broken,
            State::Unacknowledged => self.unacknowledged,
            State::InFlight => self.in_flight,
            State::Shed => self.shed,
        }
    }

    /// The same ledger with its failures summed.
    pub fn with_failed(mut self) -> Self {
        self.failed = self.rejected
            + self.refused_unawaited
            + self.timed_out
            + self.broken
            + self.in_flight
            + self.shed_by_others();
        self
    }

    /// Messages shed by a cause that is not our own.
    pub fn shed_by_others(&self) -> u64 {
        self.shed.saturating_sub(own_shed(&self.shed_by_cause))
    }
}

/// Messages shed by a cause of our own, of all by cause.
pub fn own_shed(by_cause: &BTreeMap<String, u64>) -> u64 {
    let own = ShedCause::ALL.into_iter().filter(|cause| cause.is_own());
    own.filter_map(|cause| by_cause.get(cause.name())).sum()
}

merge_fields! {
    Ledger {
        nominal, scheduled, omitted, failed, shed, shed_by_cause, sent, session, accepted,
        refused_unawaited, refused_unawaited_by_code, rejected, rejected_by_code, timed_out, broken,
        broken_by_cause, unacknowledged, in_flight, arrivals, residue, equations,
    }
    Arrivals {
        consumed, arrived, lost, lost_unacknowledged, outstanding, late, duplicates, duplicate_own,
        reordered, corrupted, foreign, unstamped, rejected_but_arrived, timed_out_but_arrived,
        broken_but_arrived,
    }
    TableRow { arrived, absent, outstanding, overwritten, outside_sample }
    Table { rows }
    ArrivalFigures { copies, arrived, late, duplicates, duplicate_own, reordered, table }
    LostIds { lost, truncated }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_overwritten_messages_nor_those_outside_the_sample_are_expected() {
        let mut figures = ArrivalFigures::default();
        figures.table.rows[State::Accepted.index()] = TableRow {
            arrived: 90,
            absent: 10,
            outstanding: 0,
            overwritten: 900,
            outside_sample: 5_000,
        };
        assert_eq!((figures.all_lost(), figures.expected()), (10, 100));
    }

    #[test]
    fn what_we_shed_ourselves_is_no_failure_of_the_target() {
        let own = ShedCause::GeneratorLate.name().to_owned();
        let ledger = Ledger {
            rejected: 3,
            shed: 7,
            shed_by_cause: BTreeMap::from([(own, 5), ("offline".to_owned(), 2)]),
            ..Ledger::default()
        }
        .with_failed();
        assert_eq!((ledger.shed_by_others(), ledger.failed), (2, 5));
    }
}
