//! The loop's sockets, buffers and timers, as its handler uses them.

mod turns;

use std::net::{IpAddr, SocketAddr};

use muster_model::{Micros, Turn};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};

pub(crate) use self::turns::Poll;
use self::turns::Turns;
use crate::cpu_wait::WaitsOf;
use crate::datagrams::Datagrams;
use crate::slab::{Flags, Slot};
use crate::sockets::Sockets;
use crate::udp::{Datagram, UNMARKED};
use crate::wheel::Wheel;
use crate::{
    Clock, ConnectError, IoCounts, Key, ListenError, ListenerId, LoopConfig, PortUse, TimerId,
    Waker, Written, socket,
};

/// Everything a handler may do to the loop it runs on.
#[derive(Debug)]
pub struct Io {
    pub(crate) sockets: Sockets,
    pub(crate) datagrams: Datagrams,
    pub(crate) wheel: Wheel<Alarm>,
    pub(crate) turns: Turns,
    pub(crate) stopping: bool,
    now: Micros,
    clock: Clock,
    waker: Waker,
}

/// Purpose of a timer of the loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Alarm {
    /// The handler's own.
    Handler(u64),
    /// A read limit's next interval begins.
    Rested(Key),
    /// A finishing connection's peer took too long.
    Linger(Key),
    /// Descriptors may be free again.
    Accept(ListenerId),
}

/// Limit on the rate of reading from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Bytes, above zero, that are read at most
    pub bytes: u32,
    /// in each interval of this length.
    pub every: Micros,
}

impl Io {
    /// Longest wait of a finishing connection for its peer's close.
    const LINGER: Micros = Micros::from_secs(5);

    pub(crate) fn new(clock: Clock, config: &LoopConfig) -> Result<Self, Errno> {
        let waker = Waker::new()?;
        Ok(Self {
            sockets: Sockets::new(&waker, config)?,
            datagrams: Datagrams::default(),
            wheel: Wheel::new(),
            turns: Turns::default(),
            stopping: false,
            now: clock.now(),
            clock,
            waker,
        })
    }

    /// The instant of this turn: read once, after the system call that waited returned.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Reads the clock again; [`Io::now`] is that instant from here on.
    pub fn fresh_now(&mut self) -> Micros {
        self.now = self.clock.now();
        self.now
    }

