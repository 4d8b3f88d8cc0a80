//! Ends of attempts.

use muster_model::{Attempt, Cause, Micros, Outcome, ShedCause, StreamId};

use super::Traffic;
use crate::class::Qos;
use crate::links::Links;
use crate::messages::Forgotten;
use crate::session::Session;
use crate::sink::Sink;
use crate::slots::{SlotId, Stage};
use crate::token::{Token, stream_of};

/// QoS 2 exchanges that the platform has accepted (PUBREC) and not completed (PUBCOMP).
///
/// The attempt is final with PUBREC. Completion is counted separately, and a run waits for it as long as
/// it waits for an answer.
#[derive(Debug, Default)]
pub(super) struct Completing {
    open: u64,
    /// Instant at which the last of them is overdue.
    until: Micros,
}

impl Completing {
    /// The platform accepted a message, whose completion is overdue at `until`.
    pub(super) fn expect(&mut self, until: Micros) {
        self.open += 1;
        self.until = self.until.max(until);
    }

    /// An exchange is complete, or never will be.
    pub(super) fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Exchanges that are not complete and not overdue.
    pub(super) fn open(&self, now: Micros) -> u64 {
        if now < self.until { self.open } else { 0 }
    }
}

impl<P: Session, S: Sink> Traffic<P, S> {
    /// The platform took a published message; at QoS 2 its completion is due.
    pub(crate) fn accepted(&mut self, link: u32, token: Token, has_subscriber: bool, now: Micros) {
        let id = stream_of(token);
        let stream = self.fleets.stream(id);
        let (is_acknowledged, is_query) = (stream.is_acknowledged(), stream.is_query());
        if stream.qos == Qos::ExactlyOnce {
            self.completing.expect(now + stream.timeout);
        }
        if !has_subscriber {
            self.recording.counts(id, now).no_subscriber += 1;
        }
        let open = self.messages.slots().open_attempt(link, token);
        let Some(open) = open.filter(|_| !is_acknowledged) else {
            self.recording.counts(id, now).transport_acknowledged += 1;
            return;
        };
        if !is_query {
            self.answered(open, now);
            return self.finalise(open, now, Outcome::Accepted);
        }
        self.recording.counts(id, now).transport_acknowledged += 1;
        self.answered(open, now);
        let slot = self.messages.get_mut(open);
        slot.own = self.own.read_part(slot.own, now);
        self.messages.await_command(&self.fleets, open, now);
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
        let Some(id) = self.messages.slots().open_attempt(link, token) else {
            let counts = self.recording.counts(stream_of(token), now);
            counts.transport_acknowledged += 1;
            return;
        };
        self.messages.get_mut(id).has_command = has_command;
        self.answered(id, now);
        self.finalise(id, now, Outcome::Accepted);
    }

    /// An attempt ended, with a refusal or without an answer.
    pub(crate) fn failed(&mut self, link: u32, token: Token, outcome: Outcome, now: Micros) {
        if let Some(id) = self.messages.slots().open_attempt(link, token) {
            self.answered(id, now);
            self.end(id, now, outcome);
        }
    }

    /// The protocol's answer to a message that it was to forget: overdue, or answered by the
    /// application before.
    pub(crate) fn answered_late(&mut self, stream: StreamId, is_accepted: bool, now: Micros) {
        let of = self.fleets.stream(stream);
        // The answer to a request is the last word on it.
        let is_last = P::PROTOCOL.asks;
        let is_acknowledged = !is_last && (of.is_acknowledged() || of.is_query());
        let counts = self.recording.counts(stream, now);
        if !is_acknowledged {
            counts.answered_late += 1;
        } else if is_accepted {
            counts.transport_acknowledged += 1;
        }
    }

    /// PUBCOMP came.
    pub(crate) fn completed(&mut self, token: Token, now: Micros) {
        self.completing.end();
        self.recording.counts(stream_of(token), now).completed += 1;
    }

    /// Ends an exchange that was accepted and never will be completed; it is counted unless we
    /// ended the link `on_purpose`.
    pub(crate) fn incomplete(&mut self, token: Token, now: Micros, on_purpose: bool) {
        self.completing.end();
        if !on_purpose {
            self.recording.counts(stream_of(token), now).incomplete += 1;
        }
    }

    /// Ends an attempt whose answer is overdue: its link, and what the session there forgets.
    pub(crate) fn expire(&mut self, now: Micros) -> Option<(u32, Option<Forgotten<P::Key>>)> {
        let id = self.messages.overdue(now)?;
        let slot = self.messages.get(id);
        let link = slot.link;
        if slot.is_asking {
            // The platform took the query, and no command came while the device waited.
            self.messages.untrack(&self.fleets, id);
            self.finalise(id, now, Outcome::Accepted);
            return Some((link, None));
        }
        let forgotten = self.messages.forget(id);
        self.messages.untrack(&self.fleets, id);
        self.end(id, now, Outcome::TimedOut);
        Some((link, Some(forgotten)))
    }

