//! The steps of a search, and its answer.

use std::fmt;

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::belief::{Belief, Interval};

/// Probability with which the capacity lies in the stated interval.
const CONFIDENCE: f64 = 0.95;
/// Each step of the ramp is this many times the one before.
const GROWTH: f64 = 2.0;
/// A step that stays unclear is held this many times at the most; the median of its outcomes counts.
const TRIES: usize = 3;
/// The lower end of the interval has to pass this number of times, on fresh figures.
const CONFIRMATIONS: usize = 3;
/// Room around the bracket of the ramp, for its steps are short and may be wrong.
const ROOM: f64 = 1.25;
/// A bracket wider than this is asked in short steps, one narrower than [`NARROW`] in long ones.
const WIDE: f64 = 0.5;
const NARROW: f64 = 0.15;
/// A bracket narrower than this is asked near its ends in turn.
const ENDS: f64 = 0.3;

/// Subject and limits of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchSpec {
    /// The rate of the first step, above 0: per second, or a number of devices.
    pub first: f64,
    /// The highest rate that may be asked for, at least `first`: what the generator can judge.
    pub most: f64,
    /// The width of the stated interval at the most, as a part of its lower end.
    pub width: f64,
    /// The length of the first steps.
    pub short: Micros,
    /// The length of steps close to the capacity, and of the confirmation.
    pub long: Micros,
    /// The time that all steps may take together, pauses between them included.
    pub budget: Micros,
}

/// A specification that cannot be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchError {
    /// The first rate is not above 0 and at most the highest.
    Rates,
    /// The width is not above 0 and below 1.
    Width,
    /// A short step is longer than a long one, or has no length.
    Lengths,
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rates => "the first rate must be above 0, and at most the highest rate",
            Self::Width => "the width must be above 0 and below 1",
            Self::Lengths => "a short step must have a length, and not more than a long one",
        })
    }
}

impl std::error::Error for SearchError {}

/// A rate to be held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rate: per second, or a number of devices.
    pub rate: f64,
    /// The time for which it is judged.
    pub hold: Micros,
    /// Its part in the search.
    pub phase: Phase,
}

/// The part of a step in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The rate grows until a step fails.
    Ramp,
    /// The interval gets narrower.
    Narrow,
    /// The lower end of the interval has to hold.
    ConfirmLower,
    /// The upper end of the interval must not hold.
    ConfirmUpper,
}

/// The outcome of a step for one set of service levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Some level did not hold.
    Fail,
    /// Too little was known, or the generator's own part could have decided.
    Unclear,
    /// All levels held.
    Pass,
}

/// The next move of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Hold a rate.
    Hold(Step),
    /// Nothing: the search is over.
    End(SearchEnd),
}

/// The end of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum SearchEnd {
    /// The capacity was found, and confirmed.
    Found(Capacity),
    /// The levels do not hold at the first rate.
    FailsAtFirst {
        /// The rate.
        rate: f64,
    },
    /// The levels hold at the highest rate that the generator can judge.
    AtLeast {
        /// The rate.
        rate: f64,
    },
    /// The target did not come back after a step.
    NotRecovered {
        /// The rate of that step.
        rate: f64,
        /// The interval by then; none in the ramp.
        known: Option<Interval>,
    },
    /// The time is up.
    OutOfBudget {
        /// The interval by then; none in the ramp.
        known: Option<Interval>,
        /// The highest rate that passed; none if none did.
        passed: Option<f64>,
    },
}

/// A capacity that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The interval with 95 % probability; its lower end was held three times and passed each time, its upper
    /// end failed.
    pub interval: Interval,
    /// The lowest rate that failed.
    pub first_failing: f64,
}

