//! The ledgers of `measure` as the result writes them.

use std::collections::BTreeMap;

use muster_measure::{ArrivalFigures, BackendLedger, Ledger, State, Summary, TableRow};
use muster_model::{DeviceId, StreamId};

use crate::{Arrivals, BackendAccount, Equation, LostIds, Names, StateRow, UplinkLedger};

impl From<&Ledger> for UplinkLedger {
    fn from(of: &Ledger) -> Self {
        Self {
            nominal: of.nominal,
            scheduled: of.scheduled,
            omitted: of.omitted,
            failed: of.failed(),
            shed: of.shed,
            shed_by_cause: of.shed_by_cause.clone(),
            sent: of.sent,
            retransmitted: of.retransmitted,
            separate_responses: of.separate_responses,
            duplicate_responses: of.duplicate_responses,
            retried: of.retried,
            accepted: of.accepted,
            no_subscriber: of.no_subscriber,
            completed: of.completed,
            incomplete: of.incomplete,
            refused_unawaited: of.refused_unawaited,
            transport_acknowledged: of.transport_acknowledged,
            rejected: of.rejected,
            rejected_by_code: of.rejected_by_code.clone(),
            timed_out: of.timed_out,
            answered_late: of.answered_late,
            answered_again: of.answered_again,
            answered_unknown: of.answered_unknown,
            answered_malformed: of.answered_malformed,
            commands_received: of.commands_received,
            broken: of.broken,
            broken_by_cause: of.broken_by_cause.clone(),
            unacknowledged: of.unacknowledged,
            in_flight: of.in_flight,
            arrivals: Arrivals::from(of),
            bytes_payload: of.bytes_payload,
            bytes_wire: of.bytes_wire,
            residue: of.residue,
            equations: of.equations.iter().map(equation).collect(),
        }
    }
}

impl From<&Ledger> for Arrivals {
    fn from(of: &Ledger) -> Self {
        Self {
            consumed: of.consumed,
            arrived: of.arrived,
            lost: of.lost,
            lost_unacknowledged: of.lost_unacknowledged,
            outstanding: of.outstanding,
            late: of.late,
            duplicates: of.duplicates,
            duplicate_own: of.duplicate_own,
            reordered: of.reordered,
            corrupted: of.corrupted,
            foreign: of.foreign,
            unstamped: of.unstamped,
            rejected_but_arrived: of.rejected_but_arrived,
            timed_out_but_arrived: of.timed_out_but_arrived,
            broken_but_arrived: of.broken_but_arrived,
        }
    }
}

pub(super) fn equation(of: &muster_measure::Equation) -> Equation {
    Equation {
        name: of.name.clone(),
        left: of.left,
        right: of.right,
        difference: of.difference,
    }
}

/// One backend's account. Of a run that was killed only what was counted by event is known, since
/// no identity sets tell which message is which.
pub(super) fn backend(
    (number, of): (u32, &BackendLedger),
    summary: &Summary,
    names: &Names<'_>,
) -> BackendAccount {
    let counted = Arrivals {
        consumed: Some(of.consumed),
        corrupted: Some(of.corrupted),
        foreign: Some(of.foreign),
        unstamped: Some(of.unstamped),
        ..Arrivals::default()
    };
    if summary.run.uplink.lost.is_none() {
        return BackendAccount {
            number,
            arrivals: counted,
            ..BackendAccount::default()
        };
    }
    let has_deadline = summary.run.uplink.late.is_some();
    BackendAccount {
        number,
        arrivals: told_apart(&of.uplink, has_deadline, counted),
        table: table(&of.uplink),
        split: Some(of.split),
        lost_ids: lost_ids(&of.lost_ids, names),
    }
}

fn told_apart(figures: &ArrivalFigures, has_deadline: bool, counted: Arrivals) -> Arrivals {
    Arrivals {
        arrived: Some(figures.arrived),
        lost: Some(figures.lost()),
        lost_unacknowledged: Some(figures.lost_unacknowledged()),
        outstanding: Some(figures.outstanding()),
        late: has_deadline.then_some(figures.late),
        duplicates: Some(figures.duplicates),
        duplicate_own: Some(figures.duplicate_own),
        reordered: Some(figures.reordered),
        rejected_but_arrived: Some(figures.of(State::Rejected).arrived),
        timed_out_but_arrived: Some(figures.of(State::TimedOut).arrived),
        broken_but_arrived: Some(figures.of(State::Broken).arrived),
        ..counted
    }
}

fn table(figures: &ArrivalFigures) -> BTreeMap<String, StateRow> {
    let rows = State::SENT.into_iter().zip(figures.table.rows);
    rows.map(|(state, row)| {
        let TableRow {
            arrived,
            absent,
            outstanding,
        } = row;
        (
            state.name().to_owned(),
            StateRow {
                arrived,
                absent,
                outstanding,
            },
        )
    })
    .collect()
}

/// Which messages, with the names of their devices and streams.
pub(super) fn lost_ids(of: &muster_measure::LostIds, names: &Names<'_>) -> LostIds {
    let mut ranges = BTreeMap::<String, Vec<[u32; 2]>>::new();
    for lost in &of.lost {
        let key = of_device(lost.stream, lost.device, names);
        ranges.entry(key).or_default().extend(&lost.ranges);
    }
    LostIds {
        ranges,
        truncated: of.truncated,
    }
}

/// A device's stream. The device's name stands for its fleet, so only the stream's own follows it.
pub(super) fn of_device(stream: StreamId, device: DeviceId, names: &Names<'_>) -> String {
    let stream = names.streams.get(stream.index());
    let stream = stream.map_or("", |name| name.rsplit('/').next().unwrap_or(name));
    format!("{}/{stream}", (names.device)(device))
}
