//! A set of sequence numbers that is small when it is nearly dense.
//!
//! A low-water mark below which everything is in, and what is beyond it: one run in place, then a
//! list of runs, then a bitmap where that is smaller. So a set in order takes 16 bytes, and no set
//! takes more than one bit a message and 64 bytes once it is finished. The rounding of growing
//! lists adds at most a sixty-fourth while it is filled.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::bitmap::{WORD, first_one, first_zero, set_bit, set_bits};
use crate::set_merge::{clip, count, merge_runs};

/// Bytes a list of runs may take beyond a bitmap's, so that the shortest lists stay lists.
const RUNS_SLACK_BYTES: usize = 32;
/// Full words below the low-water mark from which on a bitmap drops them.
const DEAD_WORDS: usize = 8;

/// A set of `u32`, except `u32::MAX`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SeqSet(Form);

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Form {
    /// Everything below `low`, and `from..to`, which is empty or begins beyond `low`.
    Short {
        low: u32,
        from: u32,
        to: u32,
    },
    Long(Box<Long>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Long {
    /// Everything below is in, and this number is not.
    low: u32,
    tail: Tail,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Tail {
    /// Ascending, apart from each other, beyond the low-water mark.
    Runs(Vec<(u32, u32)>),
    /// One bit a number from `base`, a multiple of the word length not beyond the low-water mark.
    Bits { base: u32, words: Vec<u64> },
}

impl Default for Form {
    fn default() -> Self {
        Form::Short {
            low: 0,
            from: 0,
            to: 0,
        }
    }
}

impl PartialEq for SeqSet {
    fn eq(&self, other: &Self) -> bool {
        self.runs().eq(other.runs())
    }
}

impl Eq for SeqSet {}

impl SeqSet {
    /// Adds a number; whether it was new.
    pub fn insert(&mut self, seq: u32) -> bool {
        match &mut self.0 {
            Form::Short { low, from, to } => match insert_short(low, from, to, seq) {
                Some(is_new) => is_new,
                None => {
                    let mut long = Long::of_short(*low, *from, *to);
                    long.insert(seq);
                    self.0 = Form::Long(Box::new(long));
                    true
                }
            },
            Form::Long(long) => long.insert(seq),
        }
    }

    /// Takes a number out. Costs a rewrite of the set, so it is for what is rare.
    pub fn remove(&mut self, seq: u32) {
        if self.contains(seq) {
            let one = std::iter::once(seq..seq + 1);
            *self = combine(self.runs(), one, |mine, removed| mine && !removed);
        }
    }

    /// Returns whether the number is a member.
    pub fn contains(&self, seq: u32) -> bool {
        match &self.0 {
            Form::Short { low, from, to } => seq < *low || (*from..*to).contains(&seq),
            Form::Long(long) => seq < long.low || long.tail.contains(seq),
        }
    }

    /// Number of members.
    pub fn len(&self) -> u64 {
        count(self.runs())
    }

    /// Returns whether the set has no member.
    pub fn is_empty(&self) -> bool {
        self.runs().next().is_none()
    }

    /// The numbers as ascending runs that do not touch.
    pub fn runs(&self) -> Runs<'_> {
        match &self.0 {
            Form::Short { low, from, to } => Runs {
                low: *low,
                rest: Rest::One(*from..*to),
            },
            Form::Long(long) => Runs {
                low: long.low,
                rest: long.tail.runs(long.low),
            },
        }
    }

    /// The numbers of both sets.
    pub fn union(&self, other: &SeqSet) -> SeqSet {
        combine(self.runs(), other.runs(), |mine, theirs| mine || theirs)
    }

    /// The numbers that are in both sets.
    pub fn intersection(&self, other: &SeqSet) -> SeqSet {
        combine(self.runs(), other.runs(), |mine, theirs| mine && theirs)
    }

    /// The numbers of this set that are not in the other.
    pub fn difference(&self, other: &SeqSet) -> SeqSet {
        combine(self.runs(), other.runs(), |mine, theirs| mine && !theirs)
    }

    /// The numbers of this set that lie in a range.
    pub(crate) fn within(&self, range: Range<u32>) -> SeqSet {
        Self::from_runs(clip(self.runs(), range))
    }

    /// The set of ascending runs that do not touch.
    pub fn from_runs(runs: impl Iterator<Item = Range<u32>>) -> SeqSet {
        let mut runs = runs.filter(|run| !run.is_empty()).peekable();
        let low = runs.next_if(|run| run.start == 0).map_or(0, |run| run.end);
        let rest: Vec<_> = runs.map(|run| (run.start, run.end)).collect();
        match rest[..] {
            [] => SeqSet(Form::Short {
                low,
                from: 0,
                to: 0,
            }),
            [(from, to)] => SeqSet(Form::Short { low, from, to }),
            [.., (_, end)] => {
                let mut long = Long {
                    low,
                    tail: Tail::Runs(rest),
                };
                long.settle(end);
                SeqSet(Form::Long(Box::new(long)))
            }
        }
    }

    /// Bytes the set takes beyond its own 16.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Short { .. } => 0,
            Form::Long(long) => size_of::<Long>() + long.tail.heap_bytes(),
        }
    }

    /// Gives back the room that growing left.
    pub fn shrink(&mut self) {
        if let Form::Long(long) = &mut self.0 {
            match &mut long.tail {
                Tail::Runs(runs) => runs.shrink_to_fit(),
                Tail::Bits { base: _, words } => words.shrink_to_fit(),
            }
        }
    }
}

