//! The SLOs that do not hold so far; some are decided only at the end of a run.

use std::collections::BTreeMap;

use muster_judge::{Allowance, Latency, Percentile, Scope, Share, Slo, SloBound};
use muster_measure::{
    Latency as Kept, Outcomes, Phase, RecorderPlan, State, StreamTrack, Timeline, WindowDelta,
};
use muster_model::{BackendId, Micros, StreamId, figure};

use super::{Fixed, LAG_S, Quantiles, due_between};

/// The figures that the SLOs are compared with.
#[derive(Debug)]
pub(super) struct SloWatch {
    streams: Vec<Measured>,
    /// Links that came up, and that ended, in the connect phase.
    early: (u64, u64),
    opened: u64,
    disconnects: u64,
}

/// A run at one instant.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) fixed: &'a Fixed,
    pub(super) now: Micros,
    pub(super) timeline: Timeline,
    /// The percentiles of the response that are shown.
    pub(super) response: Quantiles,
}

/// Counts of the messages of one stream that were due while measuring.
#[derive(Debug, Default)]
struct Measured {
    outcomes: Outcomes,
    /// Messages that have ended, by second of due.
    finals: BTreeMap<u32, u64>,
    above: Vec<u64>,
    arrivals: BTreeMap<BackendId, Arrivals>,
}

#[derive(Debug, Default)]
struct Arrivals {
    arrived: u64,
    above: Vec<u64>,
}

impl SloWatch {
    pub(super) fn new(recorder: &RecorderPlan) -> Self {
        Self {
            streams: recorder
                .streams
                .iter()
                .map(|_| Measured::default())
                .collect(),
            early: (0, 0),
            opened: 0,
            disconnects: 0,
        }
    }

    /// Takes in what came.
    pub(super) fn add(&mut self, delta: &WindowDelta) {
        for ((stream, key), window) in &delta.uplinks {
            if let (Phase::Measure, Some(own)) = (key.phase, self.stream_mut(*stream)) {
                own.outcomes.merge(&window.outcomes);
                *own.finals.entry(key.second).or_default() += window.outcomes.finals();
                add_all(&mut own.above, &window.above);
            }
        }
        for ((backend, stream, key), window) in &delta.arrivals {
            if let (Phase::Measure, Some(own)) = (key.phase, self.stream_mut(*stream)) {
                let own = own.arrivals.entry(*backend).or_default();
                own.arrived += window.arrived_due;
                add_all(&mut own.above, &window.above);
            }
        }
        for ((_, key), window) in &delta.links {
            self.opened += window.counts.connected;
            if key.phase == Phase::Connect {
                self.early.0 += window.counts.connected;
                self.early.1 += window.counts.disconnects.total();
            }
            if key.phase != Phase::Settle {
                let ended = window.counts.disconnects.iter();
                let of_platform = ended.filter(|(cause, _)| cause.is_of_platform());
                self.disconnects += of_platform.map(|(_, count)| count).sum::<u64>();
            }
        }
    }

    fn stream_mut(&mut self, stream: StreamId) -> Option<&mut Measured> {
        self.streams.get_mut(stream.index())
    }

    /// The SLOs that do not hold as things stand, in words; none before there is anything to judge.
    pub(super) fn failing(&self, moment: Moment<'_>) -> Option<Vec<String>> {
        let Moment {
            fixed,
            now,
            timeline,
            response: _,
        } = moment;
        if fixed.timetable.is_part || now < timeline.measure {
            return None;
        }
        let failing = fixed.rules.slos.iter().filter_map(|slo| {
            let broken = self.broken(moment, slo)?;
            let rule = slo.bound.rule();
            Some(match slo.sets.place(&slo.scope.to_string()).as_str() {
                "run" => format!("{rule} {broken}"),
                place => format!("{rule} [{place}] {broken}"),
            })
        });
        Some(failing.collect())
    }

