//! From a closed link to an open one, and back.

use muster_model::{Cause, ConnectFailure, LinkEvent, LinkFact, Micros};

use crate::link::{Hold, State};
use crate::session::Session;
use crate::{Shard, Sink};

/// Hash input of the jitter of a back-off, beside the number of failures.
const JITTER: u64 = 0x1000;
/// A link that the peer ends within this time of taking it had a brief life. Two clients that take each
/// other's session over do so after a back-off, which begins at a second.
pub(crate) const BRIEF: Micros = Micros::from_secs(5);

impl<P: Session, S: Sink> Shard<P, S> {
    /// The ramp of first connects begins.
    pub fn start_ramp(&mut self, now: Micros) {
        for class in &mut self.ramps {
            class.ramp.start(now);
        }
    }

    /// The next link whose turn to connect has come, if handshakes under way leave room for it;
    /// the driver opens a socket and calls [`Shard::opening`] or [`Shard::connect_failed`].
    pub fn next_to_connect(&mut self, now: Micros) -> Option<u32> {
        if self.is_over {
            return None;
        }
        for class in &mut self.ramps {
            if !class.ramp.has_room(class.pending) {
                continue;
            }
            if class.next_first().is_some_and(|at| at <= now) {
                class.next += 1;
                return Some(class.first + class.next - 1);
            }
            if let Some(link) = class.reconnects.pop(now) {
                return Some(link);
            }
        }
        None
    }

    /// When the next link may connect, as far as the clock alone decides.
    pub fn next_connect(&self) -> Option<Micros> {
        if self.is_over {
            return None;
        }
        let with_room = self
            .ramps
            .iter()
            .filter(|class| class.ramp.has_room(class.pending));
        with_room
            .flat_map(|class| [class.next_first(), class.reconnects.next()])
            .flatten()
            .min()
    }

    /// How many ramps links connect by; they are numbered from 0.
    pub fn ramps(&self) -> usize {
        self.ramps.len()
    }

    /// The ramp that a link connects by.
    pub fn ramp_of(&self, link: u32) -> usize {
        usize::from(self.links[link as usize].class)
    }

    /// Whether handshakes under way leave room for another one of a ramp.
    pub fn has_room(&self, ramp: usize) -> bool {
        let class = &self.ramps[ramp];
        class.ramp.has_room(class.pending)
    }

    /// A socket is opening for a link.
    pub fn opening(&mut self, link: u32, now: Micros) {
        self.opening_after(link, Micros::ZERO, now);
    }

    /// A link that had to wait since its turn to connect came may open its session now: the wait is
    /// a part of what its connect takes, and not of the time that its handshake has.
    pub fn opening_after(&mut self, link: u32, waited: Micros, now: Micros) {
        self.count_open(link, now);
        self.pending(link, 1);
        // Nobody tells what became of the last words on the socket before.
        self.links[link as usize].hold = Hold::Nothing;
        let waited = u32::try_from(waited.get()).unwrap_or(u32::MAX);
        self.enter(link, State::Opening(waited), now);
    }

    /// Renders CONNECT once the connection under a link stands. A link whose session has none is up.
    pub fn opened(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) {
        let (session, mut view) = self.view(now);
        if session.opened(&mut view.at(link), out).is_some() {
            return self.connected(link, now);
        }
        let since = self.links[link as usize].since;
        self.enter(link, State::Handshaking, since);
    }

    /// A try to connect ended without a link.
    pub fn connect_failed(&mut self, link: u32, now: Micros, failure: ConnectFailure) {
        if self.is_handshaking(link) {
            self.pending(link, -1);
        } else {
            // The driver could not even open a socket; it counts as a try all the same.
            self.count_open(link, now);
        }
        let by_us = failure.is_time_out() && self.is_timed_out_by_us(link, now);
        let (session, mut view) = self.view(now);
        session.note_failure(&mut view.at(link), failure);
        self.close_session(link);
        self.tried(link);
        self.tally.failed += 1;
        self.tally.refused += u64::from(failure.is_refusal());
        self.bar(link, failure.is_final());
        self.account.connect_failed(self.link_id(link), &failure);
        self.sink.link(&LinkFact {
            link: self.link_id(link),
            at: now,
            event: LinkEvent::Failed(failure),
            by_us,
        });
        self.back_off(link, now);
    }