/// Inserts a number and returns whether it was new; none if a second run would be needed.
fn insert_short(low: &mut u32, from: &mut u32, to: &mut u32, seq: u32) -> Option<bool> {
    if seq < *low || (*from..*to).contains(&seq) {
        return Some(false);
    }
    if seq == *low {
        *low += 1;
    } else if from == to {
        (*from, *to) = (seq, seq + 1);
    } else if seq == *to {
        *to += 1;
    } else if seq + 1 == *from {
        *from -= 1;
    } else {
        return None;
    }
    if from != to && *from == *low {
        *low = *to;
        (*from, *to) = (0, 0);
    }
    Some(true)
}

impl Long {
    fn of_short(low: u32, from: u32, to: u32) -> Self {
        Long {
            low,
            tail: Tail::Runs(vec![(from, to)]),
        }
    }

    fn insert(&mut self, seq: u32) -> bool {
        if seq < self.low {
            return false;
        }
        if seq == self.low {
            self.low = self.tail.absorb(seq + 1);
            return true;
        }
        match &mut self.tail {
            Tail::Bits { base, words } => set_bit(words, seq - *base),
            Tail::Runs(runs) => match place(runs, seq) {
                Place::Known => false,
                Place::Joined => true,
                Place::Apart(at) => {
                    let end = runs.last().map_or(seq, |run| run.1).max(seq);
                    if self.has_room(end) {
                        self.add_run(at, seq);
                    } else {
                        self.turn_to_bits();
                        return self.insert(seq);
                    }
                    true
                }
            },
        }
    }

    fn add_run(&mut self, at: usize, seq: u32) {
        if let Tail::Runs(runs) = &mut self.tail {
            runs.insert(at, (seq, seq + 1));
        }
    }

    /// Makes room for one more run of a set that reaches to `end`; false if a bitmap is smaller.
    fn has_room(&mut self, end: u32) -> bool {
        let Tail::Runs(runs) = &mut self.tail else {
            return false;
        };
        if runs.len() < runs.capacity() {
            return true;
        }
        let wanted = runs.len() + runs.len() / 4 + 4;
        let is_small = wanted * size_of::<(u32, u32)>() <= bitmap_bytes(self.low, end);
        if is_small {
            runs.reserve_exact(wanted - runs.len());
        }
        is_small
    }

    /// Takes the smaller form for a set that reaches to `end` and has no room to give away.
    fn settle(&mut self, end: u32) {
        if let Tail::Runs(runs) = &mut self.tail {
            if runs.len() * size_of::<(u32, u32)>() > bitmap_bytes(self.low, end) {
                self.turn_to_bits();
                if let Tail::Bits { base: _, words } = &mut self.tail {
                    words.shrink_to_fit();
                }
            } else {
                runs.shrink_to_fit();
            }
        }
    }

    fn turn_to_bits(&mut self) {
        let base = self.low / WORD * WORD;
        let mut words = Vec::new();
        for run in self.tail.runs(self.low) {
            set_bits(&mut words, run.start - base..run.end - base);
        }
        self.tail = Tail::Bits { base, words };
    }
}