    /// Ends every unanswered attempt of a link whose session is gone; what was never whole on the
    /// wire waits again.
    pub(crate) fn break_flight(&mut self, link: u32, now: Micros, cause: Cause) {
        while let Some(id) = self.messages.outbox(link).first_open() {
            self.messages.untrack(&self.fleets, id);
            let slot = self.messages.get(id);
            if slot.sent.is_some() {
                self.end(id, now, Outcome::Broken(cause));
            } else {
                let queue = self.fleets.queue_of(link, slot.stream);
                self.messages.requeue(queue, id);
            }
        }
    }

    /// A message that waits is shed.
    pub(crate) fn shed(&mut self, id: SlotId, now: Micros, cause: ShedCause) {
        self.messages.stop_waiting(&self.fleets, id);
        self.finalise(id, now, Outcome::Shed(cause));
    }

    /// A message that can never go on its session, which may forget it; `cause` where it was sent before.
    pub(crate) fn give_up(
        &mut self,
        id: SlotId,
        now: Micros,
        cause: Cause,
    ) -> Option<Forgotten<P::Key>> {
        let forgotten = if self.messages.get(id).stage == Stage::Waiting {
            self.messages.stop_waiting(&self.fleets, id);
            None
        } else {
            let forgotten = self.messages.forget(id);
            self.messages.untrack(&self.fleets, id);
            Some(forgotten)
        };
        let outcome = match self.messages.get(id).sent {
            Some(_) => Outcome::Broken(cause),
            None => Outcome::Shed(ShedCause::Unsendable),
        };
        self.finalise(id, now, outcome);
        forgotten
    }

    /// The run is over: what came due and was never taken is shed.
    pub(crate) fn leave_untaken(&mut self, links: &Links, now: Micros, cause: ShedCause) {
        self.is_over = true;
        while let Some(message) = self.agenda.pop(now) {
            if self.fleets.stream(message.stream).is_command() {
                let link = self.fleets.link_of(&message);
                self.meet(&message, links.get(link), now);
                continue;
            }
            self.account_closed(&message);
            self.shed_untaken(&message, None, now, cause);
        }
    }

    /// Reports the final state of all that is open on a link, where `obstacle` kept back what waits.
    pub(crate) fn finish_link(&mut self, link: u32, now: Micros, obstacle: ShedCause) {
        if let Some(id) = self.messages.outbox(link).written() {
            self.messages.untrack(&self.fleets, id);
            self.finish_waiting(id, now, ShedCause::SocketFull);
        }
        while let Some(id) = self.messages.outbox(link).first_open() {
            self.messages.untrack(&self.fleets, id);
            self.finish_waiting(id, now, obstacle);
        }
        for (place, queue) in self.fleets.queues_of(link).enumerate() {
            let is_query = self.fleets.class(link).streams[place].is_query();
            let is_free = obstacle == ShedCause::InFlight;
            let cause = if is_free {
                in_flight_of(is_query)
            } else {
                obstacle
            };
            while let Some(id) = self.messages.first_queued(queue) {
                self.messages.unqueue(queue, id);
                self.finish_waiting(id, now, cause);
            }
        }
    }

    fn finish_waiting(&mut self, id: SlotId, now: Micros, obstacle: ShedCause) {
        let outcome = match self.messages.get(id).sent {
            Some(_) => Outcome::InFlight,
            None => Outcome::Shed(obstacle),
        };
        self.finalise(id, now, outcome);
    }

    /// Marks a message as sent, whatever the socket has reported: who answers it has it whole.
    #[inline]
    pub(super) fn answered(&mut self, id: SlotId, now: Micros) {
        self.mark_sent(id, now);
        self.messages.untrack(&self.fleets, id);
    }

    /// Ends an attempt with this outcome, unless it is tried again.
    pub(super) fn end(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        self.messages.leave_unacknowledged(&self.fleets, id);
        let slot = self.messages.get(id);
        let is_final = slot.tries >= self.fleets.stream(slot.stream).retry || self.is_over;
        if outcome == Outcome::Accepted || is_final {
            return self.finalise(id, at, outcome);
        }
        let queue = self.fleets.queue_of(slot.link, slot.stream);
        self.messages.retry(queue, id);
    }

    /// Reports the final state of a message and gives its slot back.
    #[inline]
    pub(super) fn finalise(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        let slot = self.messages.get(id);
        let (stream, device) = (slot.stream, slot.device);
        if self.fleets.stream(stream).is_command() {
            return self.finalise_reply(id, at, outcome);
        }
        let attempt = Attempt {
            id: self.fleets.message_id(device, stream, slot.seq),
            due: slot.due,
            taken: Some(slot.taken),
            sent: slot.sent,
            ended: at,
            outcome,
            resent: slot.resent,
            own: self.own.until(slot.own, slot.due, at),
        };
        let (has_command, link) = (slot.has_command, slot.link);
        if self.recording.counts_by_target() {
            let link = self.fleets.link_id(link);
            self.recording.ended_at_target(link, outcome);
        }
        if attempt.sent.is_some() && self.fleets.stream(stream).is_query() {
            self.recording.query(&attempt, has_command);
        }
        self.recording.attempt(&attempt);
        self.messages.slots_mut().release(id);
        self.agenda.ended(stream, device, at);
    }
}

/// Cause to shed a message whose device has as many under way as it may: a query goes by itself.
pub(crate) const fn in_flight_of(is_query: bool) -> ShedCause {
    if is_query {
        ShedCause::Busy
    } else {
        ShedCause::InFlight
    }
}
