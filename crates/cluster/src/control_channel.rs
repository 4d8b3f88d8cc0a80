//! The control channel between the parts of a run: what each reports to the others, so that
//! all settle as one process would.
//!
//! One part listens at an address. The others send it their status, and it answers each with the
//! status of all the rest. A status is one datagram that holds the whole state, four times a second.
//! No datagram is ever an error, and without the control channel a part settles by itself.

mod offset;
mod peers;
mod status;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use muster_conduct::{Part, Progress};
use muster_measure::Progress as Windows;
use muster_model::{Micros, RunId};
use muster_net::Clock;

pub use offset::Offset;
use peers::Peers;
use status::{STATUS_MAX, Status};

pub(crate) use peers::Own;

/// Interval between two reports of a part.
const SEND_EVERY: Micros = Micros::from_millis(250);
/// Datagrams that are read in one turn: a flood holds up no run.
const READ_MAX: usize = 64;
/// Longest wait of a settled part for the others to settle, and of an ended part for their receipt.
const LINGER: Micros = Micros::from_secs(1);
/// Interval between its reports meanwhile, and its longest wait for a datagram.
const LINGER_EVERY: Micros = Micros::from_millis(50);

/// Identity of this part on the control channel.
#[derive(Debug, Clone)]
pub struct Membership {
    /// Its run.
    pub run: RunId,
    /// The hash of its plan.
    pub plan: String,
    /// Its part.
    pub part: Part,
    /// True if the plan has a backend.
    pub has_backend: bool,
    /// The clock that this part reads, by a name that no other host has.
    pub clock: String,
}

/// Results of the control channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelAccount {
    /// True if every other part was received when settling ended.
    pub was_complete: bool,
    /// Datagrams that were no status of another part of this run.
    pub ignored: u64,
    /// Offsets of the others' clocks; only if this part joined another.
    pub offsets: Vec<Offset>,
}

/// One end of the control channel.
#[derive(Debug)]
pub struct ControlChannel {
    socket: UdpSocket,
    /// Addresses of the listening part; empty for itself.
    listeners: Vec<SocketAddr>,
    /// Index of the address in use.
    current: usize,
    peers: Peers,
    next_status: Micros,
    /// Instant at which this part had settled.
    settled: Option<Micros>,
}

impl ControlChannel {
    /// The end that listens at an address.
    ///
    /// # Errors
    /// The system gives no such socket, as where the port is taken.
    pub fn listen(at: SocketAddr, who: Membership) -> io::Result<Self> {
        Self::new(UdpSocket::bind(at)?, Vec::new(), who)
    }

