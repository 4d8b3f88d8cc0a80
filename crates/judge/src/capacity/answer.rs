//! Steps, outcomes and ends: the values that cross the border of a search.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::belief::Interval;

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

/// A step that was held, with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The step.
    pub step: Step,
    /// The outcome of this one hold.
    pub outcome: Outcome,
    /// The outcome that counts: the median once the step was repeated. None while the step is being repeated.
    pub decided: Option<Outcome>,
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
    /// Too many steps stayed unclear in each of their holds, so that nothing can be said.
    NothingClear {
        /// The rate of the last of them.
        rate: f64,
        /// The interval by then; none in the ramp.
        known: Option<Interval>,
        /// The highest rate that passed; none if none did.
        passed: Option<f64>,
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
    /// The interval with at least 95 % probability. Its lower end was held three times and passed each time. Its
    /// upper end failed.
    pub interval: Interval,
    /// The lowest rate that failed, at or above the lower end of the interval.
    pub first_failing: f64,
}
