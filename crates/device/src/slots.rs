//! The pool of messages that are taken and not yet final.
//!
//! A slot is in at most one chain of its link (waiting or in flight) and in at most one chain
//! of its stream (by the instant it was sent, which with one time-out per stream is the order in
//! which they time out). Chains are links between slots, so that no message costs an allocation
//! once the pool has grown to its greatest use.

use muster_model::{DeviceId, Micros, StreamId};

use crate::generator_delay::DelayAtAdmission;

/// Chains of a slot; it keeps its neighbours in each.
const OF_LINK: usize = 0;
const OF_WAITING: usize = 1;
const BEFORE: usize = 0;
const AFTER: usize = 1;

/// The place of a message in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

impl SlotId {
    /// No slot.
    pub(crate) const NONE: SlotId = SlotId(u32::MAX);

    /// The place as a number.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The slot at a place.
    pub(crate) fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns whether this names a slot at all.
    pub(crate) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// Progress of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In its queue.
    Waiting,
    /// Rendered; the kernel holds a part of it.
    Writing,
    /// Sent; an answer is due.
    Flying,
    /// To be sent again on a resumed session.
    Again,
    /// Given back: the slot holds no message.
    Free,
}

/// One message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Slot<K> {
    /// Instant at which the schedule wanted it.
    pub(crate) due: Micros,
    /// Instant at which the engine picked it up.
    pub(crate) taken: Micros,
    /// Part of its time that may be our own delay, as known so far.
    pub(crate) own: DelayAtAdmission,
    /// Instant at which the kernel first took its last byte; for a body in blocks, that of the
    /// block that went last so far.
    pub(crate) sent: Option<Micros>,
    /// From when on its answer is waited for: sent, or sent again by the application.
    pub(crate) flown: Micros,
    /// Device that it is from.
    pub(crate) device: DeviceId,
    /// Its place in that device's stream.
    pub(crate) seq: u32,
    /// The link that carries it, as an index of the shard.
    pub(crate) link: u32,
    /// Stream that it is of.
    pub(crate) stream: StreamId,
    /// Progress of the message.
    pub(crate) stage: Stage,
    /// True if it went out more than once.
    pub(crate) resent: bool,
    /// Tries so far that failed and are tried again.
    pub(crate) tries: u8,
    /// True if it is in its stream's chain of messages that wait for an answer.
    pub(crate) is_watched: bool,
    /// True if that chain is the one of queries that the platform has taken.
    pub(crate) is_asking: bool,
    /// True if a command came for it.
    pub(crate) has_command: bool,
    /// Key of its session for it, if it is a request that waits for an answer.
    pub(crate) exchange: Option<K>,
    /// Of a reply: when its command was issued.
    pub(crate) issued: Micros,
    /// Of a reply: the platform's number of its command, or the place of its path where it is a
    /// request.
    pub(crate) request: u32,
    /// Slots before and after it in its link's chain and in that of messages awaiting an answer.
    beside: [[SlotId; 2]; 2],
}

/// Data of a message when it is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    /// Instant at which the schedule wanted it.
    pub(crate) due: Micros,
    /// Instant at which the engine picked it up.
    pub(crate) taken: Micros,
    /// Part of its time that may be our own delay, as known now.
    pub(crate) own: DelayAtAdmission,
    /// Device that it is from.
    pub(crate) device: DeviceId,
    /// Its place in that device's stream.
    pub(crate) seq: u32,
    /// The link that carries it, as an index of the shard.
    pub(crate) link: u32,
    /// Stream that it is of.
    pub(crate) stream: StreamId,
}

/// A chain of slots, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    head: SlotId,
    tail: SlotId,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            head: SlotId::NONE,
            tail: SlotId::NONE,
        }
    }
}

impl Chain {
    /// The oldest slot.
    pub(crate) fn first(&self) -> Option<SlotId> {
        self.head.is_some().then_some(self.head)
    }
}

/// All slots of a shard.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    slots: Vec<Slot<K>>,
    free: Vec<SlotId>,
    limit: u32,
}

