//! The messages of a shard that are taken and not yet final, and where each of them stands.

mod outbox;

use std::ops::Range;

use muster_model::{DeviceId, Micros, StreamId};

pub(crate) use self::outbox::{Outbox, WriteBlock};

use self::outbox::Writing;
use crate::acknowledged::{Acknowledged, Met};
use crate::class::ClassStream;
use crate::fleets::Fleets;
use crate::slots::{Admission, Chain, Slot, SlotId, Slots, Stage};
use crate::timeouts::Timeouts;
use crate::token::Token;

/// The messages of a shard: each waits in a queue, is being written, or is on its way.
#[derive(Debug)]
pub(crate) struct Messages<K> {
    slots: Slots<K>,
    /// By link.
    outboxes: Vec<Outbox>,
    queues: Vec<StreamQueue>,
    /// Messages that wait for an answer or a command.
    timeouts: Timeouts,
    /// Messages that the application acknowledges.
    acknowledged: Acknowledged,
}

/// The messages of one stream that wait on one link.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamQueue {
    messages: Chain,
    queued: u32,
    flying: u32,
}

/// An attempt whose answer is not waited for any more, by its session's names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forgotten<K> {
    pub(crate) token: Token,
    pub(crate) key: Option<K>,
    /// True if nobody has seen it, so that nobody answers it.
    pub(crate) is_unseen: bool,
}

impl<K: Copy + PartialEq> Messages<K> {
    /// An empty pool for a plan with `streams` streams, bounded by `limit` messages.
    pub(crate) fn new(limit: u32, streams: usize) -> Self {
        Self {
            slots: Slots::new(limit),
            outboxes: Vec::new(),
            queues: Vec::new(),
            timeouts: Timeouts::new(streams),
            acknowledged: Acknowledged::default(),
        }
    }

    /// Takes the links of all fleets in.
    pub(crate) fn add_links<C>(&mut self, fleets: &Fleets<C>) {
        let links = fleets.links() as usize;
        let streams = fleets.streams_of_queues();
        let timeouts: Vec<Option<Micros>> =
            streams.clone().map(ClassStream::sliding_timeout).collect();
        self.outboxes = vec![Outbox::default(); links];
        self.queues = vec![StreamQueue::default(); timeouts.len()];
        self.timeouts.slide(&timeouts, links);
        if streams.clone().any(ClassStream::is_ended_by_name) {
            self.acknowledged = Acknowledged::of(timeouts.len());
        }
    }

    /// Takes a stream of the shard in.
    pub(crate) fn add_stream(&mut self, stream: &ClassStream) {
        self.timeouts.add(stream);
    }

    /// All of them by their places.
    pub(crate) fn slots(&self) -> &Slots<K> {
        &self.slots
    }

    pub(crate) fn slots_mut(&mut self) -> &mut Slots<K> {
        &mut self.slots
    }

    #[inline]
    pub(crate) fn get(&self, id: SlotId) -> &Slot<K> {
        self.slots.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        self.slots.get_mut(id)
    }

    #[inline]
    pub(crate) fn outbox(&self, link: u32) -> &Outbox {
        &self.outboxes[link as usize]
    }

    #[inline]
    pub(crate) fn outbox_mut(&mut self, link: u32) -> &mut Outbox {
        &mut self.outboxes[link as usize]
    }

    /// The messages of a link that were sent and have no answer, the oldest first.
    pub(crate) fn flight(&self, link: u32) -> impl Iterator<Item = SlotId> {
        let first = self.outbox(link).flight.first();
        std::iter::successors(first, |id| self.slots.after(*id))
    }

    /// The query of a device that waits for its answer.
    pub(crate) fn query_of<C>(
        &self,
        fleets: &Fleets<C>,
        link: u32,
        device: DeviceId,
    ) -> Option<SlotId> {
        self.flight(link).find(|id| {
            let slot = self.slots.get(*id);
            slot.device == device && fleets.stream(slot.stream).is_query()
        })
    }

