//! From a closed link to an open one, and back.

use std::cell::OnceCell;

use muster_model::{Cause, ConnectFailure, LinkEvent, Micros};

use super::Shard;
use crate::links::State;
use crate::messages::WriteBlock;
use crate::session::{Input, Session, Transport};
use crate::sink::Sink;
use crate::traffic::ConnectAttempt;

/// Hash input of the jitter of a back-off, in addition to the number of failures.
const JITTER: u64 = 0x1000;

impl<P: Session, S: Sink> Shard<P, S> {
    /// A socket is opening for a link.
    pub fn opening(&mut self, link: u32, now: Micros) {
        self.opening_after(link, Micros::ZERO, now);
    }

    /// A link that had to wait since its turn to connect came may open its session now: the wait is
    /// a part of what its connect takes, and not of the time that its handshake has.
    pub fn opening_after(&mut self, link: u32, waited: Micros, now: Micros) {
        let id = self.fleets().link_id(link);
        self.recording().opened(id, now);
        self.connects.begin(self.traffic.fleets().ramp_of(link));
        if let Some(attempt) = ConnectAttempt::of(&mut self.traffic, link) {
            attempt.begin(now);
        }
        // Nobody tells what became of the last words on the socket before.
        self.set_write_block(link, WriteBlock::Nothing);
        let waited = u32::try_from(waited.get()).unwrap_or(u32::MAX);
        self.links.enter(link, State::Opening(waited), now);
    }

    fn set_write_block(&mut self, link: u32, write_block: WriteBlock) {
        self.traffic
            .messages_mut()
            .outbox_mut(link)
            .set_write_block(write_block);
    }

    /// Renders CONNECT once the connection under a link stands. A link whose session has none is up.
    pub fn opened(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) {
        let (session, mut view) = self.view(now);
        if session.opened(&mut view.at(link), out).is_some() {
            return self.connected(link, now);
        }
        let since = self.links.get(link).since();
        self.links.enter(link, State::Handshaking, since);
    }

    /// A try to connect ended without a link.
    pub fn connect_failed(&mut self, link: u32, now: Micros, failure: ConnectFailure) {
        let (id, class) = (self.fleets().link_id(link), self.fleets().ramp_of(link));
        if self.links.is_handshaking(link) {
            self.connects.finish(class);
        } else {
            // The driver could not even open a socket; it counts as a try all the same.
            self.recording().opened(id, now);
        }
        let since = self.links.get(link).since();
        let timeout = self.fleets().class(link).client.handshake_timeout;
        let own = self.traffic.own();
        let by_us = failure.is_time_out() && own.is_timed_out_by_us(since, timeout, now);
        let (session, mut view) = self.view(now);
        session.note_failure(&mut view.at(link), failure);
        self.close_session(link);
        let was_waking = self.links.get(link).is_waking();
        self.links
            .failed(link, failure.is_refusal(), failure.is_final());
        self.recording().failed(id, now, failure, by_us);
        if let Some(attempt) = ConnectAttempt::of(&mut self.traffic, link) {
            attempt.end(now, Some(failure));
        }
        self.back_off(link, now);
        if was_waking {
            // What it was to connect for may not wait for the next try.
            self.shed_excess(link, now);
        }
    }

    /// A link that may have been up is gone.
    pub fn closed(&mut self, link: u32, now: Micros, cause: Cause) {
        match self.links.get(link).state() {
            State::Up => {
                if cause == Cause::PeerClosed {
                    self.read_end(link, now);
                    if self.links.get(link).state() != State::Up {
                        // What ended there has ended the link.
                        return;
                    }
                }
                let cause = P::blamed(&self.states[link as usize], cause, now);
                self.disconnected(link, now, cause);
                if cause.rests() && self.links.get(link).is_wanted() {
                    self.rest(link, now);
                } else if cause.is_on_purpose() {
                    // A back-off would be charged to the target.
                    self.links.enter(link, State::Down, now);
                    self.retry(link, now);
                } else {
                    self.back_off(link, now);
                }
            }
            State::Opening(_) | State::Handshaking => {
                self.connect_failed(link, now, failure_of(cause));
            }
            State::Down | State::Resting | State::BackOff | State::Ended => {}
        }
    }

