//! Arrivals of a device's stream whose messages differ by their order alone.
//!
//! The n-th copy was recorded as the n-th message that was due. Once it is known how each attempt
//! ended, copies are given to messages that can have come: a message that was shed is no arrival,
//! and none is called lost while there are as many copies as the platform took messages.

use muster_model::BackendId;

use crate::closing::StreamClosed;
use crate::copies::{Further, Seen};
use crate::identity::Finals;
use crate::{SeqSet, State};

/// States whose messages get the copies, in this order: taken by the platform; without an answer;
/// refused.
const TAKERS: [&[State]; 3] = [
    &[State::Accepted, State::Unacknowledged],
    &[State::TimedOut, State::Broken, State::InFlight],
    &[State::Rejected],
];

/// Known arrivals of a device's stream at one backend.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The copies, by the messages they are given to.
    pub(crate) seen: Seen,
    /// Copies beyond all messages that were sent.
    pub(crate) surplus: Further,
    /// Copies that may be of another message than the one whose due they were recorded with.
    pub(crate) unsure: u64,
}

impl Known {
    /// Gives the copies of a stream to the messages that can have come.
    pub(crate) fn of(seen: &Seen, finals: &Finals, primary: State) -> Self {
        let copies = seen.arrived.len();
        let mut left = copies;
        let mut arrived = SeqSet::default();
        let mut is_each_known = true;
        for states in TAKERS {
            let sent = finals
                .sets(primary)
                .filter(|(state, _)| states.contains(state))
                .fold(SeqSet::default(), |sum, (_, set)| sum.union(set));
            let taken = first(&sent, left);
            // Nothing of what was refused leaves as little doubt as all of it.
            let is_none = states.contains(&State::Rejected) && taken.is_empty();
            is_each_known &= is_none || taken.len() == sent.len();
            left -= taken.len();
            arrived = arrived.union(&taken);
        }
        let dense = arrived.runs().next().filter(|run| run.start == 0);
        let sure = dense.map_or(0, |run| u64::from(run.end));
        let is_each_known = is_each_known && left == 0;
        let resent = finals.resent().map_or(0, SeqSet::len);
        Self {
            seen: Seen {
                arrived,
                ..Seen::default()
            },
            surplus: Further {
                all: left,
                own: left.min(resent),
            },
            unsure: if is_each_known { copies - sure } else { copies },
        }
    }
}

impl StreamClosed {
    /// Copies that may be of another message, at the backend that has most of them.
    pub(crate) fn unsure(&self) -> u64 {
        let backends = self.sums.iter().flat_map(|sums| &sums.backends);
        backends.map(|backend| backend.unsure).max().unwrap_or(0)
    }

    /// Copies beyond all messages at a backend, where messages differ by their order alone.
    pub(crate) fn surplus(&self, backend: BackendId) -> u64 {
        let sums = self.sums.as_ref();
        let backend = sums.and_then(|sums| sums.backends.get(backend.index()));
        backend.map_or(0, |backend| backend.surplus)
    }
}

/// The smallest numbers of a set, at most `most` of them.
fn first(set: &SeqSet, most: u64) -> SeqSet {
    let mut left = u32::try_from(most).unwrap_or(u32::MAX);
    let runs = set.runs().map(|run| {
        let end = run.end.min(run.start.saturating_add(left));
        left -= end - run.start;
        run.start..end
    });
    SeqSet::from_runs(runs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(states: &[State], copies: u32) -> Known {
        let (mut finals, mut seen) = (Finals::default(), Seen::default());
        for (state, seq) in states.iter().zip(0..) {
            finals.end(seq, *state, State::Accepted);
        }
        seen.arrived = SeqSet::from_runs(std::iter::once(0..copies));
        Known::of(&seen, &finals, State::Accepted)
    }

    fn numbers(known: &Known) -> Vec<u32> {
        known.seen.arrived.runs().flatten().collect()
    }

    #[test]
    fn copies_are_of_what_was_sent_and_the_first_before_a_gap_are_sure() {
        use State::{Accepted, Rejected, Shed};
        let known = known(&[Accepted, Accepted, Shed, Accepted, Rejected, Accepted], 4);
        assert_eq!(numbers(&known), [0, 1, 3, 5]);
        assert_eq!((known.unsure, known.surplus.all), (2, 0));
    }

    #[test]
    fn with_fewer_copies_than_accepted_none_is_sure() {
        let known = known(&[State::Accepted; 5], 3);
        assert_eq!((numbers(&known).len(), known.unsure), (3, 3));
    }

    #[test]
    fn without_a_gap_all_are_sure() {
        let known = known(&[State::Accepted; 5], 5);
        assert_eq!((numbers(&known).len(), known.unsure), (5, 0));
    }

    proptest! {
        /// Law: every copy is an arrival or surplus; nothing shed arrives; nothing that was accepted
        /// is absent while something that was not is an arrival, nor while there is surplus.
        #[test]
        fn copies_go_to_the_accepted_first(
            states in prop::collection::vec(prop::sample::select(State::ALL.to_vec()), 0..40),
            copies in 0_u32..50,
        ) {
            let known = known(&states, copies);
            let arrived = numbers(&known);
            prop_assert_eq!(arrived.len() as u64 + known.surplus.all, u64::from(copies));
            let state = |seq: &u32| states[*seq as usize];
            prop_assert!(arrived.iter().all(|seq| state(seq) != State::Shed));
            let has_others = arrived.iter().any(|seq| !state(seq).is_expected());
            let expected = (0..states.len() as u32).filter(|seq| state(seq).is_expected());
            let absent = expected.filter(|seq| !arrived.contains(seq)).count();
            prop_assert!(absent == 0 || !has_others && known.surplus.all == 0);
        }
    }
}
