//! What the peer's bytes mean for a link.

use muster_model::{Cause, ConnectFailure, Micros};
use muster_protocol::mqtt::{ClientEvent, Connected, Input, Token};

use crate::link::{Hold, State};
use crate::protocols::Session;
use crate::slots::Stage;
use crate::token::stream_of;
use crate::{Shard, Sink};

/// What the driver has to do with the socket of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Then {
    /// It goes on.
    Stay,
    /// It is closed, after what was rendered has been written; the shard knows already.
    Close,
    /// It is reset at once; the shard knows already. The kernel may hold a part of a message, and
    /// were it to send the rest, the platform would have a message that counts as never sent.
    Abort,
}

/// Whether an event is the end of its link.
const fn is_end(event: &ClientEvent<'_>) -> bool {
    matches!(
        event,
        ClientEvent::KeepAliveExpired
            | ClientEvent::Disconnected { .. }
            | ClientEvent::Malformed(_)
            | ClientEvent::Refused { .. }
    )
}

impl<S: Sink> Shard<S> {
    /// Bytes came on a link: some of a stream, or one datagram. Returns how many were used up, and
    /// what to do with the socket; the session's own answers are appended to `out`.
    pub fn received(
        &mut self,
        link: u32,
        now: Micros,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Then) {
        let mut input = Input::new(bytes);
        loop {
            let event = match &mut self.links[link as usize].session {
                Session::Mqtt(client) => client.poll(now, &mut input, out),
                Session::Coap(_) | Session::Shared => {
                    self.received_datagram(link, now, bytes, out);
                    return (bytes.len(), Then::Stay);
                }
            };
            let Some(event) = event else {
                return (input.consumed(), Then::Stay);
            };
            if let ClientEvent::Auth(auth) = &event {
                self.answer_challenge(link, now, auth, out);
                continue;
            }
            let then = self.happened(link, now, &event, out);
            if then != Then::Stay {
                return (bytes.len(), then);
            }
        }
    }

    /// A link's deadline may be over: a ping, the end of its handshake's time, or of its life.
    pub fn timer(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        let is_due = self.deadline(link).is_some_and(|at| at <= now);
        if !is_due {
            return Then::Stay;
        }
        if self.is_handshaking(link) {
            let failure = self.unanswered(link);
            self.connect_failed(link, now, failure);
            return Then::Abort;
        }
        if self.end_of_life(link).is_some_and(|at| at <= now) {
            let cause = self.why_it_leaves(link, now);
            if self.leaves_abruptly(link, cause) {
                self.closed(link, now, cause);
                return Then::Abort;
            }
            self.links[link as usize].session.disconnect(0, out);
            self.closed(link, now, cause);
            return Then::Close;
        }
        if self.next_authentication(link).is_some_and(|at| at <= now) {
            self.authenticate_again(link, now, out);
            return Then::Stay;
        }
        match &mut self.links[link as usize].session {
            Session::Mqtt(client) => match client.timer(now, out) {
                Some(event) => self.happened(link, now, &event, out),
                None => Then::Stay,
            },
            Session::Coap(_) | Session::Shared => {
                self.wake(link, now, out);
                Then::Stay
            }
        }
    }

    fn happened(
        &mut self,
        link: u32,
        now: Micros,
        event: &ClientEvent<'_>,
        out: &mut Vec<u8>,
    ) -> Then {
        if !is_end(event) {
            self.links[link as usize].last_sent = 0;
        }
        match event {
            ClientEvent::Connected(connected) => {
                return self.handshake_done(link, now, connected, out);
            }
            ClientEvent::Subscribed { id: _, codes } => {
                return self.subscribed(link, now, codes, out);
            }
            ClientEvent::Message(message) => {
                self.told(link, now, message);
            }
            ClientEvent::Refused { reason, .. } => {
                let failure = ConnectFailure::Rejected(*reason);
                self.note_said(&failure, event);
                self.connect_failed(link, now, failure);
                return Then::Close;
            }
            ClientEvent::Accepted { token, reason } => {
                if self.is_announcement(link, *token) {
                    return self.announced(link, now, out);
                }
                self.accepted(link, *token, *reason, now);
                self.await_completion(*token, now);
                return self.announce_more(link, now, out);
            }
            ClientEvent::Rejected { token, reason } => {
                if self.is_announcement(link, *token) {
                    return self.unannounced(link, now, ConnectFailure::Rejected(*reason), out);
                }
                self.rejected(link, *token, *reason, now);
            }
            ClientEvent::Completed { token } => self.completed(*token, now),
            ClientEvent::AnsweredLate { token, reason } => {
                self.answered_late(stream_of(*token), *reason, now);
            }
            ClientEvent::Resend { token } => self.resend(link, *token),
            ClientEvent::KeepAliveExpired => return self.lost(link, now, Cause::PingUnanswered),
            ClientEvent::Disconnected { reason, .. } => {
                let cause = Cause::PeerDisconnect(*reason);
                self.note_said(&cause, event);
                return self.lost(link, now, cause);
            }
            ClientEvent::Malformed(malformed) if malformed.is_own_limit() => {
                self.refusals.note_limit(malformed);
                return self.lost(link, now, Cause::OwnLimit);
            }
            ClientEvent::Malformed(_) => return self.lost(link, now, Cause::Malformed),
            // A step of authentication is answered where it comes in.
            ClientEvent::Auth(_) | ClientEvent::Unsubscribed { .. } | ClientEvent::Pong => {}
        }
        Then::Stay
    }

    /// Keeps the platform's own words for a cause, the first of each.
    fn note_said(&mut self, cause: &dyn std::fmt::Display, event: &ClientEvent<'_>) {
        if let Some(text) = event.reason_string() {
            self.refusals.note_said(cause, text);
        }
    }

    fn handshake_done(
        &mut self,
        link: u32,
        now: Micros,
        connected: &Connected<'_>,
        out: &mut Vec<u8>,
    ) -> Then {
        if self.links[link as usize].state != State::Handshaking {
            return Then::Stay;
        }
        self.tell_return(link, now, connected.session_present);
        if !connected.session_present {
            self.drop_exchanges(link, now, false);
            self.break_flight(link, now, Cause::SessionLost);
        }
        self.subscribe(link, now, out)
    }

    /// What carries a link is at its end; what to do with the socket. Where the kernel holds a part
    /// of a message, it must not send the rest.
    pub fn lost(&mut self, link: u32, now: Micros, cause: Cause) -> Then {
        let is_held = self.links[link as usize].hold != Hold::Nothing;
        self.closed(link, now, cause);
        if is_held { Then::Abort } else { Then::Close }
    }

    fn resend(&mut self, link: u32, token: Token) {
        let Some(id) = self.open_attempt(link, token) else {
            if let Some(client) = self.links[link as usize].session.mqtt() {
                client.forget(token);
            }
            return;
        };
        let state = &mut self.links[link as usize];
        match self.slots.get(id).stage {
            Stage::Flying => self.slots.unlink(&mut state.flight, id),
            // The link ended again before it was sent again.
            Stage::Again => self.slots.unlink(&mut state.again, id),
            Stage::Writing | Stage::Waiting | Stage::Free => return,
        }
        self.slots.push_back(&mut state.again, id);
        self.slots.get_mut(id).stage = Stage::Again;
    }
}