    /// The name of a link: as a rule that of its first device.
    pub fn name_of(&self, link: u32) -> String {
        self.class(link).name_of(self.link_id(link))
    }

    /// A link that may have been up is gone.
    pub fn closed(&mut self, link: u32, now: Micros, cause: Cause) {
        match self.links[link as usize].state {
            State::Up => {
                let cause = self.blamed(link, now, cause);
                self.disconnected(link, now, cause);
                if cause.is_on_purpose() {
                    self.retry_at_once(link, now);
                } else {
                    self.back_off(link, now);
                }
            }
            State::Opening(_) | State::Handshaking => {
                self.connect_failed(link, now, failure_of(cause));
            }
            State::Down | State::BackOff | State::Ended => {}
        }
    }

    /// Whether a link is between its SYN and being up: its CONNACK and, where its dialect
    /// subscribes, its SUBACK.
    pub fn is_handshaking(&self, link: u32) -> bool {
        matches!(
            self.links[link as usize].state,
            State::Opening(_) | State::Handshaking
        )
    }

    /// Whether a link may carry messages.
    pub fn is_up(&self, link: u32) -> bool {
        self.links[link as usize].state == State::Up
    }

    /// When something of the link's own is due next: the end of its handshake's time, a sign of
    /// life, the end of its life.
    pub fn deadline(&self, link: u32) -> Option<Micros> {
        let state = &self.links[link as usize];
        let client = &self.class(link).client;
        match state.state {
            State::Opening(_) | State::Handshaking => Some(state.since + client.handshake_timeout),
            State::Up => {
                let all = [
                    self.end_of_life(link),
                    P::deadline(&client.settings, &state.session),
                    self.silence_ends(link),
                ];
                all.into_iter().flatten().min()
            }
            State::Down | State::BackOff | State::Ended => None,
        }
    }

    /// When a link that is up is closed on purpose. A message that the kernel holds a part of goes
    /// out first, and what is in flight is answered or times out first, so that nothing is broken by
    /// us; the driver asks for the deadline again after each of these.
    pub(crate) fn end_of_life(&self, link: u32) -> Option<Micros> {
        let state = &self.links[link as usize];
        let has_business = state.hold != Hold::Nothing || self.is_flying(link);
        self.leaves_at(link).filter(|_| !has_business)
    }

    /// Whether a link is at the end of its life, so that nothing new goes out on it.
    pub(crate) fn is_leaving(&self, link: u32, now: Micros) -> bool {
        let is_up = self.links[link as usize].state == State::Up;
        is_up && self.leaves_at(link).is_some_and(|at| at <= now)
    }

    /// When a link that is up is to end, whatever business it has.
    fn leaves_at(&self, link: u32) -> Option<Micros> {
        let since = self.links[link as usize].since;
        let lifetime = self.class(link).client.lifetime;
        let end = lifetime.map(|lifetime| since + lifetime);
        let leave = self.goes_offline_at(link);
        [end, leave].into_iter().flatten().min()
    }

    /// Whether an answer is waited for on a link.
    fn is_flying(&self, link: u32) -> bool {
        let first = self.first_lane(link);
        let lanes = &self.lanes[first..][..self.class(link).streams.len()];
        lanes.iter().any(|lane| lane.flying > 0)
    }

    /// All that the link needs was granted: it is up.
    pub(crate) fn connected(&mut self, link: u32, now: Micros) {
        let state = &self.links[link as usize];
        let waited = if let State::Opening(waited) = state.state {
            Micros(u64::from(waited))
        } else {
            Micros::ZERO
        };
        let took = waited + (now - state.since);
        self.pending(link, -1);
        self.tried(link);
        self.tally.up += 1;
        self.bar(link, false);
        let state = &mut self.links[link as usize];
        state.failures = 0;
        state.ups = state.ups.saturating_add(1);
        self.enter(link, State::Up, now);
        self.account.connected(self.link_id(link));
        self.tell(link, now, LinkEvent::Connected { took });
    }

    /// The cause of an end, after a look at the part that our own silence may have in it.
    fn blamed(&self, link: u32, now: Micros, cause: Cause) -> Cause {
        let is_by_peer = match cause {
            Cause::PeerClosed | Cause::Reset | Cause::PeerDisconnect(_) => true,
            Cause::Network
            | Cause::PingUnanswered
            | Cause::KeepAliveMissed
            | Cause::Malformed
            | Cause::OwnLimit
            | Cause::Tls(_)
            | Cause::Lifetime
            | Cause::Offline
            | Cause::SessionLost
            | Cause::Unsendable => false,
        };
        let session = &self.links[link as usize].session;
        if is_by_peer && P::has_missed_keep_alive(session, now) {
            Cause::KeepAliveMissed
        } else {
            cause
        }
    }

