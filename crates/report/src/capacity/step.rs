//! A step in the answer of a search.

use std::collections::BTreeMap;

use muster_judge::capacity::{
    self, Interval, JointSearch, Margin, Observed, Outcome, Phase, Search, idle_address,
};
use muster_model::{Dimension, Micros, figure};
use serde::{Deserialize, Serialize};

use super::{outcome_of, word};
use crate::figures::in_words;
use crate::text::reason;
use crate::{Percentiles, RunResult, Step};

/// A step that was held and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    /// Its number, from 1.
    pub number: u64,
    /// The run that held it, from 1.
    pub session: u64,
    /// Its load.
    pub load: f64,
    /// The time that the search wanted it to be held; it was rounded up to whole seconds.
    pub hold: Micros,
    /// Its part in the search.
    pub phase: Phase,
    /// The set of SLOs that it was held for, to which outcome and margin belong; none if the scenario names no sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its outcome, from which the search went on.
    pub outcome: Outcome,
    /// False if messages were still on their way when the pause after it was over.
    pub has_recovered: bool,
    /// Its time with the pauses around it, in seconds.
    pub took_s: f64,
    /// Its result by the closed ledger of its run; null if that run was killed.
    pub result_at_end: Option<RunResult>,
    /// Messages of the level nearest to its limit; null if the level that decided the outcome allows no share.
    pub margin: Option<Margin>,
    /// Outcomes by the other sets whose searches went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OutcomeOfSet>,
    /// Messages sent to each address, where each is to receive a fair share; empty where load may be spread in any way,
    /// or devices have one address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_to: BTreeMap<String, u64>,
    /// Its figures when it was judged.
    pub figures: Step,
}

/// The outcome of a step by a set of SLOs that it was not held for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeOfSet {
    /// Name of the set.
    pub set: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its result by the closed ledger of its run; null if that run was killed.
    pub result_at_end: Option<RunResult>,
    /// Messages of the level nearest to its limit; null if the level that decided the outcome allows no share.
    pub margin: Option<Margin>,
}

impl CapacityStep {
    /// The step as a set of SLOs counts it; none if the search of that set had ended.
    pub fn of_set(&self, set: &str) -> Option<Self> {
        let figures = self.figures.of_set(set);
        if self.set.as_deref() == Some(set) {
            return Some(Self {
                others: Vec::new(),
                figures,
                ..self.clone()
            });
        }
        let other = self.others.iter().find(|other| other.set == set)?.clone();
        Some(Self {
            // It was held for no interval of this set.
            phase: Phase::Narrow,
            set: Some(other.set),
            outcome: other.outcome,
            result_at_end: other.result_at_end,
            margin: other.margin,
            others: Vec::new(),
            figures,
            ..self.clone()
        })
    }

    /// The step as each set of SLOs counts it whose search went on; the step itself without sets.
    fn by_set(&self) -> Vec<Self> {
        let Some(set) = &self.set else {
            return vec![self.clone()];
        };
        let others = self.others.iter().map(|other| &other.set);
        let sets = std::iter::once(set).chain(others);
        sets.filter_map(|set| self.of_set(set)).collect()
    }

    /// The step with the results of the closed ledger; `at_end` is the step there, none if it has no such step.
    #[must_use]
    pub fn closed(&self, at_end: Option<&Step>) -> Self {
        let result = |set: Option<&str>| at_end?.result_by(set);
        let others = self.others.iter().map(|other| OutcomeOfSet {
            result_at_end: result(Some(&other.set)),
            ..other.clone()
        });
        Self {
            result_at_end: result(self.set.as_deref()),
            others: others.collect(),
            ..self.clone()
        }
    }

    /// Returns whether the step passed by any set of SLOs.
    pub fn has_passed(&self) -> bool {
        let others = self.others.iter().map(|other| other.outcome);
        let mut outcomes = others.chain([self.outcome]);
        outcomes.any(|outcome| outcome == Outcome::Pass)
    }

    /// Returns whether the closed ledger gives the step another result than the search had, by any set.
    pub(super) fn differs(&self) -> bool {
        let others = self.others.iter();
        let others = others.map(|other| (other.result_at_end, other.outcome));
        let mut all = others.chain([(self.result_at_end, self.outcome)]);
        all.any(|(at_end, outcome)| {
            at_end.is_some_and(|result| self.judged(Some(result)) != outcome)
        })
    }

    /// The address that was sent next to nothing of its fair share; none if each was sent some.
    pub fn idle(&self) -> Option<&str> {
        let sent = self.sent_to.iter();
        idle_address(sent.map(|(address, messages)| (&address[..], *messages)))
    }

    /// The outcome of the step by this result of its rules: unclear if an address is idle.
    pub fn judged(&self, result: Option<RunResult>) -> Outcome {
        match self.idle() {
            Some(_) => Outcome::Unclear,
            None => outcome_of(result),
        }
    }

    /// The reason in words for which it did not pass: the first one; none if there is none.
    pub(super) fn why(&self) -> Option<String> {
        let idle = self.idle();
        let idle = idle.map(|address| format!("{address} received no load"));
        idle.or_else(|| self.figures.broken().next().map(reason))
    }

    /// The contradiction between an outcome and the figures behind it; none if all follow from them.
    pub fn contradiction(&self) -> Option<String> {
        self.by_set().iter().find_map(Self::contradiction_of_one)
    }

