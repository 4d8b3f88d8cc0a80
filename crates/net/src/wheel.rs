//! A hierarchical timer wheel: set, cancel and expire in constant time, without allocation once
//! it has grown to the number of timers in use.
//!
//! Seven levels of 64 slots. A slot of level `n` spans 64^n ticks of 16 us; a timer lies on the
//! level of the highest digit (base 64) in which its tick differs from the tick reached so far,
//! and moves down a level each time its slot comes up. An instant is rounded up to a tick, so a
//! timer never runs out early and at most 16 us late by the wheel's doing. Timers of one tick run
//! out in the order in which they were set.

use muster_model::Micros;

const TICK_SHIFT: u32 = 4;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 7;
/// Beyond half of the wheel's span (a year) a timer is parked there and placed again.
const HORIZON_TICKS: u64 = 1 << (SLOT_BITS * LEVELS as u32 - 1);
const NONE: u32 = u32::MAX;
const DUE: u16 = (SLOTS * LEVELS) as u16;
const LISTS: usize = SLOTS * LEVELS + 1;
const FREE: u16 = u16::MAX;

/// Names one timer for its whole life and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

/// Timers, each with a value that it gives back when it runs out.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    lists: Box<[List; LISTS]>,
    occupied: [u64; LEVELS],
    reached: u64,
    len: usize,
}