    /// The peer sends no more: an answer may end there.
    fn read_end(&mut self, link: u32, now: Micros) {
        let room = OnceCell::new();
        let mut input = Input::new(&[], &room);
        let (session, mut view) = self.view(now);
        if let Some(event) = session.ended(&mut view.at(link), &mut input) {
            // The connection is closed, whatever is to become of it.
            let _then = self.happened(link, now, event, &mut Vec::new());
        }
    }

    /// Instant at which something of the link itself is due next: the end of its handshake's time,
    /// a sign of life, or the end of its life.
    pub fn deadline(&self, link: u32) -> Option<Micros> {
        let client = &self.fleets().class(link).client;
        let of = self.links.get(link);
        match of.state() {
            State::Opening(_) | State::Handshaking => {
                let end = of.since() + client.handshake_timeout;
                // A stream sends its bytes again by itself.
                let again = match P::TRANSPORT {
                    Transport::Datagrams => {
                        P::deadline(&client.settings, &self.states[link as usize])
                    }
                    Transport::Stream => None,
                };
                Some(again.map_or(end, |again| again.min(end)))
            }
            State::Up => {
                let all = [
                    self.end_of_life(link),
                    P::deadline(&client.settings, &self.states[link as usize]),
                    self.silence_ends(link),
                ];
                all.into_iter().flatten().min()
            }
            State::Down | State::Resting | State::BackOff | State::Ended => None,
        }
    }

    /// Instant at which a link that is up is closed on purpose. A message that the kernel holds a
    /// part of goes out first, and what is in flight is answered or times out first, so that
    /// nothing is broken by us; the driver asks for the deadline again after each of these.
    pub(super) fn end_of_life(&self, link: u32) -> Option<Micros> {
        let (fleets, messages) = (self.fleets(), self.traffic.messages());
        let has_business = messages.outbox(link).write_block() != WriteBlock::Nothing
            || messages.is_flying(fleets.queues_of(link));
        let of = self.links.get(link);
        fleets.leaves_at(link, of).filter(|_| !has_business)
    }

    /// All that the link needs was granted: it is up.
    pub(super) fn connected(&mut self, link: u32, now: Micros) {
        let (id, class) = (self.fleets().link_id(link), self.fleets().ramp_of(link));
        self.connects.finish(class);
        let took = self.links.connected(link, now);
        let recording = self.recording();
        recording.account().connected(id);
        recording.link(id, now, LinkEvent::Connected { took });
        if let Some(attempt) = ConnectAttempt::of(&mut self.traffic, link) {
            attempt.end(now, None);
        }
    }

    /// The platform has answered the CONNECT of a link.
    pub(super) fn report_return(&mut self, link: u32, now: Micros, is_kept: bool) {
        let was_up = self.links.get(link).ups() > 0;
        if was_up && self.fleets().class(link).client.offline.is_some() {
            let id = self.fleets().link_id(link);
            self.recording().account().returned(id, is_kept);
            self.recording()
                .link(id, now, LinkEvent::Returned { is_kept });
        }
    }

    fn disconnected(&mut self, link: u32, now: Micros, cause: Cause) {
        let lives = self.links.disconnected(link, now, cause);
        let (session, mut view) = self.view(now);
        session.note_end(&mut view.at(link), cause, lives);
        let id = self.fleets().link_id(link);
        let outbox = self.traffic.messages_mut().outbox_mut(link);
        let messages = outbox.take_last_sent();
        let recording = self.traffic.recording();
        recording.account().disconnected(id, &cause);
        recording.link(id, now, LinkEvent::Disconnected(cause));
        if cause.is_of_platform() && messages > 0 {
            recording.link(id, now, LinkEvent::LastSent { cause, messages });
        }
        self.close_session(link);
        self.traffic.unwrite(link);
        if !P::is_resumable(&self.fleets().class(link).client.settings) {
            if cause.is_on_purpose() {
                self.drop_exchanges(link, now, true);
            }
            self.traffic.break_flight(link, now, cause);
        }
    }

