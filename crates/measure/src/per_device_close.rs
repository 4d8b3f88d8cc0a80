//! Close of one stream's identity sets, device by device: what ended how, what arrived, what is
//! lost, and which.

use std::collections::BTreeMap;
use std::ops::Range;

use muster_model::{DeviceId, Listening, Micros, StreamId};

use crate::cohort::{Cohort, PerCohort};
use crate::copies::Seen;
use crate::identity::Finals;
use crate::lost::{AbsentIds, keep_lost};
use crate::order::Known;
use crate::set_merge::{clip, count, merge_runs};
use crate::steps::step_at;
use crate::{
    ArrivalFigures, Calendar, Cold, Distribution, Identity, Phase, RecorderPlan, SeqSet, State,
    StreamTrack, Table,
};

/// Inputs of the close that the sets do not hold.
#[derive(Clone, Copy)]
pub(crate) struct CloseInputs<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) calendar: &'a dyn Calendar,
    /// Messages that are kept apart.
    pub(crate) cold: Cold,
    /// Start of the measured phase.
    pub(crate) measure: Micros,
    /// Start of settling.
    pub(crate) settle: Micros,
    /// Instant at which settling ended.
    pub(crate) end: Micros,
    /// Listening of every consumer.
    pub(crate) listening: Listening,
    /// Time for which a backend must have been quiet for what is absent to be lost.
    pub(crate) quiet: Micros,
    /// Plan of what was recorded.
    pub(crate) plan: &'a RecorderPlan,
    /// Number of ranges of lost ids kept for each backend, at most.
    pub(crate) lost_ranges_most: usize,
    /// The seconds in which the steps of the run begin, ascending; empty if it has none.
    pub(crate) steps: &'a [u32],
}

/// The figures of one stream.
#[derive(Debug, Default)]
pub(crate) struct StreamSums {
    /// Messages the schedule says came due, summed over devices.
    pub(crate) scheduled: PerCohort<u64>,
    /// Sizes of the sets; the index is [`State::index`].
    pub(crate) states: PerCohort<[u64; State::ALL.len()]>,
    /// Messages in any set.
    pub(crate) union: u64,
    /// Messages that came due and are in no set, and messages in a set that never came due.
    pub(crate) unmatched: u64,
    /// Messages in more than one set, counted once for each set too many.
    pub(crate) overlap: u64,
    /// Per backend.
    pub(crate) backends: Vec<BackendSums>,
}

/// The figures of one stream at one backend.
#[derive(Debug, Default)]
pub(crate) struct BackendSums {
    pub(crate) figures: PerCohort<ArrivalFigures>,
    /// Copies that may be of another message than the one whose due they were recorded with.
    pub(crate) unsure: u64,
    /// Copies beyond all messages of their device's stream, where order alone decides.
    pub(crate) surplus: u64,
    /// Absent messages by the second and the phase of their due, each at its state.
    pub(crate) absent_due: BTreeMap<(u32, Phase), Table>,
    /// Measured cohort: how long the absent have been due at the end, those rejected left out.
    pub(crate) censored: Distribution,
    /// The same of the messages that are kept apart as cold, those of the warm-up among them.
    pub(crate) censored_cold: Distribution,
    /// The same of the others; nothing where none are kept apart.
    pub(crate) censored_warm: Distribution,
    /// The measured ones of each step.
    pub(crate) censored_steps: Vec<Distribution>,
}

/// The sets of one device's stream.
struct DeviceSets<'a> {
    device: DeviceId,
    stream: StreamId,
    finals: &'a Finals,
    primary: State,
    /// Number of messages due before the measured phase.
    warm_up: u32,
}

/// Messages of one state that did not arrive.
struct Absent {
    state: State,
    /// True if a store holds another message at their instants.
    is_overwritten: bool,
    seqs: Range<u32>,
    /// From this number on they may still come.
    border: u32,
}

