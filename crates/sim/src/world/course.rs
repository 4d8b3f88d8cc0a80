//! The course of a run: its phases, and the counts of its windows so far.

use std::collections::VecDeque;

use muster_conduct::{Conductor, DISPATCH_EVERY, Delivery, Ending, Order, Progress, timetable};
use muster_measure::{Account, Calendar, Closing, Identity, RecorderPlan, Summary};
use muster_measure::{Timeline, WindowDelta};
use muster_model::{Listening, Micros, ShedCause};
use muster_plan::Plan;

/// Ranges of lost ids that are listed: more than a test looks at.
const LOST_RANGES_MAX: usize = 1_000;

/// The course of a run.
#[derive(Debug)]
pub(super) struct Course {
    conductor: Conductor,
    recorder: RecorderPlan,
    windows: WindowDelta,
    timeline: Timeline,
    /// Listening state of the consumers when the conductor was last asked.
    listening: Listening,
    next_dispatch: Micros,
    quiet: Micros,
    interrupt_at: Option<Micros>,
    /// Orders that the plan does not have, with their instants.
    ordered: VecDeque<(Micros, Order)>,
    untaken: ShedCause,
}

impl Course {
    pub(super) fn new(plan: &Plan, recorder: RecorderPlan) -> Self {
        Self {
            conductor: Conductor::new(timetable(plan)),
            recorder,
            windows: WindowDelta::default(),
            timeline: Timeline::CONNECTING,
            listening: Listening::until(Micros::ZERO),
            next_dispatch: Micros::ZERO,
            quiet: plan.phases.settle.quiet,
            interrupt_at: None,
            ordered: VecDeque::new(),
            untaken: ShedCause::GeneratorLate,
        }
    }

    pub(super) fn interrupt_at(&mut self, at: Micros) {
        self.interrupt_at = Some(at);
    }

    pub(super) fn order_at(&mut self, at: Micros, order: Order) {
        self.ordered.push_back((at, order));
    }

    pub(super) fn timeline(&self) -> Timeline {
        self.timeline
    }

    pub(super) fn ending(&self) -> Ending {
        self.conductor.ending()
    }

    /// Cause of the messages that are due and were not taken.
    pub(super) fn untaken(&self) -> ShedCause {
        self.untaken
    }

    pub(super) fn next_dispatch(&self) -> Micros {
        self.next_dispatch
    }

    /// True if the conductor is to be asked now.
    pub(super) fn is_due(&mut self, now: Micros) -> bool {
        let is_due = now >= self.next_dispatch;
        if is_due {
            self.next_dispatch = now + DISPATCH_EVERY;
        }
        is_due
    }

    pub(super) fn gather(&mut self, windows: &WindowDelta) {
        self.windows.merge(windows);
    }

    /// The next order of the conductor.
    pub(super) fn step(&mut self, now: Micros, progress: &Progress) -> Option<Order> {
        if self.interrupt_at.take_if(|at| *at <= now).is_some() {
            self.conductor.interrupt(now);
        }
        if let Some((_, order)) = self.ordered.pop_front_if(|(at, _)| *at <= now) {
            return Some(order);
        }
        self.listening = progress.listening;
        let delivery = Delivery::of(&self.windows.progress);
        self.conductor.step(now, progress, &delivery)
    }

    pub(super) fn start(&mut self, origin: Micros, plan: &Plan) {
        let phases = plan.phases;
        self.timeline = Timeline::starting(origin, phases.warm_up, phases.measure);
    }

    /// No message is due from an instant on; true if that is before the planned end.
    pub(super) fn end_due(&mut self, at: Micros) -> bool {
        let is_early = at < self.timeline.settle;
        if is_early {
            self.timeline = self.timeline.stopped(at);
            self.untaken = ShedCause::Interrupted;
        }
        is_early
    }

    pub(super) fn summary(
        &self,
        end: Micros,
        identity: &Identity,
        account: &Account,
        calendar: &dyn Calendar,
    ) -> Summary {
        Closing {
            plan: &self.recorder,
            windows: &self.windows,
            identity: Some(identity),
            account: Some(account),
            calendar: Some(calendar),
            timeline: self.timeline,
            end,
            listening: self.listening,
            devices_until: end,
            has_one_clock: true,
            quiet: self.quiet,
            lost_ranges_most: LOST_RANGES_MAX,
        }
        .summary()
    }
}
