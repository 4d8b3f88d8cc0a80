//! Shares of bad messages in a step, against the share that a service level allows.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::answer::Outcome;

/// Messages of a part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Batch {
    /// The number of messages that a level counts.
    pub messages: u64,
    /// Number of them that it allows only a share of: too slow, failed or lost.
    pub bad: u64,
}

/// The messages of a step by the level that came nearest to its limit, or exceeded it most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The level: its rule, its scope, and its backend if it counts for each.
    pub slo: String,
    /// The share of bad messages that the level allows, above 0: 0.01 for a p99.
    pub allowed: f64,
    /// The parts of the step in order, each about as long as [`super::SearchSpec::batch`].
    pub batches: Vec<Batch>,
}

impl Margin {
    /// The share of bad messages as a multiple of the allowed one: above 1, the level does not hold.
    pub fn ratio(&self) -> f64 {
        let bad = self.batches.iter().map(|batch| batch.bad).sum::<u64>() as f64;
        bad / (self.messages() * self.allowed).max(f64::MIN_POSITIVE)
    }

    /// Returns whether an outcome follows from these figures.
    pub fn decides(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Pass => self.ratio() <= 1.0,
            Outcome::Fail => self.ratio() > 1.0,
            Outcome::Unclear => false,
        }
    }

    /// The number of messages that the level counts.
    pub(super) fn messages(&self) -> f64 {
        self.batches.iter().map(|batch| batch.messages).sum::<u64>() as f64
    }
}

/// A step as it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The outcome.
    pub outcome: Outcome,
    /// The figures behind it; none if no level that decided it allows a share of messages.
    pub margin: Option<Margin>,
    /// Its whole time, with the pause that followed it.
    pub took: Micros,
    /// False if the target did not come back to rest in that pause.
    pub has_recovered: bool,
}

impl Observed {
    /// An outcome without figures, of a target that came back to rest.
    pub const fn new(outcome: Outcome, took: Micros) -> Self {
        Self {
            outcome,
            margin: None,
            took,
            has_recovered: true,
        }
    }
}
