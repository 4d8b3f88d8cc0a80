//! Steps with a decided outcome.

use muster_model::Micros;

use super::answer::Outcome;
use super::belief::Evidence;

/// A step that stays unclear is held this many times at the most; the median of its outcomes counts.
const TRIES: usize = 3;

/// A step with a decided outcome: of repeated ones the median.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) rate: f64,
    pub(super) hold: Micros,
    pub(super) outcome: Outcome,
    /// True if the target may have been cold.
    pub(super) is_cold: bool,
    /// None for an unclear outcome.
    pub(super) evidence: Option<Evidence>,
}

/// The outcome of a step with these holds: the median of [`TRIES`] once one of them was unclear; none while it has to
/// be repeated. A clear one is the outcome of the last hold.
pub(super) fn decided(mut tries: Vec<Outcome>) -> Option<Outcome> {
    if let [outcome @ (Outcome::Pass | Outcome::Fail)] = tries[..] {
        return Some(outcome);
    }
    if tries.len() < TRIES {
        return None;
    }
    tries.sort_unstable();
    tries.get(TRIES / 2).copied()
}
