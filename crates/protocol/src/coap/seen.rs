//! Message ids that came, so that a duplicate is known for one (RFC 7252 section 4.5).

use std::collections::VecDeque;

use muster_model::Micros;
use rustc_hash::FxHashMap;

/// Entries whose memory is given back once far fewer are left.
const LARGE: usize = 1_024;

/// Message ids of one peer in the last lifetime, in the order of arrival, each with a value.
#[derive(Debug)]
pub(super) struct Seen<V> {
    entries: VecDeque<Entry<V>>,
    /// The number of the oldest entry; numbers go on.
    first: u32,
    by_id: FxHashMap<u16, u32>,
}

#[derive(Debug)]
struct Entry<V> {
    expires: Micros,
    id: u16,
    value: V,
}

impl<V> Default for Seen<V> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            by_id: FxHashMap::default(),
        }
    }
}

impl<V> Seen<V> {
    /// Returns the value of a message id that has come and not expired.
    #[inline]
    pub(super) fn find(&mut self, now: Micros, id: u16) -> Option<&mut V> {
        let number = *self.by_id.get(&id)?;
        let entry = self.entry(number)?;
        (entry.expires > now).then_some(&mut entry.value)
    }

    /// Remembers a message id that is not known, under the number that is returned; what expired
    /// is dropped, and of more than `bound` the oldest.
    #[inline]
    pub(super) fn insert(&mut self, now: Micros, expires: Micros, id: u16, value: V) -> u32 {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.expires <= now)
        {
            self.drop_oldest();
        }
        if self.entries.capacity() > LARGE && self.entries.capacity() > 4 * self.entries.len() {
            self.shrink_to(self.entries.len());
        }
        let number = self.first.wrapping_add(self.entries.len() as u32);
        self.by_id.insert(id, number);
        self.entries.push_back(Entry { expires, id, value });
        number
    }

    /// Drops the oldest while there are more than `bound`; how many were dropped.
    #[inline]
    pub(super) fn keep(&mut self, bound: usize) -> u32 {
        let mut dropped = 0;
        while self.entries.len() > bound {
            self.drop_oldest();
            dropped += 1;
        }
        dropped
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Gives memory back beyond that of twice `entries`.
    pub(super) fn shrink_to(&mut self, entries: usize) {
        self.entries.shrink_to(2 * entries);
        self.by_id.shrink_to(2 * entries);
    }

    #[inline]
    pub(super) fn get(&mut self, number: u32) -> Option<&mut V> {
        self.entry(number).map(|entry| &mut entry.value)
    }

    /// Returns when the last of them expires; none if there is none.
    pub(super) fn last_expiry(&self) -> Option<Micros> {
        self.entries.back().map(|entry| entry.expires)
    }

    #[inline]
    fn entry(&mut self, number: u32) -> Option<&mut Entry<V>> {
        self.entries
            .get_mut(number.wrapping_sub(self.first) as usize)
    }

    fn drop_oldest(&mut self) {
        let Some(entry) = self.entries.pop_front() else {
            return;
        };
        // The id may have come again since, once this had expired.
        if self.by_id.get(&entry.id) == Some(&self.first) {
            self.by_id.remove(&entry.id);
        }
        self.first = self.first.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Micros = Micros(100);

    fn came(seen: &mut Seen<u8>, now: u64, id: u16) -> u32 {
        seen.insert(Micros(now), Micros(now) + LIFETIME, id, 0)
    }

    /// RFC 7252 section 4.5: a message id is known for a lifetime, and then is a new one.
    #[test]
    fn an_id_is_known_until_its_lifetime_is_over() {
        let mut seen = Seen::default();
        let number = came(&mut seen, 0, 7);
        *seen.get(number).expect("it is there") = 9;
        assert_eq!(seen.find(Micros(99), 7), Some(&mut 9));
        assert_eq!(seen.find(Micros(99), 8), None);
        assert_eq!(seen.find(Micros(100), 7), None);
        let again = came(&mut seen, 100, 7);
        assert_eq!(seen.find(Micros(199), 7), Some(&mut 0));
        assert_eq!(seen.get(number), None);
        assert_eq!(seen.get(again), Some(&mut 0));
        assert_eq!(seen.last_expiry(), Some(Micros(200)));
    }

    #[test]
    fn beyond_the_bound_the_oldest_is_forgotten() {
        let mut seen = Seen::default();
        for id in 0..10 {
            came(&mut seen, u64::from(id), id);
            assert_eq!(seen.keep(4), u32::from(id >= 4));
        }
        for id in 0..10 {
            assert_eq!(seen.find(Micros(10), id).is_some(), id >= 6);
        }
    }

    #[test]
    fn an_id_that_comes_again_after_its_lifetime_survives_the_first_ones_end() {
        let mut seen = Seen::default();
        came(&mut seen, 0, 1);
        came(&mut seen, 50, 2);
        // 1 has expired, but stands behind nothing that makes it go yet.
        seen.insert(Micros(90), Micros(400), 3, 0);
        came(&mut seen, 120, 1);
        came(&mut seen, 160, 4);
        assert!(seen.find(Micros(170), 1).is_some());
        assert!(seen.find(Micros(170), 3).is_some());
        assert!(seen.find(Micros(170), 2).is_none());
    }
}