    /// The message of a link that has waited longest for the application's word: its stream, queue and
    /// number.
    pub(crate) fn oldest<C>(
        &self,
        fleets: &Fleets<C>,
        link: u32,
    ) -> Option<(StreamId, usize, u32)> {
        let mut slots = self.flight(link).map(|id| self.slots.get(id));
        let slot = slots.find(|slot| fleets.stream(slot.stream).is_acknowledged())?;
        Some((slot.stream, fleets.queue_of(link, slot.stream), slot.seq))
    }

    /// Messages that wait in a queue.
    #[inline]
    pub(crate) fn queued(&self, queue: usize) -> u32 {
        self.queues[queue].queued
    }

    /// Messages of a queue that are on their way.
    pub(crate) fn flying(&self, queue: usize) -> u32 {
        self.queues[queue].flying
    }

    /// Returns whether one of these stream queues waits for an answer.
    pub(crate) fn is_flying(&self, queues: Range<usize>) -> bool {
        self.queues[queues].iter().any(|queue| queue.flying > 0)
    }

    /// The first message that waits in a queue.
    #[inline]
    pub(crate) fn first_queued(&self, queue: usize) -> Option<SlotId> {
        self.queues[queue].messages.first()
    }

    /// The messages that wait in a queue.
    fn waiting(&self, queue: usize) -> impl Iterator<Item = SlotId> {
        std::iter::successors(self.first_queued(queue), |id| self.slots.after(*id))
    }

    /// The first message of a queue behind the given number of messages that never went out. A
    /// message that is tried again was sent, and waits.
    pub(crate) fn unsent_beyond(&self, queue: usize, count: usize) -> Option<SlotId> {
        let waiting = self.waiting(queue);
        let mut unsent = waiting.filter(|id| self.slots.get(*id).sent.is_none());
        unsent.nth(count)
    }

    /// Returns whether a device has a message of a stream under way, or one that waits in `queue`.
    pub(crate) fn has(&self, link: u32, queue: usize, of: (DeviceId, StreamId)) -> bool {
        let gathered = self.outbox(link).written();
        let mut open = self.flight(link).chain(self.waiting(queue)).chain(gathered);
        open.any(|id| {
            let slot = self.slots.get(id);
            (slot.device, slot.stream) == of
        })
    }

    /// A message waits in a queue; none if the pool is at its limit.
    #[inline]
    pub(crate) fn enqueue(&mut self, queue: usize, taken: Admission) -> Option<SlotId> {
        let id = self.slots.take(taken)?;
        self.append(queue, id);
        Some(id)
    }

    fn append(&mut self, queue: usize, id: SlotId) {
        let queue = &mut self.queues[queue];
        self.slots.push_back(&mut queue.messages, id);
        queue.queued += 1;
    }

    /// A message waits no more.
    #[inline]
    pub(crate) fn unqueue(&mut self, queue: usize, id: SlotId) {
        let queue = &mut self.queues[queue];
        self.slots.unlink(&mut queue.messages, id);
        queue.queued -= 1;
    }

    /// A message waits no more, whichever queue it is in.
    pub(crate) fn stop_waiting<C>(&mut self, fleets: &Fleets<C>, id: SlotId) {
        let slot = self.get(id);
        let queue = fleets.queue_of(slot.link, slot.stream);
        self.unqueue(queue, id);
    }

    /// A message that was never whole on the wire waits again, before all others.
    pub(crate) fn requeue(&mut self, queue: usize, id: SlotId) {
        self.slots.get_mut(id).stage = Stage::Waiting;
        let queue = &mut self.queues[queue];
        self.slots.push_front(&mut queue.messages, id);
        queue.queued += 1;
    }

    /// A message is tried again, after all others that wait.
    pub(crate) fn retry(&mut self, queue: usize, id: SlotId) {
        let slot = self.slots.get_mut(id);
        slot.tries += 1;
        slot.stage = Stage::Waiting;
        self.append(queue, id);
    }

