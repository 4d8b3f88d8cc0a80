//! Addresses of several at which nothing succeeds, by the counts of all fleets together.

use muster_measure::TargetCounts;
use muster_model::figure;

use super::{LinkCause, listed};
use crate::Evidence;

/// Messages without success at addresses that took none of any fleet, while others did. A single fleet
/// has causes that say so.
pub(super) fn of_all_fleets(evidence: &Evidence<'_>) -> Option<LinkCause> {
    let targets = &evidence.summary.run.links.targets;
    let takes_some = targets.values().any(|of| of.accepted > 0);
    if evidence.hints.fleets.len() < 2 || !takes_some {
        return None;
    }
    let is_dead = |of: &TargetCounts| of.accepted == 0 && failed(of) > 0;
    let dead = || targets.iter().filter(|(_, of)| is_dead(of));
    let count: u64 = dead().map(|(_, of)| failed(of)).sum();
    let sum = |of: fn(&TargetCounts) -> u64| dead().map(|(_, it)| of(it)).sum::<u64>();
    let states = [
        ("rejected", sum(|of| of.rejected)),
        ("timed-out", sum(|of| of.timed_out)),
        ("broken", sum(|of| of.broken)),
    ];
    let (cause, _) = states.into_iter().max_by_key(|(_, count)| *count)?;
    let states = states.into_iter().filter(|(_, count)| *count > 0);
    let states = states.map(|(state, count)| format!("{state} {}", figure::count(count)));
    let states: Vec<String> = states.collect();
    let of = targets.values().map(|of| of.accepted + failed(of)).sum();
    let at: Vec<&str> = dead().map(|(address, _)| address.as_str()).collect();
    let see = "platform.devices".to_owned();
    (count > 0).then(|| LinkCause {
        fleet: String::new(),
        backend: None,
        count,
        of,
        cause: cause.to_owned(),
        text: format!(
            "{} of {} messages of all fleets found no success at {} of {} addresses ({}); see {see}",
            figure::count(count),
            figure::count(of),
            listed(&at),
            targets.len(),
            states.join(", ")
        ),
        see,
    })
}

/// Messages that ended at an address without success.
const fn failed(of: &TargetCounts) -> u64 {
    of.rejected + of.timed_out + of.broken
}