    /// The words for a broken SLO; none if it holds, or if only the end of the run decides.
    fn broken(&self, moment: Moment<'_>, slo: &Slo) -> Option<String> {
        let fixed = moment.fixed;
        match slo.bound {
            SloBound::Latency {
                of: Latency::Response,
                percentile,
                at_most,
            } => self.response(moment, slo, (percentile, at_most)),
            SloBound::Latency {
                of: Latency::EndToEnd,
                percentile,
                at_most,
            } => self.end_to_end(fixed, slo, (percentile, at_most)),
            SloBound::FailureRatio(bound) => self.failure_ratio(fixed, slo, bound),
            SloBound::Connected(bound) if is_of_all(slo) => self.links(moment, bound),
            SloBound::Disconnects(allowed) if is_of_all(slo) => self.ended(allowed),
            SloBound::Latency { .. }
            | SloBound::Connected(_)
            | SloBound::Disconnects(_)
            | SloBound::Loss(_)
            | SloBound::Duplicates(_)
            | SloBound::NotReceived(_)
            | SloBound::RepliesLost(_)
            | SloBound::ReceiveLoss(_)
            | SloBound::QueriesWithCommand(_)
            | SloBound::Stable => None,
        }
    }

    /// The streams that a rule is about.
    fn covered<'a>(
        &'a self,
        fixed: &'a Fixed,
        slo: &'a Slo,
    ) -> impl Iterator<Item = (usize, &'a StreamTrack, &'a Measured)> {
        let tracks = fixed.recorder.streams.iter().zip(&self.streams).enumerate();
        let uplinks = tracks.filter(|(_, (track, _))| track.role.is_uplink());
        uplinks.filter_map(|(at, (track, own))| {
            let stream = StreamId(u8::try_from(at).ok()?);
            slo.covers(track.fleet, stream).then_some((at, track, own))
        })
    }

    /// Messages of a stream that have waited for longer than a bound and have not ended. Of a closed loop the
    /// schedule knows none.
    fn overdue(&self, moment: Moment<'_>, at: usize, bound: Micros) -> u64 {
        let timeline = moment.timeline;
        let first = timeline.measure.second();
        let until = (moment.now - bound).second().saturating_sub(LAG_S);
        let until = Micros::from_secs(u64::from(until)).min(timeline.settle);
        if until <= timeline.measure {
            return 0;
        }
        let schedule = &moment.fixed.schedules[at];
        let due = due_between(schedule, (timeline.measure, until), timeline);
        let ended = self.streams[at].finals.range(first..until.second());
        due.saturating_sub(ended.map(|(_, count)| count).sum())
    }

    fn response(
        &self,
        moment: Moment<'_>,
        slo: &Slo,
        (percentile, at_most): (Percentile, Micros),
    ) -> Option<String> {
        let (mut above, mut n) = (0, 0);
        let covered = self.covered(moment.fixed, slo);
        for (at, track, own) in covered.filter(|(_, track, _)| track.answers) {
            let place = track.bounds.place(Kept::Response, at_most)?;
            let lacking = [State::Shed, State::TimedOut, State::Broken, State::InFlight];
            let missing: u64 = lacking.iter().map(|state| own.outcomes.of(*state)).sum();
            let open = match track.closed {
                Some(_) => 0,
                None => self.overdue(moment, at, at_most),
            };
            above += own.above.get(place).copied().unwrap_or(0) + missing + open;
            n += own.outcomes.finals() + open;
        }
        if n < percentile.needed() {
            return is_of_all(slo)
                .then(|| shown_above(moment.response, percentile, at_most))
                .flatten();
        }
        too_many(percentile, (above, n), at_most)
    }

    /// By the first backend that breaks it.
    fn end_to_end(
        &self,
        fixed: &Fixed,
        slo: &Slo,
        (percentile, at_most): (Percentile, Micros),
    ) -> Option<String> {
        let backends = (0..fixed.recorder.backends).map(BackendId);
        backends
            .filter_map(|backend| {
                let (mut above, mut n) = (0, 0);
                for (_, track, own) in self.covered(fixed, slo) {
                    let place = track.bounds.place(Kept::EndToEnd, at_most)?;
                    let Some(arrivals) = own.arrivals.get(&backend) else {
                        continue;
                    };
                    above += arrivals.above.get(place).copied().unwrap_or(0);
                    n += arrivals.arrived;
                }
                too_many(percentile, (above, n), at_most)
            })
            .next()
    }

    fn failure_ratio(&self, fixed: &Fixed, slo: &Slo, bound: Share) -> Option<String> {
        let (mut failed, mut n) = (0, 0);
        for (_, _, own) in self.covered(fixed, slo) {
            let outcomes = &own.outcomes;
            let states = [State::Rejected, State::TimedOut, State::Broken, State::Shed];
            let all: u64 = states.iter().map(|state| outcomes.of(*state)).sum();
            failed += all - outcomes.shed_own();
            n += outcomes.finals();
        }
        let ratio = || figure::percent(failed as f64 / n as f64);
        let allowed = figure::percent(bound.as_fraction());
        (n > 0 && !bound.covers(failed, n)).then(|| format!("{} (at most {allowed})", ratio()))
    }

    /// Once the last windows of the connect phase have surely come in.
    fn links(&self, moment: Moment<'_>, bound: Share) -> Option<String> {
        let is_known = moment.now >= moment.timeline.origin + Micros::from_secs(LAG_S.into());
        let fleets = moment.fixed.recorder.fleets.iter();
        let wanted: u64 = fleets.map(|fleet| u64::from(fleet.links)).sum();
        if !is_known || wanted == 0 {
            return None;
        }
        let up = self.early.0.saturating_sub(self.early.1);
        let share = figure::percent(up as f64 / wanted as f64);
        let least = figure::percent(bound.as_fraction());
        (!bound.is_reached_by(up, wanted)).then(|| format!("{share} (at least {least})"))
    }

    fn ended(&self, allowed: Allowance) -> Option<String> {
        let count = self.disconnects;
        let (holds, most) = match allowed {
            Allowance::Count(most) => (count <= most, figure::count(most)),
            Allowance::Ratio(most) => (
                most.covers(count, self.opened),
                figure::percent(most.as_fraction()),
            ),
        };
        (!holds).then(|| format!("{} (at most {most})", figure::count(count)))
    }
}

