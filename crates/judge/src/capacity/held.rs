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

/// The service level that broke at the lowest rate that failed, which limits the target; none if it has no figures, or if
/// these jump at the capacity: then outcomes alone count.
pub(super) fn limiting(held: &[Held]) -> Option<&str> {
    let of_outcome = |outcome| held.iter().filter(move |held| held.outcome == outcome);
    let by_rate = |a: &&Held, b: &&Held| a.rate.total_cmp(&b.rate);
    let failed = of_outcome(Outcome::Fail).min_by(by_rate)?;
    let failed = failed.evidence.as_ref()?;
    let passed = of_outcome(Outcome::Pass).max_by(by_rate);
    let passed = passed.and_then(|passed| passed.evidence.as_ref());
    match passed.is_some_and(|passed| passed.jumps_to(failed)) {
        true => None,
        false => failed.slo(),
    }
}
