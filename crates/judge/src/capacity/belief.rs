//! Probabilities of each rate to be the capacity, from the steps of a search.
//!
//! Close to the capacity, the logarithm of the share of bad messages grows linearly with the logarithm of the rate.
//! The rate with the allowed share is the capacity (*place*). The steepness (*slope*) and the number of episodes of
//! bad messages in a long step ([`super::episodes`]) are unknown too. Each combination of the three has a weight, and
//! each step multiplies it by the probability of its figures (Bayes' rule).
//!
//! The line holds only near the capacity. So a step far away counts less by its figures and more by its outcome
//! alone: it passed or failed.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::answer::Outcome;
use super::episodes::Episodes;
use super::jump::Extent;
use super::margin::Margin;

/// Probability with which the capacity lies in the stated interval.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Standard deviations between two outcomes of a step that differ clearly.
pub(super) const SURE: f64 = 3.0;
/// Places that are distinguished.
const PLACES: usize = 100;
/// Slopes: 1, and each of the others this many times the one before.
const SLOPES: usize = 8;
const STEEPER: f64 = 1.8;
/// Episodes in a long step at the capacity.
const EPISODES: [f64; 7] = [30.0, 10.0, 3.3, 1.1, 0.37, 0.12, 0.04];
const CURVES: usize = SLOPES * EPISODES.len();
/// Logarithms of the share of bad messages by the allowed one, between which the likelihood is interpolated.
const EXCESS_FROM: f64 = -14.0;
const EXCESS_TO: f64 = 6.0;
const EXCESSES: usize = 81;
/// Distance of a step from the capacity, as a logarithm, at which its figures count for a quarter. It is larger as long
/// as the capacity is known less well.
const NEAR: f64 = 0.12;
/// The chance that a long step says nothing of the target.
const LAPSE: f64 = 0.01;
/// The chance that the figures of a long step, and of the shortest, say nothing of the target.
const STRAY: f64 = 0.001;
const STRAY_SHORT: f64 = 0.14;
/// The chance that the shortest step passes although the target would fail in time, for a cache or a buffer takes
/// time to fill.
const TOO_SHORT: f64 = 0.19;
/// The chance that a cold target fails although it would pass later.
const COLD: f64 = 0.2;
/// The chance that a step fails below the capacity if it has hardly any episodes.
const UNLUCKY: f64 = 0.3;

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

/// Values for each excess.
type Row = [f64; EXCESSES];

/// A step with a clear outcome.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// Logarithm of its rate.
    rate: f64,
    is_pass: bool,
    /// The part of a long step that it was held.
    share: f64,
    /// True if the target may have been cold.
    is_cold: bool,
    /// Logarithms of the probability of its outcome.
    outcomes: Vec<Row>,
    /// None without figures.
    figures: Option<Figures>,
}

/// Logarithms of the probability of the figures of one service level.
#[derive(Debug, Clone)]
struct Figures {
    slo: String,
    rows: Vec<Row>,
    extent: Extent,
}

/// A step before its evidence is weighed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) rate: f64,
    pub(super) hold: Micros,
    /// The length of a long step.
    pub(super) long: Micros,
    pub(super) is_cold: bool,
}

impl Evidence {
    /// None for an unclear outcome, which says nothing.
    pub(super) fn new(step: &Hold, outcome: Outcome, margin: Option<&Margin>) -> Option<Self> {
        let is_pass = match outcome {
            Outcome::Pass => true,
            Outcome::Fail => false,
            Outcome::Unclear => return None,
        };
        let mut evidence = Self {
            rate: step.rate.ln(),
            is_pass,
            share: as_float(step.hold) / as_float(step.long),
            is_cold: step.is_cold,
            outcomes: Vec::new(),
            figures: None,
        };
        let of_outcome = |_: &f64| rows(|excess| evidence.of_outcome(excess));
        let outcomes = EPISODES.iter().map(of_outcome).collect();
        // Where a step allows not one bad message, its figures say no more than its outcome.
        let margin = margin.filter(|margin| margin.messages() * margin.allowed >= 1.0);
        let figures = margin.map(|margin| {
            let of_episodes = |episodes: &f64| {
                let frequency = episodes * evidence.share / margin.messages().max(1.0);
                rows(|excess| evidence.of_figures(margin, frequency, excess))
            };
            Figures {
                slo: margin.slo.clone(),
                rows: EPISODES.iter().map(of_episodes).collect(),
                extent: Extent::new(evidence.rate, margin),
            }
        });
        evidence.outcomes = outcomes;
        evidence.figures = figures;
        Some(evidence)
    }

