//! Closes the account of commands: from sets, windows and accounts to the ledger and its residue.

use std::ops::Range;

use muster_model::{DeviceId, Micros, StreamId};

use super::equations::Witnesses;
use super::ledger::by_name as rows_by_name;
use super::{
    ANSWERED, ANSWERING_NAMES, CommandCounts, CommandLedger, CommandSets, CommandSummary,
    CommandTimes, CommandWindow, DELIVERED, DELIVERY_NAMES, Leg, LegSummary, PRESENCES,
    PresenceRow, QUERY_NAMES,
};
use crate::closing::{Closing, by_name};
use crate::copies::CopySums;
use crate::drain::{DrainClosed, DrainSums};
use crate::equations::Equations;
use crate::lost::keep_lost;
use crate::merge::{Merge, sum_of};
use crate::scope::{Part, view};
use crate::{Cold, Distribution, LostIds, Role, SeqSet, State, StreamTrack, TableRow, WindowKey};

/// The commands of one stream, closed, with the times of its measured cohort.
#[derive(Default)]
pub(crate) struct CommandsClosed {
    pub(crate) ledger: CommandLedger,
    times: CommandWindow,
    /// The cold ones, and those of the measured cohort that are not; none where none are kept apart.
    apart: Option<[CommandWindow; 2]>,
    pub(crate) legs: [LegSummary; Leg::ALL.len()],
    drain: Option<DrainClosed>,
}

/// Sums over the devices of one stream.
#[derive(Default)]
pub(super) struct CommandSums {
    pub(super) scheduled: Option<u64>,
    /// Commands that are on one side only, which counts alone do not show.
    pub(super) unlike: Unlike,
    pub(super) queries: Sizes,
    pub(super) issues: Sizes,
    pub(super) answers: Sizes,
    pub(super) received: CopySums,
    pub(super) replies: CopySums,
    /// Answered commands against the arrivals of their replies.
    pub(super) answered: TableRow,
    pub(super) rows: [PresenceRow; PRESENCES],
    not_received: LostIds,
    drain: DrainSums,
}

/// Commands that are in one set and not in the other.
#[derive(Default)]
pub(super) struct Unlike {
    /// Came due without an end, or ended and never came due.
    pub(super) scheduled: u64,
    /// Came due and the device's side did not meet it, or the reverse.
    pub(super) met: u64,
    /// Received without an answer's end, or answered and not received.
    pub(super) answered: u64,
    delivered_not_received: u64,
    received_not_delivered: u64,
}

/// The sizes of the sets of one kind, and how many numbers stand in more than one of them.
#[derive(Default)]
pub(super) struct Sizes {
    pub(super) ends: [u64; 8],
    pub(super) overlap: u64,
}