/// Bytes of a bitmap from `low` to `end`, and the slack of a list.
fn bitmap_bytes(low: u32, end: u32) -> usize {
    (end - low) as usize / 8 + RUNS_SLACK_BYTES
}

enum Place {
    Known,
    Joined,
    Apart(usize),
}

/// Puts a number into the run it touches, or returns the place for a run of it alone.
fn place(runs: &mut Vec<(u32, u32)>, seq: u32) -> Place {
    let at = match runs.last() {
        None => return Place::Apart(0),
        Some(last) if last.1 < seq => return Place::Apart(runs.len()),
        Some(last) if last.0 <= seq => runs.len() - 1,
        Some(_) => runs.partition_point(|run| run.1 < seq),
    };
    let (from, to) = runs[at];
    if (from..to).contains(&seq) {
        return Place::Known;
    }
    if to == seq {
        runs[at].1 += 1;
        if runs.get(at + 1).is_some_and(|next| next.0 == seq + 1) {
            runs[at].1 = runs.remove(at + 1).1;
        }
        return Place::Joined;
    }
    if from == seq + 1 {
        runs[at].0 -= 1;
        return Place::Joined;
    }
    Place::Apart(at)
}

impl Tail {
    fn contains(&self, seq: u32) -> bool {
        match self {
            Tail::Runs(runs) => {
                let at = runs.partition_point(|run| run.1 <= seq);
                runs.get(at).is_some_and(|run| run.0 <= seq)
            }
            Tail::Bits { base, words } => {
                let bit = seq - base;
                words
                    .get((bit / WORD) as usize)
                    .is_some_and(|word| word >> (bit % WORD) & 1 == 1)
            }
        }
    }

    /// The low-water mark after everything below `low` is in.
    fn absorb(&mut self, low: u32) -> u32 {
        match self {
            Tail::Runs(runs) => {
                if runs.first().is_some_and(|run| run.0 == low) {
                    runs.remove(0).1
                } else {
                    low
                }
            }
            Tail::Bits { base, words } => {
                let low = *base + first_zero(words, low - *base);
                drop_dead(base, words, low);
                low
            }
        }
    }

    fn runs(&self, low: u32) -> Rest<'_> {
        match self {
            Tail::Runs(runs) => Rest::List(runs.iter()),
            Tail::Bits { base, words } => Rest::Bits {
                base: *base,
                words,
                at: low - *base,
            },
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Tail::Runs(runs) => runs.capacity() * size_of::<(u32, u32)>(),
            Tail::Bits { base: _, words } => words.capacity() * size_of::<u64>(),
        }
    }
}

/// Forgets words that lie wholly below the low-water mark, once they are the larger part.
fn drop_dead(base: &mut u32, words: &mut Vec<u64>, low: u32) {
    let dead = (((low - *base) / WORD) as usize).min(words.len());
    if dead == words.len() {
        words.clear();
        *base = low / WORD * WORD;
    } else if dead >= DEAD_WORDS && dead * 2 >= words.len() {
        words.drain(..dead);
        *base += dead as u32 * WORD;
    }
}

/// Ascending runs of a set.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    low: u32,
    rest: Rest<'a>,
}

#[derive(Debug, Clone)]
enum Rest<'a> {
    One(Range<u32>),
    List(std::slice::Iter<'a, (u32, u32)>),
    Bits {
        base: u32,
        words: &'a [u64],
        at: u32,
    },
}

impl Iterator for Runs<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        if self.low > 0 {
            return Some(0..std::mem::take(&mut self.low));
        }
        self.rest.next()
    }
}

impl Iterator for Rest<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        match self {
            Rest::One(run) => (run.start < run.end).then(|| std::mem::take(run)),
            Rest::List(runs) => runs.next().map(|run| run.0..run.1),
            Rest::Bits { base, words, at } => {
                let from = first_one(words, *at)?;
                *at = first_zero(words, from);
                Some(*base + from..*base + *at)
            }
        }
    }
}