    /// Its service level with figures; none without figures.
    pub(super) fn slo(&self) -> Option<&str> {
        self.figures.as_ref().map(|figures| figures.slo.as_str())
    }

    /// Returns whether the share of bad messages jumps between this step and one with a higher rate, so that no curve has
    /// both.
    pub(super) fn jumps_to(&self, higher: &Self) -> bool {
        let steepest = STEEPER.powi(SLOPES as i32 - 1);
        match (&self.figures, &higher.figures) {
            (Some(lower), Some(higher)) => lower.extent.jumps_to(&higher.extent, steepest),
            _ => false,
        }
    }

    /// The rows that count, and true if they are those of figures. Figures count if they are of the service level
    /// that limits the target.
    fn rows(&self, limiting: Option<&str>) -> (&[Row], bool) {
        match &self.figures {
            Some(figures) if limiting == Some(figures.slo.as_str()) => (&figures.rows, true),
            Some(_) | None => (&self.outcomes, false),
        }
    }

    fn missing(&self) -> f64 {
        (1.0 - self.share).max(0.0)
    }

    fn of_figures(&self, margin: &Margin, frequency: f64, excess: f64) -> f64 {
        let ratio = margin.ratio();
        let episodes = Episodes {
            allowed: margin.allowed,
            frequency,
            cut: Episodes::cut(ratio),
        };
        let (mut figures, mut anything) = (0.0, 0.0);
        for batch in &margin.batches {
            figures += episodes.ln_likelihood(batch, excess);
            let (bad, messages) = (batch.bad as f64, batch.messages as f64);
            anything -= (bad * episodes.cut + 1.0).ln() + (messages + 1.0).ln().max(1.0).ln();
        }
        let stray = STRAY + STRAY_SHORT * self.missing();
        let most = f64::max(figures, anything);
        let sum = (1.0 - stray) * (figures - most).exp() + stray * (anything - most).exp();
        most + sum.ln()
    }

    /// A step passes as likely as not at the capacity, and is the less likely to pass the more bad messages it has.
    fn of_outcome(&self, excess: f64) -> f64 {
        let holds = 0.5_f64.powf(excess.exp());
        let (false_pass, false_fail) = (self.too_short(), self.too_cold());
        let pass = false_pass + (1.0 - false_pass - false_fail) * holds;
        if self.is_pass { pass } else { 1.0 - pass }.ln()
    }

    fn too_short(&self) -> f64 {
        LAPSE + TOO_SHORT * self.missing()
    }

    fn too_cold(&self) -> f64 {
        if self.is_cold { COLD } else { LAPSE }
    }

    /// Logarithms of the probability of the outcome, below the capacity and above it, for each number of episodes.
    fn sides(&self) -> Vec<[f64; 2]> {
        let of_episodes = |episodes: &f64| {
            let expected = episodes * self.share;
            let (short, cold) = (self.too_short(), self.too_cold());
            let false_pass = short + (1.0 - short) * (-expected).exp();
            let false_fail = cold + (1.0 - cold) * UNLUCKY / (1.0 + expected);
            match self.is_pass {
                true => [(1.0 - false_fail).ln(), false_pass.ln()],
                false => [false_fail.ln(), (1.0 - false_pass).ln()],
            }
        };
        EPISODES.iter().map(of_episodes).collect()
    }

    /// The part to which the figures count, if the capacity is about there.
    fn weight(&self, near: Option<&Interval>, has_figures: bool) -> f64 {
        match near {
            _ if !has_figures => 1.0,
            _ if self.is_cold => 0.0,
            None => 1.0,
            Some(near) => {
                let scale = NEAR.max((near.upper / near.lower).ln());
                let distance = (self.rate - near.middle.ln()) / scale;
                (1.0 + distance * distance).powi(-2)
            }
        }
    }
}

fn rows(of: impl Fn(f64) -> f64) -> Row {
    let step = (EXCESS_TO - EXCESS_FROM) / (EXCESSES - 1) as f64;
    std::array::from_fn(|at| of(EXCESS_FROM + step * at as f64))
}

/// The place of an excess among those of a row: the one before it, and the part of the way to the next.
fn place_in_row(excess: f64) -> (usize, f64) {
    let last = (EXCESSES - 1) as f64;
    let at = (excess - EXCESS_FROM) / (EXCESS_TO - EXCESS_FROM) * last;
    let at = at.clamp(0.0, last);
    let before = (at as usize).min(EXCESSES - 2);
    (before, at - before as f64)
}

