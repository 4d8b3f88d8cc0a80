//! Addresses of several at which messages find no success, by the counts of all fleets together.

use std::collections::BTreeMap;

use muster_measure::TargetCounts;
use muster_model::figure;

use super::{LinkCause, listed};
use crate::Evidence;

/// Failed messages that a comparison of addresses needs: fewer may fall on one of them by chance.
const FAILED_MIN: u64 = 20;
/// The share of failed messages at a failing address, as a multiple of that at the best one. Under overload the
/// shares of all addresses are alike.
const FAILING_TIMES: u128 = 10;

/// The key that decides over addresses.
const SEE: &str = "platform.devices";

/// Messages without success at addresses that took none of any fleet, while others did. A single fleet
/// has causes that say so.
pub(super) fn dead(evidence: &Evidence<'_>) -> Option<LinkCause> {
    let targets = &evidence.summary.run.links.targets;
    let takes_some = targets.values().any(|of| of.accepted > 0);
    if evidence.hints.fleets.len() < 2 || !takes_some {
        return None;
    }
    let dead = Group::of(targets, |of| of.accepted == 0 && failed(of) > 0)?;
    let of = targets.values().map(answered).sum();
    let (count, all) = (figure::count(failed(&dead.counts)), figure::count(of));
    let (at, states) = (listed(&dead.addresses), dead.states());
    let text = format!(
        "{count} of {all} messages of all fleets found no success at {at} of {} addresses ({states}); see {SEE}",
        targets.len()
    );
    Some(LinkCause {
        of,
        text,
        ..dead.cause()
    })
}

/// Messages without success at addresses that fail far more often than the best one, though they take some.
pub(super) fn failing(evidence: &Evidence<'_>) -> Option<LinkCause> {
    let targets = &evidence.summary.run.links.targets;
    // Fleets of other addresses may speak another protocol.
    let mut pairs = evidence.hints.fleets.windows(2);
    if !pairs.all(|pair| pair[0].addresses == pair[1].addresses) {
        return None;
    }
    let alive = targets.iter().filter(|(_, of)| of.accepted > 0);
    let (best_address, best) = alive.min_by(|(_, one), (_, other)| {
        let (one, other) = (share(one, other), share(other, one));
        one.cmp(&other)
    })?;
    let is_failing = |of: &TargetCounts| {
        of.accepted > 0
            && failed(of) >= FAILED_MIN
            && share(of, best) > FAILING_TIMES * share(best, of)
    };
    let failing = Group::of(targets, is_failing)?;
    let (count, of) = (failed(&failing.counts), answered(&failing.counts));
    let text = format!(
        "{} of {} messages found no success at {} of {} addresses ({}), but {} of {} at {best_address}; see {SEE}",
        figure::count(count),
        figure::count(of),
        listed(&failing.addresses),
        targets.len(),
        failing.states(),
        figure::count(failed(best)),
        figure::count(answered(best)),
    );
    Some(LinkCause {
        of,
        text,
        ..failing.cause()
    })
}

/// Some addresses, and their counts together.
struct Group<'a> {
    addresses: Vec<&'a str>,
    counts: TargetCounts,
}

impl<'a> Group<'a> {
    /// The addresses with such counts; none if there are none.
    fn of(
        targets: &'a BTreeMap<String, TargetCounts>,
        is_in: impl Fn(&TargetCounts) -> bool,
    ) -> Option<Self> {
        let mut group = Self {
            addresses: Vec::new(),
            counts: TargetCounts::default(),
        };
        for (address, counts) in targets.iter().filter(|(_, of)| is_in(of)) {
            group.addresses.push(address);
            group.counts.merge(counts);
        }
        (!group.addresses.is_empty()).then_some(group)
    }

    /// The states of its messages that found no success, with their numbers.
    fn by_state(&self) -> [(&'static str, u64); 3] {
        let of = &self.counts;
        [
            ("rejected", of.rejected),
            ("timed-out", of.timed_out),
            ("broken", of.broken),
        ]
    }

    fn states(&self) -> String {
        let states = self.by_state().into_iter().filter(|(_, count)| *count > 0);
        let states = states.map(|(state, count)| format!("{state} {}", figure::count(count)));
        states.collect::<Vec<_>>().join(", ")
    }

    /// The cause without its text.
    fn cause(&self) -> LinkCause {
        let states = self.by_state().into_iter();
        let most = states.max_by_key(|(_, count)| *count);
        LinkCause {
            fleet: String::new(),
            backend: None,
            count: failed(&self.counts),
            of: 0,
            cause: most.map_or_else(String::new, |(state, _)| state.to_owned()),
            see: SEE.to_owned(),
            text: String::new(),
        }
    }
}

/// Messages that ended at an address without success.
const fn failed(of: &TargetCounts) -> u64 {
    of.rejected + of.timed_out + of.broken
}

/// Messages that found success at an address, or none.
const fn answered(of: &TargetCounts) -> u64 {
    of.accepted + failed(of)
}

/// The share of failed messages at an address, scaled so that it compares with that at another one.
const fn share(of: &TargetCounts, other: &TargetCounts) -> u128 {
    failed(of) as u128 * answered(other) as u128
}