/// A step that was held.
#[derive(Debug, Clone, Copy)]
struct Held {
    step: Step,
    outcome: Outcome,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    spec: SearchSpec,
    /// Every step with a decided outcome, in order: of repeated ones the median.
    held: Vec<Held>,
    /// The outcomes of the step that is repeated now.
    tries: Vec<Outcome>,
    /// Known once the ramp is over.
    belief: Option<Belief>,
    /// The interval under confirmation, and how often its ends were held with the expected outcome.
    confirming: Option<Confirming>,
    spent: Micros,
    lost_at: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Confirming {
    interval: Interval,
    lower: usize,
    is_upper_done: bool,
}

impl Search {
    /// Begins a search.
    ///
    /// # Errors
    /// [`SearchError`] if nothing can be searched by the specification.
    pub fn new(spec: SearchSpec) -> Result<Self, SearchError> {
        if !(spec.first > 0.0 && spec.first <= spec.most && spec.most.is_finite()) {
            return Err(SearchError::Rates);
        }
        if !(spec.width > 0.0 && spec.width < 1.0) {
            return Err(SearchError::Width);
        }
        if spec.short == Micros::ZERO || spec.short > spec.long {
            return Err(SearchError::Lengths);
        }
        Ok(Self {
            spec,
            held: Vec::new(),
            tries: Vec::new(),
            belief: None,
            confirming: None,
            spent: Micros::ZERO,
            lost_at: None,
        })
    }

    /// Names the next step, or the end. It is the same until an outcome is recorded.
    pub fn next(&self) -> Next {
        if let Some(rate) = self.lost_at {
            let known = self.known();
            return Next::End(SearchEnd::NotRecovered { rate, known });
        }
        let step = match self.wanted() {
            Ok(step) => step,
            Err(end) => return Next::End(end),
        };
        if self.spent + step.hold > self.spec.budget {
            return Next::End(SearchEnd::OutOfBudget {
                known: self.known(),
                passed: self.passed(),
            });
        }
        Next::Hold(step)
    }

    /// Takes the outcome of the step that [`Search::next`] named. `took` is its whole time, with the pause that
    /// followed it; `has_recovered` is false if the target did not come back to rest in that pause.
    pub fn record(&mut self, outcome: Outcome, took: Micros, has_recovered: bool) {
        let Ok(step) = self.wanted() else {
            return;
        };
        self.spent += took;
        if !has_recovered {
            self.lost_at = Some(step.rate);
        }
        self.tries.push(outcome);
        if let Some(outcome) = decided(&self.tries) {
            self.tries.clear();
            self.decide(step, outcome);
        }
    }

    /// The interval that the steps so far leave; none in the ramp.
    pub fn known(&self) -> Option<Interval> {
        let belief = self.belief.as_ref();
        belief.map(|belief| belief.interval(CONFIDENCE))
    }

    /// The time of the budget that is left.
    pub fn left(&self) -> Micros {
        self.spec.budget - self.spent
    }

    fn wanted(&self) -> Result<Step, SearchEnd> {
        let Some(belief) = &self.belief else {
            return self.ramp();
        };
        match &self.confirming {
            Some(confirming) => self.confirm(confirming),
            None => Ok(self.narrow(belief)),
        }
    }

    fn ramp(&self) -> Result<Step, SearchEnd> {
        let most = self.spec.most;
        let rate = match self.held.last() {
            None => self.spec.first,
            Some(held) if held.outcome != Outcome::Pass => {
                let rate = held.step.rate;
                return Err(SearchEnd::FailsAtFirst { rate });
            }
            Some(held) if held.step.rate >= most => {
                return Err(SearchEnd::AtLeast { rate: most });
            }
            Some(held) => (held.step.rate * GROWTH).min(most),
        };
        // What the generator can carry at the most is held as long as an answer needs.
        let hold = if rate >= most {
            self.spec.long
        } else {
            self.spec.short
        };
        Ok(Step {
            rate,
            hold,
            phase: Phase::Ramp,
        })
    }

    /// The middle while little is known, then below and above it in turn: what is asked at the middle says
    /// little of the ends.
    fn narrow(&self, belief: &Belief) -> Step {
        let width = belief.interval(CONFIDENCE).width();
        let part = match (width > ENDS, self.held.len() % 2) {
            (true, _) => 0.5,
            (false, 0) => 0.15,
            (false, _) => 0.85,
        };
        let [rate] = belief.quantiles([part]);
        // From short to long by the logarithm of the width.
        let near = ((WIDE / width).ln() / (WIDE / NARROW).ln()).clamp(0.0, 1.0);
        let (short, long) = (self.spec.short.get(), self.spec.long.get());
        let hold = Micros(short + ((long - short) as f64 * near) as u64);
        Step {
            rate: rate.min(self.spec.most),
            hold,
            phase: Phase::Narrow,
        }
    }

