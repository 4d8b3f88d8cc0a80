//! The steps of a run: the figures of each stretch of the measured phase, as those of the whole.
//!
//! A message belongs to the step in which it was due. A figure that has no due instant belongs to
//! the step of its event. Steps divide the measured phase, so that their ledgers add up to its
//! ledger.

use muster_model::{BackendId, FleetId, Micros, StreamId};

use crate::closing::{Closed, Closing, StreamClosed, arrival_figures};
use crate::cohort::{Cohort, PerCohort};
use crate::equations::Equations;
use crate::gather::Gathered;
use crate::per_device_close::{BackendSums, StreamSums};
use crate::{
    ArrivalFigures, Arrivals, BackendLedger, LinkLedger, Phase, ScopeSummary, State, Summary,
    Table, Timeline, WindowDelta, WindowKey,
};

/// The step that an instant of the measured phase lies in. Instants before the second step lie in the
/// first one.
pub(crate) fn step_at(starts: &[u32], at: Micros) -> Option<usize> {
    step_of(starts, at.second())
}

fn step_of(starts: &[u32], second: u32) -> Option<usize> {
    let begun = starts.partition_point(|start| *start <= second);
    (!starts.is_empty()).then(|| begun.saturating_sub(1))
}

/// One step on the clock of the run.
struct Step<'a> {
    starts: &'a [u32],
    number: usize,
    from: Micros,
    until: Micros,
    /// True if windows alone show the absent messages, since no sets are there yet.
    is_so_far: bool,
}

impl Step<'_> {
    fn holds(&self, second: u32, phase: Phase) -> bool {
        phase == Phase::Measure && step_of(self.starts, second) == Some(self.number)
    }
}

/// The steps that began, in order.
fn steps<'a>(starts: &'a [u32], timeline: &Timeline) -> impl Iterator<Item = Step<'a>> {
    let Timeline {
        origin: _,
        measure,
        settle,
    } = *timeline;
    let begin = move |number: usize| match starts.get(number) {
        Some(_) if number == 0 => measure,
        Some(second) => Micros::from_secs(u64::from(*second)).min(settle),
        None => settle,
    };
    (0..starts.len())
        .map(move |number| Step {
            starts,
            number,
            from: begin(number),
            until: begin(number + 1),
            is_so_far: false,
        })
        .filter(|step| step.from < step.until)
}

