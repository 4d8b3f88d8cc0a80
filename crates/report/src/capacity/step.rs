//! A step in the answer of a search.

use std::collections::BTreeMap;

use muster_judge::capacity::{
    self, Interval, Margin, Observed, Outcome, Phase, Search, idle_address,
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
    /// Messages sent to each address, where each is to receive a fair share; empty where load may be spread in any way,
    /// or devices have one address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_to: BTreeMap<String, u64>,
    /// Its figures when it was judged.
    pub figures: Step,
}

impl CapacityStep {
    /// Returns whether the closed ledger gives the step another result than the search had.
    pub(super) fn differs(&self) -> bool {
        let at_end = self.result_at_end;
        at_end.is_some_and(|result| self.judged(Some(result)) != self.outcome)
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

    /// The contradiction between the outcome and the figures behind it; none if it follows from them.
    pub fn contradiction(&self) -> Option<String> {
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
            wrong.scope,
            word(&wrong.result),
            wrong.seen().unwrap_or_default(),
            wrong.allowed().unwrap_or_default()
        ))
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
        let outcome = match self.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Unclear => "unclear",
        };
        let p99 = self.percentiles(find);
        let p99 = p99.map_or(figure::UNKNOWN.to_owned(), |of| in_words(&of, "p99_us"));
        let bracket = known.map_or("not yet known".to_owned(), |known| {
            let [lower, upper] = [known.lower, known.upper].map(|load| find.in_words(load));
            format!("{lower} to {upper}")
        });
        let why = match (self.idle(), self.figures.broken().next()) {
            (Some(address), _) => format!("  ({address} received no load)"),
            (None, Some(rule)) => format!("  ({} [{}])", rule.rule, rule.scope),
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