impl Closing<'_> {
    /// The commands of a stream; none if it has neither queries nor commands.
    pub(crate) fn close_commands(&self, stream: StreamId) -> Option<CommandsClosed> {
        let track = self.plan.stream(stream)?;
        if !track.role.has_commands() {
            return None;
        }
        let windows = |is_wanted: &dyn Fn(&WindowKey) -> bool| -> CommandWindow {
            let windows = &self.windows.commands;
            sum_of(windows, |(of, key)| *of == stream && is_wanted(key))
        };
        let all = windows(&|_| true);
        let part = |part: Part| windows(&|key| part.holds(key));
        let times = part(Part::Measured);
        let is_apart = self.plan.cold != Cold::Nothing;
        let apart = is_apart.then(|| [Part::Cold, Part::Warm].map(part));
        let mut ledger = counted(&all.counts);
        if let Some(own) = self.account {
            ledger.queries = own.streams.get(stream.index())?.sent.count;
            ledger.issued = own.commands.get(stream.index())?.issued.count;
        }
        if track.role == Role::Command {
            ledger.queries = 0;
        }
        let mut drain = None;
        if let Some(sums) = self.command_sums(stream, track) {
            sums.fill(&mut ledger);
            drain = self.close_drain(stream, &sums.drain);
            if let Some(equations) = self.command_equations(stream, track, &sums, &all) {
                ledger.residue = Some(equations.residue());
                ledger.equations = equations.broken;
            }
        }
        drain = drain.filter(|_| track.role == Role::Command);
        let mut legs = <[LegSummary; Leg::ALL.len()]>::default();
        for leg in Leg::ALL.map(Leg::index) {
            legs[leg].add(&times.legs[leg], &track.bounds.legs[leg]);
        }
        Some(CommandsClosed {
            legs,
            ledger,
            times,
            apart,
            drain,
        })
    }

    /// The commands of a stream in a step: what came due in it, the times of what began in it, and what happened in its
    /// seconds. A command that was issued only after the step counts as a loop without an end: its platform was
    /// behind. None if the stream has neither queries nor commands.
    pub(crate) fn step_of_commands(
        &self,
        stream: StreamId,
        during: Range<Micros>,
    ) -> Option<CommandsClosed> {
        let track = self.plan.stream(stream)?;
        let of_windows = Closing {
            identity: None,
            account: None,
            ..*self
        };
        let mut closed = of_windows.close_commands(stream)?;
        let devices = (0..track.devices).map(|slot| DeviceId(track.first_device.0 + slot));
        let due = |device| {
            self.calendar?
                .due_between(stream, device, during.start, during.end)
        };
        let scheduled = devices.map(|device| due(device).map(|due| due.len() as u64));
        let is_command = track.role == Role::Command;
        closed.ledger = CommandLedger {
            scheduled: scheduled.sum::<Option<u64>>().filter(|_| is_command),
            withheld: closed.ledger.withheld,
            withheld_by_cause: closed.ledger.withheld_by_cause,
            answer_shed: closed.ledger.answer_shed,
            answer_shed_by_cause: closed.ledger.answer_shed_by_cause,
            ..CommandLedger::default()
        };
        let begun = &mut closed.legs[Leg::Loop.index()].begun;
        *begun = (*begun).max(closed.ledger.scheduled.unwrap_or(0));
        Some(closed)
    }

    fn command_sums(&self, stream: StreamId, track: &StreamTrack) -> Option<CommandSums> {
        let (identity, calendar) = (self.identity?, self.calendar?);
        let known = identity.commands.get(stream.index())?;
        // Replies come to the first backend, and so do messages.
        let last_arrival = identity.backends.first().and_then(|seen| seen.last_arrival);
        let last = identity.last_reply.max(last_arrival);
        let quiet_since = last.unwrap_or(self.timeline.settle);
        let is_quiet = self.listening.is_quiet(quiet_since, self.quiet);
        let mut sums = CommandSums::default();
        let nothing = CommandSets::default();
        for slot in 0..track.devices {
            let sets = known.devices.get(slot).unwrap_or(&nothing);
            let device = DeviceId(track.first_device.0 + slot);
            let border = if is_quiet {
                u32::MAX
            } else {
                sets.replies.drained
            };
            if track.role == Role::Command {
                sums.schedule(calendar.commands(stream, device), sets);
                self.drain_commands((stream, device), sets, &mut sums.drain);
            }
            sums.add(sets, border);
            sums.compare(sets, (stream, device), self.lost_ranges_most);
        }
        Some(sums)
    }

    /// Commands that came due while their device was away. None of them is outstanding: the
    /// platform says that it has them, and how long it keeps them is not known.
    fn drain_commands(
        &self,
        (stream, device): (StreamId, DeviceId),
        sets: &CommandSets,
        drain: &mut DrainSums,
    ) {
        let Some(absence) = self.absence(stream, device) else {
            return;
        };
        let Some(due) = self.due_in(absence, stream, device) else {
            drain.is_unknown = true;
            return;
        };
        let delivered = sets.issues.of(DELIVERED);
        let received = &sets.received;
        drain.copies.add(received.sums(None, due.clone()));
        drain.compare(device, &delivered.within(due), &received.arrived, u32::MAX);
    }

    fn command_equations(
        &self,
        stream: StreamId,
        track: &StreamTrack,
        sums: &CommandSums,
        windows: &CommandWindow,
    ) -> Option<Equations> {
        let identity = self.identity?;
        let of = Witnesses {
            own: self.account?.commands.get(stream.index())?,
            facts: identity.facts.commands.get(stream.index())?,
            strays: identity.commands.get(stream.index())?,
            sums,
            counts: &windows.counts,
        };
        let mut equations = Equations::about(format!("commands of stream {}", stream.0));
        if track.role == Role::Query {
            let sent = self.account?.streams.get(stream.index())?.sent.count;
            let shed = identity.facts.streams.get(stream.index())?.states[State::Shed.index()];
            equations.queries((sent, shed.count), &of, &windows.queries);
        } else {
            equations.commands(&of);
        }
        Some(equations)
    }
}

