//! The answer of a search for a capacity: as it is written, in words, and as a table of its steps.

mod ceiling;
mod noise;
mod obstacle;
mod saturation;
mod step;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use muster_judge::capacity::{Interval, Outcome, Phase, Search, SearchEnd, SearchSpec};
use muster_model::{Dimension, Micros, figure};
use serde::{Deserialize, Serialize};

use crate::result::indented;
use crate::steps::table;
use crate::text::reason;
use crate::{Consequence, Report, RunResult};
pub use ceiling::CapacityCeiling;
pub use noise::{Noise, NoiseKind};
use obstacle::Obstacle;
pub use saturation::Saturation;
pub use step::{CapacityStep, OutcomeOfSet};

/// The name and version of the form of `capacity.json`.
pub const CAPACITY_SCHEMA: &str = "muster-capacity/1";

/// The answer of a search for a capacity. The form is described in `docs/capacity.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Always [`CAPACITY_SCHEMA`].
    pub schema: String,
    /// Version of the program that searched.
    pub muster: String,
    /// The scenario's name.
    pub name: String,
    /// Id of the run, of the last session.
    pub run: String,
    /// SHA-256 of the scenario's text, in hexadecimal; null if unknown.
    pub scenario_sha256: Option<String>,
    /// The dimension of the load that was searched.
    pub find: Dimension,
    /// Limits of the search.
    pub limits: SearchSpec,
    /// Number of runs that the search took: it may go on after its process has ended.
    pub sessions: u64,
    /// The answer for the worst set of SLOs.
    #[serde(flatten)]
    pub own: SetAnswer,
    /// The generator's own ceiling; null if it was not measured.
    pub generator: Option<CapacityCeiling>,
    /// The answers for the other sets of SLOs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SetAnswer>,
    /// Every step, in order.
    pub steps: Vec<CapacityStep>,
}

/// The answer for one set of SLOs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SetAnswer {
    /// Name of the set; left out if the scenario names no sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The end of its search; null if it was interrupted.
    pub end: Option<SearchEnd>,
    /// Interval that the steps leave; null in the ramp.
    pub known: Option<Interval>,
    /// The load that was held three times and passed each time; null if none was found, or if it was refuted.
    pub certified: Option<f64>,
    /// The reason why the closed ledger refutes the capacity that was found; null if it does not.
    pub refuted: Option<String>,
    /// Number of the failing step with the lowest load at or above the lower end of the interval; null if none failed.
    pub first_failing: Option<u64>,
    /// The resource of the target that was nearest to its limit there; left out if `monitor` watches none that rose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated: Option<Saturation>,
    /// The noise that kept the search from stating a capacity; left out if it stated one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<Noise>,
}

/// The sentence on steps that are longer than usual, for the messages that a percentile needs; none if none is.
pub fn lengths_in_words(limits: &SearchSpec, find: Dimension) -> Option<String> {
    let first = limits.short_at(limits.first);
    (first > limits.short).then(|| {
        format!(
            "steps below {} last longer than {}, for the messages that a percentile needs: {} at {}",
            find.in_words(limits.load_seconds / limits.short.as_secs_f64()),
            figure::time(limits.short),
            figure::time(first),
            find.in_words(limits.first),
        )
    })
}

impl CapacityReport {
    /// The same with what follows from its end, its steps and the report of the last run: the certified load, whether
    /// the closed ledger refutes it, the first failing step, and the noise that prevented an answer.
    #[must_use]
    pub fn concluded(self, report: &Report) -> Self {
        let mut concluded = self.concluded_by(report.verdict.has_residue());
        concluded.own.saturated = concluded.saturation(report);
        concluded.own.noise = concluded.noise(report);
        concluded
    }

    /// The resource that was nearest to its limit in the first failing step; none if another run held it.
    fn saturation(&self, report: &Report) -> Option<Saturation> {
        let is_of_run = |step: &&CapacityStep| step.session == self.sessions;
        let failing = self.failing().filter(is_of_run)?;
        let passed = self.steps.iter().filter(is_of_run);
        let passed =
            passed.filter(|step| step.outcome == Outcome::Pass && step.load < failing.load);
        let passing = passed.max_by(|a, b| a.load.total_cmp(&b.load))?;
        Saturation::new(report, failing, passing)
    }

