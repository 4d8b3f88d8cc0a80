//! The ledgers of `measure` as the result writes them.

use std::collections::BTreeMap;

use muster_measure::{ArrivalFigures, Arrivals, BackendLedger, State, Summary, TableRow};
use muster_model::{DeviceId, StreamId};

use crate::{BackendAccount, LostIds, Names, SampleAccount};

/// One backend's account. Of a run that was killed only counts by event are known: it has no identity
/// sets.
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
    if summary.run.uplink.arrivals.lost.is_none() {
        return BackendAccount {
            number,
            is_store: of.is_store,
            arrivals: counted,
            ..BackendAccount::default()
        };
    }
    let has_deadline = summary.run.uplink.arrivals.late.is_some();
    BackendAccount {
        number,
        is_store: of.is_store,
        arrivals: with_identities(&of.uplink, has_deadline, counted),
        table: table(&of.uplink),
        split: Some(of.split),
        lost_ids: lost_ids(&of.lost_ids, names),
        overwritten: of.is_store.then(|| of.uplink.overwritten()),
        overwritten_ids: lost_ids(&of.overwritten_ids, names),
        sample: sample(of),
    }
}

fn sample(of: &BackendLedger) -> Option<SampleAccount> {
    let sample = of.sample?;
    Some(SampleAccount {
        devices: sample.devices(),
        of: sample.of(),
        outside: of.uplink.outside_sample(),
    })
}

fn with_identities(figures: &ArrivalFigures, has_deadline: bool, counted: Arrivals) -> Arrivals {
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

fn table(figures: &ArrivalFigures) -> BTreeMap<String, TableRow> {
    let rows = State::SENT.into_iter().zip(figures.table.rows);
    rows.map(|(state, row)| (state.name().to_owned(), row))
        .collect()
}

/// Lost messages, with the names of their devices and streams.
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