    fn disconnected(&mut self, link: u32, now: Micros, cause: Cause) {
        self.tally.up -= 1;
        self.note_end(link, now, cause);
        self.account.disconnected(self.link_id(link), &cause);
        self.tell(link, now, LinkEvent::Disconnected(cause));
        let messages = std::mem::take(&mut self.links[link as usize].last_sent);
        if cause.is_of_platform() && messages > 0 {
            self.tell(link, now, LinkEvent::LastSent { cause, messages });
        }
        self.close_session(link);
        self.unwrite(link);
        if !P::is_resumable(&self.class(link).client.settings) {
            if cause.is_on_purpose() {
                self.drop_exchanges(link, now, true);
            }
            self.break_flight(link, now, cause);
        }
    }

    /// Counts brief lives, and lets the session note what that tells.
    fn note_end(&mut self, link: u32, now: Micros, cause: Cause) {
        let state = &mut self.links[link as usize];
        let is_brief =
            matches!(cause, Cause::PeerClosed | Cause::Reset) && now - state.since <= BRIEF;
        state.brief_lives = match is_brief {
            true => state.brief_lives.saturating_add(1),
            false => 0,
        };
        let lives = state.brief_lives;
        let (session, mut view) = self.view(now);
        session.note_end(&mut view.at(link), cause, lives);
    }

    /// A link that we closed on purpose waits for nothing: a back-off would be charged to the
    /// target.
    fn retry_at_once(&mut self, link: u32, now: Micros) {
        let class = self.links[link as usize].class as usize;
        self.enter(link, State::Down, now);
        let at = self.not_offline_at(link, now);
        self.ramps[class].reconnects.push(at, link);
    }

    fn back_off(&mut self, link: u32, now: Micros) {
        if self.is_over {
            return self.enter(link, State::Ended, now);
        }
        let failures = self.links[link as usize].failures;
        let random = self.random(link, JITTER + u64::from(failures) + (now.get() << 16));
        let wait = self.class(link).back_off.wait(failures, random);
        self.links[link as usize].failures = failures.saturating_add(1);
        self.enter(link, State::BackOff, now);
        let class = self.links[link as usize].class as usize;
        let at = self.not_offline_at(link, now + wait);
        self.ramps[class].reconnects.push(at, link);
    }

    pub(crate) fn enter(&mut self, link: u32, state: State, since: Micros) {
        let link = &mut self.links[link as usize];
        link.state = state;
        link.since = since;
    }

    fn count_open(&mut self, link: u32, now: Micros) {
        self.account.opened();
        self.sink.opened(self.link_id(link), now);
    }

    fn pending(&mut self, link: u32, by: i32) {
        let class = self.links[link as usize].class as usize;
        let ramp = &mut self.ramps[class];
        ramp.pending = ramp.pending.saturating_add_signed(by);
    }

    fn tried(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if !state.is_tried {
            state.is_tried = true;
            self.tally.untried -= 1;
        }
    }

    /// Notes whether the last try of a link was refused for good.
    fn bar(&mut self, link: u32, is_barred: bool) {
        let state = &mut self.links[link as usize];
        self.tally.barred -= u32::from(state.is_barred);
        self.tally.barred += u32::from(is_barred);
        state.is_barred = is_barred;
    }

    pub(crate) fn tell(&mut self, link: u32, at: Micros, event: LinkEvent) {
        self.sink.link(&LinkFact {
            link: self.link_id(link),
            at,
            event,
            by_us: false,
        });
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
        | Cause::Unsendable => ConnectFailure::Closed,
        Cause::Network => ConnectFailure::Unreachable,
        Cause::PeerDisconnect(reason) => ConnectFailure::Rejected(reason),
        Cause::PingUnanswered => ConnectFailure::TimedOut,
        Cause::Malformed => ConnectFailure::Malformed,
        Cause::OwnLimit => ConnectFailure::GeneratorLimit,
        Cause::Tls(failure) => ConnectFailure::Tls(failure),
    }
}
