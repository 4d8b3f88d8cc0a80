//! The search for a capacity, while its run goes on: which load is held next, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use muster_conduct::{
    Delivery, PlanCalendar, ProcessSample, Standing, Steer, recorder_plan, schedules, timetable,
};
use muster_judge::capacity::{Interval, JointSearch, Outcome, SearchSpec, Step, Turn};
use muster_load::{AddedHold, StreamSchedule};
use muster_measure::{RecorderPlan, Timeline, WindowDelta};
use muster_model::{Dimension, Micros, RunId, figure};
use muster_plan::Plan;
use muster_report::{CapacityCeiling, CapacityStep, OutcomeOfSet};
use serde::{Deserialize, Serialize};

use crate::live::HealthLog;
use crate::so_far::{BySet, SoFar, margins_so_far, steps_so_far};

mod standing;

pub use standing::{SetStanding, standing_after};
use standing::{searched, standings};

/// Time between the order of a hold and its begin, so that every thread knows of it before.
const LEAD: Micros = Micros::from_millis(300);
/// Time after the end of a hold in which the windows of its last second come in at the latest.
const NEWS: Micros = Micros::from_millis(1_500);

/// A search stops without an answer after this number of steps in a row in which an instance received no load.
const IDLE_STEPS: usize = 3;

/// Time between the begin of the measured phase and the first hold at the most, with what the ends are late.
const SLACK: Micros = Micros::from_secs(5);

/// The length of a run that holds the steps of a search with this budget. The last of them may be followed by a pause
/// of its whole length.
pub fn search_length(plan: &Plan, budget: Micros) -> Micros {
    budget + plan.phases.settle.at_most.max(NEWS) + SLACK
}

/// The form of the journal of a search.
const SCHEMA: &str = "muster-search/1";

/// A search before its first step: the first line of its journal, and a record of each run that holds its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchBegun {
    schema: String,
    /// Hash of the plan and its rules.
    pub plan: String,
    /// The dimension of the load.
    pub find: Dimension,
    /// Names of the sets of SLOs, each with its search; none if the scenario names no sets.
    pub sets: Vec<String>,
    /// Subject and limits.
    pub spec: SearchSpec,
    /// The generator's own ceiling; none if it was not measured.
    pub ceiling: Option<CapacityCeiling>,
    /// True if each of several addresses is to be sent its share in each step: a step without is not judged.
    pub needs_each_address: bool,
}

impl SearchBegun {
    /// A search by one set of SLOs, without a measured ceiling.
    pub fn new(plan: String, find: Dimension, spec: SearchSpec) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            plan,
            find,
            sets: Vec::new(),
            spec,
            ceiling: None,
            needs_each_address: false,
        }
    }

    /// Checks its form.
    ///
    /// # Errors
    /// The reason, if it has another one than this version reads.
    pub fn check(&self) -> Result<(), String> {
        match self.schema == SCHEMA {
            true => Ok(()),
            false => Err(format!(
                "it has the form `{}`, and this program reads `{SCHEMA}`",
                self.schema
            )),
        }
    }
}

/// Instants of a judgement on a step. The windows that had come in by then give its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The begin of the time that the step took.
    pub since: Micros,
    /// The instant of the judgement.
    pub at: Micros,
    /// True if the target came to rest in the pause after the step.
    pub came_to_rest: bool,
}

/// A search under way, with all that it needs to judge a step.
#[derive(Debug)]
pub struct CapacitySearch {
    search: JointSearch,
    plan: Plan,
    schedules: Vec<Arc<StreamSchedule>>,
    recorder: RecorderPlan,
    begun: SearchBegun,
    /// The load that the scenario states: a hold is a multiple of it.
    stated: f64,
    windows: WindowDelta,
    health: HealthLog,
    doing: Doing,
    /// End of the time that the steps so far have taken; none before the first one.
    spent_until: Option<Micros>,
    /// Every hold that was ordered.
    holds: Vec<AddedHold>,
    held: Vec<CapacityStep>,
    /// The judgement on the last of them, until it is taken.
    judgement: Option<Judgement>,
    /// Number of this run among those of the search.
    session: u64,
}

