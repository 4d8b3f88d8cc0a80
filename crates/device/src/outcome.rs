//! How an attempt ends.

use muster_model::{Attempt, MessageId, Micros, Outcome, Reason, StreamId};

use crate::session::{Interaction, Session};
use crate::slots::{SlotId, Stage};
use crate::token::{Token, stream_of};
use crate::{Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// The platform took a published message.
    pub(crate) fn accepted(&mut self, link: u32, token: Token, has_subscriber: bool, now: Micros) {
        let stream = stream_of(token);
        if !has_subscriber {
            self.sink.counts(stream, now).no_subscriber += 1;
        }
        if self.stream(stream).is_acknowledged() {
            self.sink.counts(stream, now).transport_acknowledged += 1;
            return;
        }
        match self.slots.open_attempt(link, token) {
            Some(id) if self.stream(stream).is_query() => {
                self.sink.counts(stream, now).transport_acknowledged += 1;
                self.await_command(id, now);
            }
            Some(id) => {
                self.answered(id, now);
                self.finalise(id, now, Outcome::Accepted);
            }
            None => self.sink.counts(stream, now).transport_acknowledged += 1,
        }
    }

    pub(crate) fn rejected(&mut self, link: u32, token: Token, reason: Reason, now: Micros) {
        if let Some(id) = self.slots.open_attempt(link, token) {
            self.answered(id, now);
            self.end(id, now, Outcome::Rejected(reason));
        }
    }

    /// The platform's yes to a request. To a query it is the last word: a command comes with it, or
    /// none came while the device waited.
    pub(crate) fn request_accepted(
        &mut self,
        link: u32,
        token: Token,
        now: Micros,
        has_command: bool,
    ) {
        let Some(id) = self.slots.open_attempt(link, token) else {
            let counts = self.sink.counts(stream_of(token), now);
            counts.transport_acknowledged += 1;
            return;
        };
        self.slots.get_mut(id).has_command = has_command;
        self.answered(id, now);
        self.finalise(id, now, Outcome::Accepted);
    }

    /// A request ended without an answer.
    pub(crate) fn request_failed(
        &mut self,
        link: u32,
        token: Token,
        outcome: Outcome,
        now: Micros,
    ) {
        if let Some(id) = self.slots.open_attempt(link, token) {
            self.answered(id, now);
            self.end(id, now, outcome);
        }
    }

    /// The protocol's answer to a message that it was to forget: overdue, or answered by the
    /// application before.
    pub(crate) fn answered_late(&mut self, stream: StreamId, is_accepted: bool, now: Micros) {
        let of = self.stream(stream);
        // The answer to a request is the last word on it.
        let is_last = P::INTERACTION == Interaction::Asks;
        let is_acknowledged = !is_last && (of.is_acknowledged() || of.is_query());
        let counts = self.sink.counts(stream, now);
        if !is_acknowledged {
            counts.answered_late += 1;
        } else if is_accepted {
            counts.transport_acknowledged += 1;
        }
    }

    /// Who answers a message has it whole, whatever the socket has told so far.
    pub(crate) fn answered(&mut self, id: SlotId, now: Micros) {
        self.mark_sent(id, now);
        self.land(id);
    }

    /// Why the attempt ended, unless it is tried again.
    pub(crate) fn end(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        self.leave_unacknowledged(id);
        let slot = self.slots.get(id);
        let is_final = slot.tries >= self.stream(slot.stream).retry || self.is_over;
        if outcome == Outcome::Accepted || is_final {
            return self.finalise(id, at, outcome);
        }
        let (link, stream) = (slot.link, slot.stream);
        let lane = self.lane_of(link, stream);
        let slot = self.slots.get_mut(id);
        slot.tries += 1;
        slot.stage = Stage::Waiting;
        self.slots.push_back(&mut self.lanes[lane].queue, id);
        self.lanes[lane].queued += 1;
    }

    /// What the application says of the message from now on changes nothing.
    fn leave_unacknowledged(&mut self, id: SlotId) {
        let slot = self.slots.get(id);
        if self.stream(slot.stream).is_acknowledged() {
            let lane = self.lane_of(slot.link, slot.stream);
            self.acknowledged.give_up(lane, slot.seq);
        }
    }

    /// The final word on a message: told, and its slot given back.
    pub(crate) fn finalise(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        if self.stream(self.slots.get(id).stream).is_command() {
            return self.finalise_reply(id, at, outcome);
        }
        self.finalise_query(id, at, outcome);
        let message = self.message_id(id);
        let slot = self.slots.get(id);
        let attempt = Attempt {
            id: message,
            due: slot.due,
            taken: Some(slot.taken),
            sent: slot.sent,
            ended: at,
            outcome,
            resent: slot.resent,
            own: self.own.until(slot.own, slot.due, at),
        };
        let (stream, device, resent) = (slot.stream, slot.device, slot.resent);
        self.account.ended(&message, &outcome, resent);
        self.sink.attempt(&attempt);
        self.slots.release(id);
        self.agenda.ended(stream, device, at);
    }

    pub(crate) fn message_id(&self, id: SlotId) -> MessageId {
        let slot = self.slots.get(id);
        MessageId {
            run: self.run,
            device: slot.device,
            stream: slot.stream,
            seq: slot.seq,
        }
    }
}
