//! How an attempt ends.

use muster_model::{Attempt, MessageId, Micros, Outcome, Reason, StreamId};
use muster_protocol::mqtt::{self, Token};

use crate::slots::{SlotId, Stage};
use crate::token::stream_of;
use crate::{Shard, Sink};

impl<S: Sink> Shard<S> {
    pub(crate) fn accepted(&mut self, link: u32, token: Token, code: u8, now: Micros) {
        let stream = stream_of(token);
        if code == mqtt::reason::NO_MATCHING_SUBSCRIBERS {
            self.sink.counts(stream, now).no_subscriber += 1;
        }
        if self.stream(stream).is_acknowledged() {
            self.sink.counts(stream, now).transport_acknowledged += 1;
            return;
        }
        match self.open_attempt(link, token) {
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
        if let Some(id) = self.open_attempt(link, token) {
            self.answered(id, now);
            self.end(id, now, Outcome::Rejected(reason));
        }
    }

    /// The protocol's answer to a message that it was to forget: overdue, or answered by the
    /// application before.
    pub(crate) fn answered_late(&mut self, stream: StreamId, code: u8, now: Micros) {
        let of = self.stream(stream);
        let is_acknowledged = of.is_acknowledged() || of.is_query();
        let counts = self.sink.counts(stream, now);
        if !is_acknowledged {
            counts.answered_late += 1;
        } else if code < 0x80 {
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