/// State of a search between two orders.
#[derive(Debug, Clone, Copy)]
enum Doing {
    /// Nothing: the next step is to be decided on.
    Deciding,
    /// The devices of a step connect, and others leave, since this instant.
    Connecting(Turn, Micros),
    /// A step goes on.
    Holding(Holding),
    /// Nothing more: the search is over, or an instance stays without load.
    Stopped,
}

/// The step that goes on.
#[derive(Debug, Clone, Copy)]
struct Holding {
    turn: Turn,
    from: Micros,
    until: Micros,
}

impl CapacitySearch {
    /// A search on a plan whose load is added while it runs ([`Plan::adding`]). It goes on behind
    /// the steps that earlier runs have held, and holds none of them again.
    ///
    /// # Errors
    /// If nothing can be searched by the specification, or the plan has no schedule.
    pub fn new(begun: &SearchBegun, plan: Plan, earlier: Vec<CapacityStep>) -> Result<Self> {
        let find = begun.find;
        let schedules = schedules(&plan).map_err(|error| anyhow!("make a schedule: {error}"))?;
        let mut search = searched(begun, &earlier)?;
        if !earlier.is_empty() {
            // The target was idle meanwhile.
            search.cool();
        }
        Ok(Self {
            search,
            recorder: recorder_plan(&plan, RunId(0), &schedules),
            begun: begun.clone(),
            stated: plan.stated_load(find),
            plan,
            schedules,
            windows: WindowDelta::default(),
            health: HealthLog::default(),
            doing: Doing::Deciding,
            spent_until: None,
            holds: Vec::new(),
            session: earlier.last().map_or(1, |last| last.session + 1),
            held: earlier,
            judgement: None,
        })
    }

    /// Takes in what came.
    pub fn windows(&mut self, delta: &WindowDelta) {
        self.windows.merge(delta);
    }