impl CommandsClosed {
    /// Ledger and latencies of several streams together.
    pub(crate) fn sum<'a>(
        parts: impl Iterator<Item = &'a CommandsClosed> + Clone,
        is_whole: bool,
    ) -> Option<CommandSummary> {
        let drain = DrainClosed::sum(parts.clone().filter_map(|part| part.drain.as_ref()));
        let mut sum: Option<CommandsClosed> = None;
        for part in parts {
            let sum = sum.get_or_insert_default();
            sum.ledger.merge(&part.ledger);
            sum.times.merge(&part.times);
            sum.apart.merge(&part.apart);
            sum.legs.merge(&part.legs);
        }
        let CommandsClosed {
            mut ledger,
            mut times,
            apart,
            legs,
            ..
        } = sum?;
        if !is_whole {
            ledger.residue = None;
        }
        let lateness = std::mem::take(&mut times.lateness);
        let (cold, warm) = apart.map(|[cold, warm]| (cold.into(), warm.into())).unzip();
        Some(CommandSummary {
            ledger,
            measured: times.into(),
            legs,
            cold,
            warm,
            lateness: view(lateness, Distribution::default(), false),
            drain,
        })
    }
}

impl From<CommandWindow> for CommandTimes {
    fn from(window: CommandWindow) -> Self {
        Self {
            request_lower: view(window.request_lower, window.request_censored.clone(), true),
            request: view(window.request, window.request_censored, true),
            response_lower: view(
                window.response_lower,
                window.response_censored.clone(),
                true,
            ),
            response: view(window.response, window.response_censored, true),
            round: view(window.round, Distribution::default(), false),
            queries: window.queries,
        }
    }
}

/// Returns the figures that the windows alone give.
fn counted(counts: &CommandCounts) -> CommandLedger {
    let [
        received_by_query,
        no_command,
        query_rejected,
        query_timed_out,
        query_broken,
        query_in_flight,
    ] = counts.queries;
    let [delivered, expired, undeliverable, unknown, withheld] = counts.issues.ends;
    let [
        answered,
        one_way,
        answer_rejected,
        answer_timed_out,
        answer_broken,
        answer_in_flight,
        answer_shed,
    ] = counts.answers;
    CommandLedger {
        queries: counts.queries.iter().sum(),
        received_by_query,
        no_command,
        query_rejected,
        query_rejected_by_code: by_name(&counts.queries_rejected),
        query_timed_out,
        query_broken,
        query_in_flight,
        withheld,
        withheld_by_cause: by_name(&counts.issues.withheld),
        issued: delivered + expired + undeliverable + unknown,
        delivered,
        expired,
        undeliverable,
        undeliverable_by_status: by_name(&counts.issues.undeliverable),
        unknown,
        received: counts.received,
        received_again: counts.again,
        received_foreign: counts.foreign,
        received_damaged: counts.damaged,
        one_way,
        answered,
        answer_rejected,
        answer_rejected_by_code: by_name(&counts.answers_rejected),
        answer_timed_out,
        answer_broken,
        answer_in_flight,
        answer_shed,
        answer_shed_by_cause: by_name(&counts.answers_shed),
        replies_by_status: by_name(&counts.replies_by_status),
        replies_again: counts.replies_again,
        replies_foreign: counts.replies_foreign,
        replies_damaged: counts.replies_damaged,
        ..CommandLedger::default()
    }
}

