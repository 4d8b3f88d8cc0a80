//! Sets of commands by end and place, merged once, at the end.

use serde::{Deserialize, Serialize};

use super::ANSWERINGS;
use crate::SeqSet;
use crate::copies::Seen;
use crate::pages::Pages;

/// Above every place of an end.
const ENDS_MAX: usize = ANSWERINGS;

/// The commands of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamCommands {
    pub(crate) devices: Pages<CommandSets>,
    /// Copies that came to a device and name no command of this run for it.
    pub(crate) foreign: u64,
    /// Copies of replies that name no command of this run.
    pub(crate) replies_foreign: u64,
}

/// The commands of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandSets {
    /// By the end of the query.
    pub(crate) queries: EndSets,
    /// By what the backend knows.
    pub(crate) issues: EndSets,
    /// By where the device stood.
    pub(crate) met: EndSets,
    /// Copies that the device received.
    pub(crate) received: Seen,
    /// By the end of the answer.
    pub(crate) answers: EndSets,
    /// Copies of replies that the backend received.
    pub(crate) replies: Seen,
}

/// Sets by end; most devices use one of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct EndSets {
    /// The end that came first.
    main: SeqSet,
    main_at: u8,
    /// Non-empty sets of the other ends.
    others: Vec<(u8, SeqSet)>,
}

impl PartialEq for EndSets {
    fn eq(&self, other: &Self) -> bool {
        (0..=ENDS_MAX).all(|end| self.of(end) == other.of(end))
    }
}

impl Eq for EndSets {}

impl StreamCommands {
    pub(crate) fn merge(&mut self, other: Self) {
        self.devices.merge(other.devices, CommandSets::merge);
        self.foreign += other.foreign;
        self.replies_foreign += other.replies_foreign;
    }
}

impl CommandSets {
    fn merge(&mut self, other: Self) {
        self.queries.merge(other.queries);
        self.issues.merge(other.issues);
        self.met.merge(other.met);
        self.received.merge(other.received);
        self.answers.merge(other.answers);
        self.replies.merge(other.replies);
    }

    pub(crate) fn shrink(&mut self) {
        for sets in [
            &mut self.queries,
            &mut self.issues,
            &mut self.met,
            &mut self.answers,
        ] {
            sets.main.shrink();
            sets.others.iter_mut().for_each(|(_, set)| set.shrink());
        }
        self.received.shrink();
        self.replies.shrink();
    }
}

impl EndSets {
    /// Puts a number into the set of an end. Allocates for a second end of a device at most.
    pub(crate) fn insert(&mut self, end: usize, seq: u32) {
        self.set_mut(end as u8).insert(seq);
    }

    /// The numbers of an end.
    pub(crate) fn of(&self, end: usize) -> SeqSet {
        let end = end as u8;
        if end == self.main_at {
            return self.main.clone();
        }
        let other = self.others.iter().find(|(at, _)| *at == end);
        other.map(|(_, set)| set.clone()).unwrap_or_default()
    }

    /// Returns whether a number has an end.
    pub(crate) fn has(&self, end: usize, seq: u32) -> bool {
        let end = end as u8;
        if end == self.main_at {
            return self.main.contains(seq);
        }
        let mut others = self.others.iter();
        others.any(|(at, set)| *at == end && set.contains(seq))
    }

    /// The numbers of any end, and how many stand in more than one.
    pub(crate) fn union(&self) -> (SeqSet, u64) {
        let mut union = self.main.clone();
        let mut sum = self.main.len();
        for (_, set) in &self.others {
            union = union.union(set);
            sum += set.len();
        }
        let overlap = sum - union.len();
        (union, overlap)
    }

    fn set_mut(&mut self, end: u8) -> &mut SeqSet {
        if self.main.is_empty() && self.others.is_empty() {
            self.main_at = end;
        }
        if end == self.main_at {
            return &mut self.main;
        }
        let found = self.others.iter().position(|(at, _)| *at == end);
        let at = found.unwrap_or_else(|| {
            self.others.push((end, SeqSet::default()));
            self.others.len() - 1
        });
        &mut self.others[at].1
    }

    fn merge(&mut self, other: Self) {
        let sets = std::iter::once((other.main_at, other.main)).chain(other.others);
        for (end, theirs) in sets.filter(|(_, set)| !set.is_empty()) {
            let mine = self.set_mut(end);
            *mine = if mine.is_empty() {
                theirs
            } else {
                mine.union(&theirs)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However commands are spread over processes, the merged sets are those of one process.
        #[test]
        fn sets_merge_to_what_one_process_knows(
            ends in prop::collection::vec((0usize..5, 0u32..40, 0usize..3), 0..60),
        ) {
            let of = |part: Option<usize>| {
                let mut sets = EndSets::default();
                for (end, seq, at) in &ends {
                    if part.is_none_or(|part| part == *at) {
                        sets.insert(*end, *seq);
                    }
                }
                sets
            };
            let mut merged = of(Some(2));
            merged.merge(of(Some(0)));
            merged.merge(of(Some(1)));
            let whole = of(None);
            for end in 0..5 {
                prop_assert_eq!(merged.of(end), whole.of(end));
            }
            prop_assert_eq!(merged.union(), whole.union());
        }
    }
}