/// True if a rule is about every fleet and stream.
fn is_of_all(slo: &Slo) -> bool {
    slo.scope == Scope::Run && slo.except.is_empty()
}

/// The shown percentile, if it is a lower bound and breaks the rule already: where too few messages were
/// measured so far to decide, it still fails.
fn shown_above(shown: Quantiles, percentile: Percentile, at_most: Micros) -> Option<String> {
    let (least, is_at_least) = match percentile {
        Percentile::P50 => (shown.p50, shown.is_p50_at_least),
        Percentile::P99 => (shown.p99, shown.is_p99_at_least),
        _ => return None,
    };
    let least = least.filter(|least| is_at_least && *least > at_most)?;
    Some(format!(">= {} (at most {at_most})", figure::time(least)))
}

/// The share above a bound, if the percentile allows less and there are enough values.
fn too_many(percentile: Percentile, (above, n): (u64, u64), at_most: Micros) -> Option<String> {
    if n < percentile.needed() || percentile.allows(above, n) {
        return None;
    }
    let share = figure::percent(above as f64 / n as f64);
    let allowed = figure::percent(1.0 - percentile.as_fraction());
    Some(format!("{share} above {at_most} (at most {allowed})"))
}

/// Adds counters place by place; an empty list counts nothing.
fn add_all(all: &mut Vec<u64>, more: &[u64]) {
    if all.len() < more.len() {
        all.resize(more.len(), 0);
    }
    for (count, more) in all.iter_mut().zip(more) {
        *count += more;
    }
}