    /// An end that connects to the first of these addresses that answers.
    ///
    /// # Errors
    /// The system gives no socket that leads to the first, or there is none.
    pub fn join(listeners: Vec<SocketAddr>, who: Membership) -> io::Result<Self> {
        let first = listeners.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Self::new(towards(*first)?, listeners, who)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn new(socket: UdpSocket, listeners: Vec<SocketAddr>, who: Membership) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            listeners,
            current: 0,
            peers: Peers::new(who),
            next_status: Micros::ZERO,
            settled: None,
        })
    }

    /// Reads what has come, and sends this part's status if that is due.
    pub(crate) fn turn(&mut self, clock: Clock, own: &dyn Fn() -> Own) {
        self.read(clock);
        if clock.now() >= self.next_status {
            self.send(clock, &own());
            let every = self.settled.map_or(SEND_EVERY, |_| LINGER_EVERY);
            self.next_status = clock.now() + every;
        }
    }

    /// Records that this part has settled; the next turn sends that.
    pub(crate) fn settled(&mut self, now: Micros) {
        self.settled = Some(now);
        self.next_status = now;
    }

    /// Returns true if this part may leave the others. A consumer that leaves its group takes
    /// partitions from those that still listen, so that all stay until all have settled, or a
    /// second has passed.
    pub(crate) fn may_leave(&self, now: Micros) -> bool {
        let mut peers = self.peers.peers.iter();
        let is_over = |since| now >= since + LINGER || peers.all(|peer| peer.status.has_settled);
        self.settled.is_some_and(is_over)
    }

    /// Returns the progress of all other parts; none while one of them is silent.
    pub(crate) fn others(&self, now: Micros) -> Option<(Vec<Progress>, Windows)> {
        let is_complete = self.peers.is_complete(now);
        is_complete.then(|| self.peers.others(now, None))
    }

    /// Sends the last status until all others have received it, or a second has passed.
    pub(crate) fn close(mut self, clock: Clock, own: &Own, was_complete: bool) -> ChannelAccount {
        let until = clock.now() + LINGER;
        let wait = Duration::from_micros(LINGER_EVERY.get());
        let can_wait = self.socket.set_nonblocking(false).is_ok()
            && self.socket.set_read_timeout(Some(wait)).is_ok();
        self.send(clock, own);
        let mut next_status = clock.now() + LINGER_EVERY;
        while can_wait && !self.is_known_to_have_ended() && clock.now() < until {
            self.read_one(clock);
            if clock.now() >= next_status {
                self.send(clock, own);
                next_status = clock.now() + LINGER_EVERY;
            }
        }
        self.send(clock, own);
        let peers = self.peers.peers.into_iter();
        let offsets = peers.filter_map(|peer| peer.offset);
        ChannelAccount {
            was_complete,
            ignored: self.peers.ignored,
            offsets: if self.listeners.is_empty() {
                Vec::new()
            } else {
                offsets.collect()
            },
        }
    }

    /// Returns true if every part that was received knows that this one has ended. The listener
    /// waits for the end of the others, to whom it owes an answer.
    fn is_known_to_have_ended(&self) -> bool {
        let knows = |status: &Status| status.has_final || status.has_settled;
        let mut peers = self.peers.peers.iter();
        if self.listeners.is_empty() {
            peers.all(|peer| peer.status.has_settled)
        } else {
            peers.all(|peer| knows(&peer.status))
        }
    }

    fn read(&mut self, clock: Clock) {
        for _ in 0..READ_MAX {
            if !self.read_one(clock) {
                return;
            }
        }
    }

    /// Reads one datagram; true if there may be more. A peer that does not listen yet is no error.
    fn read_one(&mut self, clock: Clock) -> bool {
        // One byte more than a status may have shows what is longer.
        let mut bytes = [0; STATUS_MAX + 1];
        match self.socket.recv_from(&mut bytes) {
            Ok((length, from)) => {
                self.peers.receive(from, &bytes[..length], clock.now());
                true
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.try_next();
                true
            }
            Err(_) => false,
        }
    }

    /// Turns to the next address, unless this one has answered. An address to which no
    /// socket leads is passed over.
    fn try_next(&mut self) {
        if !self.peers.peers.is_empty() || self.listeners.len() < 2 {
            return;
        }
        self.current = (self.current + 1) % self.listeners.len();
        let next = towards(self.listeners[self.current]);
        let next = next.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        if let Ok(socket) = next {
            self.socket = socket;
        }
    }

    fn send(&mut self, clock: Clock, own: &Own) {
        if !self.listeners.is_empty() {
            let place = (!self.peers.peers.is_empty()).then_some(0);
            let status = self.peers.status_for(place, own, clock.now());
            // What is not sent now is sent again soon.
            let _ = status.encoded().map(|bytes| self.socket.send(&bytes));
            return;
        }
        for (place, peer) in self.peers.peers.iter().enumerate() {
            let status = self.peers.status_for(Some(place), own, clock.now());
            let _ = status
                .encoded()
                .map(|bytes| self.socket.send_to(&bytes, peer.at));
        }
    }
}

/// A socket that exchanges datagrams with one address only.
fn towards(listener: SocketAddr) -> io::Result<UdpSocket> {
    let any = match listener {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(listener)?;
    Ok(socket)
}
