//! The confirmation of an interval on fresh figures.

use muster_model::Micros;

use super::answer::{Outcome, Phase};
use super::belief::{Belief, CONFIDENCE, Interval, SURE};
use super::held::Held;
use super::spec::SearchSpec;

/// The lower end of the interval has to pass this number of times. So has the highest rate of a search.
pub(super) const CONFIRMATIONS: usize = 3;
/// A confirmation begins once the interval has this part of the stated width, and an answer is given only then.
const AIM: f64 = 0.65;
/// The part at which a confirmation begins in a target without noise, where narrowing on costs little.
const SHARP_AIM: f64 = 0.3;
/// The part at which it begins once the time that is left suffices for one confirmation only.
const LAST_AIM: f64 = 1.2;
/// A confirmation ends without an answer if the middle comes this near to an end of what it confirms.
const DRIFT: f64 = 1.015;
/// Rates that differ by less are the same: computed on another machine, they may differ in their last bits.
const ROUNDING: f64 = 1e-9;

/// An interval whose ends are being held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirming {
    interval: Interval,
    /// The length of its steps.
    hold: Micros,
    /// Number of steps that were held before.
    since: usize,
}

/// The next move of a confirmation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Hold an end of the interval.
    Hold { rate: f64, phase: Phase },
    /// Nothing: the interval is confirmed.
    Confirmed(Interval),
}

impl Confirming {
    /// Begins after the steps of `held`, with steps of length `hold`; none while the interval is too wide. `is_last` if there is no
    /// time for another confirmation.
    pub(super) fn begin(
        belief: &Belief,
        spec: &SearchSpec,
        held: &[Held],
        hold: Micros,
        is_last: bool,
    ) -> Option<Self> {
        let known = belief.interval(CONFIDENCE);
        let sharp = 2.0 * belief.distance_needed(1.0, SURE) / spec.width;
        let aim = match is_last {
            true => LAST_AIM,
            false => sharp.clamp(SHARP_AIM, AIM),
        };
        let most = (1.0 + spec.width).ln() / 2.0 - ROUNDING;
        let steps = hold.get() as f64 / spec.long_at(known.middle).get() as f64;
        let known_by = f64::max(known.upper / known.middle, known.middle / known.lower).ln();
        let distance = belief.distance_needed(steps, SURE).max(known_by).min(most);
        let interval = Interval {
            lower: known.middle / distance.exp(),
            middle: known.middle,
            upper: (known.middle * distance.exp()).min(spec.most),
        };
        let is_near = known.width() <= aim * spec.width && interval.lower < interval.upper;
        is_near.then_some(Self {
            interval,
            hold,
            since: held.len(),
        })
    }

    pub(super) fn interval(&self) -> Interval {
        self.interval
    }

    pub(super) fn hold(&self) -> Micros {
        self.hold
    }

    /// Returns whether the last step, or all together, speak against the interval.
    pub(super) fn is_contradicted(&self, last: &Held, belief: &Belief, spec: &SearchSpec) -> bool {
        let Interval { lower, upper, .. } = self.interval;
        let is_contrary = match last.outcome {
            Outcome::Fail => last.rate <= lower * (1.0 + ROUNDING),
            Outcome::Pass => last.rate >= upper * (1.0 - ROUNDING),
            Outcome::Unclear => false,
        };
        let middle = belief.interval(CONFIDENCE).middle;
        let is_above = middle > upper / DRIFT && upper < spec.most;
        is_contrary || middle < lower * DRIFT || is_above
    }

    /// The lower end once, then the upper end, then the lower end until it has passed [`CONFIRMATIONS`] times. If the
    /// interval is still too wide by then, both ends in turn.
    pub(super) fn stage(&self, held: &[Held], belief: &Belief, spec: &SearchSpec) -> Stage {
        let interval = self.interval;
        let fresh = &held[self.since..];
        let is_same = |a: f64, b: f64| (a / b - 1.0).abs() < ROUNDING;
        let is_lower = |held: &&Held| {
            let is_pass = held.outcome == Outcome::Pass && held.hold >= self.hold;
            is_pass && is_same(held.rate, interval.lower)
        };
        let is_upper =
            |held: &Held| held.outcome == Outcome::Fail && is_same(held.rate, interval.upper);
        // Steps of a cold target confirm nothing.
        let warm = fresh.iter().filter(|held| !held.is_cold);
        let passed = warm.clone().filter(is_lower).count();
        let has_failed = warm.clone().any(is_upper);
        let known = belief.interval(CONFIDENCE);
        let is_sure = known.width() <= AIM * spec.width
            && interval.lower <= known.lower
            && known.upper <= interval.upper;
        let (rate, phase) = match (passed, has_failed) {
            (CONFIRMATIONS.., true) if is_sure => {
                return Stage::Confirmed(Interval {
                    middle: known.middle,
                    ..interval
                });
            }
            (CONFIRMATIONS.., true) if held.len().is_multiple_of(2) => {
                (interval.lower, Phase::Narrow)
            }
            (CONFIRMATIONS.., true) => (interval.upper, Phase::Narrow),
            (1.., false) => (interval.upper, Phase::ConfirmUpper),
            _ => (interval.lower, Phase::ConfirmLower),
        };
        Stage::Hold { rate, phase }
    }
}