/// The probability of each rate to be the capacity.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    /// Logarithms of the rates.
    places: Vec<f64>,
    /// The probability of each.
    masses: Vec<f64>,
    slope: f64,
    episodes: f64,
}

impl Belief {
    /// The probabilities of rates in a range, each as likely as any other before the evidence. The capacity is about
    /// `near`, if that is known. The service level `limiting` limits the target; none if it has no figures.
    pub(super) fn new(
        evidence: &[&Evidence],
        (lowest, highest): (f64, f64),
        near: Option<&Interval>,
        limiting: Option<&str>,
    ) -> Self {
        let (from, to) = (lowest.ln(), highest.ln());
        let place = |at: usize| from + (to - from) * at as f64 / (PLACES - 1) as f64;
        let places: Vec<f64> = (0..PLACES).map(place).collect();
        let mut logarithms = vec![[0.0; CURVES]; PLACES];
        for evidence in evidence {
            let (of_step, has_figures) = evidence.rows(limiting);
            let (weight, sides) = (evidence.weight(near, has_figures), evidence.sides());
            for (place, curves) in places.iter().zip(&mut logarithms) {
                let distance = evidence.rate - place;
                let side = usize::from(distance > 0.0);
                let mut slope = 1.0;
                for of_slope in curves.chunks_exact_mut(EPISODES.len()) {
                    let (at, part) = place_in_row(slope * distance);
                    let rows = of_step.iter().zip(&sides);
                    for ((row, sides), curve) in rows.zip(of_slope) {
                        let figures = row[at] + part * (row[at + 1] - row[at]);
                        *curve += weight * figures + (1.0 - weight) * sides[side];
                    }
                    slope *= STEEPER;
                }
            }
        }
        Self::from_logarithms(places, &logarithms)
    }

    fn from_logarithms(places: Vec<f64>, logarithms: &[[f64; CURVES]]) -> Self {
        let all = logarithms.iter().flatten();
        let most = all.copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut whole, mut slope, mut episodes) = (0.0, 0.0, 0.0);
        let mut mass = |curves: &[f64; CURVES]| {
            let mut sum = 0.0;
            for (at, logarithm) in curves.iter().enumerate() {
                let weight = (logarithm - most).exp();
                sum += weight;
                slope += weight * (at / EPISODES.len()) as f64 * STEEPER.ln();
                episodes += weight * EPISODES[at % EPISODES.len()].ln();
            }
            whole += sum;
            sum
        };
        let masses: Vec<f64> = logarithms.iter().map(&mut mass).collect();
        Self {
            places,
            masses: masses.into_iter().map(|mass| mass / whole).collect(),
            slope: (slope / whole).exp(),
            episodes: (episodes / whole).exp(),
        }
    }

    /// The interval that holds the capacity with this probability, as much left out below as above.
    pub(super) fn interval(&self, probability: f64) -> Interval {
        let out = (1.0 - probability) / 2.0;
        Interval {
            lower: self.quantile(out),
            middle: self.quantile(0.5),
            upper: self.quantile(1.0 - out),
        }
    }

    /// The rate that the capacity lies below with this probability.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let step = self.places[1] - self.places[0];
        let mut below = 0.0;
        for (place, mass) in self.places.iter().zip(&self.masses) {
            if below + mass >= part {
                return (place + step * ((part - below) / mass - 0.5)).exp();
            }
            below += mass;
        }
        self.places[PLACES - 1].exp()
    }

    /// Long steps that a step has to take until its outcome at this distance from the capacity, as a logarithm, lies
    /// this number of standard deviations from the other outcome.
    pub(super) fn steps_needed(&self, distance: f64, deviations: f64) -> f64 {
        let one = 2.0 * (distance * self.slope / 2.0).sinh();
        (deviations / one).powi(2) / self.episodes
    }

    /// The distance from the capacity, as a logarithm, at which the outcome of this number of long steps lies this number of
    /// standard deviations from the other outcome.
    pub(super) fn distance_needed(&self, steps: f64, deviations: f64) -> f64 {
        let one = deviations / (self.episodes * steps).sqrt();
        2.0 * (one / 2.0).asinh() / self.slope
    }

    /// The probabilities of the lowest and the highest rate of the range.
    pub(super) fn at_edges(&self) -> [f64; 2] {
        [self.masses[0], self.masses[PLACES - 1]]
    }
}

fn as_float(time: Micros) -> f64 {
    time.get() as f64
}