    /// The run's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A handle with which other threads wake this loop.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn waker_noticed(&self) {
        self.waker.noticed();
    }

    /// Begins a connection, from an ephemeral port of `source` if given; `opened` or `closed`
    /// follows. The only time-out is the kernel's: set a timer and [`Io::reset`] for a shorter one.
    ///
    /// # Errors
    /// [`ConnectError`]: nothing was begun and no callback follows.
    pub fn connect(&mut self, to: SocketAddr, source: Option<IpAddr>) -> Result<Key, ConnectError> {
        self.begin(to, source, SocketType::STREAM)
    }

    /// Makes a UDP socket that exchanges datagrams with one peer only, from a port of `source` if
    /// given; [`crate::Handler::opened`] follows in the next turn. A port belongs to one socket of
    /// its source address, whatever the peer ([`crate::limits::ephemeral_ports`]).
    ///
    /// [`Io::write`] sends one datagram by one call, as devices do that share no socket;
    /// [`Io::gather`] is for a socket that many devices share.
    ///
    /// Errors that ICMP brings do not end it: they are counted ([`crate::IoCounts::icmp_errors`]),
    /// several between two calls as one, and what is sent later goes out.
    ///
    /// # Errors
    /// [`ConnectError`]: nothing was begun and no callback follows.
    pub fn connect_udp(
        &mut self,
        to: SocketAddr,
        source: Option<IpAddr>,
    ) -> Result<Key, ConnectError> {
        self.begin(to, source, SocketType::DGRAM)
    }

    fn begin(
        &mut self,
        to: SocketAddr,
        source: Option<IpAddr>,
        kind: SocketType,
    ) -> Result<Key, ConnectError> {
        if self.sockets.is_full() {
            return Err(ConnectError::Descriptors);
        }
        let flags = match kind {
            SocketType::DGRAM => Flags::CONNECTING.and(Flags::DATAGRAM),
            _ => Flags::CONNECTING,
        };
        let watched = self
            .sockets
            .watch(socket::connect(to, source, kind)?, flags);
        watched.map_err(|errno| ConnectError::Kernel(to, errno.raw_os_error()))
    }

    /// Takes a socket of datagrams with one peer that was made elsewhere, such as an end of a pair of
    /// local ones, which lack room as UDP over loopback never does; as [`Io::connect_udp`] else.
    ///
    /// # Errors
    /// The kernel's reason, also if there is no place for it: nothing follows.
    pub fn adopt_datagrams(&mut self, fd: OwnedFd) -> std::io::Result<Key> {
        Ok(self
            .sockets
            .watch(fd, Flags::CONNECTING.and(Flags::DATAGRAM))?)
    }

    /// Listens at an address and gives the one it got (port 0 is a free port).
    ///
    /// # Errors
    /// [`ListenError`] with the kernel's reason.
    pub fn listen(
        &mut self,
        at: SocketAddr,
        port: PortUse,
    ) -> Result<(ListenerId, SocketAddr), ListenError> {
        let (fd, bound) = socket::bind(at, port, SocketType::STREAM)?;
        let id = self.sockets.listen(fd);
        Ok((id.map_err(|errno| ListenError::new(at, errno))?, bound))
    }

    /// Makes a UDP socket that receives from every peer ([`crate::Handler::datagram`]) and sends to any
    /// ([`Io::send_to`]), and gives the address it got (port 0 is a free port). Errors that ICMP
    /// brings are counted one by one. No callback follows.
    ///
    /// Several loops may share a port as with [`Io::listen`]: the kernel then gives each peer's
    /// datagrams to one of them, by the addresses of both ends.
    ///
    /// # Errors
    /// [`ListenError`] with the kernel's reason.
    pub fn bind_udp(
        &mut self,
        at: SocketAddr,
        port: PortUse,
    ) -> Result<(Key, SocketAddr), ListenError> {
        let (fd, bound) = socket::bind(at, port, SocketType::DGRAM)?;
        let flags = Flags::DATAGRAM.and(Flags::UNCONNECTED);
        let key = self.sockets.watch(fd, flags);
        Ok((key.map_err(|errno| ListenError::new(at, errno))?, bound))
    }

    /// Writes with one system call; on a UDP socket with one peer, one datagram.
    pub fn write(&mut self, key: Key, bytes: &[u8]) -> Written {
        match self.sockets.get(key) {
            Some(slot) if slot.flags.has(Flags::LOST) => Written::Lost,
            Some(slot) if slot.flags.has(Flags::CONNECTING) => Written::Busy,
            Some(slot) if slot.flags.has(Flags::DATAGRAM) => {
                self.datagrams.write(&mut self.sockets, key, bytes)
            }
            Some(_) => self.sockets.write(key, bytes),
            None => Written::Lost,
        }
    }

    /// Sends a datagram from a socket of [`Io::bind_udp`] at the latest at the end of this turn,
    /// several with one call: see [`Io::gather`].
    pub fn send_to(&mut self, key: Key, to: SocketAddr, bytes: &[u8]) -> Written {
        let (to, mark) = (Some(to), UNMARKED);
        let datagram = Datagram { to, mark, bytes };
        self.datagrams.gather(&mut self.sockets, key, datagram)
    }

    /// Sends a datagram from a socket of [`Io::connect_udp`] at the latest at the end of this turn,
    /// several with one call (`sendmmsg`); [`Io::send_gathered`] sends it at once.
    ///
    /// [`Written::Whole`] says that it was taken here. While the kernel has no room up to 256 KiB
    /// wait; beyond them nothing is taken and the answer is [`Written::Busy`]:
    /// [`crate::Handler::flushed`] follows once all are out. A datagram that the kernel refuses is
    /// counted ([`crate::IoCounts::datagrams_refused`]) and lost, as one that a network drops.
    pub fn gather(&mut self, key: Key, bytes: &[u8]) -> Written {
        self.gather_marked(key, UNMARKED, bytes)
    }

    /// [`Io::gather`] with a mark: if the kernel refuses the datagram, [`Io::take_refused`] returns
    /// it.
    pub fn gather_marked(&mut self, key: Key, mark: u32, bytes: &[u8]) -> Written {
        let to = None;
        let datagram = Datagram { to, mark, bytes };
        self.datagrams.gather(&mut self.sockets, key, datagram)
    }

    /// Sends what was gathered for a socket: `Whole` if the kernel has all of it, so that the
    /// instant after is that of each; `Held` if some wait for room and `flushed` follows, whose
    /// instant is then the upper bound of all; `Lost` if there is no such socket.
    pub fn send_gathered(&mut self, key: Key) -> Written {
        self.datagrams.send_gathered(&mut self.sockets, key)
    }

    /// The marks of a socket's datagrams that were gathered or held and that the kernel refused since
    /// the last call: put into `marks`, which is emptied first, in the order in which they were
    /// gathered. What [`Io::write`] left [`Written::Held`] has the mark 0.
    pub fn take_refused(&mut self, key: Key, marks: &mut Vec<u32>) {
        self.datagrams.take_refused(key, marks);
    }

    /// Returns why the kernel refused a datagram last, if it refused one.
    pub fn refusal(&self) -> Option<std::io::Error> {
        self.datagrams.refusal().map(Into::into)
    }

    /// Returns the last ICMP error on a socket with one peer, if there was one.
    pub fn icmp_error(&self) -> Option<std::io::Error> {
        self.datagrams.icmp_error().map(Into::into)
    }

    /// Looks how many datagrams the socket dropped for want of room and counts those that are not
    /// counted yet ([`crate::IoCounts::datagrams_dropped`]). Each datagram carries the number
    /// dropped before it, and the end of a socket counts all: this is for drops that no datagram follows.
    pub fn count_drops(&mut self, key: Key) {
        self.sockets.count_drops(key);
    }

    /// Returns true if the connection stands and holds nothing, so that a write would be tried.
    pub fn is_writable(&self, key: Key) -> bool {
        self.sockets.is_writable(key)
    }

    /// Ends the connection in order (FIN), now: held bytes and unread input are discarded.
    /// Unread input makes the kernel send RST instead; [`Io::finish`] avoids that.
    pub fn close(&mut self, key: Key) {
        self.sockets.discard(key);
        self.datagrams.forget(key);
    }

    /// Ends the connection in order once held bytes went out: FIN, then input is discarded until
    /// the peer closes too, for at most five seconds. The key is gone for the handler at once. A UDP
    /// socket ends at once: gathered datagrams for which the kernel has no room are dropped.
    pub fn finish(&mut self, key: Key) {
        let Some(slot) = self.sockets.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::ENDED.and(Flags::CONNECTING)) {
            return self.close(key);
        }
        if slot.flags.has(Flags::DATAGRAM) {
            self.datagrams.send_waiting(&mut self.sockets, key);
            return self.close(key);
        }
        slot.flags.add(Flags::FINISHING);
        slot.flags.remove(Flags::PAUSED);
        if !slot.held.is_some() {
            self.sockets.shut_output(key);
        }
        self.sockets.enqueue(key);
        self.wheel.set(self.now + Self::LINGER, Alarm::Linger(key));
    }

    /// Ends the connection at once with a RST.
    pub fn reset(&mut self, key: Key) {
        if let Some(fd) = self.sockets.get(key).and_then(Slot::fd) {
            socket::arm_reset(fd);
        }
        self.close(key);
    }

    /// Stops reading: input stays with the kernel, whose window then closes for the peer. The
    /// end of the connection is not noticed meanwhile, unless by a write.
    pub fn pause_reading(&mut self, key: Key) {
        if let Some(slot) = self.sockets.get_mut(key) {
            slot.flags.add(Flags::PAUSED);
        }
    }

    /// Reads again; bytes that were left unread are presented in the next turn.
    pub fn resume_reading(&mut self, key: Key) {
        if let Some(slot) = self.sockets.get_mut(key)
            && slot.flags.has(Flags::PAUSED)
        {
            slot.flags.remove(Flags::PAUSED);
            slot.flags.add(Flags::PRESENT);
            self.sockets.enqueue(key);
        }
    }

    /// Reads the connection slowly; none lifts the limit.
    pub fn set_read_limit(&mut self, key: Key, limit: Option<ReadLimit>) {
        let Some(slot) = self.sockets.get_mut(key) else {
            return;
        };
        slot.flags.remove(Flags::LIMITED);
        if limit.is_some() {
            slot.flags.add(Flags::LIMITED);
        }
        self.sockets.rare_mut(key).read_limit = limit;
    }

    /// Returns how much may be read of at most `most` bytes; begins the pause of a connection with
    /// a read limit.
    pub(crate) fn read_room(&mut self, key: Key, most: usize) -> usize {
        let limit = self.sockets.read_limit(key);
        let (Some(limit), Some(slot)) = (limit, self.sockets.get_mut(key)) else {
            return most;
        };
        slot.flags.add(Flags::RESTING);
        self.wheel.set(self.now + limit.every, Alarm::Rested(key));
        most.min(limit.bytes as usize)
    }

    /// Asks for a receive buffer of `bytes` bytes (the kernel doubles it for its own use), which
    /// bounds what the peer can send to a connection that is not read. A datagram takes its bytes
    /// and some hundreds for the kernel's records of it. [`Io::receive_buffer`] reads back what was
    /// granted: no more than `net.core.rmem_max` (socket(7)).
    pub fn set_receive_buffer(&mut self, key: Key, bytes: usize) {
        if let Some(fd) = self.sockets.get(key).and_then(Slot::fd) {
            // A kernel that refuses keeps its own size, which bounds the peer as well.
            let _ = sockopt::set_socket_recv_buffer_size(fd, bytes);
        }
    }

    /// Bytes of the socket's receive buffer, as it would be asked for by
    /// [`Io::set_receive_buffer`]; none for a connection that is gone.
    pub fn receive_buffer(&self, key: Key) -> Option<usize> {
        let fd = self.sockets.get(key).and_then(Slot::fd)?;
        // The kernel doubles what it is asked for (socket(7)).
        let doubled = sockopt::socket_recv_buffer_size(fd).ok()?;
        Some(doubled / 2)
    }

    /// Stores a number of the handler's with the connection; it is zero at first.
    pub fn set_tag(&mut self, key: Key, tag: u32) {
        if let Some(slot) = self.sockets.get_mut(key) {
            slot.tag = tag;
        }
    }

    /// The number kept by [`Io::set_tag`]; zero for a connection that is gone.
    pub fn tag(&self, key: Key) -> u32 {
        self.sockets.get(key).map_or(0, |slot| slot.tag)
    }

    /// Calls [`crate::Handler::timer`] with `token` at `at`, or at once if that has passed: never
    /// early, and late by at most 16 us and what the turn then at work takes.
    pub fn set_timer(&mut self, at: Micros, token: u64) -> TimerId {
        self.wheel.set(at, Alarm::Handler(token))
    }

    /// Cancels a timer; true if it was still to run out.
    pub fn cancel_timer(&mut self, timer: TimerId) -> bool {
        self.wheel.cancel(timer)
    }

    /// Makes [`crate::Loop::run`] return after this turn.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Returns the counters of socket calls so far.
    pub fn counts(&self) -> IoCounts {
        self.sockets.counts
    }

    /// Connections in the slab: connecting, standing, finishing.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// Reads the CPU wait of the loop's thread, and of those that count as it, after a wake-up if 200 us have passed since the last reading.
    /// [`Io::turn`] has it.
    pub fn watch_cpu_wait(&mut self, of: WaitsOf) {
        self.turns.watch_cpu_wait(of);
    }

    /// The state of the thread since it woke up.
    pub fn turn(&self) -> Turn {
        self.turns.turn()
    }

    /// The instant until which all that came has been presented. By it a time-out is decided, so that
    /// an answer that still lies in a socket counts. It lags behind [`Io::now`] by the turn so far,
    /// and by some turns where more comes than one turn reads.
    pub fn presented_until(&self) -> Micros {
        self.turns.presented_until()
    }
}