impl Closing<'_> {
    /// The run in figures, and each of its steps alike: its measured phase is then the step. Steps
    /// begin in the seconds of `starts`, which ascend; the first one begins with the measured phase,
    /// and the last one ends with it. Steps that never began are left out.
    ///
    /// A step knows no subscribers, no copies beyond the first and no residue, and of commands what came due in it and
    /// the times of what began in it. What became of the messages of a closed loop beyond their answers is not known by step, since
    /// nobody knows when an absent one was due.
    pub fn summary_in_steps(&self, starts: &[u32]) -> (Summary, Vec<Summary>) {
        let closed = self.close(starts);
        let whole = self.summarize(&closed);
        let steps = steps(starts, &self.timeline);
        let steps = steps
            .map(|step| self.step(&step, &closed, &whole))
            .collect();
        (whole, steps)
    }

    /// The steps of a run that goes on, from windows and schedules alone. Of several causes for which a
    /// message may be absent the one that blames the platform least is taken: rejected, then failed, then
    /// lost. That the ledger closes is known at the end only.
    pub fn steps_so_far(&self, starts: &[u32]) -> Vec<Summary> {
        let closed = self.close(&[]);
        let whole = self.summarize(&closed);
        let steps = steps(starts, &self.timeline).map(|step| {
            let step = Step {
                is_so_far: true,
                ..step
            };
            let mut summary = self.step(&step, &closed, &whole);
            summary.residue = Some(0);
            summary
        });
        steps.collect()
    }

    fn step(&self, step: &Step<'_>, closed: &Closed, whole: &Summary) -> Summary {
        let windows = self.windows.only(|key| step.holds(key.second, key.phase));
        let closing = Closing {
            windows: &windows,
            timeline: Timeline {
                origin: step.from,
                measure: step.from,
                settle: step.until,
            },
            end: step.until,
            ..*self
        };
        let streams = closed.streams.iter();
        let streams: Vec<StreamClosed> = streams
            .map(|stream| closing.step_of_stream(stream, step))
            .collect();
        let backends = (0..self.plan.backends).map(|at| backend_of(BackendId(at), &streams));
        let mut summary = closing.summarize(&Closed {
            backends: backends.collect(),
            streams,
            equations: Equations::default(),
        });
        summary.residue = whole.residue;
        let has_closed = |is_in: &dyn Fn(StreamId, FleetId) -> bool| {
            let mut tracks = self.plan.streams.iter().zip(0u8..=u8::MAX);
            tracks.any(|(track, at)| track.closed.is_some() && is_in(StreamId(at), track.fleet))
        };
        complete(&mut summary.run, &whole.run, has_closed(&|_, _| true));
        for ((scope, whole), at) in summary.fleets.iter_mut().zip(&whole.fleets).zip(0..) {
            complete(scope, whole, has_closed(&|_, fleet| fleet == FleetId(at)));
        }
        for (group, whole) in summary.groups.iter_mut().zip(&whole.groups) {
            let is_closed = has_closed(&|stream, _| whole.streams.contains(&stream));
            complete(&mut group.scope, &whole.scope, is_closed);
        }
        for (scope, whole) in summary.streams.iter_mut().zip(&whole.streams) {
            complete(scope, whole, false);
        }
        summary
    }

    fn step_of_stream(&self, whole: &StreamClosed, step: &Step<'_>) -> StreamClosed {
        let track = &self.plan.streams[whole.stream.index()];
        let gather = || Gathered::of(self.windows, whole.stream, self.plan.backends, |_| true);
        let gathered = PerCohort {
            uplink: gather(),
            measured: gather(),
        };
        let sums = whole.sums.as_ref().filter(|_| track.closed.is_none());
        let sums = match sums {
            Some(sums) => Some(self.step_of_sums(sums, &gathered.measured, whole, step)),
            None => step
                .is_so_far
                .then(|| self.sums_so_far(&gathered.measured, whole, step)),
        };
        let finals = gathered.measured.outcomes().finals();
        let mut closed = StreamClosed {
            stream: whole.stream,
            gathered,
            sums,
            ledgers: PerCohort::default(),
            commands: self.step_of_commands(whole.stream, step.from..step.until),
            receptions: None,
        };
        let mut ledger = self.ledger(&closed, track, Cohort::Measured);
        if track.closed.is_some() && self.is_whole() {
            ledger.scheduled = Some(finals);
            ledger.omitted = ledger.nominal.map(|nominal| nominal.saturating_sub(finals));
        }
        closed.ledgers = PerCohort {
            uplink: ledger.clone(),
            measured: ledger,
        };
        closed
    }

    /// The sums of a stream's sets, from windows and from the absent by their due.
    fn step_of_sums(
        &self,
        sums: &StreamSums,
        gathered: &Gathered,
        stream: &StreamClosed,
        step: &Step<'_>,
    ) -> StreamSums {
        let outcomes = gathered.outcomes();
        let backends = sums.backends.iter().zip(&gathered.arrivals);
        let backends = backends.map(|(sums, seen)| {
            let absent = sums.absent_due.iter();
            let absent_due: std::collections::BTreeMap<(u32, Phase), Table> = absent
                .filter(|((second, phase), _)| step.holds(*second, *phase))
                .map(|(place, table)| (*place, *table))
                .collect();
            let mut table = Table::default();
            absent_due.values().for_each(|absent| table.merge(absent));
            for state in State::SENT {
                if let Some(row) = table.rows.get_mut(state.index()) {
                    let missing = row.absent + row.outstanding;
                    row.arrived = outcomes.of(state).saturating_sub(missing);
                }
            }
            let figures = ArrivalFigures {
                arrived: table.rows.iter().map(|row| row.arrived).sum(),
                late: seen.late,
                table,
                ..ArrivalFigures::default()
            };
            BackendSums {
                figures: both(figures),
                unsure: sums.unsure,
                absent_due,
                censored: sums
                    .censored_steps
                    .get(step.number)
                    .cloned()
                    .unwrap_or_default(),
                ..BackendSums::default()
            }
        });
        StreamSums {
            scheduled: both(self.nominal_in(step, stream)),
            states: both(outcomes.states),
            backends: backends.collect(),
            ..StreamSums::default()
        }
    }

    /// Messages of a stream that its schedule has in a step.
    fn nominal_in(&self, step: &Step<'_>, stream: &StreamClosed) -> u64 {
        let calendar = self.calendar;
        let until = |at| calendar.map_or(0, |calendar| calendar.nominal(stream.stream, at));
        until(step.until).saturating_sub(until(step.from))
    }

    /// The same from windows alone.
    fn sums_so_far(
        &self,
        gathered: &Gathered,
        stream: &StreamClosed,
        step: &Step<'_>,
    ) -> StreamSums {
        let outcomes = gathered.outcomes();
        let backends = gathered.arrivals.iter().enumerate().map(|(at, seen)| {
            // It is read when the load has ended.
            if self.plan.is_store(at) {
                return BackendSums::default();
            }
            let mut table = Table::default();
            let mut absent = outcomes.sent.saturating_sub(seen.arrived_due);
            for state in LEAST_BLAME_FIRST {
                let Some(row) = table.rows.get_mut(state.index()) else {
                    continue;
                };
                row.absent = absent.min(outcomes.of(state));
                row.arrived = outcomes.of(state) - row.absent;
                absent -= row.absent;
            }
            let figures = ArrivalFigures {
                arrived: seen.arrived_due,
                late: seen.late,
                table,
                ..ArrivalFigures::default()
            };
            BackendSums {
                figures: both(figures),
                ..BackendSums::default()
            }
        });
        StreamSums {
            scheduled: both(self.nominal_in(step, stream)),
            states: both(outcomes.states),
            backends: backends.collect(),
            ..StreamSums::default()
        }
    }
}