    /// Closes the session of a link whose connection is gone. Attempts that wait for an answer end apart from this.
    fn close_session(&mut self, link: u32) {
        let messages = self.traffic.messages_mut();
        messages.outbox_mut(link).set_waits_for_silence(false);
        let open = messages.take_exchanges(link);
        let state = &mut self.states[link as usize];
        self.session.closed(link, state, open);
    }

    /// Drops all that is in flight on the session of a link.
    pub(super) fn drop_exchanges(&mut self, link: u32, now: Micros, on_purpose: bool) {
        let (state, traffic) = (&mut self.states[link as usize], &mut self.traffic);
        let incomplete = |token| traffic.incomplete(token, now, on_purpose);
        self.session.drop_exchanges(state, incomplete);
    }

    fn back_off(&mut self, link: u32, now: Micros) {
        if self.traffic.is_over() {
            return self.links.enter(link, State::Ended, now);
        }
        if self.fleets().connects_by_schedule(link) {
            // It waits for its next attempt, which may be due already.
            self.links.back_off(link, now);
            self.links.enter(link, State::Down, now);
            if self.links.is_renewing(link) {
                self.retry(link, now);
            }
            return;
        }
        let failures = self.links.back_off(link, now);
        let what = JITTER + u64::from(failures) + (now.get() << 16);
        let random = self.fleets().random(link, what);
        let wait = self.fleets().class(link).back_off.wait(failures, random);
        self.retry(link, now + wait);
    }

    /// A link needs no connection until something is due.
    fn rest(&mut self, link: u32, now: Micros) {
        if self.traffic.is_over() {
            return self.links.enter(link, State::Ended, now);
        }
        self.links.rest(link, now);
        self.wake(link, now);
    }

    /// A link that rests connects, if a message waits on it, as soon as the platform lets it speak.
    pub(super) fn wake(&mut self, link: u32, now: Micros) {
        if self.links.get(link).state() != State::Resting {
            return;
        }
        let (mut queues, messages) = (self.fleets().queues_of(link), self.traffic.messages());
        if !queues.any(|queue| messages.queued(queue) > 0) {
            return;
        }
        let at = now.max(self.silent_until(link));
        let is_at_once = at == now && self.fleets().offline_until(link, now).is_none();
        self.links.wake(link, now, is_at_once);
        self.retry(link, at);
    }

    /// A link connects again at `at`, or once its devices are back; not if they are not wanted.
    pub(super) fn retry(&mut self, link: u32, at: Micros) {
        if !self.links.get(link).is_wanted() {
            return;
        }
        let fleets = self.traffic.fleets();
        let offline_until = fleets.offline_until(link, at);
        let class = fleets.ramp_of(link);
        self.connects.retry(class, link, at, offline_until);
    }
}

fn failure_of(cause: Cause) -> ConnectFailure {
    match cause {
        Cause::PeerClosed
        | Cause::Reset
        | Cause::Lifetime
        | Cause::Offline
        | Cause::KeepAliveMissed
        | Cause::SessionLost
        | Cause::Unsendable
        | Cause::BetweenRequests
        | Cause::ClosedIdle
        | Cause::Unanswered
        | Cause::AnswerCutOff
        | Cause::AnswerUnfinished => ConnectFailure::Closed,
        Cause::Network => ConnectFailure::Unreachable,
        Cause::PeerDisconnect(reason) => ConnectFailure::Rejected(reason),
        Cause::PingUnanswered => ConnectFailure::TimedOut,
        Cause::Malformed => ConnectFailure::Malformed,
        Cause::OwnLimit => ConnectFailure::GeneratorLimit,
        Cause::Tls(failure) => ConnectFailure::Tls(failure),
    }
}
