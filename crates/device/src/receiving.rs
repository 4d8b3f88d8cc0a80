//! Bytes of the peer, turned into events of a link.

use std::cell::OnceCell;

use muster_model::{Cause, Micros};

use crate::link::{Hold, State};
use crate::session::{Event, Input, Reply, Session, Transport};
use crate::slots::Stage;
use crate::token::{Token, stream_of};
use crate::{Shard, Sink};

/// The next step of the driver with the socket of a link.
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

impl<P: Session, S: Sink> Shard<P, S> {
    /// Bytes came on a link: some of a stream, or one datagram. Returns how many were used up, and
    /// what to do with the socket; the session's own answers are appended to `out`.
    pub fn received(
        &mut self,
        link: u32,
        now: Micros,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Then) {
        let room = OnceCell::new();
        let mut input = Input::new(bytes, &room);
        loop {
            let (session, mut view) = self.view(now);
            let Some(event) = session.poll(&mut view.at(link), &mut input, out) else {
                return (input.used(), Then::Stay);
            };
            let then = self.happened(link, now, event, out);
            if then != Then::Stay {
                return (bytes.len(), then);
            }
        }
    }

    /// A datagram came on a socket that is one endpoint with its links; answers with the link
    /// whose exchange it is about, if it is about one. What the socket answers is appended to `out`.
    pub fn received_at_socket(
        &mut self,
        socket: u32,
        now: Micros,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        let room = OnceCell::new();
        let mut input = Input::new(datagram, &room);
        let (session, mut view) = self.view(now);
        let (link, event) = session.poll_socket(socket, &mut view, Some(&mut input), out)?;
        self.happened_at_socket(link, now, event, out);
        Some(link)
    }

    /// One thing that is due on such a socket: whose it is, if it was anything. One call appends one
    /// datagram at the most.
    pub fn socket_timer(&mut self, socket: u32, now: Micros, out: &mut Vec<u8>) -> Option<u32> {
        let (session, mut view) = self.view(now);
        let (link, event) = session.poll_socket(socket, &mut view, None, out)?;
        self.happened_at_socket(link, now, event, out);
        Some(link)
    }

    /// The instant at which [`Shard::socket_timer`] is to be called, until it reports nothing.
    pub fn socket_deadline(&self, socket: u32) -> Option<Micros> {
        self.session.socket_deadline(socket)
    }

    /// No event of a shared socket ends a link.
    fn happened_at_socket(
        &mut self,
        link: u32,
        now: Micros,
        event: Option<Event<'_>>,
        out: &mut Vec<u8>,
    ) {
        if let Some(event) = event {
            let _stays = self.happened(link, now, event, out);
        }
    }

    /// Begins a session over a link that was secured anew; nothing of the last one belongs to it.
    pub fn secured(&mut self, link: u32) {
        self.session.secured(&mut self.links[link as usize].session);
    }

    /// A link's deadline may be over: a ping, the end of its handshake's time, or of its life.
    pub fn timer(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        let is_due = self.deadline(link).is_some_and(|at| at <= now);
        if !is_due {
            return Then::Stay;
        }
        if self.is_handshaking(link) {
            let failure = self.session.unanswered(link);
            self.connect_failed(link, now, failure);
            return Then::Abort;
        }
        if self.end_of_life(link).is_some_and(|at| at <= now) {
            let cause = self.why_it_leaves(link, now);
            if self.leaves_abruptly(link, cause) {
                self.closed(link, now, cause);
                return Then::Abort;
            }
            let state = &mut self.links[link as usize].session;
            self.session.disconnect(state, out);
            self.closed(link, now, cause);
            return Then::Close;
        }
        let is_silence_over = self.silence_ends(link).is_some_and(|end| end <= now);
        self.links[link as usize].waits_for_silence &= !is_silence_over;
        let (session, mut view) = self.view(now);
        match session.timer(&mut view.at(link), out) {
            Some(event) => self.happened(link, now, event, out),
            None => Then::Stay,
        }
    }

    #[inline]
    fn happened(&mut self, link: u32, now: Micros, event: Event<'_>, out: &mut Vec<u8>) -> Then {
        // Of datagrams one tells nothing of those before it.
        if P::TRANSPORT == Transport::Stream && !event.is_end() {
            self.links[link as usize].last_sent = 0;
        }
        match event {
            Event::Accepted {
                token,
                has_subscriber,
            } => {
                self.accepted(link, token, has_subscriber, now);
                self.await_completion(token, now);
            }
            Event::Answered {
                token,
                reply,
                is_separate,
            } => {
                let counts = self.sink.counts(stream_of(token), now);
                counts.separate_responses += u64::from(is_separate);
                match reply {
                    Reply::Accepted => self.request_accepted(link, token, now, false),
                    Reply::Command(copy) => self.answered_by_command(link, now, token, &copy),
                    Reply::Rejected(reason) => self.rejected(link, token, reason, now),
                }
            }
            Event::Rejected { token, reason } => self.rejected(link, token, reason, now),
            Event::Failed { token, outcome } => self.request_failed(link, token, outcome, now),
            Event::Completed { token } => self.completed(token, now),
            Event::AnsweredLate { token, is_accepted } => {
                self.answered_late(stream_of(token), is_accepted, now);
            }
            Event::Duplicate { token } => {
                self.sink.counts(stream_of(token), now).duplicate_responses += 1;
            }
            Event::RefusedUnawaited {
                stream,
                due,
                reason,
            } => {
                let counts = self.sink.counts(stream, due);
                counts.refused_unawaited.add(reason, 1);
            }
            Event::Resend { token } => self.resend(link, token),
            Event::Message(message) => self.told(link, now, &message),
            Event::Alive => {}
            Event::Connected { is_kept } => return self.handshake_done(link, now, is_kept, out),
            Event::Ready => self.connected(link, now),
            Event::Refused(failure) => {
                self.connect_failed(link, now, failure);
                return Then::Close;
            }
            Event::Lost(cause) => return self.lost(link, now, cause),
        }
        Then::Stay
    }

    /// The platform has answered a CONNECT: the session goes on with what it has to say.
    fn handshake_done(&mut self, link: u32, now: Micros, is_kept: bool, out: &mut Vec<u8>) -> Then {
        if self.links[link as usize].state != State::Handshaking {
            return Then::Stay;
        }
        self.tell_return(link, now, is_kept);
        if !is_kept {
            self.drop_exchanges(link, now, false);
            self.break_flight(link, now, Cause::SessionLost);
        }
        let (session, mut view) = self.view(now);
        match session.go_on(&mut view.at(link), out) {
            Some(event) => self.happened(link, now, event, out),
            None => Then::Stay,
        }
    }

    /// Ends a link whose connection is over; returns what to do with the socket. If the kernel holds a part
    /// of a message, it must not send the rest.
    pub fn lost(&mut self, link: u32, now: Micros, cause: Cause) -> Then {
        let is_held = self.links[link as usize].hold != Hold::Nothing;
        self.closed(link, now, cause);
        if is_held { Then::Abort } else { Then::Close }
    }

    fn resend(&mut self, link: u32, token: Token) {
        let Some(id) = self.slots.open_attempt(link, token) else {
            let state = &mut self.links[link as usize].session;
            return self.session.forget(state, token, None);
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