/// States in the order in which absent messages are given to them.
const LEAST_BLAME_FIRST: [State; 6] = [
    State::Rejected,
    State::TimedOut,
    State::Broken,
    State::InFlight,
    State::Accepted,
    State::Unacknowledged,
];

fn both<T: Copy>(figures: T) -> PerCohort<T> {
    PerCohort {
        uplink: figures,
        measured: figures,
    }
}

fn backend_of(backend: BackendId, streams: &[StreamClosed]) -> BackendLedger {
    let mut ledger = BackendLedger::default();
    for stream in streams {
        let figures = arrival_figures(stream, backend, Cohort::Measured);
        ledger.uplink.merge(&figures);
        ledger.measured.merge(&figures);
        ledger.streams.push(figures);
        ledger.streams_measured.push(figures);
    }
    ledger
}

/// Takes out of a step's scope what it does not know, and adds the links that were there before it.
fn complete(scope: &mut ScopeSummary, whole: &ScopeSummary, is_closed: bool) {
    let measured = &mut scope.measured;
    measured.residue = None;
    let Arrivals {
        consumed,
        duplicates,
        duplicate_own,
        reordered,
        ..
    } = &mut measured.arrivals;
    for unknown in [consumed, duplicates, duplicate_own, reordered] {
        *unknown = None;
    }
    if is_closed {
        measured.arrivals.forget_absent();
    }
    scope.uplink = scope.measured.clone();
    scope.links = LinkLedger {
        disconnects: std::mem::take(&mut scope.links.disconnects),
        ended_by_platform: std::mem::take(&mut scope.links.ended_by_platform),
        ..whole.links.clone()
    };
}

impl Arrivals {
    /// Forgets what depends on the absent messages.
    fn forget_absent(&mut self) {
        let Self {
            lost,
            lost_unacknowledged,
            outstanding,
            rejected_but_arrived,
            timed_out_but_arrived,
            broken_but_arrived,
            ..
        } = self;
        for unknown in [
            lost,
            lost_unacknowledged,
            outstanding,
            rejected_but_arrived,
            timed_out_but_arrived,
            broken_but_arrived,
        ] {
            *unknown = None;
        }
    }
}

impl WindowDelta {
    /// The windows of messages, commands, copies and links whose key is wanted.
    fn only(&self, is_wanted: impl Fn(&WindowKey) -> bool) -> Self {
        let uplinks = self.uplinks.iter().filter(|((_, key), _)| is_wanted(key));
        let arrivals = self.arrivals.iter().filter(|((.., key), _)| is_wanted(key));
        let copies = self.copies.iter().filter(|((_, key), _)| is_wanted(key));
        let links = self.links.iter().filter(|((_, key), _)| is_wanted(key));
        let commands = self.commands.iter().filter(|((_, key), _)| is_wanted(key));
        Self {
            until: self.until,
            uplinks: uplinks.map(|(place, of)| (*place, of.clone())).collect(),
            arrivals: arrivals.map(|(place, of)| (*place, of.clone())).collect(),
            copies: copies.map(|(place, of)| (*place, *of)).collect(),
            links: links.map(|(place, of)| (*place, of.clone())).collect(),
            commands: commands.map(|(place, of)| (*place, of.clone())).collect(),
            ..Self::default()
        }
    }
}
