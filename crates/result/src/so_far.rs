//! The steps of a run that goes on, judged by what is known so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_judge::{Ending, Evidence, GeneratorHealth, Hints, judge_step};
use muster_load::StreamSchedule;
use muster_measure::{Calendar, Closing, RecorderPlan, Timeline, WindowDelta};
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

/// The steps of a run that goes on, judged by what is known so far. Its senders and consumers read one clock.
pub(crate) fn steps_so_far(so_far: &SoFar<'_>) -> Vec<Step> {
    let SoFar { plan, now, .. } = *so_far;
    let planned = plan.steps(so_far.timeline.measure);
    let starts: Vec<u32> = planned.iter().map(|step| step.from.second()).collect();
    let closing = Closing {
        plan: so_far.recorder,
        windows: so_far.windows,
        identity: None,
        account: None,
        calendar: Some(so_far.calendar),
        timeline: so_far.timeline,
        end: now,
        listening: Listening::until(now),
        devices_until: now,
        has_one_clock: true,
        quiet: plan.phases.settle.quiet,
        lost_ranges_most: 0,
    };
    let (summary, steps) = (closing.summary(), closing.steps_so_far(&starts));
    let backends = plan.backends.iter().map(|backend| backend.name.clone());
    let backends: Vec<String> = backends.collect();
    let fleets: Vec<String> = plan.fleets.iter().map(|fleet| fleet.name.clone()).collect();
    let streams = stream_evidence(plan, so_far.schedules, so_far.timeline, false);
    let evidence = Evidence {
        summary: &summary,
        windows: so_far.windows,
        health: so_far.health,
        streams: &streams,
        fleets: &fleets,
        reason_strings: &BTreeMap::new(),
        hints: &Hints::default(),
        backends: &backends,
        ending: &Ending::Planned,
        is_part: false,
        found: &[],
    };
    let judged = steps.iter().zip(&planned);
    let judged = judged.map(|(step, planned)| JudgedStep {
        rate: planned.rate,
        rate_until: planned.rate_until,
        is_hold: planned.is_hold,
        summary: step,
        verdict: planned
            .is_hold
            .then(|| judge_step(&plan.rules, &evidence, step))
            .flatten(),
    });
    Step::all(&judged.collect::<Vec<_>>())
}
