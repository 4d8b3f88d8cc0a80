//! The packet ids that wait for an answer, in the order they were sent.

use std::collections::VecDeque;

/// Packet ids run from 1 to 65,535 (section 2.2.1), which bounds the list.
const PACKET_IDS: usize = u16::MAX as usize;

/// Packet that an id waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Puback,
    Pubrec,
    Pubcomp,
    Suback,
    Unsuback,
}

impl Wait {
    /// Returns true if a PUBLISH is repeated when the session is resumed.
    pub(super) const fn is_publish(self) -> bool {
        matches!(self, Self::Puback | Self::Pubrec)
    }

    pub(super) const fn is_request(self) -> bool {
        matches!(self, Self::Suback | Self::Unsuback)
    }
}

/// One packet id in use: eight bytes, so that what waits costs little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The caller's token, or its number of a request.
    pub(super) name: u32,
    pub(super) id: u16,
    pub(super) wait: Wait,
    marks: u8,
}

/// The connection it was sent on is gone, and it has to be sent again.
pub(super) const LOST: u8 = 1;
/// The caller no longer waits for it; this mark alone outlives the connection.
pub(super) const FORGOTTEN: u8 = 2;
/// Flag: sent on this connection and counted in the window.
pub(super) const COUNTED: u8 = 4;
/// The caller has been asked to send it again.
pub(super) const OFFERED: u8 = 8;
/// Flag: sent before a silence of one and a half keep-alives.
pub(super) const AGED: u8 = 16;

impl Entry {
    pub(super) const fn new(id: u16, name: u32, wait: Wait) -> Self {
        Self {
            name,
            id,
            wait,
            marks: 0,
        }
    }

    pub(super) const fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) const fn mark(&mut self, marks: u8) {
        self.marks |= marks;
    }

    pub(super) const fn unmark(&mut self, marks: u8) {
        self.marks &= !marks;
    }

    /// The connection is gone.
    pub(super) const fn close(&mut self) {
        self.marks &= FORGOTTEN;
    }
}

/// The list, in the order of sending.
///
/// Ids are given out in a circle, so that an id is not used again while a stray second answer to
/// it may be on its way. Hence the distances of the entries' ids from the first one's grow along
/// the list, and an id is found by halving. The list is kept so when the circle comes round to an
/// entry that still waits: that entry moves to the end.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    entries: VecDeque<Entry>,
    last_id: u16,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An id that is free; taken only by [`InFlight::push`]. None if all are in use.
    #[inline]
    pub(super) fn free_id(&mut self) -> Option<u16> {
        if self.entries.len() >= PACKET_IDS {
            return None;
        }
        let mut id = after(self.last_id);
        while let Some(first) = self.entries.front().copied()
            && first.id == id
        {
            self.entries.rotate_left(1);
            id = after(id);
        }
        Some(id)
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.last_id = entry.id;
        self.entries.push_back(entry);
    }

    /// Returns true if an id was given out in this round of the circle.
    pub(super) const fn was_used(&self, id: u16) -> bool {
        id != 0 && id <= self.last_id
    }

    #[inline]
    pub(super) fn position(&self, id: u16) -> Option<usize> {
        let first = self.entries.front()?.id;
        if first == id {
            return Some(0);
        }
        let distance = id.wrapping_sub(first);
        self.entries
            .binary_search_by_key(&distance, |entry| entry.id.wrapping_sub(first))
            .ok()
    }

    /// Returns the position of the publish of a token whose answer the caller still waits for. At
    /// QoS 2 that is over with PUBREC: the caller may use the token again before PUBCOMP.
    pub(super) fn position_of(&self, name: u32) -> Option<usize> {
        let is_it =
            |entry: &Entry| entry.name == name && !entry.is(FORGOTTEN) && entry.wait.is_publish();
        self.entries.iter().position(is_it)
    }

    pub(super) fn get(&self, at: usize) -> Option<Entry> {
        self.entries.get(at).copied()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) {
        if at == 0 {
            self.entries.pop_front();
        } else {
            self.entries.remove(at);
        }
    }

    /// The first entry at or after `from` that is to be sent again and was not yet offered.
    pub(super) fn first_lost(&self, from: usize) -> Option<(usize, Entry)> {
        let mut entries = self.entries.iter().enumerate().skip(from);
        let is_it = |entry: &Entry| entry.is(LOST) && !entry.is(OFFERED);
        entries
            .find(|(_, entry)| is_it(entry))
            .map(|(at, entry)| (at, *entry))
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&mut Entry) -> bool) {
        self.entries.retain_mut(keep);
    }
}

/// The next id of the circle, which leaves out zero (MQTT-2.2.1-3).
const fn after(id: u16) -> u16 {
    if id == u16::MAX { 1 } else { id + 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push(list: &mut InFlight, name: u32) -> u16 {
        let id = list.free_id().unwrap();
        list.push(Entry::new(id, name, Wait::Puback));
        id
    }

    fn remove(list: &mut InFlight, id: u16) {
        let at = list.position(id).unwrap();
        list.remove(at);
    }

    #[test]
    fn an_entry_takes_eight_bytes() {
        assert_eq!(size_of::<Entry>(), 8);
    }

    /// MQTT-2.2.1-3, MQTT-2.2.1-4.
    #[test]
    fn ids_go_round_in_a_circle_without_zero() {
        let mut list = InFlight::default();
        for expected in (1..=u16::MAX).chain(1..=3) {
            let id = push(&mut list, 0);
            assert_eq!(id, expected);
            remove(&mut list, id);
        }
    }

    /// MQTT-2.2.1-3, MQTT-4.3.2-1, MQTT-4.3.3-1.
    #[test]
    fn an_id_that_waits_is_left_out_and_still_found() {
        let mut list = InFlight::default();
        let stuck = [push(&mut list, 7), push(&mut list, 8)];
        for _ in 0..200_000u32 {
            let id = push(&mut list, 0);
            assert!(!stuck.contains(&id));
            remove(&mut list, id);
        }
        for (id, name) in stuck.into_iter().zip([7, 8]) {
            let at = list.position(id).unwrap();
            assert_eq!(list.get(at).map(|entry| entry.name), Some(name));
        }
    }

    /// MQTT-2.2.1-4.
    #[test]
    fn all_ids_can_be_in_use_and_no_more() {
        let mut list = InFlight::default();
        (0..u32::from(u16::MAX)).for_each(|name| assert_ne!(push(&mut list, name), 0));
        assert_eq!(list.free_id(), None);
        assert!((1..=u16::MAX).all(|id| list.position(id).is_some()));
        remove(&mut list, 40_000);
        assert_eq!(list.free_id(), Some(40_000));
    }

    proptest! {
        /// Law: each id in use is found with its own name, and no other.
        #[test]
        fn every_id_in_use_is_found(
            start: u16, moves in proptest::collection::vec(any::<(bool, u16)>(), 1..300)
        ) {
            let mut list = InFlight { last_id: start, ..InFlight::default() };
            let mut model = std::collections::BTreeMap::new();
            for (name, (is_push, pick)) in moves.into_iter().enumerate() {
                if is_push || model.is_empty() {
                    let id = push(&mut list, name as u32);
                    prop_assert_eq!(model.insert(id, name as u32), None);
                } else {
                    let at = usize::from(pick) % model.len();
                    let id = *model.keys().nth(at).unwrap();
                    remove(&mut list, id);
                    model.remove(&id);
                    prop_assert_eq!(list.position(id), None);
                }
            }
            for (id, name) in model {
                let at = list.position(id).unwrap();
                prop_assert_eq!(list.get(at).map(|entry| entry.name), Some(name));
            }
        }
    }
}