impl<K> Slots<K> {
    /// An empty pool that never holds more than `limit` messages.
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit,
        }
    }

    /// Messages in the pool.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A slot for a message, or none if the pool is at its limit.
    pub(crate) fn take(&mut self, message: Admission) -> Option<SlotId> {
        let slot = Slot {
            due: message.due,
            taken: message.taken,
            own: message.own,
            sent: None,
            flown: Micros::ZERO,
            device: message.device,
            seq: message.seq,
            link: message.link,
            stream: message.stream,
            stage: Stage::Waiting,
            resent: false,
            tries: 0,
            is_watched: false,
            is_asking: false,
            has_command: false,
            exchange: None,
            issued: Micros::ZERO,
            request: 0,
            beside: [[SlotId::NONE; 2]; 2],
        };
        if let Some(id) = self.free.pop() {
            self.slots[id.index()] = slot;
            return Some(id);
        }
        let index = u32::try_from(self.slots.len())
            .ok()
            .filter(|index| *index < self.limit)?;
        self.slots.push(slot);
        // Nothing is free here; every slot may be one day, and then nothing shall be allocated.
        self.free.reserve(self.slots.capacity());
        Some(SlotId(index))
    }

    /// Gives a slot back; it must stand in no chain.
    pub(crate) fn release(&mut self, id: SlotId) {
        debug_assert_ne!(self.get(id).stage, Stage::Free, "a slot is released once");
        self.get_mut(id).stage = Stage::Free;
        self.free.push(id);
    }

    /// The message in a slot, if there is such a slot.
    pub(crate) fn find(&self, id: SlotId) -> Option<&Slot<K>> {
        self.slots.get(id.index())
    }

    /// The message in a slot.
    pub(crate) fn get(&self, id: SlotId) -> &Slot<K> {
        &self.slots[id.index()]
    }

    /// The message in a slot, to be changed.
    pub(crate) fn get_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.slots[id.index()]
    }

    /// Appends to a chain of a link.
    #[inline]
    pub(crate) fn push_back(&mut self, chain: &mut Chain, id: SlotId) {
        self.append(chain, id, OF_LINK);
    }

    /// Puts a slot before all others of a chain of a link.
    pub(crate) fn push_front(&mut self, chain: &mut Chain, id: SlotId) {
        let head = chain.head;
        self.get_mut(id).beside[OF_LINK] = [SlotId::NONE, head];
        if head.is_some() {
            self.get_mut(head).beside[OF_LINK][BEFORE] = id;
        } else {
            chain.tail = id;
        }
        chain.head = id;
    }

    /// Removes a slot from the chain of its link.
    #[inline]
    pub(crate) fn unlink(&mut self, chain: &mut Chain, id: SlotId) {
        self.take_out(chain, id, OF_LINK);
    }

    /// The slot after `id` in its link's chain.
    pub(crate) fn after(&self, id: SlotId) -> Option<SlotId> {
        let next = self.get(id).beside[OF_LINK][AFTER];
        next.is_some().then_some(next)
    }

    /// Appends to the chain of those that wait for an answer, by the instant they were sent.
    #[inline]
    pub(crate) fn watch(&mut self, chain: &mut Chain, id: SlotId) {
        self.append(chain, id, OF_WAITING);
    }

    /// Takes a slot out of the chain of those that wait for an answer.
    #[inline]
    pub(crate) fn unwatch(&mut self, chain: &mut Chain, id: SlotId) {
        self.take_out(chain, id, OF_WAITING);
    }

    #[inline]
    fn append(&mut self, chain: &mut Chain, id: SlotId, of: usize) {
        let tail = chain.tail;
        self.get_mut(id).beside[of] = [tail, SlotId::NONE];
        if tail.is_some() {
            self.get_mut(tail).beside[of][AFTER] = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
    }

    #[inline]
    fn take_out(&mut self, chain: &mut Chain, id: SlotId, of: usize) {
        let [before, after] = self.get(id).beside[of];
        if before.is_some() {
            self.get_mut(before).beside[of][AFTER] = after;
        } else {
            chain.head = after;
        }
        if after.is_some() {
            self.get_mut(after).beside[of][BEFORE] = before;
        } else {
            chain.tail = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn message(seq: u32) -> Admission {
        Admission {
            due: Micros::ZERO,
            taken: Micros::ZERO,
            own: DelayAtAdmission::default(),
            device: DeviceId(0),
            seq,
            link: 0,
            stream: StreamId(0),
        }
    }

    fn walk(slots: &Slots<()>, chain: &Chain) -> Vec<u32> {
        std::iter::successors(chain.first(), |id| slots.after(*id))
            .map(|id| slots.get(id).seq)
            .collect()
    }

    #[test]
    fn the_pool_never_holds_more_than_its_limit() {
        let mut slots = Slots::<()>::new(2);
        let first = slots.take(message(0)).unwrap();
        slots.take(message(1)).unwrap();
        assert!(slots.take(message(2)).is_none());
        slots.release(first);
        assert!(slots.take(message(3)).is_some());
    }

    proptest! {
        /// A chain behaves like a queue from whose middle anything can be taken.
        #[test]
        fn a_chain_is_a_queue(steps in proptest::collection::vec((0u8..3, any::<prop::sample::Index>()), 0..200)) {
            let (mut slots, mut chain) = (Slots::<()>::new(1_000), Chain::default());
            let mut model: VecDeque<(u32, SlotId)> = VecDeque::new();
            for (seq, (step, at)) in (0u32..).zip(steps) {
                match step {
                    0 => {
                        let id = slots.take(message(seq)).unwrap();
                        slots.push_back(&mut chain, id);
                        model.push_back((seq, id));
                    }
                    1 => {
                        let id = slots.take(message(seq)).unwrap();
                        slots.push_front(&mut chain, id);
                        model.push_front((seq, id));
                    }
                    _ if model.is_empty() => {}
                    _ => {
                        let (_, id) = model.remove(at.index(model.len())).unwrap();
                        slots.unlink(&mut chain, id);
                        slots.release(id);
                    }
                }
                prop_assert_eq!(walk(&slots, &chain), model.iter().map(|(seq, _)| *seq).collect::<Vec<_>>());
                prop_assert_eq!(slots.len(), model.len());
            }
        }
    }
}
