//! Seam between the sockets of links and their sessions: each kind is a type.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use muster_conduct::RecordingSink;
use muster_device::{Route, Session, Shard, SocketSlot, Then};
use muster_model::Micros;
use muster_net::{ConnectError, Io, Key, Written};
use muster_protocol::dtls::Counts;
use muster_protocol::layer::{Ended, Layer, LayerError, Layers, Pipe};

/// Seam between the sockets of a shard's links and their sessions, of one kind for all of them.
pub trait Lines: Debug {
    /// State that it keeps of each link; the default is that of a link that is down.
    type Line: Default + Debug;

    /// Begins a socket for a link.
    ///
    /// # Errors
    /// [`ConnectError`]: nothing was begun.
    fn connect(io: &mut Io, to: SocketAddr, source: Option<IpAddr>) -> Result<Key, ConnectError>;

    /// Opens the line of a link, whose socket stands; the first bytes to send are appended.
    ///
    /// # Errors
    /// [`LayerError`] if this link can have none.
    fn open(&mut self, who: Who, now: Micros, out: &mut Vec<u8>) -> Result<Self::Line, LayerError>;

    /// Returns whether the session may send.
    fn is_open(line: &Self::Line) -> bool;

    /// Passes received bytes to the session above, and opens it once the line is open.
    fn read<P: Session>(
        &mut self,
        line: &mut Self::Line,
        bytes: &mut [u8],
        above: &mut Above<'_, P>,
    ) -> Read;

    /// Turns bytes of the session, `out[from..]`, into those of the wire.
    fn wrap(line: &mut Self::Line, out: &mut Vec<u8>, from: usize);

    /// Appends a goodbye.
    fn close(&mut self, _line: &mut Self::Line, _out: &mut Vec<u8>) {}

    /// Instant at which [`Lines::expire`] is due for a line; none if nothing is waited for.
    #[inline]
    fn deadline(_line: &Self::Line) -> Option<Micros> {
        None
    }

    /// Does what is due for a line, if its deadline is over.
    #[inline]
    fn expire(&mut self, _line: &mut Self::Line, _now: Micros) -> Option<Ended> {
        None
    }

    /// Failure of a line that was not open in time; none where nothing is known of that.
    fn silence() -> Option<LayerError> {
        None
    }

    /// Details of a failure beyond its cause.
    fn detail(_line: &Self::Line) -> Option<&str> {
        None
    }

    /// Remedy in the scenario for a failure, as the end of a sentence; empty where there is none.
    #[cold]
    fn remedy(&self, _error: LayerError) -> String {
        String::new()
    }

    /// Credential of a line's link as the platform knows it, never a secret; none where its layers prove
    /// nothing.
    #[cold]
    fn proof(&mut self, _line: &Self::Line) -> Option<String> {
        None
    }

    /// Counters that the session does not keep.
    fn counts(_line: &Self::Line) -> Counts {
        Counts::default()
    }
}

/// Lines whose writes are datagrams, each whole or lost.
pub trait DatagramLines: Lines {
    /// Owner of a datagram on a shared socket; none if the sessions find it themselves.
    #[inline]
    fn route(_datagram: &[u8]) -> Option<Route> {
        None
    }

    /// Sends datagrams of the line's own, gathered with those of other links if `gathers` is set. Of
    /// several datagrams the result says whether one is held.
    #[inline]
    fn flush(&mut self, _io: &mut Io, _key: Key, _gathers: bool) -> Written {
        Written::Whole
    }
}

/// Identity of a line's link.
#[derive(Debug, Clone, Copy)]
pub struct Who {
    /// The link's number in the run.
    pub(super) link: u32,
    /// Place of the link on its socket, if it shares one.
    pub(super) slot: Option<SocketSlot>,
}

/// The session above a line.
#[derive(Debug)]
pub struct Above<'a, P: Session> {
    pub(super) shard: &'a mut Shard<P, RecordingSink>,
    pub(super) link: u32,
    pub(super) now: Micros,
    pub(super) out: &'a mut Vec<u8>,
}

impl<P: Session> Above<'_, P> {
    /// Reports that the link is secured by a new session.
    pub(super) fn secured(&mut self) {
        self.shard.secured(self.link);
    }

    /// The session may speak from now on.
    pub(super) fn greet(&mut self) {
        self.shard.opened(self.link, self.now, self.out);
    }

    pub(super) fn receive(&mut self, plain: &[u8]) -> (usize, Then) {
        self.shard.received(self.link, self.now, plain, self.out)
    }
}

/// Result of reading bytes that came.
#[derive(Debug)]
pub struct Read {
    /// Number of bytes that are used up.
    pub(super) used: usize,
    /// Next step that the session wants.
    pub(super) then: Then,
    /// End of the line, if it is at its end.
    pub(super) end: Option<Ended>,
}

/// TCP, and layers of bytes on it.
#[derive(Debug)]
pub struct Streams<L>(pub L);

impl<L: Layers> Lines for Streams<L> {
    type Line = Pipe<L::Layer>;

    fn connect(io: &mut Io, to: SocketAddr, source: Option<IpAddr>) -> Result<Key, ConnectError> {
        io.connect(to, source)
    }

    fn open(
        &mut self,
        who: Who,
        _now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<Self::Line, LayerError> {
        let mut pipe = Pipe::new(self.0.layer(who.link)?);
        pipe.layer.open(out);
        Ok(pipe)
    }

    #[inline]
    fn is_open(line: &Self::Line) -> bool {
        line.layer.is_open()
    }

    #[inline]
    fn read<P: Session>(
        &mut self,
        line: &mut Self::Line,
        bytes: &mut [u8],
        above: &mut Above<'_, P>,
    ) -> Read {
        let was_open = line.layer.is_open();
        let fed = line.receive(bytes, above.out);
        if !was_open && line.layer.is_open() {
            let from = above.out.len();
            above.greet();
            line.layer.wrap(above.out, from);
        }
        let from = above.out.len();
        let (taken, then) = above.receive(&bytes[..fed.plain]);
        line.layer.wrap(above.out, from);
        Read {
            used: line.keep(bytes, &fed, taken),
            then,
            end: fed.end,
        }
    }

    #[inline]
    fn wrap(line: &mut Self::Line, out: &mut Vec<u8>, from: usize) {
        line.layer.wrap(out, from);
    }

    fn close(&mut self, line: &mut Self::Line, out: &mut Vec<u8>) {
        line.layer.close(out);
    }

    fn detail(line: &Self::Line) -> Option<&str> {
        line.layer.detail()
    }
}

/// UDP with nothing on it.
#[derive(Debug, Clone, Copy)]
pub struct Datagrams;

impl Lines for Datagrams {
    type Line = ();

    fn connect(io: &mut Io, to: SocketAddr, source: Option<IpAddr>) -> Result<Key, ConnectError> {
        io.connect_udp(to, source)
    }

    fn open(&mut self, _who: Who, _now: Micros, _out: &mut Vec<u8>) -> Result<(), LayerError> {
        Ok(())
    }

    #[inline]
    fn is_open(_line: &()) -> bool {
        true
    }

    #[inline]
    fn read<P: Session>(
        &mut self,
        _line: &mut (),
        bytes: &mut [u8],
        above: &mut Above<'_, P>,
    ) -> Read {
        let (used, then) = above.receive(bytes);
        let end = None;
        Read { used, then, end }
    }

    #[inline]
    fn wrap(_line: &mut (), _out: &mut Vec<u8>, _from: usize) {}
}

impl DatagramLines for Datagrams {}
