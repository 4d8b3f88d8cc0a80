//! States of a shard's links.

use muster_model::{Cause, Micros};

/// A link that the peer ends within this time of taking it had a brief life. Two clients that take each
/// other's session over do so after a back-off, which begins at a second.
pub(crate) const BRIEF: Micros = Micros::from_secs(5);

/// The links of a shard.
#[derive(Debug, Default)]
pub struct Links {
    links: Vec<Link>,
    counts: LinkCounts,
    /// True if no refusal is final, since whoever is refused is registered.
    are_registered: bool,
}

/// One session with one credential: its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    state: State,
    /// Instant at which the link entered its state.
    since: Micros,
    /// Tries to connect that failed since the last success.
    failures: u8,
    /// Number of times that it was up, at most 255.
    ups: u8,
    /// Lives in a row that the peer ended soon after it had taken the link.
    brief_lives: u8,
    /// True if a first try to connect has ended, well or not.
    is_tried: bool,
    /// True if the peer refused the last try for good.
    is_barred: bool,
    /// True if it connects for a message that waits.
    is_waking: bool,
    /// False if its devices do not take part now: it is closed, or about to be.
    is_wanted: bool,
    /// True if a connection attempt is due, which has not begun.
    is_renewing: bool,
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not connected, and its turn has not come.
    Down,
    /// Not connected, and in no need of it until a message is due.
    Resting,
    /// Not connected, and waiting for its next try.
    BackOff,
    /// The socket is opening. Before it did, the link waited for as many microseconds until its turn
    /// on a shared one had come.
    Opening(u32),
    /// The carrier stands, and the session is on its way to be ready.
    Handshaking,
    /// Messages may be sent.
    Up,
    /// The run is over for it.
    Ended,
}

/// Numbers of links by state, and of tries that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// Links whose devices take part.
    pub wanted: u32,
    /// Links that are up.
    pub up: u32,
    /// Links that were up and need no connection until a message is due.
    pub resting: u32,
    /// Wanted links whose first try to connect has not ended.
    pub untried: u32,
    /// Tries that ended without a link, and links that ended for no reason of ours: the next try waits.
    pub failed: u64,
    /// Failed tries that the peer refused in its protocol's words.
    pub refused: u64,
    /// Links whose last try the peer refused for good.
    pub barred: u32,
}

impl Link {
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Instant at which the link entered its state.
    pub(crate) fn since(&self) -> Micros {
        self.since
    }

    /// Number of times that it was up, at most 255.
    pub(crate) fn ups(&self) -> u8 {
        self.ups
    }

    /// True if it connects for a message that waits.
    pub(crate) fn is_waking(&self) -> bool {
        self.is_waking
    }

    /// False if its devices do not take part now.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// True if a connection attempt is due, which has not begun.
    pub(crate) fn is_renewing(&self) -> bool {
        self.is_renewing
    }

    /// True if a try to connect is under way.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.state, State::Opening(_) | State::Handshaking)
    }

    /// True if it is not connected, and no try is under way.
    pub(crate) fn may_connect(&self) -> bool {
        matches!(self.state, State::Down | State::Resting | State::BackOff)
    }
}

impl Links {
    /// No links yet; no refusal of theirs is final if `are_registered` on it.
    pub(crate) fn registered_on_refusal(are_registered: bool) -> Self {
        Self {
            are_registered,
            ..Self::default()
        }
    }

    /// Adds links that are down.
    pub(crate) fn add(&mut self, count: u32, are_wanted: bool) {
        let down = Link {
            state: State::Down,
            since: Micros::ZERO,
            failures: 0,
            ups: 0,
            brief_lives: 0,
            is_tried: false,
            is_barred: false,
            is_waking: false,
            is_wanted: are_wanted,
            is_renewing: false,
        };
        self.links.extend((0..count).map(|_| down));
        if are_wanted {
            self.counts.untried += count;
            self.counts.wanted += count;
        }
    }

    /// Sets if the devices of a link take part; true if that is new.
    pub(crate) fn want(&mut self, link: u32, is_wanted: bool, now: Micros) -> bool {
        let of = self.get_mut(link);
        if std::mem::replace(&mut of.is_wanted, is_wanted) == is_wanted {
            return false;
        }
        let is_untried = u32::from(!of.is_tried);
        let was_resting = of.state == State::Resting;
        if was_resting {
            (of.state, of.since) = (State::Down, now);
        }
        let counts = &mut self.counts;
        counts.resting -= u32::from(was_resting);
        if is_wanted {
            counts.wanted += 1;
            counts.untried += is_untried;
        } else {
            counts.wanted -= 1;
            counts.untried -= is_untried;
        }
        true
    }

