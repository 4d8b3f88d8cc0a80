//! Events second by second, for stability and charts.

use std::collections::BTreeMap;

use muster_model::{BackendId, Micros};

use crate::closing::{Closing, StreamClosed};
use crate::{ArrivalRow, Distribution, Flow, Outcomes, Phase, SecondRow, State, Table, Timeline};

/// A row in the making, and what it is made of but does not keep.
struct Making {
    row: SecondRow,
    lateness: Distribution,
}

impl Closing<'_> {
    /// The seconds of a scope from the start of the warm-up to the end, each cut at the borders of
    /// the phases; seconds in which nothing happened among them.
    pub(crate) fn series(&self, streams: &[&StreamClosed]) -> Vec<SecondRow> {
        let mut rows: BTreeMap<(u32, Phase), Making> = pieces(&self.timeline, self.end)
            .map(|(from, to)| {
                let phase = self.timeline.phase(from);
                ((from.second(), phase), self.empty(streams, from, to))
            })
            .collect();
        for stream in streams {
            self.add_uplink(stream, &mut rows);
            self.add_arrivals(stream, &mut rows);
            if self.plan.streams[stream.stream.index()].closed.is_some() {
                self.add_missing(stream, &mut rows);
            } else {
                add_absent(stream, &mut rows);
            }
        }
        rows.into_values().map(Making::finish).collect()
    }

    fn empty(&self, streams: &[&StreamClosed], from: Micros, to: Micros) -> Making {
        let offered = |calendar: &dyn crate::Calendar| -> u64 {
            let until = |at: Micros| -> u64 {
                streams
                    .iter()
                    .map(|stream| calendar.nominal(stream.stream, at))
                    .sum()
            };
            until(to).saturating_sub(until(from))
        };
        let row = SecondRow {
            second: from.second(),
            phase: self.timeline.phase(from),
            is_whole: to - from == Micros::from_secs(1),
            offered: self.calendar.map(offered),
            due: Outcomes::default(),
            refused_unawaited_due: 0,
            flow: Flow::default(),
            arrivals: vec![ArrivalRow::default(); usize::from(self.plan.backends)],
            lateness_p99_us: None,
            lateness_max_us: None,
            response: Distribution::default(),
            lower: Distribution::default(),
            censored: Distribution::default(),
            end_to_end: Distribution::default(),
        };
        Making {
            row,
            lateness: Distribution::default(),
        }
    }

    fn add_uplink(&self, stream: &StreamClosed, rows: &mut BTreeMap<(u32, Phase), Making>) {
        for (key, window) in self.windows.uplinks_of(stream.stream) {
            let Some(making) = rows.get_mut(&(key.second, key.phase)) else {
                continue;
            };
            making.row.due.merge(&window.outcomes);
            making.row.refused_unawaited_due += window.counts.refused_unawaited.total();
            making.row.flow.merge(&window.flow);
            making.row.response.merge(&window.response);
            making.row.lower.merge(&window.lower);
            making.row.censored.merge(&window.censored);
            making.lateness.merge(&window.lateness);
        }
    }

    fn add_arrivals(&self, stream: &StreamClosed, rows: &mut BTreeMap<(u32, Phase), Making>) {
        for backend in 0..self.plan.backends {
            for (key, window) in self.windows.arrivals_of(BackendId(backend), stream.stream) {
                let Some(making) = rows.get_mut(&(key.second, key.phase)) else {
                    continue;
                };
                let arrivals = &mut making.row.arrivals[usize::from(backend)];
                arrivals.arrived += window.arrived;
                arrivals.again += window.again;
                arrivals.arrived_due += window.arrived_due;
                if backend == 0 && stream.unsure() == 0 {
                    making.row.end_to_end.merge(&window.end_to_end);
                }
            }
        }
    }

    /// Adds what is missing of a closed loop, of whose absent messages nobody knows any more when
    /// they were due: by second, what was sent less what arrived. It is taken to be rejected
    /// first, then failed, then lost or, if the backend still delivers, outstanding.
    fn add_missing(&self, stream: &StreamClosed, rows: &mut BTreeMap<(u32, Phase), Making>) {
        let Some(sums) = &stream.sums else { return };
        for (at, backend) in (0..self.plan.backends).zip(&sums.backends) {
            // Of a sample nobody knows how much of a second it had.
            let read_of = self.plan.read_of(usize::from(at));
            if read_of.is_some_and(|sample| sample.is_part()) {
                continue;
            }
            let is_draining = backend.figures.uplink.outstanding() > 0;
            let mut arrived: BTreeMap<(u32, Phase), u64> = BTreeMap::new();
            for (key, window) in self.windows.arrivals_of(BackendId(at), stream.stream) {
                *arrived.entry((key.second, key.phase)).or_default() += window.arrived_due;
            }
            let mut due: BTreeMap<(u32, Phase), Outcomes> = BTreeMap::new();
            for (key, window) in self.windows.uplinks_of(stream.stream) {
                due.entry((key.second, key.phase))
                    .or_default()
                    .merge(&window.outcomes);
            }
            for (key, outcomes) in due {
                let arrived = arrived.get(&key).copied().unwrap_or(0);
                let missing = missing(&outcomes, arrived, is_draining);
                if let Some(making) = rows.get_mut(&key) {
                    making.row.arrivals[usize::from(at)].merge(&missing);
                }
            }
        }
    }
}

