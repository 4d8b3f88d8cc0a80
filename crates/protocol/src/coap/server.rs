//! The server end: what one peer asks, each request once.

mod bodies;
mod event;
mod receive;
mod replies;
mod respond;
mod transmission;

use std::sync::Arc;

use muster_model::Micros;

pub use event::{Incoming, Pending, ServerEvent};

use self::bodies::{Bodies, Bound};
use self::replies::{Place, Replies};
use self::respond::Kept;
use self::transmission::{Due, Waiting};
use super::ServerSettings;
use super::ids::MessageIds;
use super::seen::Seen;
use super::settings::Random;

/// Counters that no event reports, since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounts {
    /// Requests that came again; answered as before, and not reported again.
    pub duplicates: u32,
    /// Duplicates whose reply was no longer kept; nothing answered them.
    pub unrepeatable: u32,
    /// Requests that were forgotten before their lifetime was over, for there were too many: a
    /// duplicate of one would be reported as a request.
    pub evicted: u32,
    /// Bodies in blocks that were given up for want of room before their last block: the next of one is
    /// answered by 4.08.
    pub bodies_given_up: u32,
    /// Copies of confirmable messages of ours after the first.
    pub retransmitted: u32,
    /// Confirmable messages of ours that are not repeated any more for want of room; their
    /// acknowledgements are stray.
    pub copies_given_up: u32,
    /// Requests that were rejected by the session: critical options, blocks, proxying.
    pub rejected: u32,
    /// Pings.
    pub pings: u32,
    /// Acknowledgements, resets and responses that nobody waited for.
    pub stray: u32,
    /// Datagrams that are no message.
    pub malformed: u32,
}

/// Bytes that one request takes which is remembered: its entry, and its place in the table of ids.
const REMEMBERED: usize = 48;

/// Answer to a request so far, for its duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// Nothing yet, or nothing that is said again.
    Silence,
    /// An acknowledgement without the answer.
    Acknowledgement,
    /// A reply.
    Reply(Place),
    /// A reply that was too long to keep.
    Lost,
}

/// One call of a session: its instant, and the buffer for the datagram to send.
#[derive(Debug)]
struct Turn<'t> {
    now: Micros,
    out: &'t mut Vec<u8>,
}

/// The server end of one endpoint pair: the peer's address, our socket.
///
/// A request is reported once within `EXCHANGE_LIFETIME`, however often it comes. A call appends one
/// datagram to `out`, or none. Call [`Server::wake`] at [`Server::deadline`], until it returns none.
#[derive(Debug)]
pub struct Server {
    settings: Arc<ServerSettings>,
    random: Random,
    ids: MessageIds,
    seen: Seen<Answered>,
    replies: Replies,
    waiting: Waiting,
    coming: Bodies<Vec<u8>>,
    going: Bodies<Kept>,
    counts: ServerCounts,
}

impl Server {
    /// A session with a peer of whom nothing has come yet. Message ids follow from the seed.
    pub fn new(settings: Arc<ServerSettings>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let ids = MessageIds::new(random.draw() as u16);
        Self {
            settings,
            random,
            ids,
            seen: Seen::default(),
            replies: Replies::default(),
            waiting: Waiting::default(),
            coming: Bodies::default(),
            going: Bodies::default(),
            counts: ServerCounts::default(),
        }
    }

    /// Does what is due, one thing a call; none if nothing is.
    pub fn wake(&mut self, now: Micros, out: &mut Vec<u8>) -> Option<ServerEvent<'static>> {
        self.coming.expire(now);
        self.going.expire(now);
        let transmission = &self.settings.transmission;
        match self.waiting.due(now, transmission, out)? {
            Due::Copy => {
                self.counts.retransmitted += 1;
                Some(ServerEvent::Retransmitted)
            }
            Due::Over(message) => Some(ServerEvent::TimedOut {
                ticket: message.ticket,
            }),
        }
    }

    /// Returns when to call [`Server::wake`]; none while nothing waits.
    pub fn deadline(&self) -> Option<Micros> {
        let deadlines = [
            self.waiting.deadline(),
            self.coming.deadline(),
            self.going.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Returns true if nothing is lost when the session ends now: nothing waits, and no duplicate
    /// of any request can come.
    pub fn is_idle(&self, now: Micros) -> bool {
        let is_known = self.seen.last_expiry().is_some_and(|last| last > now);
        !is_known && self.deadline().is_none()
    }

    /// Bytes that it keeps for duplicates of requests, of messages that wait for acknowledgements and
    /// of bodies under way in blocks, about.
    pub fn kept(&self) -> usize {
        let bodies = self.coming.bytes() + self.going.bytes();
        self.seen.len() * REMEMBERED + self.replies.len() + self.waiting.bytes() + bodies
    }

    /// Keeps no more than the last `requests` for their duplicates, with their replies, no more than
    /// `requests` messages that wait for acknowledgements, and no body under way.
    pub fn forget_beyond(&mut self, requests: usize) {
        self.counts.copies_given_up += self.waiting.keep(requests);
        self.coming.give_up();
        self.going.give_up();
        self.counts.bodies_given_up += self.coming.take_given_up() + self.going.take_given_up();
        self.counts.evicted += self.seen.keep(requests);
        self.seen.shrink_to(requests);
        let seen = &mut self.seen;
        self.replies
            .drop_forgotten(requests, |request| seen.get(request).is_some());
    }

    /// Returns the counters that no event reports.
    pub const fn counts(&self) -> &ServerCounts {
        &self.counts
    }

    fn bound_of_bodies(&self) -> Bound {
        Bound {
            bodies: self.settings.bodies_max,
            bytes: self.settings.bodies_bytes_max,
        }
    }

    /// Returns when a body in blocks that is touched now is given up.
    fn body_expires(&self, now: Micros) -> Micros {
        now + self.settings.transmission.max_transmit_wait()
    }
}
