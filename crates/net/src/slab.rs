//! The connections of a loop, 28 bytes each.

use std::collections::BTreeMap;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::pool::BufferId;
use crate::{Closed, Key, ReadLimit};

/// State of one connection.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    fd: Option<OwnedFd>,
    generation: u32,
    pub(crate) tag: u32,
    /// The rest of a write that the kernel did not take whole, or datagrams that are to be sent;
    /// from `held_at` on.
    pub(crate) held: BufferId,
    pub(crate) held_at: u32,
    /// Bytes that the handler left unread.
    pub(crate) kept: BufferId,
    pub(crate) flags: Flags,
}

impl Slot {
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }
}

/// State that few connections have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub(crate) read_limit: Option<ReadLimit>,
    /// Failure of the last write, until the rest of the input is read.
    pub(crate) failure: Option<Closed>,
    /// Datagrams that were counted as dropped.
    pub(crate) dropped: u32,
}

/// The state of one connection, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(u16);

impl Flags {
    /// The handshake is not over.
    pub(crate) const CONNECTING: Flags = Flags(1);
    /// The handler wants no input.
    pub(crate) const PAUSED: Flags = Flags(1 << 1);
    /// The kernel may hold input that was not announced again since (edge-triggered).
    pub(crate) const READABLE: Flags = Flags(1 << 2);
    /// The end of the input, or an error, is behind what is readable.
    pub(crate) const HUNG: Flags = Flags(1 << 3);
    /// On the list of connections to serve in the next turn.
    pub(crate) const QUEUED: Flags = Flags(1 << 4);
    /// Kept bytes are to be presented again although nothing new was read.
    pub(crate) const PRESENT: Flags = Flags(1 << 5);
    /// Has a read limit.
    pub(crate) const LIMITED: Flags = Flags(1 << 6);
    /// Waits for its read limit's next interval.
    pub(crate) const RESTING: Flags = Flags(1 << 7);
    /// The handler is done with it; it goes when the peer does.
    pub(crate) const FINISHING: Flags = Flags(1 << 8);
    /// Ended; the handler's notification is pending.
    pub(crate) const ENDED: Flags = Flags(1 << 9);
    /// A write failed: it ends once all that came before is read.
    pub(crate) const BROKEN: Flags = Flags(1 << 10);
    /// A UDP socket.
    pub(crate) const DATAGRAM: Flags = Flags(1 << 11);
    /// A UDP socket without a peer.
    pub(crate) const UNCONNECTED: Flags = Flags(1 << 12);
    /// Datagrams wait since the kernel has no room for them.
    pub(crate) const BLOCKED: Flags = Flags(1 << 13);

    /// States in which a write fails.
    pub(crate) const LOST: Flags = Self::ENDED.and(Self::FINISHING).and(Self::BROKEN);

    pub(crate) const fn and(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }

    /// Returns whether any of these bits is set.
    pub(crate) const fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn add(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }

    pub(crate) fn remove(&mut self, flag: Flags) {
        self.0 &= !flag.0;
    }
}

#[derive(Debug)]
pub(crate) struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
    rare: BTreeMap<u32, Rare>,
    max: u32,
}

impl Slab {
    /// The generation is the upper half of an epoll token; this value marks tokens that are not
    /// connections, so no connection ever gets it.
    pub(crate) const RESERVED_GENERATION: u32 = u32::MAX;

    pub(crate) fn new(max: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            rare: BTreeMap::new(),
            max,
        }
    }

    /// Token of something else than a connection.
    pub(crate) const fn reserved(index: u32) -> Key {
        Key {
            index,
            generation: Self::RESERVED_GENERATION,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max as usize
    }

    pub(crate) fn insert(&mut self, fd: OwnedFd, flags: Flags) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.fd = Some(fd);
        slot.tag = 0;
        slot.flags = flags;
        Key {
            index,
            generation: slot.generation,
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Slot> {
        self.slots
            .get(key.index())
            .filter(|slot| slot.generation == key.generation)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots
            .get_mut(key.index())
            .filter(|slot| slot.generation == key.generation)
    }

    pub(crate) fn rare(&self, key: Key) -> Option<&Rare> {
        self.rare.get(&key.index)
    }

    /// The rare state of a connection that stands.
    pub(crate) fn rare_mut(&mut self, key: Key) -> &mut Rare {
        self.rare.entry(key.index).or_default()
    }

    /// Takes the connection out: its descriptor, and its held and kept buffers.
    pub(crate) fn remove(&mut self, key: Key) -> Option<(OwnedFd, [BufferId; 2])> {
        let slot = self.get_mut(key)?;
        let fd = slot.fd.take()?;
        let buffers = [slot.held, slot.kept];
        slot.held = BufferId::NONE;
        slot.kept = BufferId::NONE;
        slot.generation = match slot.generation + 1 {
            Self::RESERVED_GENERATION => 0,
            next => next,
        };
        self.free.push(key.index);
        self.rare.remove(&key.index);
        Some((fd, buffers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor() -> OwnedFd {
        rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd")
    }

    #[test]
    fn an_idle_connection_takes_at_most_48_bytes() {
        assert!(size_of::<Slot>() <= 28, "{}", size_of::<Slot>());
        let with_free_list = size_of::<Slot>() + size_of::<u32>();
        assert!(with_free_list <= 48);
    }

    #[test]
    fn a_used_place_does_not_answer_to_an_old_key() {
        let mut slab = Slab::new(4);
        let old = slab.insert(descriptor(), Flags::default());
        assert!(slab.remove(old).is_some());
        let new = slab.insert(descriptor(), Flags::default());
        assert_eq!(old.index(), new.index());
        assert!(slab.get(old).is_none() && slab.remove(old).is_none());
        assert!(slab.get(new).is_some());
        assert_eq!(slab.len(), 1);
    }
}
