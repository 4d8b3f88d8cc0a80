//! From written to answered, overdue or broken: where a message stands meanwhile.

use muster_model::{Cause, Micros, Outcome, ShedCause};

use crate::link::{Hold, Writing};
use crate::session::Session;
use crate::slots::{SlotId, Stage};
use crate::{Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// The kernel took the whole message that was rendered last, at `at`.
    pub fn written(&mut self, link: u32, at: Micros) {
        let writing = std::mem::replace(&mut self.links[link as usize].writing, Writing::Nothing);
        let Writing::Message(id) = writing else {
            return;
        };
        self.mark_sent(id, at);
        if self.stream(self.slots.get(id).stream).is_answered() {
            self.fly(link, id, at);
        } else {
            let is_uplink = !self.stream(self.slots.get(id).stream).is_command();
            let state = &mut self.links[link as usize];
            state.last_sent = state.last_sent.saturating_add(u32::from(is_uplink));
            self.finalise(id, at, Outcome::Unacknowledged);
        }
    }

    /// The first transmission of a message is over.
    pub(crate) fn mark_sent(&mut self, id: SlotId, at: Micros) {
        let slot = self.slots.get_mut(id);
        if slot.sent.is_none() {
            slot.sent = Some(at);
            let stream = slot.stream;
            let message = self.message_id(id);
            if self.stream(stream).is_command() {
                let account = self.account.command(stream);
                account.replied.add(muster_measure::digest(&message));
            } else {
                self.account.sent(&message);
            }
        }
    }

    /// A further block of a body went out for the first time. A message is sent with its last block, which
    /// it may have been, and its answer is waited for from then on.
    pub(crate) fn sent_further(&mut self, id: SlotId, at: Micros) {
        let slot = self.slots.get_mut(id);
        slot.own = self.own.read_part(slot.own, at);
        if slot.tries == 0 {
            slot.sent = Some(at);
        }
        let (link, stream) = (slot.link, slot.stream);
        if slot.is_watched {
            let lane = self.lane_of(link, stream);
            self.timeouts.unwatch(&mut self.slots, lane, id);
            self.slots.get_mut(id).flown = at;
            self.timeouts.watch(&mut self.slots, lane, id);
        }
    }

    /// The kernel holds a part of what was written on a link; nothing goes until
    /// [`Shard::flushed`].
    pub fn held(&mut self, link: u32) {
        self.links[link as usize].hold = Hold::Full;
    }

    /// The message that was rendered last goes at the end of the turn, with those of other links;
    /// nothing goes until [`Shard::flushed`].
    pub fn gathered(&mut self, link: u32) {
        self.links[link as usize].hold = Hold::Gathering;
    }

    /// Nothing went out of the message that was rendered last, and nothing will: there was no buffer of
    /// ours for it, or the kernel would not have it.
    pub fn unsent(&mut self, link: u32, at: Micros, cause: ShedCause) {
        self.links[link as usize].hold = Hold::Nothing;
        let writing = std::mem::replace(&mut self.links[link as usize].writing, Writing::Nothing);
        let Writing::Message(id) = writing else {
            return;
        };
        // What nobody has seen nobody answers.
        if self.slots.get(id).sent.is_none() {
            self.abandon(link, id);
        }
        self.forget(link, id);
        self.slots.get_mut(id).stage = Stage::Waiting;
        self.land(id);
        let outcome = match self.slots.get(id).sent {
            Some(_) => Outcome::Broken(Cause::Network),
            None => Outcome::Shed(cause),
        };
        self.finalise(id, at, outcome);
    }

    /// The kernel has taken all that was kept back of a link, at `at`.
    pub fn flushed(&mut self, link: u32, at: Micros) {
        self.links[link as usize].hold = Hold::Nothing;
        self.written(link, at);
    }

    /// Ends an attempt whose answer is overdue; answers with its link, which the driver then
    /// pumps, for what waited behind the attempt may go now.
    pub fn expire(&mut self, now: Micros) -> Option<u32> {
        let id = self.timeouts.overdue(&self.slots, now)?;
        let slot = self.slots.get(id);
        let link = slot.link;
        if slot.is_asking {
            // The platform took the query, and no command came while the device waited.
            self.land(id);
            self.finalise(id, now, Outcome::Accepted);
            return Some(link);
        }
        self.forget(link, id);
        self.land(id);
        self.end(id, now, Outcome::TimedOut);
        Some(link)
    }

    /// When the next answer is overdue.
    pub fn next_expiry(&self) -> Option<Micros> {
        self.timeouts.next(&self.slots)
    }

    /// Ends every unanswered attempt of a link whose session is gone; what was never whole on the
    /// wire waits again.
    pub(crate) fn break_flight(&mut self, link: u32, now: Micros, cause: Cause) {
        loop {
            let state = &self.links[link as usize];
            let Some(id) = state.again.first().or_else(|| state.flight.first()) else {
                return;
            };
            self.land(id);
            if self.slots.get(id).sent.is_some() {
                self.end(id, now, Outcome::Broken(cause));
            } else {
                self.requeue(link, id);
            }
        }
    }

    /// The link ended while the kernel held a part of a message: the peer never had the whole.
    pub(crate) fn unwrite(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        state.hold = Hold::Nothing;
        let Writing::Message(id) = std::mem::replace(&mut state.writing, Writing::Nothing) else {
            return;
        };
        if self.stream(self.slots.get(id).stream).is_tracked() {
            // The session still counts it in flight and asks for it again if it is resumed.
            self.slots
                .push_back(&mut self.links[link as usize].flight, id);
            self.slots.get_mut(id).stage = Stage::Flying;
        } else {
            self.withdraw(id);
            self.requeue(link, id);
        }
    }

    /// Takes an attempt out of everything it stands in, whatever its stage.
    pub(crate) fn land(&mut self, id: SlotId) {
        let slot = self.slots.get(id);
        let (link, stream, stage) = (slot.link, slot.stream, slot.stage);
        let state = &mut self.links[link as usize];
        match stage {
            Stage::Flying => self.slots.unlink(&mut state.flight, id),
            Stage::Again => self.slots.unlink(&mut state.again, id),
            Stage::Writing => state.writing = Writing::Orphan,
            Stage::Waiting | Stage::Free => {}
        }
        self.withdraw(id);
        let slot = self.slots.get_mut(id);
        if std::mem::take(&mut slot.is_watched) {
            let lane = self.lane_of(link, stream);
            self.timeouts.unwatch(&mut self.slots, lane, id);
            self.lanes[lane].flying -= 1;
        }
    }

    /// The application's word on an attempt is not waited for any more.
    fn withdraw(&mut self, id: SlotId) {
        let slot = self.slots.get(id);
        if self.stream(slot.stream).is_acknowledged() {
            let lane = self.lane_of(slot.link, slot.stream);
            self.acknowledged.withdraw(lane, slot.seq);
        }
    }

    pub(crate) fn unqueue(&mut self, link: u32, id: SlotId) {
        let lane = self.lane_of(link, self.slots.get(id).stream);
        self.slots.unlink(&mut self.lanes[lane].queue, id);
        self.lanes[lane].queued -= 1;
    }

    pub(crate) fn requeue(&mut self, link: u32, id: SlotId) {
        let lane = self.lane_of(link, self.slots.get(id).stream);
        self.slots.get_mut(id).stage = Stage::Waiting;
        self.slots.push_front(&mut self.lanes[lane].queue, id);
        self.lanes[lane].queued += 1;
    }

    fn fly(&mut self, link: u32, id: SlotId, at: Micros) {
        self.slots
            .push_back(&mut self.links[link as usize].flight, id);
        let slot = self.slots.get_mut(id);
        slot.stage = Stage::Flying;
        if slot.is_watched {
            return;
        }
        slot.is_watched = true;
        slot.flown = at;
        let stream = slot.stream;
        let lane = self.lane_of(link, stream);
        self.lanes[lane].flying += 1;
        self.timeouts.watch(&mut self.slots, lane, id);
    }

    /// The platform took a query: the device waits for a command from now on.
    pub(crate) fn await_command(&mut self, id: SlotId, now: Micros) {
        self.mark_sent(id, now);
        self.land(id);
        let slot = self.slots.get_mut(id);
        slot.own = self.own.read_part(slot.own, now);
        (slot.stage, slot.flown) = (Stage::Flying, now);
        (slot.is_watched, slot.is_asking) = (true, true);
        let (link, stream) = (slot.link, slot.stream);
        self.slots
            .push_back(&mut self.links[link as usize].flight, id);
        let lane = self.lane_of(link, stream);
        self.lanes[lane].flying += 1;
        self.timeouts.await_command(&mut self.slots, id);
    }
}