    fn contradiction_of_one(&self) -> Option<String> {
        let outcome = self.judged(self.figures.result_by_rules());
        if outcome != self.judged(self.figures.result) || outcome != self.outcome {
            return Some(format!(
                "step {} is `{}`, and its rules give `{}`",
                self.number,
                word(&self.outcome),
                word(&outcome)
            ));
        }
        if let Some(margin) = &self.margin
            && !margin.decides(outcome)
        {
            return Some(format!(
                "step {} is `{}`, and its share of bad messages by `{}` is {:.2} of the allowed one",
                self.number,
                word(&outcome),
                margin.slo,
                margin.ratio()
            ));
        }
        let mut rules = self.figures.rules.iter();
        let wrong = rules.find(|rule| rule.contradicts_its_figures())?;
        Some(format!(
            "step {}: `{}` [{}] is `{}` at {}, {}",
            self.number,
            wrong.rule,
            wrong.sets.place(&wrong.scope),
            word(&wrong.result),
            wrong.seen().unwrap_or_default(),
            wrong.allowed().unwrap_or_default()
        ))
    }

    /// Records steps in the searches of several sets of SLOs, or in that of the one without a name. Between the runs that
    /// held them, the target was idle.
    pub fn replay_all(steps: &[Self], sets: &[String], search: &mut JointSearch) {
        let mut session = steps.first().map_or(1, |step| step.session);
        for step in steps {
            if step.session != session {
                session = step.session;
                search.cool();
            }
            step.record_in(sets, search);
        }
    }

    /// Records the step in the searches of these sets, or in that of the one without a name.
    pub fn record_in(&self, sets: &[String], search: &mut JointSearch) {
        let by_set = sets.iter().map(|set| self.of_set(set));
        let outcomes: Vec<Option<Observed>> = match sets {
            [] => vec![Some(self.observed())],
            _ => by_set.map(|step| Some(step?.observed())).collect(),
        };
        search.replay(&self.step(), Micros::from_secs_f64(self.took_s), &outcomes);
    }

    /// Records steps in a search. Between the runs that held them, the target was idle.
    pub fn replay(steps: &[Self], search: &mut Search) {
        let mut session = steps.first().map_or(1, |step| step.session);
        for step in steps {
            if step.session != session {
                session = step.session;
                search.cool();
            }
            search.replay(&step.step(), &step.observed());
        }
    }

    /// The step as the search named it.
    pub fn step(&self) -> capacity::Step {
        capacity::Step {
            rate: self.load,
            hold: self.hold,
            phase: self.phase,
        }
    }

    /// The step as the search records it.
    pub fn observed(&self) -> Observed {
        Observed {
            outcome: self.outcome,
            margin: self.margin.clone(),
            took: Micros::from_secs_f64(self.took_s),
            has_recovered: self.has_recovered,
        }
    }

    /// True if the target took nothing of what a dimension of the load had due in the step. A target that takes no
    /// message of some size is not dead for that.
    pub fn is_dead(&self, find: Dimension) -> bool {
        let ledger = &self.figures.ledger;
        let (due, taken) = match find {
            Dimension::Payload => return false,
            Dimension::Commands => {
                let commands = self.figures.commands.unwrap_or_default();
                (commands.scheduled, commands.replied)
            }
            Dimension::Rate | Dimension::Devices | Dimension::Connects => {
                let taken = ledger.accepted + ledger.unacknowledged;
                (ledger.scheduled.unwrap_or(0), taken)
            }
        };
        due > 0 && taken == 0
    }

    /// The step in a line, with the interval that is known since and the time that is left.
    pub fn line(&self, find: Dimension, known: Option<&Interval>, left: Micros) -> String {
        let outcome = self.outcomes_in_words();
        let p99 = self.percentiles(find);
        let p99 = p99.map_or(figure::UNKNOWN.to_owned(), |of| in_words(&of, "p99_us"));
        let bracket = known.map_or("not yet known".to_owned(), |known| {
            let [lower, upper] = [known.lower, known.upper].map(|load| find.in_words(load));
            format!("{lower} to {upper}")
        });
        let why = match (self.idle(), self.figures.broken().next()) {
            (Some(address), _) => format!("  ({address} received no load)"),
            (None, Some(rule)) => format!("  ({})", rule.title()),
            (None, None) => String::new(),
        };
        format!(
            "step {:>2}  {:>10} for {:.0} s  {outcome:<7}  p99 {p99:>8}  capacity {bracket}  {} left{why}",
            self.number,
            find.in_words(self.load),
            self.figures.until_s - self.figures.from_s,
            figure::clock(left)
        )
    }

    /// The outcome, or that of each set of SLOs: `gold fail, silver pass`.
    pub(super) fn outcomes_in_words(&self) -> String {
        let Some(set) = &self.set else {
            return word(&self.outcome);
        };
        let others = self.others.iter().map(|other| (&other.set, &other.outcome));
        let all = std::iter::once((set, &self.outcome)).chain(others);
        let all: Vec<String> = all
            .map(|(set, outcome)| format!("{set} {}", word(outcome)))
            .collect();
        all.join(", ")
    }

    /// The percentiles of all due of the latency that a dimension of the load is about: of messages the response, or
    /// end-to-end without answers; of commands the loop.
    pub(super) fn percentiles(&self, find: Dimension) -> Option<Percentiles> {
        let latency = &self.figures.latency;
        let leg = if find == Dimension::Commands {
            latency.command_loop.as_ref()?
        } else {
            latency.response.as_ref().or(latency.end_to_end.as_ref())?
        };
        Some(leg.all_due.unwrap_or(leg.percentiles))
    }
}
