//! Rooms for the datagrams that one call reads.

use std::net::SocketAddr;

use super::address::{self, NAME_MAX};
use super::batch::BATCH_MAX;

/// Bytes of a room: the longest datagram there is (65,527 bytes, over IPv6), and so much more that
/// the first bytes of all rooms do not meet in one set of the processor's cache.
pub(super) const ROOM: usize = 64 * 1024 + 192;

/// Content of one room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) len: usize,
    pub(super) name: [u8; NAME_MAX],
    pub(super) name_len: usize,
    pub(super) control: Control,
    pub(super) control_len: usize,
}

/// Room for one control message with a number of 32 bits, as the kernel aligns it (cmsg(3)).
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_MAX]);

pub(super) const CONTROL_MAX: usize = 24;

impl Arrival {
    const NONE: Self = Self {
        len: 0,
        name: [0; NAME_MAX],
        name_len: 0,
        control: Control([0; CONTROL_MAX]),
        control_len: 0,
    };

    /// Returns the socket's count of drops when this datagram came, if known.
    fn dropped(&self) -> Option<u32> {
        let (_, rest) = self.control.0[..self.control_len].split_at_checked(size_of::<usize>())?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let is_it = i32::from_ne_bytes(*level) == libc::SOL_SOCKET
            && i32::from_ne_bytes(*kind) == libc::SO_RXQ_OVFL;
        let dropped = u32::from_ne_bytes(*rest.first_chunk()?);
        is_it.then_some(dropped)
    }
}

/// Rooms for the datagrams that one call reads. Pages that no datagram reached take no memory.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(super) bytes: Vec<u8>,
    pub(super) arrivals: [Arrival; BATCH_MAX],
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_MAX * ROOM],
            arrivals: [Arrival::NONE; BATCH_MAX],
        }
    }

    /// Returns the sender of the datagram in a room, if it was recorded.
    pub(crate) fn from(&self, room: usize) -> Option<SocketAddr> {
        let arrival = &self.arrivals[room];
        address::read(arrival.name.get(..arrival.name_len)?)
    }

    /// The datagram in a room.
    pub(crate) fn datagram(&mut self, room: usize) -> &mut [u8] {
        let at = room * ROOM;
        &mut self.bytes[at..at + self.arrivals[room].len]
    }

    /// The greatest count of dropped datagrams among the first rooms.
    pub(crate) fn dropped(&self, rooms: usize) -> Option<u32> {
        self.arrivals[..rooms].last().and_then(Arrival::dropped)
    }

    /// Bytes in the first rooms.
    pub(crate) fn bytes(&self, rooms: usize) -> u64 {
        let lens = self.arrivals[..rooms].iter();
        lens.map(|arrival| arrival.len as u64).sum()
    }
}