    fn confirm(&self, confirming: &Confirming) -> Result<Step, SearchEnd> {
        let interval = confirming.interval;
        let (rate, phase) = if confirming.lower < CONFIRMATIONS {
            (interval.lower, Phase::ConfirmLower)
        } else if confirming.is_upper_done {
            let failed = self
                .held
                .iter()
                .filter(|held| held.outcome != Outcome::Pass);
            let first_failing = failed
                .map(|held| held.step.rate)
                .fold(f64::INFINITY, f64::min);
            return Err(SearchEnd::Found(Capacity {
                interval,
                first_failing,
            }));
        } else {
            (interval.upper.min(self.spec.most), Phase::ConfirmUpper)
        };
        Ok(Step {
            rate,
            hold: self.spec.long,
            phase,
        })
    }

    fn decide(&mut self, step: Step, outcome: Outcome) {
        self.held.push(Held { step, outcome });
        // An unclear median is no pass: what cannot be shown is not certified.
        let outcome = if outcome == Outcome::Unclear {
            Outcome::Fail
        } else {
            outcome
        };
        match &mut self.belief {
            None => self.end_ramp(outcome),
            Some(belief) => belief.learn(&step, share(&self.spec, &step), outcome),
        }
        self.look_at_confirmation(step.phase, outcome);
    }

    /// Once a step of the ramp has failed, what is known begins with its steps.
    fn end_ramp(&mut self, outcome: Outcome) {
        let [.., passed, failed] = self.held[..] else {
            return;
        };
        if outcome == Outcome::Pass {
            return;
        }
        let highest = (failed.step.rate * ROOM).min(self.spec.most * ROOM);
        let mut belief = Belief::between(passed.step.rate / ROOM, highest);
        for held in [passed, failed] {
            belief.learn(&held.step, share(&self.spec, &held.step), held.outcome);
        }
        self.belief = Some(belief);
    }

    /// Counts what confirms the interval; what contradicts it ends the confirmation, and narrowing goes on.
    fn look_at_confirmation(&mut self, phase: Phase, outcome: Outcome) {
        match (&mut self.confirming, phase, outcome) {
            (Some(confirming), Phase::ConfirmLower, Outcome::Pass) => confirming.lower += 1,
            (Some(confirming), Phase::ConfirmUpper, Outcome::Fail | Outcome::Unclear) => {
                confirming.is_upper_done = true;
            }
            (Some(_), Phase::ConfirmLower | Phase::ConfirmUpper, _) => self.confirming = None,
            (_, Phase::Ramp | Phase::Narrow, _) | (None, _, _) => {}
        }
        let interval = self.known();
        let is_narrow = |interval: &Interval| interval.width() <= self.spec.width;
        if self.confirming.is_none() {
            self.confirming = interval.filter(is_narrow).map(|interval| Confirming {
                interval,
                lower: 0,
                is_upper_done: false,
            });
        }
    }

    fn passed(&self) -> Option<f64> {
        let passed = self
            .held
            .iter()
            .filter(|held| held.outcome == Outcome::Pass);
        passed.map(|held| held.step.rate).reduce(f64::max)
    }
}

/// The length of a step as a part of a long one.
fn share(spec: &SearchSpec, step: &Step) -> f64 {
    step.hold.get() as f64 / spec.long.get() as f64
}

/// The outcome of a step that was held so often: the median of [`TRIES`] once one of them was unclear; none
/// while it has to be repeated.
fn decided(tries: &[Outcome]) -> Option<Outcome> {
    match tries {
        [Outcome::Pass] | [Outcome::Fail] => tries.first().copied(),
        _ if tries.len() < TRIES => None,
        _ => {
            let mut sorted = tries.to_vec();
            sorted.sort_unstable();
            Some(sorted[sorted.len() / 2])
        }
    }
}