impl CommandSums {
    /// The schedule's own count against the ends, and against what the device's side met.
    fn schedule(&mut self, scheduled: Option<u32>, sets: &CommandSets) {
        let Some(scheduled) = scheduled else { return };
        *self.scheduled.get_or_insert(0) += u64::from(scheduled);
        let due = 0..scheduled;
        self.unlike.scheduled += unlike(&due, &sets.issues.union().0);
        self.unlike.met += unlike(&due, &sets.met.union().0);
    }

    fn add(&mut self, sets: &CommandSets, border: u32) {
        self.queries.add(&sets.queries, QUERY_NAMES.len());
        self.issues.add(&sets.issues, DELIVERY_NAMES.len());
        self.answers.add(&sets.answers, ANSWERING_NAMES.len());
        self.received.add(sets.received.sums(None, 0..u32::MAX));
        self.replies.add(sets.replies.sums(None, 0..u32::MAX));
        let (answers, _) = sets.answers.union();
        self.unlike.answered += symmetric_difference(&answers, &sets.received.arrived);
        let answered = sets.answers.of(ANSWERED);
        let row = TableRow::compare(&answered, &sets.replies.arrived, border);
        self.answered.merge(&row);
    }

    /// The backend's word against the devices'.
    fn compare(&mut self, sets: &CommandSets, of: (StreamId, DeviceId), most: usize) {
        let delivered = sets.issues.of(DELIVERED);
        let received = &sets.received.arrived;
        let missing = delivered.difference(received);
        self.unlike.delivered_not_received += missing.len();
        self.unlike.received_not_delivered += received.difference(&delivered).len();
        keep_lost(&mut self.not_received, of, missing.runs().collect(), most);
        for (place, row) in self.rows.iter_mut().enumerate() {
            let met = sets.met.of(place);
            row.scheduled += met.len();
            row.delivered += met.intersection(&delivered).len();
            row.received += met.intersection(received).len();
            row.replies_arrived += met.intersection(&sets.replies.arrived).len();
        }
    }

    fn fill(&self, ledger: &mut CommandLedger) {
        ledger.scheduled = self.scheduled;
        ledger.received = self.received.first;
        ledger.delivered_not_received = Some(self.unlike.delivered_not_received);
        ledger.received_not_delivered = Some(self.unlike.received_not_delivered);
        ledger.replies_arrived = Some(self.answered.arrived);
        ledger.replies_lost = Some(self.answered.absent);
        ledger.replies_outstanding = Some(self.answered.outstanding);
        ledger.replies_unanswered = Some(self.replies.first - self.answered.arrived);
        if self.scheduled.is_some() {
            ledger.by_presence = rows_by_name(&self.rows);
        }
        ledger.not_received = self.not_received.clone();
    }
}

impl Sizes {
    fn add(&mut self, sets: &super::sets::EndSets, ends: usize) {
        for end in 0..ends {
            self.ends[end] += sets.of(end).len();
        }
        self.overlap += sets.union().1;
    }
}

/// Number of sequence numbers in exactly one of the two.
fn unlike(due: &Range<u32>, set: &SeqSet) -> u64 {
    let scheduled = SeqSet::from_runs(std::iter::once(due.clone()));
    symmetric_difference(&scheduled, set)
}

fn symmetric_difference(one: &SeqSet, other: &SeqSet) -> u64 {
    one.difference(other).len() + other.difference(one).len()
}
