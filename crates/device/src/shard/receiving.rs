//! Bytes of the peer, turned into events of a link.

use std::cell::OnceCell;

use muster_model::{Cause, Micros, Outcome};
use muster_platform::Downlink;

use super::Shard;
use crate::links::State;
use crate::messages::WriteBlock;
use crate::session::{self, Event, Input, Reply, Session, SharedSockets, SocketSlot, Transport};
use crate::sink::Sink;
use crate::token::{Token, stream_of};

/// The next step of the driver with the socket of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Then {
    /// The socket stays open.
    Stay,
    /// The socket is closed after what was rendered has been written; the shard knows already.
    Close,
    /// The socket is reset at once; the shard knows already. The kernel may hold a part of a
    /// message: if it sent the rest, the platform would have a message that counts as never sent.
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
        let (mut used, mut is_taken) = (0, false);
        loop {
            // Each event may need room for what came in pieces.
            let room = OnceCell::new();
            let mut input = Input::after(bytes, (used, is_taken), &room);
            let (session, mut view) = self.view(now);
            let event = session.poll(&mut view.at(link), &mut input, out);
            (used, is_taken) = input.progress();
            let Some(event) = event else {
                return (used, Then::Stay);
            };
            let then = self.happened(link, now, event, out);
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
        if self.links.is_handshaking(link) {
            let since = self.links.get(link).since();
            if since + self.fleets().class(link).client.handshake_timeout <= now {
                let failure = self.session.unanswered(link);
                self.connect_failed(link, now, failure);
                return Then::Abort;
            }
        } else if self.end_of_life(link).is_some_and(|at| at <= now) {
            let (fleets, of) = (self.traffic.fleets(), self.links.get(link));
            let cause = fleets.why_it_leaves(link, of, now);
            let is_abrupt = fleets.leaves_abruptly(link, cause);
            if !is_abrupt {
                let state = &mut self.states[link as usize];
                self.session.disconnect(state, out);
            }
            self.closed(link, now, cause);
            return if is_abrupt { Then::Abort } else { Then::Close };
        }
        if self.silence_ends(link).is_some_and(|end| end <= now) {
            let outbox = self.traffic.messages_mut().outbox_mut(link);
            outbox.set_waits_for_silence(false);
        }
        let (session, mut view) = self.view(now);
        match session.timer(&mut view.at(link), out) {
            Some(event) => self.happened(link, now, event, out),
            None => Then::Stay,
        }
    }

    #[inline]
    pub(super) fn happened(
        &mut self,
        link: u32,
        now: Micros,
        event: Event<'_>,
        out: &mut Vec<u8>,
    ) -> Then {
        let traffic = &mut self.traffic;
        // Of datagrams one tells nothing of those before it.
        if P::TRANSPORT == Transport::Stream && !event.is_end() {
            traffic.messages_mut().outbox_mut(link).take_last_sent();
        }
        match event {
            Event::Accepted {
                token,
                has_subscriber,
            } => traffic.accepted(link, token, has_subscriber, now),
            Event::Answered {
                token,
                reply,
                is_separate,
            } => {
                let counts = traffic.recording().counts(stream_of(token), now);
                counts.separate_responses += u64::from(is_separate);
                match reply {
                    Reply::Accepted => traffic.request_accepted(link, token, now, false),
                    Reply::Command(copy) => {
                        traffic.answered_by_command(link, now, Some(token), &copy);
                    }
                    Reply::Rejected(reason) => {
                        traffic.failed(link, token, Outcome::Rejected(reason), now);
                    }
                }
            }
            Event::Failed { token, outcome } => traffic.failed(link, token, outcome, now),
            Event::Completed { token } => traffic.completed(token, now),
            Event::AnsweredLate { token, is_accepted } => {
                traffic.answered_late(stream_of(token), is_accepted, now);
            }
            Event::Duplicate { token } => {
                let counts = traffic.recording().counts(stream_of(token), now);
                counts.duplicate_responses += 1;
            }
            Event::RefusedUnawaited {
                stream,
                due,
                reason,
            } => {
                let counts = traffic.recording().stream_counts(stream, due);
                counts.refused_unawaited.add(reason, 1);
            }
            Event::Resend { token } => self.resend(link, token),
            Event::Command(copy) => traffic.answered_by_command(link, now, None, &copy),
            Event::Message(message) => self.receive_message(link, now, &message),
            Event::Alive => {}
            Event::Connected { is_kept } => return self.handshake_done(link, now, is_kept, out),
            Event::Ready => self.connected(link, now),
            Event::ReadyWith(copy) => {
                self.connected(link, now);
                self.traffic.answered_by_command(link, now, None, &copy);
            }
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
        if self.links.get(link).state() != State::Handshaking {
            return Then::Stay;
        }
        self.report_return(link, now, is_kept);
        if !is_kept {
            self.drop_exchanges(link, now, false);
            self.traffic.break_flight(link, now, Cause::SessionLost);
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
        let is_held = self.traffic.messages().outbox(link).write_block() != WriteBlock::Nothing;
        self.closed(link, now, cause);
        if is_held { Then::Abort } else { Then::Close }
    }

    fn resend(&mut self, link: u32, token: Token) {
        if !self.traffic.messages_mut().resend(link, token) {
            let state = &mut self.states[link as usize];
            self.session.forget(state, token, None);
        }
    }

    /// A message came on a link.
    fn receive_message(&mut self, link: u32, now: Micros, message: &session::Downlink<'_>) {
        let (topic, payload) = (message.topic.as_str(), message.payload);
        let fleets = self.traffic.fleets();
        match (fleets.class(link).dialect.publishing().downlink)(topic, payload) {
            Downlink::Acknowledgements(array) => {
                let Some(spokesman) = fleets.spokesman(link) else {
                    return;
                };
                for acknowledgement in array {
                    let Ok(one) = acknowledgement else {
                        let counts = self.recording().counts(spokesman, now);
                        counts.answered_malformed += 1;
                        continue;
                    };
                    let forgotten = self.traffic.acknowledge(link, now, &one, spokesman);
                    self.forget(link, forgotten);
                }
            }
            Downlink::Command(copy) => {
                let forgotten = self.traffic.receive_command(link, now, &copy);
                self.forget(link, forgotten);
            }
            Downlink::Other => self.traffic.receive_copy(link, now, message),
        }
    }

    /// Begins a session over a link that was secured anew; nothing of the last one belongs to it.
    pub fn secured(&mut self, link: u32) {
        self.session.secured(&mut self.states[link as usize]);
    }
}

impl<P: SharedSockets, S: Sink> Shard<P, S> {
    /// Place of a link on its shared socket; none if it has a socket to itself.
    #[inline]
    pub fn slot_of(&self, link: u32) -> Option<SocketSlot> {
        let class = self.traffic.fleets().ramp_of(link);
        self.session.slot_of(class as u8, link)
    }

    /// A datagram came on a socket that is one endpoint with its links, or, if there is none, something
    /// is due there: the link that it is about, if it is about one. What the socket answers is appended
    /// to `out`: one datagram at the most.
    pub fn poll_socket(
        &mut self,
        socket: u32,
        now: Micros,
        datagram: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        let room = OnceCell::new();
        let mut input = datagram.map(|datagram| Input::new(datagram, &room));
        let (session, mut view) = self.view(now);
        let (link, event) = session.poll_socket(socket, &mut view, input.as_mut(), out)?;
        if let Some(event) = event {
            // No event of a shared socket ends a link.
            let _stays = self.happened(link, now, event, out);
        }
        Some(link)
    }
}