    /// Numbers of links by state, and of tries that failed.
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Returns whether a link is between its SYN and being up: its CONNACK and, where its dialect
    /// subscribes, its SUBACK.
    pub fn is_handshaking(&self, link: u32) -> bool {
        matches!(self.get(link).state, State::Opening(_) | State::Handshaking)
    }

    /// Returns whether a link may carry messages.
    pub fn is_up(&self, link: u32) -> bool {
        self.get(link).state == State::Up
    }

    /// Returns whether a link is to be closed, so that a connection attempt can begin.
    pub fn is_renewing(&self, link: u32) -> bool {
        self.get(link).is_renewing
    }

    /// A connection attempt is due on a link: one that is up is to be closed for it. True if the link has to connect now,
    /// since it has no other turn.
    pub(crate) fn renew(&mut self, link: u32) -> bool {
        let of = self.get_mut(link);
        let begins = !of.is_renewing && (of.state == State::Up || of.may_connect());
        of.is_renewing |= begins;
        // A link that has not tried has its turn by the ramp, and one that failed before after its back-off.
        begins && of.state == State::Down && of.is_tried
    }

    #[inline]
    pub(crate) fn get(&self, link: u32) -> &Link {
        &self.links[link as usize]
    }

    fn get_mut(&mut self, link: u32) -> &mut Link {
        &mut self.links[link as usize]
    }

    /// Links that the peer refused for good.
    pub(crate) fn barred(&self) -> impl Iterator<Item = u32> {
        let links = (0..).zip(&self.links);
        links.filter(|(_, link)| link.is_barred).map(|(at, _)| at)
    }

    pub(crate) fn enter(&mut self, link: u32, state: State, since: Micros) {
        let link = self.get_mut(link);
        (link.state, link.since) = (state, since);
        link.is_renewing &= !matches!(state, State::Opening(_));
    }

    /// A link is up; answers with how long that took.
    pub(crate) fn connected(&mut self, link: u32, now: Micros) -> Micros {
        let state = self.get_mut(link);
        let waited = match state.state {
            State::Opening(waited) => Micros(u64::from(waited)),
            State::Down
            | State::Resting
            | State::BackOff
            | State::Handshaking
            | State::Up
            | State::Ended => Micros::ZERO,
        };
        let took = waited + (now - state.since);
        state.failures = 0;
        state.ups = state.ups.saturating_add(1);
        (state.state, state.since) = (State::Up, now);
        self.tried(link, false);
        self.counts.up += 1;
        took
    }

    /// A try to connect ended without a link.
    pub(crate) fn failed(&mut self, link: u32, is_refusal: bool, is_final: bool) {
        self.tried(link, is_final && !self.are_registered);
        self.counts.refused += u64::from(is_refusal);
    }

    /// A try to connect has ended; `is_barred` if the peer refused it for good.
    fn tried(&mut self, link: u32, is_barred: bool) {
        let state = &mut self.links[link as usize];
        if !std::mem::replace(&mut state.is_tried, true) && state.is_wanted {
            self.counts.untried -= 1;
        }
        self.counts.barred -= u32::from(state.is_barred);
        self.counts.barred += u32::from(is_barred);
        state.is_barred = is_barred;
        state.is_waking = false;
        state.is_renewing = false;
    }

    /// A link that was up needs no connection until a message is due.
    pub(crate) fn rest(&mut self, link: u32, now: Micros) {
        self.enter(link, State::Resting, now);
        self.counts.resting += 1;
    }

    /// A link that rests is to connect; `is_at_once` if a message may wait for that.
    pub(crate) fn wake(&mut self, link: u32, now: Micros, is_at_once: bool) {
        self.enter(link, State::Down, now);
        self.counts.resting -= 1;
        self.get_mut(link).is_waking = is_at_once;
    }

    /// A link that was up is not: answers with its brief lives in a row.
    pub(crate) fn disconnected(&mut self, link: u32, now: Micros, cause: Cause) -> u8 {
        self.counts.up -= 1;
        let state = self.get_mut(link);
        let is_brief =
            matches!(cause, Cause::PeerClosed | Cause::Reset) && now - state.since <= BRIEF;
        state.brief_lives = match is_brief {
            true => state.brief_lives.saturating_add(1),
            false => 0,
        };
        state.brief_lives
    }

    /// A link waits for its next try: answers with how many failed before.
    pub(crate) fn back_off(&mut self, link: u32, now: Micros) -> u8 {
        self.counts.failed += 1;
        let state = self.get_mut(link);
        (state.state, state.since) = (State::BackOff, now);
        let failures = state.failures;
        state.failures = failures.saturating_add(1);
        failures
    }

    /// The run is over for a link; whether it was up.
    pub(crate) fn end(&mut self, link: u32) -> bool {
        let state = &mut self.get_mut(link).state;
        std::mem::replace(state, State::Ended) == State::Up
    }
}
