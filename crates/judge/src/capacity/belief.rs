//! Probabilities of each rate to be the capacity, from the steps of a search.
//!
//! The chance that a step passes falls with its rate as a logistic curve of the logarithm, as in the
//! measurement of thresholds by yes and no (A. B. Watson and D. G. Pelli, QUEST, 1983). The curve's place is the
//! capacity. Its steepness (*spread*) depends on the target's noise. Its lag is the distance of its middle from
//! the capacity: a short step may miss the rare events that break a level in the long run, and so passes too easily.
//! Each combination of the three has a weight, and each outcome multiplies it by the chance of that outcome
//! (Bayes' rule).

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::answer::Outcome;

/// Places of the curve that are distinguished.
const PLACES: usize = 600;
/// Steepness of the curve for a long step, as the relative distance over which the odds of a pass change by the
/// factor e. A target whose limit is sharp has the first, one whose figures fluctuate the last.
const SPREADS: [f64; 6] = [0.004, 0.008, 0.016, 0.032, 0.064, 0.128];
/// Each spread is this many times less likely than the one before it, as long as nothing is known.
const SHARPER: f64 = 1.5;
/// Distances of the curve's middle from the capacity, in spreads.
const LAGS: [f64; 3] = [0.0, 0.8, 1.6];
const CURVES: usize = SPREADS.len() * LAGS.len();
/// The chance that a long step says the opposite of what the curve says, for other reasons.
const LAPSE: f64 = 0.01;
/// The chance that the shortest step passes although the target would fail in time, for a cache or a buffer takes
/// time to fill. It falls to [`LAPSE`] with the length of the step.
const TOO_SHORT: f64 = 0.2;
/// The chance that the shortest step fails although the target would pass in time: it may be cold. It falls as
/// [`TOO_SHORT`] does.
const COLD: f64 = 0.1;
/// The part of the probability at an end of the range at which the range is too narrow.
const AT_EDGE: f64 = 0.002;

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

/// A clear outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    pub(super) rate: f64,
    pub(super) hold: Micros,
    pub(super) is_pass: bool,
}

impl Evidence {
    /// None for an unclear outcome, which says nothing.
    pub(super) fn new(rate: f64, hold: Micros, outcome: Outcome) -> Option<Self> {
        let is_pass = match outcome {
            Outcome::Pass => true,
            Outcome::Fail => false,
            Outcome::Unclear => return None,
        };
        Some(Self {
            rate,
            hold,
            is_pass,
        })
    }
}

/// The weights of all places, spreads and lags.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    /// Logarithms of the rates.
    places: Vec<f64>,
    /// Weights, curve by curve for each place.
    weights: Vec<[f64; CURVES]>,
    /// The length to which the spreads belong.
    long: Micros,
}

impl Belief {
    /// Nothing is known but that the capacity lies between two rates, each place as likely as any other.
    pub(super) fn between(lowest: f64, highest: f64, long: Micros) -> Self {
        let (from, to) = (lowest.ln(), highest.ln());
        let place = |at: usize| from + (to - from) * at as f64 / (PLACES - 1) as f64;
        let mut weights = [0.0; CURVES];
        for (at, weight) in weights.iter_mut().enumerate() {
            *weight = SHARPER.powi(-((at / LAGS.len()) as i32));
        }
        Self {
            places: (0..PLACES).map(place).collect(),
            weights: vec![weights; PLACES],
            long,
        }
    }

    /// Takes the outcome of a step into account.
    pub(super) fn learn(&mut self, evidence: &Evidence) {
        let rate = evidence.rate.ln();
        let share = evidence.hold.get() as f64 / self.long.get() as f64;
        let missing = (1.0 - share).max(0.0);
        let false_pass = LAPSE + (TOO_SHORT - LAPSE) * missing;
        let false_fail = LAPSE + (COLD - LAPSE) * missing;
        let mut curves = [(0.0, 0.0); CURVES];
        for (at, curve) in curves.iter_mut().enumerate() {
            let spread = SPREADS[at / LAGS.len()] / share.sqrt();
            *curve = (spread, spread * LAGS[at % LAGS.len()]);
        }
        let mut most = 0.0_f64;
        for (place, weights) in self.places.iter().zip(&mut self.weights) {
            for ((spread, lag), weight) in curves.iter().zip(weights) {
                let holds = 1.0 / (1.0 + ((rate - place - lag) / spread).exp());
                let pass = false_pass + (1.0 - false_fail - false_pass) * holds;
                *weight *= if evidence.is_pass { pass } else { 1.0 - pass };
                most = most.max(*weight);
            }
        }
        // The largest weight is 1 again, so that no long search ends in numbers too small to tell apart.
        self.weights
            .iter_mut()
            .flatten()
            .for_each(|weight| *weight /= most);
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
        let masses: Vec<f64> = self
            .weights
            .iter()
            .map(|curves| curves.iter().sum())
            .collect();
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

    /// The spread of a step of this length: the mean of the logarithms of all spreads by their weights.
    pub(super) fn spread(&self, hold: Micros) -> f64 {
        let (mut sum, mut whole) = (0.0, 0.0);
        for curves in &self.weights {
            for (at, weight) in curves.iter().enumerate() {
                sum += weight * SPREADS[at / LAGS.len()].ln();
                whole += weight;
            }
        }
        (sum / whole).exp() * (self.long.get() as f64 / hold.get() as f64).sqrt()
    }

    /// Returns whether the capacity may well lie below or above the range.
    pub(super) fn is_at_edge(&self) -> [bool; 2] {
        let mass = |curves: &[f64; CURVES]| curves.iter().sum::<f64>();
        let whole: f64 = self.weights.iter().map(mass).sum();
        let ends = [self.weights.first(), self.weights.last()];
        ends.map(|end| end.is_some_and(|end| mass(end) > AT_EDGE * whole))
    }
}