    /// From here on the socket has the message; whether for a second time, because the peer had the
    /// whole of it before.
    #[inline]
    pub(crate) fn hand_out<C>(&mut self, fleets: &Fleets<C>, id: SlotId) -> bool {
        let slot = self.slots.get_mut(id);
        let was_again = slot.stage == Stage::Again;
        slot.stage = Stage::Writing;
        let is_again = slot.sent.is_some();
        slot.resent |= is_again;
        let (link, stream, seq) = (slot.link, slot.stream, slot.seq);
        let queue = fleets.queue_of(link, stream);
        let outbox = &mut self.outboxes[link as usize];
        outbox.writing = Writing::Message(id);
        if was_again {
            self.slots.unlink(&mut outbox.again, id);
        } else {
            self.unqueue(queue, id);
        }
        if fleets.stream(stream).is_ended_by_name() {
            self.acknowledged.expect(queue, seq, id);
        }
        is_again
    }

    /// A message is on its way, and its answer is waited for.
    #[inline]
    pub(crate) fn track<C>(&mut self, fleets: &Fleets<C>, id: SlotId, at: Micros) {
        let slot = self.slots.get_mut(id);
        slot.stage = Stage::Flying;
        let link = slot.link;
        let is_watched = std::mem::replace(&mut slot.is_watched, true);
        if !is_watched {
            slot.flown = at;
        }
        let queue = fleets.queue_of(link, slot.stream);
        self.slots
            .push_back(&mut self.outboxes[link as usize].flight, id);
        if !is_watched {
            self.queues[queue].flying += 1;
            self.timeouts.watch(&mut self.slots, queue, id);
        }
    }

    /// The platform took a query: the device waits for a command from now on.
    pub(crate) fn await_command<C>(&mut self, fleets: &Fleets<C>, id: SlotId, now: Micros) {
        let slot = self.slots.get_mut(id);
        (slot.stage, slot.flown) = (Stage::Flying, now);
        (slot.is_watched, slot.is_asking) = (true, true);
        let (link, stream) = (slot.link, slot.stream);
        self.slots
            .push_back(&mut self.outboxes[link as usize].flight, id);
        self.queues[fleets.queue_of(link, stream)].flying += 1;
        self.timeouts.await_command(&mut self.slots, id);
    }

    /// An answer is waited for from `at` on.
    pub(crate) fn wait_anew<C>(&mut self, fleets: &Fleets<C>, id: SlotId, at: Micros) {
        let slot = self.slots.get(id);
        if slot.is_watched {
            let queue = fleets.queue_of(slot.link, slot.stream);
            self.timeouts.unwatch(&mut self.slots, queue, id);
            self.slots.get_mut(id).flown = at;
            self.timeouts.watch(&mut self.slots, queue, id);
        }
    }

    /// Removes an attempt from all chains that hold it, at any stage.
    #[inline]
    pub(crate) fn untrack<C>(&mut self, fleets: &Fleets<C>, id: SlotId) {
        let slot = self.slots.get(id);
        let (stage, queue) = (slot.stage, fleets.queue_of(slot.link, slot.stream));
        let outbox = &mut self.outboxes[slot.link as usize];
        match stage {
            Stage::Flying => self.slots.unlink(&mut outbox.flight, id),
            Stage::Again => self.slots.unlink(&mut outbox.again, id),
            Stage::Writing => outbox.writing = Writing::Orphan,
            Stage::Waiting | Stage::Free => {}
        }
        self.withdraw(fleets, id);
        if std::mem::take(&mut self.slots.get_mut(id).is_watched) {
            self.timeouts.unwatch(&mut self.slots, queue, id);
            self.queues[queue].flying -= 1;
        }
    }