impl StreamSums {
    /// Sums over every device of a stream. `absent` receives the ids of each backend.
    pub(crate) fn of(
        inputs: &CloseInputs<'_>,
        stream: StreamId,
        track: &StreamTrack,
        absent: &mut [AbsentIds],
    ) -> Self {
        let mut sums = Self::default();
        sums.backends
            .resize_with(absent.len(), BackendSums::default);
        let finals = &inputs.identity.streams[stream.index()];
        let nothing = Finals::default();
        for slot in 0..track.devices {
            let device = DeviceId(track.first_device.0 + slot);
            let known = finals.devices.get(slot).unwrap_or(&nothing);
            let union = known.union(finals.primary);
            let scheduled = inputs.calendar.scheduled(stream, device);
            let count = scheduled.unwrap_or_else(|| end_of(&union));
            let warm_up = inputs
                .calendar
                .warm_up(stream, device)
                .unwrap_or(known.warm_up);
            sums.count_finals(known, finals.primary, warm_up);
            sums.match_schedule(&union, count, warm_up);
            let own = DeviceSets {
                device,
                stream,
                finals: known,
                primary: finals.primary,
                warm_up,
            };
            for (at, backend) in sums.backends.iter_mut().enumerate() {
                let read_of = inputs.plan.read_of(at);
                if read_of.is_some_and(|sample| !sample.holds(device)) {
                    backend.add_outside_sample(&own);
                    continue;
                }
                let seen = inputs.identity.backends[at].streams[stream.index()].get(slot);
                if union.is_empty() && seen.is_none_or(|seen| seen.arrived.is_empty()) {
                    continue;
                }
                let nothing = Seen::default();
                let seen = seen.unwrap_or(&nothing);
                let known = track.by_order.then(|| backend.given(seen, &own));
                let seen = known.as_ref().unwrap_or(seen);
                let border = inputs.border(at, seen);
                backend.add_device(inputs, &own, seen, (border, &mut absent[at]));
            }
        }
        sums
    }

    fn count_finals(&mut self, finals: &Finals, primary: State, warm_up: u32) {
        for (state, set) in finals.sets(primary) {
            let len = set.len();
            self.states.uplink[state.index()] += len;
            self.overlap += len;
            self.states.measured[state.index()] += count(clip(set.runs(), warm_up..u32::MAX));
        }
    }

    fn match_schedule(&mut self, union: &SeqSet, scheduled: u32, warm_up: u32) {
        let due = u64::from(scheduled);
        let inside = count(clip(union.runs(), 0..scheduled));
        let len = union.len();
        self.scheduled.uplink += due;
        self.scheduled.measured += u64::from(scheduled.saturating_sub(warm_up));
        self.unmatched += (due - inside) + (len - inside);
        self.union += len;
        self.overlap -= len;
    }
}

impl CloseInputs<'_> {
    /// From which number on an absent message of a device's stream may still come. A backend
    /// that has delivered nothing has been quiet since the last message was due, not for ever. A store keeps
    /// what it keeps once all of a device was read.
    fn border(&self, backend: usize, seen: &Seen) -> u32 {
        if self.plan.is_store(backend) {
            return seen.drained;
        }
        let last = self.identity.backends[backend].last_arrival;
        let quiet_since = last.unwrap_or(self.settle);
        if self.listening.is_quiet(quiet_since, self.quiet) {
            u32::MAX
        } else {
            seen.drained
        }
    }
}

impl BackendSums {
    /// Gives the copies of a device's stream to messages, where order alone decides.
    fn given(&mut self, seen: &Seen, own: &DeviceSets<'_>) -> Seen {
        let known = Known::of(seen, own.finals, own.primary);
        self.unsure += known.unsure;
        self.surplus += known.surplus.all;
        for cohort in Cohort::BOTH {
            let figures = self.figures.of_mut(cohort);
            figures.copies += known.surplus.all;
            figures.duplicates += known.surplus.all - known.surplus.own;
            figures.duplicate_own += known.surplus.own;
        }
        known.seen
    }

    fn add_device(
        &mut self,
        inputs: &CloseInputs<'_>,
        own: &DeviceSets<'_>,
        seen: &Seen,
        (border, ids): (u32, &mut AbsentIds),
    ) {
        let (mut lost, mut overwritten) = (Vec::new(), Vec::new());
        for (state, set) in own.finals.sets(own.primary) {
            if set.is_empty() {
                continue;
            }
            let mut absent = Vec::new();
            for stretch in merge_runs(set.runs(), seen.arrived.runs()) {
                match (stretch.in_first, stretch.in_second) {
                    (true, true) => self.add_arrived(state, &stretch.range, own.warm_up),
                    (true, false) => absent.push(stretch.range),
                    (false, true | false) => {}
                }
            }
            for stretch in merge_runs(absent.into_iter(), seen.overwritten()) {
                let absent = Absent {
                    state,
                    is_overwritten: stretch.in_second && state.is_expected(),
                    seqs: stretch.range,
                    border,
                };
                if !stretch.in_first {
                    continue;
                }
                self.add_absent(&absent, own.warm_up);
                self.date_absent(inputs, &absent, own);
                match absent.is_overwritten {
                    true => overwritten.push(absent.lost()),
                    false if state.is_expected() => lost.push(absent.lost()),
                    false => {}
                }
            }
        }
        self.add_copies(seen, own);
        let of = (own.stream, own.device);
        keep_lost(&mut ids.lost, of, lost, inputs.lost_ranges_most);
        keep_lost(
            &mut ids.overwritten,
            of,
            overwritten,
            inputs.lost_ranges_most,
        );
    }

