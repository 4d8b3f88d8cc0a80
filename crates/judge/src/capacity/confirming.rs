//! An interval whose ends are being held.

use muster_model::Micros;

use super::answer::Outcome;
use super::belief::Interval;
use super::held::Held;

/// An interval whose ends are being held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirming {
    pub(super) interval: Interval,
    /// The length of its steps.
    pub(super) hold: Micros,
    /// Number of steps that were held before.
    pub(super) since: usize,
}

impl Confirming {
    /// Rates that differ by less are the same: computed on another machine, they may differ in their last bits.
    pub(super) const ROUNDING: f64 = 1e-9;

    /// The number of these steps that passed at the lower end.
    pub(super) fn passed(&self, held: &[Held]) -> usize {
        let lower = self.of(Outcome::Pass, self.interval.lower, held);
        lower.filter(|held| held.hold >= self.hold).count()
    }

    /// Returns whether one of these steps failed at the upper end.
    pub(super) fn has_failed(&self, held: &[Held]) -> bool {
        let mut upper = self.of(Outcome::Fail, self.interval.upper, held);
        upper.next().is_some()
    }

    /// Returns whether a step failed at the lower end or below, or passed at the upper end or above.
    pub(super) fn is_contradicted(&self, by: &Held) -> bool {
        match by.outcome {
            Outcome::Fail => by.rate <= self.interval.lower * (1.0 + Self::ROUNDING),
            Outcome::Pass => by.rate >= self.interval.upper * (1.0 - Self::ROUNDING),
            Outcome::Unclear => false,
        }
    }

    fn of<'a>(
        &self,
        outcome: Outcome,
        rate: f64,
        held: &'a [Held],
    ) -> impl Iterator<Item = &'a Held> {
        held.iter().filter(move |held| {
            held.outcome == outcome && (held.rate / rate - 1.0).abs() < Self::ROUNDING
        })
    }
}