    /// The application's word on an attempt is not waited for any more.
    fn withdraw<C>(&mut self, fleets: &Fleets<C>, id: SlotId) {
        let slot = self.slots.get(id);
        if fleets.stream(slot.stream).is_ended_by_name() {
            let queue = fleets.queue_of(slot.link, slot.stream);
            self.acknowledged.withdraw(queue, slot.seq);
        }
    }

    /// Gives up the application's acknowledgement of an attempt: a late one changes nothing.
    pub(crate) fn leave_unacknowledged<C>(&mut self, fleets: &Fleets<C>, id: SlotId) {
        let slot = self.slots.get(id);
        if fleets.stream(slot.stream).is_ended_by_name() {
            let queue = fleets.queue_of(slot.link, slot.stream);
            self.acknowledged.give_up(queue, slot.seq);
        }
    }

    /// The link ended while the kernel held a part of a message: the peer never had the whole.
    pub(crate) fn unwrite<C>(&mut self, fleets: &Fleets<C>, link: u32) {
        let outbox = self.outbox_mut(link);
        outbox.set_write_block(WriteBlock::Nothing);
        let Some(id) = outbox.take_written() else {
            return;
        };
        let stream = self.slots.get(id).stream;
        if fleets.stream(stream).is_tracked() {
            // The session still counts it in flight and asks for it again if it is resumed.
            self.slots
                .push_back(&mut self.outboxes[link as usize].flight, id);
            self.slots.get_mut(id).stage = Stage::Flying;
        } else {
            self.withdraw(fleets, id);
            self.requeue(fleets.queue_of(link, stream), id);
        }
    }

    /// A message of the session before is to be sent again; false if nobody waits for its answer.
    pub(crate) fn resend(&mut self, link: u32, token: Token) -> bool {
        let Some(id) = self.slots.open_attempt(link, token) else {
            return false;
        };
        let outbox = &mut self.outboxes[link as usize];
        match self.slots.get(id).stage {
            Stage::Flying => self.slots.unlink(&mut outbox.flight, id),
            // The link ended again before it was sent again.
            Stage::Again => self.slots.unlink(&mut outbox.again, id),
            Stage::Writing | Stage::Waiting | Stage::Free => return true,
        }
        self.slots.push_back(&mut outbox.again, id);
        self.slots.get_mut(id).stage = Stage::Again;
        true
    }

    /// The exchanges of a link whose answers can no longer come, which are open no more.
    pub(crate) fn take_exchanges(&mut self, link: u32) -> impl Iterator<Item = K> {
        let outbox = self.outbox(link);
        let (mut next, mut written) = (outbox.flight.first(), outbox.written());
        std::iter::from_fn(move || {
            loop {
                let id = next.or_else(|| written.take())?;
                next = next.and_then(|id| self.slots.after(id));
                if let Some(key) = self.slots.get_mut(id).exchange.take() {
                    return Some(key);
                }
            }
        })
    }

    /// An attempt whose answer is not waited for any more.
    pub(crate) fn forget(&mut self, id: SlotId) -> Forgotten<K> {
        Forgotten {
            token: self.slots.token(id),
            key: self.slots.get_mut(id).exchange.take(),
            is_unseen: false,
        }
    }

    /// An attempt whose answer is overdue.
    pub(crate) fn overdue(&mut self, now: Micros) -> Option<SlotId> {
        self.timeouts.overdue(&self.slots, now)
    }

    /// Instant at which the next answer is overdue.
    pub(crate) fn next_expiry(&self) -> Option<Micros> {
        self.timeouts.next(&self.slots)
    }

    /// The application has spoken on a message of a link.
    pub(crate) fn meet(&mut self, queue: usize, seq: u32) -> Met {
        self.acknowledged.meet(queue, seq)
    }

    /// The device of a link was acknowledged, so that its sliding time-outs begin anew.
    pub(crate) fn slide(&mut self, link: u32, now: Micros) {
        self.timeouts.acknowledged(link, now);
    }
}