    /// One answer with those for all sets of SLOs, the worst one first. `steps` are those of all sets. None without an
    /// answer.
    pub fn joined(mut answers: Vec<Self>, steps: Vec<CapacityStep>) -> Option<Self> {
        let share = |answer: &Self| answer.generator.as_ref()?.share;
        let share = answers.iter().filter_map(share).reduce(f64::max);
        let is_worse = |a: &Self, b: &Self| {
            let [of_a, of_b] = [a, b].map(|answer| answer.outcome().exit_code());
            of_a > of_b || of_a == of_b && a.own.certified < b.own.certified
        };
        let all = 0..answers.len();
        let worst = all.reduce(|worst, at| match is_worse(&answers[at], &answers[worst]) {
            true => at,
            false => worst,
        })?;
        let mut worst = answers.remove(worst);
        if let Some(generator) = &mut worst.generator {
            generator.share = share;
        }
        Some(Self {
            others: answers.into_iter().map(|answer| answer.own).collect(),
            steps,
            ..worst
        })
    }

    /// The answer for each set of SLOs with the steps that counted for it, the worst one first; the answer itself without
    /// sets.
    pub fn by_set(&self) -> Vec<Self> {
        let of_set = |own: &SetAnswer| {
            let steps = self.steps.iter();
            let steps = steps.filter_map(|step| match &own.set {
                Some(set) => step.of_set(set),
                None => Some(step.clone()),
            });
            Self {
                own: own.clone(),
                others: Vec::new(),
                steps: steps.collect(),
                ..self.clone()
            }
        };
        let all = std::iter::once(&self.own).chain(&self.others);
        all.map(of_set).collect()
    }

    fn concluded_by(mut self, has_residue: bool) -> Self {
        self.own.first_failing = self.lowest_failure();
        let Some(SearchEnd::Found(found)) = &self.own.end else {
            return self;
        };
        let is_confirming =
            |step: &&CapacityStep| matches!(step.phase, Phase::ConfirmLower | Phase::ConfirmUpper);
        let mut differing = self.steps.iter().filter(is_confirming);
        let differing = differing.find(|step| step.outcome != Outcome::Unclear && step.differs());
        self.own.refuted = match (differing, has_residue) {
            (Some(step), _) => Some(format!(
                "the closed ledger judges step {}, which confirmed it, otherwise",
                step.number
            )),
            (None, true) => Some("the ledger of the run has a residue".to_owned()),
            (None, false) => None,
        };
        if self.own.refuted.is_none() {
            self.own.certified = Some(found.interval.lower);
        }
        if let Some(generator) = &mut self.generator {
            generator.share = self.own.certified.map(|load| generator.share_of(load));
        }
        self
    }

    /// Number of the step that first held the lowest rate with a decided failure, as the search has it.
    fn lowest_failure(&self) -> Option<u64> {
        let lowest = match &self.own.end {
            Some(SearchEnd::Found(found)) => found.first_failing,
            Some(_) | None => {
                let mut search = Search::new(self.limits.clone()).ok()?;
                CapacityStep::replay(&self.steps, &mut search);
                search.first_failing()?
            }
        };
        let fails = |step: &&CapacityStep| step.outcome == Outcome::Fail && step.load == lowest;
        self.steps.iter().find(fails).map(|step| step.number)
    }

    /// The answer as `capacity.json` holds it.
    pub fn to_json(&self) -> String {
        indented(self)
    }

