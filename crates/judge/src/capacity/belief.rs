//! Probabilities of each rate to be the capacity, from the steps of a search.
//!
//! The chance that a step passes falls with its rate as a logistic curve of the logarithm, as in the
//! measurement of thresholds by yes and no (A. B. Watson and D. G. Pelli, QUEST, 1983). Neither the place
//! of the curve nor its steepness is known: each pair of both has a weight, and each outcome multiplies
//! it by the chance of that outcome (Bayes' rule).

use serde::{Deserialize, Serialize};

use super::search::{Outcome, Step};

/// Places of the curve that are distinguished.
const PLACES: usize = 600;
/// Steepness of the curve, as the relative distance over which the odds of a pass change by the factor e.
/// A target whose limit is sharp has the first, one whose figures fluctuate the last.
const SPREADS: [f64; 6] = [0.003, 0.006, 0.012, 0.025, 0.05, 0.1];
/// The chance that a long step says the opposite of what the curve says, for other reasons.
const LAPSE: f64 = 0.01;
/// The chance that the shortest step passes although the target would fail in time: a queue needs time to
/// grow. It falls to [`LAPSE`] with the length of the step.
const TOO_SHORT: f64 = 0.3;

/// A range of rates in which the capacity lies with a stated probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub lower: f64,
    /// The rate that the capacity exceeds as likely as not.
    pub middle: f64,
    /// Its upper end.
    pub upper: f64,
}

impl Interval {
    /// Its width as a part of its lower end: 0.1 for 100 to 110.
    pub fn width(&self) -> f64 {
        self.upper / self.lower - 1.0
    }
}

/// The weights of all places and spreads.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    /// Logarithms of the rates.
    places: Vec<f64>,
    /// Logarithms of weights, place by place for each spread.
    weights: Vec<[f64; SPREADS.len()]>,
}

impl Belief {
    /// Nothing is known but that the capacity lies between two rates, each place as likely as any other.
    pub(super) fn between(lowest: f64, highest: f64) -> Self {
        let (from, to) = (lowest.ln(), highest.ln());
        let place = |at: usize| from + (to - from) * at as f64 / (PLACES - 1) as f64;
        Self {
            places: (0..PLACES).map(place).collect(),
            weights: vec![[0.0; SPREADS.len()]; PLACES],
        }
    }

    /// Takes the outcome of a step into account. `share` is its length as a part of a long one, 0 to 1. What is
    /// unclear says nothing.
    pub(super) fn learn(&mut self, step: &Step, share: f64, outcome: Outcome) {
        let is_pass = match outcome {
            Outcome::Pass => true,
            Outcome::Fail => false,
            Outcome::Unclear => return,
        };
        let rate = step.rate.ln();
        let false_pass = LAPSE + (TOO_SHORT - LAPSE) * (1.0 - share.clamp(0.0, 1.0));
        for (place, weights) in self.places.iter().zip(&mut self.weights) {
            for (spread, weight) in SPREADS.iter().zip(weights) {
                let holds = 1.0 / (1.0 + ((rate - place) / spread).exp());
                let pass = false_pass + (1.0 - LAPSE - false_pass) * holds;
                *weight += if is_pass { pass } else { 1.0 - pass }.ln();
            }
        }
    }

    /// The interval that holds the capacity with this probability, as much left out below as above.
    pub(super) fn interval(&self, probability: f64) -> Interval {
        let out = (1.0 - probability) / 2.0;
        let [lower, middle, upper] = self.quantiles([out, 0.5, 1.0 - out]);
        Interval {
            lower,
            middle,
            upper,
        }
    }

    /// The rates that the capacity lies below with these probabilities, which ascend.
    pub(super) fn quantiles<const N: usize>(&self, parts: [f64; N]) -> [f64; N] {
        let most = self.weights.iter().flatten().copied();
        let most = most.fold(f64::NEG_INFINITY, f64::max);
        let mass = |weights: &[f64; SPREADS.len()]| -> f64 {
            weights.iter().map(|weight| (weight - most).exp()).sum()
        };
        let masses: Vec<f64> = self.weights.iter().map(mass).collect();
        let whole: f64 = masses.iter().sum();
        parts.map(|part| {
            let mut below = 0.0;
            let reached = masses.iter().position(|mass| {
                below += mass / whole;
                below >= part
            });
            self.places[reached.unwrap_or(PLACES - 1)].exp()
        })
    }
}