fn missing(outcomes: &Outcomes, arrived: u64, is_draining: bool) -> ArrivalRow {
    let absent = outcomes.sent.saturating_sub(arrived);
    let rejected = absent.min(outcomes.of(State::Rejected));
    let failed = [State::TimedOut, State::Broken, State::InFlight];
    let failed: u64 = failed.iter().map(|state| outcomes.of(*state)).sum();
    let failed = failed.min(absent - rejected);
    let rest = absent - rejected - failed;
    ArrivalRow {
        lost_due: if is_draining { 0 } else { rest },
        outstanding_due: if is_draining { rest } else { 0 },
        rejected_absent_due: rejected,
        failed_absent_due: failed,
        ..ArrivalRow::default()
    }
}

impl Making {
    fn finish(self) -> SecondRow {
        let mut row = self.row;
        row.lateness_p99_us = self.lateness.quantile_us(0.99);
        row.lateness_max_us = (self.lateness.count > 0).then_some(self.lateness.max_us);
        row
    }
}

/// Adds the absent to the second of their due.
fn add_absent(stream: &StreamClosed, rows: &mut BTreeMap<(u32, Phase), Making>) {
    let Some(sums) = &stream.sums else { return };
    for (at, backend) in sums.backends.iter().enumerate() {
        for (place, absent) in &backend.absent_due {
            if let Some(making) = rows.get_mut(place) {
                making.row.arrivals[at].merge(&absent_row(absent));
            }
        }
    }
}

/// The absent by what they mean for a backlog: who rejected a message will not deliver it, whether or
/// not the backend is still busy, and what failed and may still arrive is in the backlog.
fn absent_row(absent: &Table) -> ArrivalRow {
    let of = |state: State| absent.row(state).copied().unwrap_or_default();
    let expected = [of(State::Accepted), of(State::Unacknowledged)];
    let failed = [State::TimedOut, State::Broken, State::InFlight];
    let rejected = of(State::Rejected);
    ArrivalRow {
        lost_due: expected.iter().map(|row| row.absent).sum(),
        outstanding_due: expected.iter().map(|row| row.outstanding).sum(),
        rejected_absent_due: rejected.absent + rejected.outstanding,
        failed_absent_due: failed.iter().map(|state| of(*state).absent).sum(),
        ..ArrivalRow::default()
    }
}

/// The seconds from origin to end, cut at the borders of the phases.
fn pieces(timeline: &Timeline, end: Micros) -> impl Iterator<Item = (Micros, Micros)> {
    let borders = [timeline.measure, timeline.settle, end];
    let mut from = timeline.origin;
    std::iter::from_fn(move || {
        if from >= end {
            return None;
        }
        let next_second = Micros::from_secs(u64::from(from.second()) + 1);
        let next_border = borders
            .iter()
            .copied()
            .filter(|border| *border > from)
            .min();
        let to = next_border.map_or(next_second, |border| border.min(next_second));
        let piece = (from, to);
        from = to;
        Some(piece)
    })
}
