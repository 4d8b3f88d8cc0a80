//! Trait that a user of the loop implements, and the values exchanged with it.

use std::net::SocketAddr;

use muster_model::Micros;

use crate::Io;

/// Names one connection for its whole life and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Key {
    /// The place in the slab: small, dense, used again by a later connection. Good as an index
    /// into the handler's tables.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) const fn to_u64(self) -> u64 {
        ((self.generation as u64) << 32) | self.index as u64
    }

    pub(crate) const fn from_u64(value: u64) -> Self {
        Self {
            index: value as u32,
            generation: (value >> 32) as u32,
        }
    }
}

/// Names a listening socket of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub(crate) u32);

/// Result of bytes given to [`Io::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Written {
    /// The kernel took every byte.
    Whole,
    /// The kernel took part or nothing; the rest is kept and will be sent. Nothing further may
    /// be written until [`Handler::flushed`].
    Held,
    /// Held bytes of an earlier write are still waiting: nothing of this write was taken.
    Busy,
    /// The buffer pool had no place for the rest: an own limit. If part of the bytes had gone
    /// out, the connection cannot go on and [`Closed::PoolExhausted`] follows; else it stands
    /// and nothing was sent.
    Exhausted,
    /// UDP: the kernel refuses this datagram (no route, a firewall, too long), which is counted.
    /// Nothing was sent, and the socket stands.
    Refused,
    /// The connection is gone; what the peer said before is presented, and [`Handler::closed`]
    /// follows unless it was called already.
    Lost,
}

/// Reasons that a connection ended or never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// The peer closed in order (FIN).
    Peer,
    /// The peer reset the connection (RST).
    Reset,
    /// The address refused the connection (RST in answer to SYN).
    Refused,
    /// No route, or the network said no before the connection stood.
    Unreachable,
    /// The kernel gave up waiting for the peer.
    TimedOut,
    /// Another network error, with its errno.
    Network(i32),
    /// No pooled buffer was left for bytes that had to be kept: an own limit.
    PoolExhausted,
    /// The handler left more bytes unread than `LoopConfig::kept_max` allows.
    Overrun,
}

/// The user of a loop. Every method may call any method of [`Io`]; none is called from within
/// another. After `closed`, or after [`Io::close`], [`Io::reset`] or [`Io::finish`], no
/// method is called with that key again.
pub trait Handler {
    /// The loop woke up. Called first in each turn, before anything that came is presented.
    fn turn_begins(&mut self, io: &mut Io) {
        let _ = io;
    }

    /// The connection asked for by [`Io::connect`] or [`Io::connect_udp`] stands.
    fn opened(&mut self, io: &mut Io, key: Key);

    /// `listener` took a connection.
    fn accepted(&mut self, io: &mut Io, key: Key, listener: ListenerId);

    /// Bytes came. Returns how many of them, from the first, were used up; the rest is kept as the
    /// handler leaves it and presented again, in front of later bytes, when more came or after
    /// [`Io::resume_reading`]. They are lent to be changed, so that a layer can turn them where they
    /// lie.
    ///
    /// On a UDP socket with one peer this is one datagram, of up to 65,527 bytes and perhaps of none;
    /// nothing of it is kept, whatever is returned.
    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize;

    /// A datagram came to a socket of [`Io::bind_udp`], all of it.
    fn datagram(&mut self, io: &mut Io, key: Key, from: SocketAddr, bytes: &mut [u8]) {
        let _ = (io, key, from, bytes);
    }

    /// The kernel has taken all held bytes of the connection: it may be written to again.
    fn flushed(&mut self, io: &mut Io, key: Key);

    /// The connection ended, or could not be opened.
    fn closed(&mut self, io: &mut Io, key: Key, why: Closed);

    /// A timer set by [`Io::set_timer`] ran out.
    fn timer(&mut self, io: &mut Io, token: u64);

    /// Another thread called [`crate::Waker::wake`]; several calls may be reported as one.
    fn woken(&mut self, io: &mut Io);

    /// Called once in each turn of the loop, after its events: due work goes here. Returns when
    /// it wants to run next, if nothing else happens; an instant not after [`Io::now`] means at
    /// once.
    fn turn(&mut self, io: &mut Io) -> Option<Micros>;
}