    /// Reads `capacity.json`.
    ///
    /// # Errors
    /// The reason, if the text is no answer of this version.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let answer: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        match answer.schema == CAPACITY_SCHEMA {
            true => Ok(answer),
            false => Err(format!(
                "it has the form `{}`, and this program reads `{CAPACITY_SCHEMA}`",
                answer.schema
            )),
        }
    }

    /// The address without load for which the search stopped; none if it did not.
    pub fn idle(&self) -> Option<&str> {
        let last = self.steps.last().filter(|_| self.own.end.is_none())?;
        last.idle()
    }

    /// The first failing step.
    fn failing(&self) -> Option<&CapacityStep> {
        let number = self.own.first_failing?;
        self.steps.iter().find(|step| step.number == number)
    }

    /// The result: a pass with a certified capacity, a fail if the SLOs fail at the first load, else invalid.
    pub const fn outcome(&self) -> RunResult {
        match self.own.end {
            _ if self.own.refuted.is_some() => RunResult::Invalid,
            Some(SearchEnd::Found(_)) => RunResult::Pass,
            Some(SearchEnd::FailsAtFirst { .. }) => RunResult::Fail,
            Some(
                SearchEnd::AtLeast { .. }
                | SearchEnd::NotRecovered { .. }
                | SearchEnd::NothingClear { .. }
                | SearchEnd::OutOfBudget { .. },
            )
            | None => RunResult::Invalid,
        }
    }

    /// The word for the result, which stands first.
    pub const fn result(&self) -> &'static str {
        match self.outcome() {
            RunResult::Pass => "CAPACITY",
            RunResult::Fail => "FAIL",
            RunResult::Invalid | RunResult::None | RunResult::Part => "INVALID",
        }
    }

    /// The end of the search in one sentence, with the remedy.
    pub fn end_in_words(&self) -> String {
        let load = |load: f64| self.find.in_words(load);
        match &self.own.end {
            Some(SearchEnd::Found(found)) => {
                let [lower, upper] = [found.interval.lower, found.interval.upper].map(load);
                match &self.own.refuted {
                    Some(why) => format!(
                        "{lower} was found and is not certified: {why}; see the rules in result.json, and search again"
                    ),
                    None => format!("{lower} certified; 95 % interval: {lower} to {upper}"),
                }
            }
            Some(SearchEnd::FailsAtFirst { rate }) => format!(
                "the SLOs fail at the first step, {}; try a lower one with --from",
                load(*rate)
            ),
            Some(SearchEnd::AtLeast { rate }) => {
                let generator = self.generator.as_ref();
                match generator.and_then(|generator| generator.bound(*rate)) {
                    Some(bound) => format!("at least {}, {bound}", load(*rate)),
                    None => format!(
                        "at least {}: the highest load passes; {}",
                        load(*rate),
                        self.find.beyond()
                    ),
                }
            }
            Some(SearchEnd::NotRecovered { rate, known })
                if self
                    .steps
                    .last()
                    .is_some_and(|step| step.is_dead(self.find)) =>
            {
                format!(
                    "the target died: it took nothing at {}{}; look at its log, and start it again",
                    load(*rate),
                    self.known_in_words(known.as_ref())
                )
            }
            Some(SearchEnd::NotRecovered { rate, known }) => format!(
                "the target did not come to rest after {}{}; give it more time with \
                 phases.settle.at-most, or look at its log",
                load(*rate),
                self.known_in_words(known.as_ref())
            ),
            Some(SearchEnd::NothingClear {
                rate,
                known,
                passed,
            }) => format!(
                "steps stay unclear, the last one at {}: {} passed{}; see what broke in each step of capacity.json, \
                 and give the generator more room",
                load(*rate),
                passed.map_or("no load".to_owned(), load),
                self.known_in_words(known.as_ref())
            ),
            Some(SearchEnd::OutOfBudget { known, passed }) => format!(
                "the time is up: {} passed{}; {}",
                passed.map_or("no load".to_owned(), load),
                self.known_in_words(known.as_ref()),
                Obstacle::new(&self.limits, &self.steps, known.as_ref()).in_words(self.find)
            ),
            None => self.stop_in_words(),
        }
    }

    /// The reason in words for which the search stopped without an end.
    fn stop_in_words(&self) -> String {
        let known = self.known_in_words(self.own.known.as_ref());
        match self.idle() {
            Some(address) => format!(
                "{address} received no load{known}; look at that instance, or give the fleet more devices"
            ),
            None => format!("interrupted{known}; go on with --resume"),
        }
    }

    fn known_in_words(&self, known: Option<&Interval>) -> String {
        known.map_or(String::new(), |known| {
            let [lower, upper] = [known.lower, known.upper].map(|load| self.find.in_words(load));
            format!("; so far between {lower} and {upper}")
        })
    }

    /// The answer for a terminal: the result, what broke, and the evidence.
    pub fn text(&self) -> String {
        let answers = self.by_set();
        let mut text: String = answers.iter().map(Self::answer_in_words).collect();
        text += &self
            .generator
            .as_ref()
            .map_or(String::new(), |generator| generator.line(self.find));
        text += &self.unclear_in_words();
        if let Some(lengths) = lengths_in_words(&self.limits, self.find) {
            let _ = writeln!(text, "  {lengths}");
        }
        text += &self.differing_in_words();
        let took = Micros::from_secs_f64(self.steps.iter().map(|step| step.took_s).sum());
        let _ = writeln!(
            text,
            "  {} in {}",
            figure::number_of(self.steps.len() as u64, "step"),
            figure::clock(took)
        );
        text
    }

    /// The answer for one set of SLOs in lines: the result, what broke, and the evidence.
    fn answer_in_words(&self) -> String {
        let set = self.own.set.as_ref();
        let set = set.map_or(String::new(), |set| format!(" [{set}]"));
        let mut text = format!(
            "{}  {}{set}  {}\n",
            self.result(),
            self.name,
            self.end_in_words()
        );
        text.extend(self.own.noise.iter().map(Noise::line));
        if let Some(step) = self.failing() {
            let load = self.find.in_words(step.load);
            let _ = writeln!(text, "  first fails at {load} (step {}):", step.number);
            let fails = |rule: &&crate::Rule| rule.consequence == Consequence::Fails;
            for rule in step.figures.rules.iter().filter(fails) {
                let _ = writeln!(text, "    {}", reason(rule));
            }
            if let Some(saturated) = &self.own.saturated {
                let _ = writeln!(text, "    {}", saturated.in_words());
            }
        }
        let confirming = |phase| {
            let steps = self.steps.iter().filter(move |step| step.phase == phase);
            steps.rev().map(|step| (step.number, step.outcome))
        };
        if let Some(SearchEnd::Found(_)) = self.own.end {
            let passed = confirming(Phase::ConfirmLower).filter(|it| it.1 == Outcome::Pass);
            let mut passed: Vec<String> = passed.take(3).map(|it| it.0.to_string()).collect();
            passed.reverse();
            let failed = confirming(Phase::ConfirmUpper).find(|it| it.1 != Outcome::Pass);
            let failed = failed.map_or(String::new(), |it| {
                format!("; its upper end fails in step {}", it.0)
            });
            let passed = passed.join(", ");
            let _ = writeln!(
                text,
                "  evidence: its lower end passes in steps {passed}{failed}"
            );
        }
        text
    }

    /// The number of unclear steps in a line, unless they are named as noise.
    fn unclear_in_words(&self) -> String {
        let noise = std::iter::once(&self.own).chain(&self.others);
        let mut noise = noise.flat_map(|answer| &answer.noise);
        let is_unclear = |step: &&CapacityStep| step.outcome == Outcome::Unclear;
        let mut unclear = self.steps.iter().filter(is_unclear);
        let number = unclear.clone().count() as u64;
        let first = unclear.next();
        let Some(first) = first.filter(|_| noise.all(|noise| noise.kind != NoiseKind::Unclear))
        else {
            return String::new();
        };
        format!(
            "  {} unclear and repeated, such as step {}: {}\n",
            figure::number_of(number, "step"),
            first.number,
            first.why().unwrap_or_default()
        )
    }

    /// The number of steps that the closed ledger judges otherwise, in a line.
    fn differing_in_words(&self) -> String {
        match self.steps.iter().filter(|step| step.differs()).count() {
            0 => String::new(),
            differing => format!(
                "  warning: the closed ledger judges {} otherwise; see result_at_end in capacity.json\n",
                figure::number_of(differing as u64, "step")
            ),
        }
    }

    /// The steps as comma-separated values, with a heading; none if no step was held.
    pub fn csv(&self) -> Option<String> {
        let rows = self.steps.iter().map(|step| {
            let first = vec![
                ("number", step.number.to_string()),
                ("session", step.session.to_string()),
                ("load", step.load.to_string()),
                ("phase", word(&step.phase)),
                ("outcome", step.outcomes_in_words()),
                ("has_recovered", step.has_recovered.to_string()),
                ("took_s", step.took_s.to_string()),
            ];
            (first, &step.figures)
        });
        table(&rows.collect::<Vec<_>>())
    }
}

/// The outcome of a step with this result; one without a result says nothing.
pub const fn outcome_of(result: Option<RunResult>) -> Outcome {
    match result {
        Some(RunResult::Pass) => Outcome::Pass,
        Some(RunResult::Fail) => Outcome::Fail,
        Some(RunResult::Invalid | RunResult::None | RunResult::Part) | None => Outcome::Unclear,
    }
}

/// The word that a value is written as.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}