#[derive(Debug)]
struct Entry<T> {
    tick: u64,
    value: T,
    next: u32,
    previous: u32,
    generation: u32,
    list: u16,
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

impl<T: Copy> Wheel<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            lists: Box::new(
                [List {
                    head: NONE,
                    tail: NONE,
                }; LISTS],
            ),
            occupied: [0; LEVELS],
            reached: 0,
            len: 0,
        }
    }

    /// Timers that have not run out yet.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn set(&mut self, at: Micros, value: T) -> TimerId {
        let tick = at.get().div_ceil(1 << TICK_SHIFT);
        let index = self.allocate(tick, value);
        self.place(index);
        self.len += 1;
        TimerId {
            index,
            generation: self.entries[index as usize].generation,
        }
    }

    /// Cancels a timer; true if it was still to run out.
    pub(crate) fn cancel(&mut self, timer: TimerId) -> bool {
        let stands = self
            .entries
            .get(timer.index as usize)
            .is_some_and(|entry| entry.generation == timer.generation && entry.list != FREE);
        if stands {
            self.unlink(timer.index);
            self.release(timer.index);
        }
        stands
    }

    /// The value of one timer that ran out by `now`, or none when no further one did.
    pub(crate) fn expire(&mut self, now: Micros) -> Option<T> {
        let now_tick = now.get() >> TICK_SHIFT;
        loop {
            let due = self.lists[DUE as usize].head;
            if due != NONE {
                self.unlink(due);
                return Some(self.release(due));
            }
            match self.next_slot() {
                Some((start, slot)) if start <= now_tick => self.open(start, slot),
                Some(_) | None => {
                    self.reached = self.reached.max(now_tick);
                    return None;
                }
            }
        }
    }

    /// Returns when to call `expire` next: never after the next timer, and earlier only to move
    /// timers down a level.
    pub(crate) fn next(&self) -> Option<Micros> {
        if self.lists[DUE as usize].head != NONE {
            return Some(Micros::ZERO);
        }
        self.next_slot()
            .map(|(start, _)| Micros(start << TICK_SHIFT))
    }

    fn next_slot(&self) -> Option<(u64, usize)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let shift = SLOT_BITS * level as u32;
        let current = (self.reached >> shift) as u32 & (SLOTS as u32 - 1);
        let ahead = self.occupied[level].rotate_right(current).trailing_zeros();
        let slot = (current + ahead) as usize % SLOTS;
        let start = ((self.reached >> shift) + u64::from(ahead)) << shift;
        Some((start, level * SLOTS + slot))
    }

    fn open(&mut self, start: u64, slot: usize) {
        self.reached = start;
        let mut index = self.lists[slot].head;
        self.lists[slot] = List {
            head: NONE,
            tail: NONE,
        };
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.place(index);
            index = next;
        }
    }

    fn place(&mut self, index: u32) {
        let tick = self.entries[index as usize].tick;
        if tick <= self.reached {
            return self.link(index, DUE);
        }
        let tick = tick.min(self.reached + HORIZON_TICKS);
        let digit = (63 - (tick ^ self.reached).leading_zeros()) / SLOT_BITS;
        let level = (digit as usize).min(LEVELS - 1);
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        self.occupied[level] |= 1 << slot;
        self.link(index, (level * SLOTS + slot) as u16);
    }

    fn link(&mut self, index: u32, list: u16) {
        let tail = self.lists[list as usize].tail;
        let entry = &mut self.entries[index as usize];
        entry.list = list;
        entry.previous = tail;
        entry.next = NONE;
        match tail {
            NONE => self.lists[list as usize].head = index,
            tail => self.entries[tail as usize].next = index,
        }
        self.lists[list as usize].tail = index;
    }

    fn unlink(&mut self, index: u32) {
        let Entry {
            next,
            previous,
            list,
            ..
        } = self.entries[index as usize];
        match previous {
            NONE => self.lists[list as usize].head = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[list as usize].tail = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if list != DUE && self.lists[list as usize].head == NONE {
            self.occupied[list as usize / SLOTS] &= !(1 << (list as usize % SLOTS));
        }
    }

    fn allocate(&mut self, tick: u64, value: T) -> u32 {
        if self.free == NONE {
            let entry = Entry {
                tick,
                value,
                next: NONE,
                previous: NONE,
                generation: 0,
                list: FREE,
            };
            self.entries.push(entry);
            return self.entries.len() as u32 - 1;
        }
        let index = self.free;
        let entry = &mut self.entries[index as usize];
        self.free = entry.next;
        entry.tick = tick;
        entry.value = value;
        index
    }

    fn release(&mut self, index: u32) -> T {
        let entry = &mut self.entries[index as usize];
        entry.list = FREE;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free;
        self.free = index;
        self.len -= 1;
        entry.value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u64),
        Cancel(usize),
        Advance(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..42, any::<u64>()).prop_map(|(bits, x)| Step::Set(x >> (63 - bits))),
            1 => any::<usize>().prop_map(Step::Cancel),
            2 => (0u32..40, any::<u64>()).prop_map(|(bits, x)| Step::Advance(x >> (63 - bits))),
        ]
    }

    fn drain(wheel: &mut Wheel<u32>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.expire(Micros(now))).collect()
    }

    /// Whole ticks that `at` needs to pass.
    fn rounded(at: u64) -> u64 {
        at.div_ceil(16) * 16
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// At every instant, exactly the timers whose rounded instant has come run out, by tick
        /// and then by age: as a sorted map of all timers would give them.
        #[test]
        fn the_wheel_is_a_sorted_map(steps in prop::collection::vec(step(), 1..400)) {
            let mut wheel = Wheel::new();
            let mut map = BTreeMap::new();
            let (mut now, mut names) = (0u64, Vec::new());
            for (age, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Set(after) => {
                        let at = now + after;
                        let id = wheel.set(Micros(at), age as u32);
                        let floor = now / 16 * 16;
                        map.insert((rounded(at).max(floor), age as u32), ());
                        names.push((id, (rounded(at).max(floor), age as u32)));
                    }
                    Step::Cancel(pick) if !names.is_empty() => {
                        let (id, key) = names.swap_remove(pick % names.len());
                        prop_assert_eq!(wheel.cancel(id), map.remove(&key).is_some());
                        prop_assert!(!wheel.cancel(id));
                    }
                    Step::Cancel(_) => {}
                    Step::Advance(by) => {
                        now += by;
                        let later = map.split_off(&(now / 16 * 16 + 1, 0));
                        let expected: Vec<u32> = map.into_keys().map(|(_, age)| age).collect();
                        map = later;
                        prop_assert_eq!(drain(&mut wheel, now), expected);
                    }
                }
                prop_assert_eq!(wheel.len(), map.len());
                if let Some(((first, _), ())) = map.first_key_value() {
                    prop_assert!(wheel.next().is_some_and(|next| next.get() <= *first));
                }
            }
        }
    }

    #[test]
    fn ten_thousand_timers_run_out_in_order_by_following_next() {
        let mut wheel = Wheel::new();
        for n in 0..10_000u32 {
            wheel.set(Micros(muster_model::mix(5, u64::from(n)) % 100_000_000), n);
        }
        let (mut fired, mut turns) = (0, 0);
        while let Some(next) = wheel.next() {
            fired += drain(&mut wheel, next.get()).len();
            turns += 1;
        }
        assert_eq!(fired, 10_000);
        assert!(turns < 30_000, "{turns} wake-ups for 10,000 timers");
    }

    #[test]
    fn a_timer_a_century_away_neither_fires_nor_is_lost() {
        let mut wheel = Wheel::new();
        let id = wheel.set(Micros::MAX, 1);
        let century = Micros::from_secs(100 * 365 * 86_400);
        assert_eq!(wheel.expire(century), None);
        assert!(wheel.cancel(id));
    }

    #[test]
    fn a_used_place_does_not_answer_to_an_old_name() {
        let mut wheel = Wheel::new();
        let old = wheel.set(Micros(10), 1);
        assert_eq!(wheel.expire(Micros(20)), Some(1));
        wheel.set(Micros(30), 2);
        assert!(!wheel.cancel(old));
        assert_eq!(wheel.expire(Micros(32)), Some(2));
    }
}
