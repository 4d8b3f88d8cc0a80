//! Exchanges in memory that is used again, ordered by what is due next.

use muster_model::Micros;

/// The session's name for an exchange, as long as that lasts; no other will have it soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExchangeKey {
    slot: u16,
    generation: u16,
}

impl ExchangeKey {
    pub(super) const fn slot(self) -> u16 {
        self.slot
    }
}

const NONE: u16 = u16::MAX;

/// Up to 65,535 exchanges, each with a deadline; all done in the time of a look-up, or in the
/// logarithm of their number where a deadline changes. Nothing is allocated but to grow.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    len: u16,
    /// The first of the slots that are free.
    free: u16,
}

#[derive(Debug)]
struct Entry<T> {
    value: Option<T>,
    deadline: Micros,
    generation: u16,
    /// Its position in the heap; of a free one, the next free one.
    place: u16,
    /// Slot at this entry's own number in the heap by deadlines. The heap's positions are those of
    /// the first entries, so that it needs no other memory.
    ranked: u16,
}

impl<T> Slab<T> {
    /// Bytes of what is kept for one exchange, which stay once there was one.
    pub(super) const ENTRY_BYTES: usize = size_of::<Entry<T>>();
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            len: 0,
            free: NONE,
        }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// All that is kept, in no order.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (ExchangeKey, &T)> {
        (0..self.entries.len() as u16).filter_map(|slot| self.at(slot))
    }

    /// The key that the next value will have; none if all slots are taken.
    #[inline]
    pub(super) fn next_key(&self) -> Option<ExchangeKey> {
        let (slot, generation) = match self.entries.get(usize::from(self.free)) {
            Some(entry) => (self.free, entry.generation),
            None => (u16::try_from(self.entries.len()).ok()?, 0),
        };
        (slot != NONE).then_some(ExchangeKey { slot, generation })
    }

    #[inline]
    pub(super) fn insert(&mut self, deadline: Micros, value: T) -> Option<ExchangeKey> {
        let key = self.next_key()?;
        let place = self.len;
        let value = Some(value);
        match self.entries.get_mut(usize::from(key.slot)) {
            Some(entry) => {
                self.free = entry.place;
                entry.value = value;
                entry.deadline = deadline;
                entry.place = place;
            }
            None => {
                reserve(&mut self.entries);
                let generation = key.generation;
                self.entries.push(Entry {
                    value,
                    deadline,
                    generation,
                    place,
                    ranked: NONE,
                });
            }
        }
        self.entries[usize::from(place)].ranked = key.slot;
        self.len += 1;
        self.rise(usize::from(place));
        Some(key)
    }

    #[inline]
    pub(super) fn get(&self, key: ExchangeKey) -> Option<&T> {
        let entry = self.entries.get(usize::from(key.slot))?;
        let is_it = entry.generation == key.generation;
        entry.value.as_ref().filter(|_| is_it)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: ExchangeKey) -> Option<&mut T> {
        let entry = self.entries.get_mut(usize::from(key.slot))?;
        let is_it = entry.generation == key.generation;
        entry.value.as_mut().filter(|_| is_it)
    }

    /// Returns the current exchange of a slot.
    #[inline]
    pub(super) fn at(&self, slot: u16) -> Option<(ExchangeKey, &T)> {
        let entry = self.entries.get(usize::from(slot))?;
        let generation = entry.generation;
        let value = entry.value.as_ref()?;
        Some((ExchangeKey { slot, generation }, value))
    }

    #[inline]
    pub(super) fn set_deadline(&mut self, key: ExchangeKey, deadline: Micros) {
        if self.get(key).is_none() {
            return;
        }
        let entry = &mut self.entries[usize::from(key.slot)];
        entry.deadline = deadline;
        let place = usize::from(entry.place);
        self.settle(place);
    }

    /// The exchange whose deadline is first, and the deadline.
    #[inline]
    pub(super) fn first(&self) -> Option<(ExchangeKey, Micros)> {
        let slot = self.entries.first().filter(|_| self.len > 0)?.ranked;
        let entry = &self.entries[usize::from(slot)];
        let generation = entry.generation;
        Some((ExchangeKey { slot, generation }, entry.deadline))
    }

    #[inline]
    pub(super) fn remove(&mut self, key: ExchangeKey) -> Option<T> {
        self.get(key)?;
        let entry = &mut self.entries[usize::from(key.slot)];
        let value = entry.value.take();
        let place = usize::from(entry.place);
        entry.generation = entry.generation.wrapping_add(1);
        entry.place = self.free;
        self.free = key.slot;
        self.len -= 1;
        if place < self.len() {
            let last = self.ranked(self.len());
            self.entries[place].ranked = last;
            self.entries[usize::from(last)].place = place as u16;
            self.settle(place);
        }
        value
    }

    /// Restores the order of the heap around one place.
    fn settle(&mut self, place: usize) {
        if self.rise(place) == place {
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.deadline(above) <= self.deadline(place) {
                break;
            }
            self.swap(place, above);
            place = above;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let below = [2 * place + 1, 2 * place + 2];
            let within = below.into_iter().filter(|at| *at < self.len());
            let Some(least) = within.min_by_key(|at| self.deadline(*at)) else {
                return;
            };
            if self.deadline(place) <= self.deadline(least) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn deadline(&self, place: usize) -> Micros {
        self.entries[usize::from(self.ranked(place))].deadline
    }

    fn ranked(&self, place: usize) -> u16 {
        self.entries[place].ranked
    }

    fn swap(&mut self, one: usize, other: usize) {
        let (at_one, at_other) = (self.ranked(one), self.ranked(other));
        for (place, slot) in [(one, at_other), (other, at_one)] {
            self.entries[place].ranked = slot;
            self.entries[usize::from(slot)].place = place as u16;
        }
    }
}

/// Grows from one, doubling: most sessions have one exchange at a time, and there are many.
fn reserve<T>(entries: &mut Vec<T>) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(entries.len().max(1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A slab is a list of keys with deadlines whose least is always first.
        #[test]
        fn a_slab_is_a_list_with_its_least_deadline_first(
            steps in vec((0..4u8, any::<proptest::sample::Index>(), 0..50u64), 0..200),
        ) {
            let mut slab = Slab::default();
            let mut list: Vec<(ExchangeKey, u64, usize)> = Vec::new();
            let mut gone = Vec::new();
            for (number, (operation, index, deadline)) in steps.into_iter().enumerate() {
                match operation {
                    0 | 1 => {
                        let wanted = slab.next_key();
                        let key = slab.insert(Micros(deadline), number).expect("a slot");
                        prop_assert_eq!(Some(key), wanted);
                        list.push((key, deadline, number));
                    }
                    2 if !list.is_empty() => {
                        let (key, _, value) = list.swap_remove(index.index(list.len()));
                        prop_assert_eq!(slab.remove(key), Some(value));
                        gone.push(key);
                    }
                    _ if !list.is_empty() => {
                        let at = index.index(list.len());
                        list[at].1 = deadline;
                        slab.set_deadline(list[at].0, Micros(deadline));
                    }
                    _ => {}
                }
                prop_assert_eq!(slab.len(), list.len());
                let least = list.iter().map(|(_, deadline, _)| *deadline).min();
                prop_assert_eq!(slab.first().map(|(_, at)| at.get()), least);
                for (key, _, value) in &list {
                    prop_assert_eq!(slab.get(*key), Some(value));
                    prop_assert_eq!(slab.at(key.slot()), Some((*key, value)));
                }
                for key in &gone {
                    prop_assert_eq!(slab.get(*key), None);
                }
            }
        }
    }

    #[test]
    fn a_slab_holds_65535_and_no_more() {
        let mut slab = Slab::default();
        for number in 0..65_535u32 {
            assert!(slab.insert(Micros(u64::from(number % 7)), ()).is_some());
        }
        assert_eq!(slab.insert(Micros::ZERO, ()), None);
        let (key, _) = slab.first().expect("the first");
        slab.remove(key);
        assert!(slab.insert(Micros::ZERO, ()).is_some());
    }
}
