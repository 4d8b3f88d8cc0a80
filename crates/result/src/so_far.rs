//! The steps of a run that goes on, judged by what is known so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_judge::capacity::{Margin, Outcome};
use muster_judge::{Ending, Evidence, GeneratorHealth, Hints, judge_step, step_margin};
use muster_load::StreamSchedule;
use muster_measure::{Calendar, Closing, RecorderPlan, Summary, Timeline, WindowDelta};
use muster_model::{Listening, Micros};
use muster_plan::Plan;
use muster_report::{JudgedStep, Step};

use crate::judged::stream_evidence;

/// A run that goes on.
pub(crate) struct SoFar<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) schedules: &'a [Arc<StreamSchedule>],
    pub(crate) recorder: &'a RecorderPlan,
    pub(crate) windows: &'a WindowDelta,
    pub(crate) calendar: &'a dyn Calendar,
    pub(crate) health: &'a GeneratorHealth,
    pub(crate) timeline: Timeline,
    pub(crate) now: Micros,
}

/// The steps of a run that goes on, judged by what is known so far.
pub(crate) fn steps_so_far(so_far: &SoFar<'_>) -> Vec<Step> {
    let plan = so_far.plan;
    let planned = plan.steps(so_far.timeline.measure);
    let starts: Vec<u32> = planned.iter().map(|step| step.from.second()).collect();
    so_far.of_parts(&starts, |evidence, steps| {
        let judged = steps.iter().zip(&planned);
        let judged = judged.map(|(step, planned)| JudgedStep {
            rate: planned.rate,
            rate_until: planned.rate_until,
            is_hold: planned.is_hold,
            summary: step,
            verdict: planned
                .is_hold
                .then(|| judge_step(&plan.rules, evidence, step))
                .flatten(),
        });
        Step::all(&judged.collect::<Vec<_>>())
    })
}

/// The outcome of a step by a set of SLOs; by all of them without a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BySet<'a> {
    pub(crate) set: Option<&'a str>,
    pub(crate) outcome: Outcome,
}

/// The margins of the step that is the last, whose parts begin in these seconds: one for each outcome.
pub(crate) fn margins_so_far(
    so_far: &SoFar<'_>,
    parts: &[u32],
    outcomes: &[BySet<'_>],
) -> Vec<Option<Margin>> {
    let begin = Micros::from_secs(u64::from(parts.first().copied().unwrap_or(0)));
    // What was before is a part too: the first one begins with the measured phase.
    let starts: Vec<u32> = [&[0], parts].concat();
    so_far.of_parts(&starts, |evidence, steps| {
        let of_step = steps.iter().filter(|part| part.timeline.measure >= begin);
        let of_step: Vec<&Summary> = of_step.collect();
        let margin = |by: &BySet<'_>| {
            let slos = so_far.plan.rules.of_set(by.set);
            step_margin(slos, evidence, &of_step, by.outcome)
        };
        outcomes.iter().map(margin).collect()
    })
}

impl SoFar<'_> {
    /// Hands on the figures of the parts of the run that begin in these seconds. Senders and consumers of the run read one
    /// clock.
    fn of_parts<T>(
        &self,
        starts: &[u32],
        report: impl FnOnce(&Evidence<'_>, &[Summary]) -> T,
    ) -> T {
        let Self { plan, now, .. } = *self;
        let closing = Closing {
            plan: self.recorder,
            windows: self.windows,
            identity: None,
            account: None,
            calendar: Some(self.calendar),
            timeline: self.timeline,
            end: now,
            listening: Listening::until(now),
            devices_until: now,
            has_one_clock: true,
            quiet: plan.phases.settle.quiet,
            lost_ranges_most: 0,
        };
        let (summary, parts) = (closing.summary(), closing.steps_so_far(starts));
        let backends = plan.account_names();
        let fleets: Vec<String> = plan.fleets.iter().map(|fleet| fleet.name.clone()).collect();
        let streams = stream_evidence(plan, self.schedules, self.timeline, false);
        let evidence = Evidence {
            summary: &summary,
            windows: self.windows,
            health: self.health,
            streams: &streams,
            fleets: &fleets,
            reason_strings: &BTreeMap::new(),
            hints: &Hints::default(),
            backends: &backends,
            ending: &Ending::Planned,
            is_part: false,
            found: &[],
            resources: &[],
        };
        report(&evidence, &parts)
    }
}