    fn add_arrived(&mut self, state: State, seqs: &Range<u32>, warm_up: u32) {
        for cohort in Cohort::BOTH {
            let table = &mut self.figures.of_mut(cohort).table;
            if let Some(row) = table.rows.get_mut(state.index()) {
                row.arrived += len_in(seqs, cohort, warm_up);
            }
        }
    }

    fn add_outside_sample(&mut self, own: &DeviceSets<'_>) {
        for (state, set) in own.finals.sets(own.primary) {
            for cohort in Cohort::BOTH {
                let table = &mut self.figures.of_mut(cohort).table;
                if let Some(row) = table.rows.get_mut(state.index()) {
                    let runs = clip(set.runs(), first_of(cohort, own.warm_up)..u32::MAX);
                    row.outside_sample += count(runs);
                }
            }
        }
    }

    fn add_absent(&mut self, absent: &Absent, warm_up: u32) {
        for cohort in Cohort::BOTH {
            let table = &mut self.figures.of_mut(cohort).table;
            if let Some(row) = table.rows.get_mut(absent.state.index()) {
                let gone = match absent.is_overwritten {
                    true => &mut row.overwritten,
                    false => &mut row.absent,
                };
                *gone += len_in(&absent.lost(), cohort, warm_up);
                row.outstanding += len_in(&absent.outstanding(), cohort, warm_up);
            }
        }
    }

    /// Notes when the absent were due. Shed messages are in no row of the series here, for they
    /// leave by themselves; for the end-to-end time they are absent like others.
    fn date_absent(&mut self, inputs: &CloseInputs<'_>, absent: &Absent, own: &DeviceSets<'_>) {
        for seq in absent.seqs.clone() {
            let due = inputs.calendar.due(own.stream, own.device, seq);
            if absent.state != State::Rejected {
                self.censor(inputs, seq, due, seq >= own.warm_up);
            }
            let Some(due) = due.filter(|_| absent.state != State::Shed) else {
                continue;
            };
            let phase = match seq >= own.warm_up {
                true => Phase::Measure,
                false => Phase::WarmUp,
            };
            let table = self.absent_due.entry((due.second(), phase)).or_default();
            if let Some(row) = table.rows.get_mut(absent.state.index()) {
                let is_final = seq < absent.border;
                row.absent += u64::from(is_final && !absent.is_overwritten);
                row.outstanding += u64::from(!is_final);
            }
        }
    }

    /// Notes for how long an absent message had been due at the end.
    fn censor(
        &mut self,
        inputs: &CloseInputs<'_>,
        seq: u32,
        due: Option<Micros>,
        is_measured: bool,
    ) {
        let waited = due.map_or(Micros::ZERO, |due| inputs.end - due);
        if is_measured {
            self.censored.record(waited);
        }
        if let Some(step) = due
            .filter(|_| is_measured)
            .and_then(|due| step_at(inputs.steps, due))
        {
            if self.censored_steps.len() <= step {
                self.censored_steps
                    .resize_with(step + 1, Distribution::default);
            }
            self.censored_steps[step].record(waited);
        }
        if inputs.cold.holds(seq, due, inputs.measure) {
            self.censored_cold.record(waited);
        } else if is_measured && inputs.cold != Cold::Nothing {
            self.censored_warm.record(waited);
        }
    }

    fn add_copies(&mut self, seen: &Seen, own: &DeviceSets<'_>) {
        for cohort in Cohort::BOTH {
            let from = first_of(cohort, own.warm_up);
            let copies = seen.sums(own.finals.resent(), from..u32::MAX);
            let figures = self.figures.of_mut(cohort);
            figures.arrived += copies.first;
            figures.copies += copies.all();
            figures.duplicates += copies.further.all - copies.further.own;
            figures.duplicate_own += copies.further.own;
            figures.late += copies.late;
            figures.reordered += copies.reordered;
        }
    }
}

impl Absent {
    fn lost(&self) -> Range<u32> {
        self.seqs.start..self.seqs.end.min(self.border).max(self.seqs.start)
    }

    fn outstanding(&self) -> Range<u32> {
        self.seqs.start.max(self.border).min(self.seqs.end)..self.seqs.end
    }
}

/// The first number of a device's stream that is of the cohort.
fn first_of(cohort: Cohort, warm_up: u32) -> u32 {
    match cohort {
        Cohort::Uplink => 0,
        Cohort::Measured => warm_up,
    }
}

fn len_in(seqs: &Range<u32>, cohort: Cohort, warm_up: u32) -> u64 {
    let from = seqs.start.max(first_of(cohort, warm_up));
    u64::from(seqs.end.saturating_sub(from))
}

/// One more than the largest number of a set.
fn end_of(set: &SeqSet) -> u32 {
    set.runs().last().map_or(0, |run| run.end)
}