fn combine(
    first: impl Iterator<Item = Range<u32>>,
    second: impl Iterator<Item = Range<u32>>,
    holds: impl Fn(bool, bool) -> bool,
) -> SeqSet {
    let mut chosen = merge_runs(first, second)
        .filter(|stretch| holds(stretch.in_first, stretch.in_second))
        .map(|stretch| stretch.range)
        .peekable();
    SeqSet::from_runs(std::iter::from_fn(move || {
        let mut run = chosen.next()?;
        while let Some(next) = chosen.next_if(|next| next.start == run.end) {
            run.end = next.end;
        }
        Some(run)
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muster_model::{mix, unit};
    use proptest::prelude::*;

    use super::*;

    fn numbers(set: &SeqSet) -> Vec<u32> {
        set.runs().flatten().collect()
    }

    fn of(numbers: &[u32]) -> SeqSet {
        let mut set = SeqSet::default();
        for number in numbers {
            set.insert(*number);
        }
        set
    }

    #[test]
    fn a_set_takes_16_bytes_and_one_in_order_nothing_more() {
        let mut set = SeqSet::default();
        for seq in 0..100_000 {
            assert!(set.insert(seq));
        }
        assert_eq!(size_of::<SeqSet>(), 16);
        assert_eq!(set.heap_bytes(), 0);
        assert_eq!(set.len(), 100_000);
    }

    #[test]
    fn random_loss_takes_at_most_one_bit_a_message_and_64_bytes() {
        const MESSAGES: u32 = 1_000_000;
        for percent in [0.01, 0.1, 1.0, 2.0, 10.0, 50.0, 90.0, 99.9] {
            let mut kept = SeqSet::default();
            let mut lost = SeqSet::default();
            for seq in 0..MESSAGES {
                let is_lost = unit(mix(1, u64::from(seq))) * 100.0 < percent;
                if is_lost { &mut lost } else { &mut kept }.insert(seq);
            }
            for mut set in [kept, lost] {
                let growing = set.heap_bytes();
                set.shrink();
                let most = MESSAGES as usize / 8 + 64;
                assert!(
                    set.heap_bytes() <= most,
                    "{percent} %: {}",
                    set.heap_bytes()
                );
                assert!(
                    growing <= most + most / 64 + 64,
                    "{percent} %: {growing} while growing"
                );
            }
        }
    }

    #[test]
    fn a_small_window_out_of_order_stays_small_for_ever() {
        let mut set = SeqSet::default();
        for block in 0..10_000u32 {
            for place in (0..64).step_by(2).chain((1..64).step_by(2)).rev() {
                assert!(set.insert(block * 64 + place));
            }
        }
        assert_eq!(set.len(), 640_000);
        assert!(set.heap_bytes() < 1_024, "{}", set.heap_bytes());
    }

    proptest! {
        /// A set holds what was put in and not taken out, whatever its form, and tells of each
        /// number whether it was new.
        #[test]
        fn a_set_is_a_set(
            steps in prop::collection::vec((0u32..600, prop::bool::weighted(0.9)), 0..800),
        ) {
            let mut set = SeqSet::default();
            let mut model = BTreeSet::new();
            for (seq, is_insert) in steps {
                if is_insert {
                    prop_assert_eq!(set.insert(seq), model.insert(seq));
                } else {
                    set.remove(seq);
                    model.remove(&seq);
                }
                prop_assert_eq!(set.contains(seq), model.contains(&seq));
            }
            prop_assert_eq!(numbers(&set), model.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len(), model.len() as u64);
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert_eq!(SeqSet::from_runs(set.runs()), set.clone());
            let bytes = postcard::to_stdvec(&set).unwrap();
            prop_assert_eq!(postcard::from_bytes::<SeqSet>(&bytes).unwrap(), set);
        }

        /// Union, intersection and difference are those of sets.
        #[test]
        fn sets_combine_as_sets_do(
            a in prop::collection::vec(0u32..400, 0..300),
            b in prop::collection::vec(0u32..400, 0..300),
        ) {
            let (set_a, set_b) = (of(&a), of(&b));
            let (a, b) = (BTreeSet::from_iter(a), BTreeSet::from_iter(b));
            let list = |set: BTreeSet<u32>| set.into_iter().collect::<Vec<_>>();
            prop_assert_eq!(numbers(&set_a.union(&set_b)), list(&a | &b));
            prop_assert_eq!(numbers(&set_a.intersection(&set_b)), list(&a & &b));
            prop_assert_eq!(numbers(&set_a.difference(&set_b)), list(&a - &b));
        }
    }
}