    /// Adds a health sample.
    pub fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        self.health.add(agent, sample);
    }

    /// The next order; none while a step goes on.
    ///
    /// # Errors
    /// If a step cannot be judged.
    pub fn turn(&mut self, standing: &Standing, delivery: &Delivery) -> Result<Option<Steer>> {
        match self.doing {
            Doing::Deciding => self.next(standing).map(Some),
            Doing::Connecting(turn, since) if self.are_there(standing, since) => {
                self.hold(turn, standing).map(Some)
            }
            Doing::Connecting(..) | Doing::Stopped => Ok(None),
            Doing::Holding(holding) => {
                if let Some(came_to_rest) = self.rest(standing, delivery, holding.until) {
                    let since = self.spent_until.replace(standing.now);
                    let judgement = Judgement {
                        since: since.unwrap_or(holding.from),
                        at: standing.now,
                        came_to_rest,
                    };
                    self.judge(&holding, standing.timeline, judgement)?;
                    self.judgement = Some(judgement);
                    self.doing = Doing::Deciding;
                }
                Ok(None)
            }
        }
    }

    /// Takes the judgement on the step that was judged since the last call; none if none was.
    pub fn take_judgement(&mut self) -> Option<Judgement> {
        self.judgement.take()
    }

    /// Judges the next step again, which a run held on this timeline.
    ///
    /// # Errors
    /// If the steps before lead to another one, or it cannot be judged.
    pub(crate) fn judge_again(
        &mut self,
        hold: AddedHold,
        timeline: Timeline,
        judgement: Judgement,
    ) -> Result<()> {
        let number = self.held.len() + 1;
        let Some(turn) = self.search.next() else {
            bail!("the windows hold step {number}, before which the search is over");
        };
        let step = turn.step;
        let is_wanted = hold.factor.to_bits() == self.factor(step).to_bits()
            && hold.until - hold.from == whole_seconds(step.hold);
        if !is_wanted {
            bail!(
                "the windows hold {} for {} in step {number}, and the steps before it lead to {} for {}",
                self.begun.find.in_words(hold.factor * self.stated),
                figure::time(hold.until - hold.from),
                self.begun.find.in_words(step.rate),
                figure::time(whole_seconds(step.hold)),
            );
        }
        self.add(hold, step)?;
        let holding = Holding {
            turn,
            from: timeline.origin + hold.from,
            until: timeline.origin + hold.until,
        };
        self.judge(&holding, timeline, judgement)
    }

    /// Adds every hold of this run so far to its plan.
    pub fn add_to(&self, plan: &mut Plan) {
        self.holds.iter().for_each(|hold| plan.add_hold(hold));
    }

    /// The time that is left of the budget.
    pub fn left(&self) -> Micros {
        self.search.left()
    }

    /// The steps so far, in order, with those of earlier runs.
    pub fn held(&self) -> &[CapacityStep] {
        &self.held
    }

    /// Number of this run among those of the search, from 1.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Standings of the searches for each set of SLOs, in the order of the scenario.
    pub fn standings(&self) -> Vec<SetStanding> {
        standings(&self.begun, &self.search)
    }

    /// The interval that the steps so far leave by the set of SLOs that a step was held for; none in the ramp.
    pub fn known_after(&self, step: &CapacityStep) -> Option<Interval> {
        let mut all = self.standings().into_iter();
        all.find(|standing| standing.set == step.set)?.known
    }

    fn next(&mut self, standing: &Standing) -> Result<Steer> {
        if self.held.len() >= IDLE_STEPS && self.held.iter().rev().take(IDLE_STEPS).all(is_idle) {
            self.doing = Doing::Stopped;
            return Ok(Steer::End);
        }
        let Some(turn) = self.search.next() else {
            self.doing = Doing::Stopped;
            return Ok(Steer::End);
        };
        self.spent_until.get_or_insert(standing.now);
        if self.begun.find != Dimension::Devices {
            return self.hold(turn, standing);
        }
        self.doing = Doing::Connecting(turn, standing.now);
        Ok(Steer::Activate(self.factor(turn.step)))
    }

    /// A step as a multiple of the stated load.
    fn factor(&self, step: Step) -> f64 {
        self.begun.find.held(step.rate) / self.stated
    }

    /// True once the devices of a step are connected and no others are, or had the time of a ramp for it: what a
    /// device that is not connected does not send is the step's to judge.
    fn are_there(&self, standing: &Standing, since: Micros) -> bool {
        let progress = &standing.progress;
        let is_known = progress.at >= since + LEAD;
        let are_all_up = progress.links_up == progress.links_wanted;
        is_known && (are_all_up || progress.at >= since + timetable(&self.plan).connect_at_most)
    }

    /// Orders a step.
    fn hold(&mut self, turn: Turn, standing: &Standing) -> Result<Steer> {
        let step = turn.step;
        let soon = standing.now + LEAD;
        let from = Micros::from_secs(u64::from(soon.second()) + 1);
        let until = from + whole_seconds(step.hold);
        let origin = standing.timeline.origin;
        let hold = AddedHold {
            from: from - origin,
            until: until - origin,
            factor: self.factor(step),
        };
        self.add(hold, step)?;
        self.doing = Doing::Holding(Holding { turn, from, until });
        Ok(Steer::Hold(hold))
    }

    /// Adds the hold of a step to the plan and its schedules.
    fn add(&mut self, hold: AddedHold, step: Step) -> Result<()> {
        self.plan.add_hold(&hold);
        self.holds.push(hold);
        let schedules = schedules(&self.plan);
        self.schedules = schedules.map_err(|error| {
            let load = self.begun.find.in_words(step.rate);
            anyhow!("hold {load} in a step: {error}; search below it, with --to")
        })?;
        Ok(())
    }

    /// True once the target has come to rest after a hold, false if it did not in time; none while it may
    /// still.
    fn rest(&self, standing: &Standing, delivery: &Delivery, until: Micros) -> Option<bool> {
        let progress = &standing.progress;
        if progress.at < until + NEWS {
            return None;
        }
        let settle = self.plan.phases.settle;
        let is_busy = progress.open > 0 || progress.behind > 0 || progress.completing > 0;
        let last = delivery.last_arrival.unwrap_or(until).max(until);
        let is_quiet = delivery.is_complete || progress.at >= last + settle.quiet;
        match !is_busy && is_quiet {
            true => Some(true),
            false => (progress.at >= until + settle.at_most).then_some(false),
        }
    }

    /// Messages since the step before was judged, by address; nothing if load may be spread in any way.
    fn sent_to(&self) -> BTreeMap<String, u64> {
        match self.begun.needs_each_address {
            true => self.windows.sent_to.clone(),
            false => BTreeMap::new(),
        }
    }

    /// The seconds in which the parts of a step begin.
    fn parts(&self, holding: &Holding) -> Vec<u32> {
        let length = self.search.batch(&holding.turn.step);
        let seconds = length.get().div_ceil(1_000_000).max(1) as usize;
        let all = holding.from.second()..holding.until.second();
        all.step_by(seconds).collect()
    }

    /// The outcomes of a step by the sets of SLOs whose searches go on: that of the set for which it was held first.
    fn judged_by_sets(
        &self,
        held: &CapacityStep,
        so_far: &SoFar<'_>,
        holding: &Holding,
    ) -> Vec<OutcomeOfSet> {
        let own = holding.turn.set;
        let others = self.search.open().filter(|other| *other != own);
        let sets = std::iter::once(own).chain(others);
        let by_set = sets.map(|set| {
            let set = self.begun.sets.get(set).map(String::as_str);
            let outcome = held.judged(held.figures.result_by(set));
            BySet { set, outcome }
        });
        let by_set: Vec<BySet<'_>> = by_set.collect();
        let margins = margins_so_far(so_far, &self.parts(holding), &by_set);
        let outcomes = by_set.iter().zip(margins);
        let outcomes = outcomes.map(|(by, margin)| OutcomeOfSet {
            set: by.set.unwrap_or_default().to_owned(),
            outcome: by.outcome,
            result_at_end: None,
            margin,
        });
        outcomes.collect()
    }

    fn judge(&mut self, holding: &Holding, timeline: Timeline, judgement: Judgement) -> Result<()> {
        let Holding { turn, from, until } = *holding;
        let timeline = timeline.stopped(until);
        let calendar = PlanCalendar::new(&self.plan, &self.schedules, timeline);
        let so_far = SoFar {
            plan: &self.plan,
            schedules: &self.schedules,
            recorder: &self.recorder,
            windows: &self.windows,
            calendar: &calendar,
            health: self.health.health(),
            timeline,
            now: judgement.at,
        };
        let mut steps = steps_so_far(&so_far);
        let begin = from.as_secs_f64();
        let of_hold = steps
            .iter()
            .position(|step| step.from_s.to_bits() == begin.to_bits());
        let of_hold =
            of_hold.ok_or_else(|| anyhow!("judge the step from {from}: it has no figures"))?;
        let figures = steps.swap_remove(of_hold);
        let Turn { step, set } = turn;
        let mut held = CapacityStep {
            number: self.held.len() as u64 + 1,
            session: self.session,
            load: step.rate,
            hold: step.hold,
            phase: step.phase,
            set: self.begun.sets.get(set).cloned(),
            outcome: Outcome::Unclear,
            has_recovered: judgement.came_to_rest,
            took_s: (judgement.at - judgement.since).as_secs_f64(),
            result_at_end: None,
            margin: None,
            others: Vec::new(),
            sent_to: self.sent_to(),
            figures,
        };
        let mut all = self.judged_by_sets(&held, &so_far, holding).into_iter();
        if let Some(own) = all.next() {
            (held.outcome, held.margin) = (own.outcome, own.margin);
        }
        held.others = all.collect();
        // A load that is too high delays messages; it lets some through.
        let has_passed = self.held.iter().any(CapacityStep::has_passed);
        held.has_recovered &= !(has_passed && held.is_dead(self.begun.find));
        held.record_in(&self.begun.sets, &mut self.search);
        self.held.push(held);
        // The target is at rest, so that nothing of the steps before is needed any more.
        self.windows.sent_to.values_mut().for_each(|sent| *sent = 0);
        self.windows.forget_before(until.second());
        Ok(())
    }
}

/// The time for which a step is held, in whole seconds.
fn whole_seconds(hold: Micros) -> Micros {
    Micros::from_secs(hold.get().div_ceil(1_000_000))
}

fn is_idle(step: &CapacityStep) -> bool {
    step.idle().is_some()
}
