//! Copies of one device's stream at one backend.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::SeqSet;
use crate::set_merge::{clip, count};

/// The copies of one device's stream that reached one backend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Messages with at least one copy.
    pub(crate) arrived: SeqSet,
    /// Remarks on some of them.
    pub(crate) remarks: Option<Box<Remarks>>,
    /// Every consumer that had seen the stream when the drain mark was set had seen this number
    /// or a later one minus one: an absent message below it is known not to come any more. Of a store,
    /// the highest number once all of the device was read.
    pub(crate) drained: u32,
    /// One more than the highest number that `consumer` brought; 0 while it brought none.
    #[serde(skip)]
    pub(crate) next: u32,
    /// The consumer that first brought something; further ones are kept elsewhere.
    #[serde(skip)]
    pub(crate) consumer: Option<u16>,
}

/// Sets of rare messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remarks {
    /// Messages with at least two copies.
    pub(crate) twice: SeqSet,
    /// Messages with at least three copies, and their number beyond two.
    pub(crate) more: BTreeMap<u32, u32>,
    /// Messages whose copies all came beyond the deadline.
    pub(crate) late: SeqSet,
    /// Messages whose copies all came after a later message, each at its consumer.
    pub(crate) reordered: SeqSet,
    /// Absent messages whose instant a store holds for another message.
    pub(crate) overwritten: SeqSet,
}

/// The flaws of one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Beyond the deadline.
    pub(crate) is_late: bool,
    /// After a later message, at its own consumer.
    pub(crate) is_reordered: bool,
}

impl Seen {
    /// The first number that a further consumer may bring in order. One that brings its first
    /// message after the drain mark had seen nothing by then.
    pub(crate) fn begin_order(&mut self, is_draining: bool) -> u32 {
        if is_draining {
            self.drained = 0;
        }
        0
    }

    /// Takes in one copy; whether it is the first.
    pub(crate) fn arrive(&mut self, seq: u32, manner: Manner) -> bool {
        let is_first = self.arrived.insert(seq);
        if is_first {
            if manner.is_late || manner.is_reordered {
                self.remarks_mut().first(seq, manner);
            }
        } else {
            self.remarks_mut().again(seq, manner);
        }
        is_first
    }

    /// Records that a store holds another message at the instant of an absent one.
    pub(crate) fn overwrite(&mut self, seq: u32) {
        self.remarks_mut().overwritten.insert(seq);
    }

    /// Adds the copies of another process, and returns the number of messages that reached both.
    pub(crate) fn merge(&mut self, other: Seen) -> u64 {
        if other.arrived.is_empty() && other.drained == 0 {
            return 0;
        }
        if self.arrived.is_empty() {
            *self = other;
            return 0;
        }
        let both = self.arrived.intersection(&other.arrived);
        let split = both.len();
        if self.remarks.is_some() || other.remarks.is_some() || split > 0 {
            let mine = std::mem::take(self.remarks_mut());
            let theirs = other.remarks.map(|remarks| *remarks).unwrap_or_default();
            *self.remarks_mut() = Remarks {
                late: flawed(&self.arrived, &mine.late, &other.arrived, &theirs.late),
                reordered: flawed(
                    &self.arrived,
                    &mine.reordered,
                    &other.arrived,
                    &theirs.reordered,
                ),
                more: more_of_both(&mine, &theirs, &both),
                twice: mine.twice.union(&theirs.twice).union(&both),
                overwritten: mine.overwritten.union(&theirs.overwritten),
            };
        }
        self.arrived = self.arrived.union(&other.arrived);
        self.drained = self.drained.min(other.drained);
        split
    }

    /// The runs of absent messages whose instant a store holds for another one.
    pub(crate) fn overwritten(&self) -> impl Iterator<Item = Range<u32>> {
        let remarks = self.remarks.iter();
        remarks.flat_map(|remarks| remarks.overwritten.runs())
    }

    /// Counts the copies of messages within a range; `resent` holds those that we sent more than once.
    pub(crate) fn sums(&self, resent: Option<&SeqSet>, within: Range<u32>) -> CopySums {
        let within = within.start..within.end.max(within.start);
        let len = |set: &SeqSet| count(clip(set.runs(), within.clone()));
        let mut sums = CopySums {
            first: len(&self.arrived),
            ..CopySums::default()
        };
        let Some(remarks) = &self.remarks else {
            return sums;
        };
        sums.late = len(&remarks.late);
        sums.reordered = len(&remarks.reordered);
        sums.further.all = len(&remarks.twice);
        sums.further.own = resent.map_or(0, |resent| len(&remarks.twice.intersection(resent)));
        for (seq, more) in remarks.more.range(within) {
            let is_own = resent.is_some_and(|resent| resent.contains(*seq));
            sums.further.all += u64::from(*more);
            sums.further.own += if is_own { u64::from(*more) } else { 0 };
        }
        sums
    }

    /// Gives back the room that growing left.
    pub(crate) fn shrink(&mut self) {
        self.arrived.shrink();
        if let Some(remarks) = &mut self.remarks {
            remarks.twice.shrink();
            remarks.late.shrink();
            remarks.reordered.shrink();
            remarks.overwritten.shrink();
        }
    }

    fn remarks_mut(&mut self) -> &mut Remarks {
        self.remarks.get_or_insert_default()
    }
}

/// Counts of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CopySums {
    /// First copies.
    pub(crate) first: u64,
    pub(crate) further: Further,
    /// Messages whose copies all came beyond the deadline.
    pub(crate) late: u64,
    /// Messages whose copies all came after a later message.
    pub(crate) reordered: u64,
}

impl CopySums {
    /// All copies.
    pub(crate) fn all(&self) -> u64 {
        self.first + self.further.all
    }

    /// Adds the copies of another device.
    pub(crate) fn add(&mut self, other: Self) {
        self.first += other.first;
        self.further.all += other.further.all;
        self.further.own += other.further.own;
        self.late += other.late;
        self.reordered += other.reordered;
    }
}

/// Number of further copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Further {
    /// Of all messages.
    pub(crate) all: u64,
    /// Of those that we sent more than once.
    pub(crate) own: u64,
}

impl Remarks {
    fn first(&mut self, seq: u32, manner: Manner) {
        if manner.is_late {
            self.late.insert(seq);
        }
        if manner.is_reordered {
            self.reordered.insert(seq);
        }
    }

    fn again(&mut self, seq: u32, manner: Manner) {
        if !self.twice.insert(seq) {
            *self.more.entry(seq).or_default() += 1;
        }
        if !manner.is_late {
            self.late.remove(seq);
        }
        if !manner.is_reordered {
            self.reordered.remove(seq);
        }
    }

    /// Number of copies that came, if a first one did.
    fn copies(&self, seq: u32) -> u32 {
        let more = self.more.get(&seq).copied().unwrap_or(0);
        1 + u32::from(self.twice.contains(seq)) + more
    }
}

/// Messages whose copies all have a flaw: a copy without it on either side clears the message.
fn flawed(arrived: &SeqSet, flaw: &SeqSet, arrived_too: &SeqSet, flaw_too: &SeqSet) -> SeqSet {
    let mine = flaw.difference(&arrived_too.difference(flaw_too));
    let theirs = flaw_too.difference(&arrived.difference(flaw));
    mine.union(&theirs)
}

/// Copies beyond two of each message, `both` being those that reached both sides.
fn more_of_both(mine: &Remarks, theirs: &Remarks, both: &SeqSet) -> BTreeMap<u32, u32> {
    let mut more = mine.more.clone();
    more.extend(&theirs.more);
    let repeated = mine.twice.union(&theirs.twice).intersection(both);
    for seq in repeated.runs().flatten() {
        more.insert(seq, mine.copies(seq) + theirs.copies(seq) - 2);
    }
    more
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn manner() -> impl Strategy<Value = Manner> {
        (any::<bool>(), any::<bool>()).prop_map(|(is_late, is_reordered)| Manner {
            is_late,
            is_reordered,
        })
    }

    fn of<'a>(copies: impl Iterator<Item = &'a (u32, Manner, u8)>) -> Seen {
        let mut seen = Seen::default();
        for (seq, manner, _) in copies {
            seen.arrive(*seq, *manner);
        }
        seen
    }

    #[test]
    fn of_two_consumers_the_one_that_is_behind_sets_the_mark_of_the_drain() {
        let at = |drained| {
            let mut seen = Seen::default();
            seen.arrived.insert(drained);
            Seen { drained, ..seen }
        };
        for (mine, theirs) in [(3, 5), (5, 3)] {
            let mut seen = at(mine);
            seen.merge(at(theirs));
            assert_eq!(seen.drained, 3);
        }
    }

    #[test]
    fn an_idle_stream_takes_40_bytes() {
        assert_eq!(size_of::<Seen>(), 40);
    }

    proptest! {
        /// Copies spread over three processes and merged in any grouping give what one process
        /// gives that saw them all, and the first copies too many are counted.
        #[test]
        fn copies_merge_to_what_one_process_sees(
            copies in prop::collection::vec((0u32..40, manner(), 0u8..3), 0..120),
        ) {
            let whole = of(copies.iter());
            let parts: Vec<Seen> =
                (0..3).map(|p| of(copies.iter().filter(|copy| copy.2 == p))).collect();
            let firsts: u64 = parts.iter().map(|part| part.arrived.len()).sum();
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                let [a, b, c] = order.map(|at| parts[at].clone());
                let (mut left, mut right) = (a.clone(), b.clone());
                let left_split = left.merge(b) + left.merge(c.clone());
                let inner_split = right.merge(c);
                let mut grouped = a;
                let grouped_split = inner_split + grouped.merge(right);
                prop_assert_eq!(figures(&left), figures(&whole));
                prop_assert_eq!(figures(&grouped), figures(&whole));
                prop_assert_eq!(left_split, firsts - whole.arrived.len());
                prop_assert_eq!(grouped_split, left_split);
            }
        }
    }

    fn figures(seen: &Seen) -> (SeqSet, Remarks) {
        (
            seen.arrived.clone(),
            seen.remarks.as_deref().cloned().unwrap_or_default(),
        )
    }
}
