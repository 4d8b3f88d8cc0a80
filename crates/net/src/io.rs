//! The loop's sockets, buffers and timers, as its handler uses them.

mod turns;
mod udp;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use muster_model::Micros;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, sockopt};

pub(crate) use self::turns::Poll;
use self::turns::Turns;
use self::udp::Datagrams;
use crate::pool::{BufferId, Pool};
use crate::slab::{Flags, Slab};
use crate::wheel::Wheel;
use crate::{
    Clock, Closed, ConnectError, IoCounts, Key, ListenError, ListenerId, LoopConfig, PortUse,
    TimerId, Waker, Written, socket, udp as sockets,
};

/// Everything a handler may do to the loop it runs on.
#[derive(Debug)]
pub struct Io {
    pub(crate) epoll: OwnedFd,
    pub(crate) slab: Slab,
    pub(crate) pool: Pool,
    pub(crate) wheel: Wheel<Alarm>,
    pub(crate) listeners: Vec<OwnedFd>,
    /// Connections to serve in the next turn although no event will come for them.
    pub(crate) ready: Vec<Key>,
    /// Connections that ended while the handler was using them.
    pub(crate) endings: Vec<(Key, Closed)>,
    /// Connections with a read limit, by slab index: few, as this is for slow readers.
    pub(crate) limits: BTreeMap<u32, ReadLimit>,
    /// Failure of a connection's last write, by slab index, until the rest of its input is read.
    pub(crate) failures: BTreeMap<u32, Closed>,
    pub(crate) datagrams: Datagrams,
    pub(crate) counts: IoCounts,
    pub(crate) now: Micros,
    pub(crate) turns: Turns,
    pub(crate) stopping: bool,
    pub(crate) kept_max: u32,
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
    /// At most so many bytes, above zero,
    pub bytes: u32,
    /// in each interval of this length.
    pub every: Micros,
}

impl Io {
    /// Longest wait of a finishing connection for its peer's close.
    const LINGER: Micros = Micros::from_secs(5);

    pub(crate) fn new(clock: Clock, config: &LoopConfig) -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        let token = EventData::new_u64(u64::MAX);
        epoll::add(&epoll, waker.fd(), token, EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            slab: Slab::new(config.connections_max),
            pool: Pool::new(config.buffers_max),
            wheel: Wheel::new(),
            listeners: Vec::new(),
            ready: Vec::new(),
            endings: Vec::new(),
            limits: BTreeMap::new(),
            failures: BTreeMap::new(),
            datagrams: Datagrams::default(),
            counts: IoCounts::default(),
            now: clock.now(),
            turns: Turns::default(),
            stopping: false,
            kept_max: config.kept_max,
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
        if self.slab.is_full() {
            return Err(ConnectError::Descriptors);
        }
        let fd = socket::connect(to, source)?;
        let key = self
            .watch(fd, Flags::CONNECTING)
            .map_err(|errno| ConnectError::Kernel(to, errno.raw_os_error()))?;
        self.counts.opened += 1;
        Ok(key)
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
        let (fd, bound) = socket::listen(at, port)?;
        let id = ListenerId(self.listeners.len() as u32);
        self.listeners.push(fd);
        self.watch_listener(id).map_err(|errno| ListenError {
            addr: at,
            errno: errno.raw_os_error(),
        })?;
        Ok((id, bound))
    }

    /// Writes with one system call; on a UDP socket with one peer, one datagram.
    pub fn write(&mut self, key: Key, bytes: &[u8]) -> Written {
        let Some(slot) = self.slab.get(key) else {
            return Written::Lost;
        };
        let barred = [Flags::ENDED, Flags::FINISHING, Flags::BROKEN];
        if barred.iter().any(|flag| slot.flags.has(*flag)) {
            return Written::Lost;
        }
        if slot.flags.has(Flags::CONNECTING) {
            return Written::Busy;
        }
        if slot.flags.has(Flags::DATAGRAM) {
            return self.write_datagram(key, bytes);
        }
        if slot.held.is_some() {
            return Written::Busy;
        }
        let Some(fd) = &slot.fd else {
            return Written::Lost;
        };
        let sent = send(fd.as_fd(), bytes);
        self.counts.writes += 1;
        match sent {
            Ok(taken) => {
                self.counts.bytes_out += taken as u64;
                if taken == bytes.len() {
                    Written::Whole
                } else {
                    self.hold(key, bytes, taken)
                }
            }
            Err(errno) => {
                self.fail(key, socket::failure(errno));
                Written::Lost
            }
        }
    }

    /// Returns true if the connection stands and holds nothing, so that a write would be tried.
    pub fn is_writable(&self, key: Key) -> bool {
        let barred = [
            Flags::CONNECTING,
            Flags::ENDED,
            Flags::FINISHING,
            Flags::BROKEN,
            Flags::BLOCKED,
        ];
        self.slab.get(key).is_some_and(|slot| {
            let waits = slot.held.is_some() && !slot.flags.has(Flags::DATAGRAM);
            !waits && !barred.iter().any(|flag| slot.flags.has(*flag))
        })
    }

    /// Ends the connection in order (FIN), now: held bytes and unread input are discarded.
    /// Unread input makes the kernel send RST instead; [`Io::finish`] avoids that.
    pub fn close(&mut self, key: Key) {
        self.discard(key);
    }

    /// Ends the connection in order once held bytes went out: FIN, then input is discarded until
    /// the peer closes too, for at most five seconds. The key is gone for the handler at once. A UDP
    /// socket ends at once, after what was gathered went out as far as there is room.
    pub fn finish(&mut self, key: Key) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::ENDED) || slot.flags.has(Flags::CONNECTING) {
            return self.discard(key);
        }
        if slot.flags.has(Flags::DATAGRAM) {
            self.send_waiting(key);
            return self.discard(key);
        }
        slot.flags.add(Flags::FINISHING);
        slot.flags.remove(Flags::PAUSED);
        if !slot.held.is_some() {
            self.shut_output(key);
        }
        self.enqueue(key);
        self.wheel.set(self.now + Self::LINGER, Alarm::Linger(key));
    }

    /// Ends the connection at once with a RST.
    pub fn reset(&mut self, key: Key) {
        if let Some(fd) = self.slab.get(key).and_then(|slot| slot.fd.as_ref()) {
            socket::arm_reset(fd);
        }
        self.discard(key);
    }

    /// Stops reading: input stays with the kernel, whose window then closes for the peer. The
    /// end of the connection is not noticed meanwhile, unless by a write.
    pub fn pause_reading(&mut self, key: Key) {
        if let Some(slot) = self.slab.get_mut(key) {
            slot.flags.add(Flags::PAUSED);
        }
    }

    /// Reads again; bytes that were left unread are presented in the next turn.
    pub fn resume_reading(&mut self, key: Key) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::PAUSED) {
            slot.flags.remove(Flags::PAUSED);
            slot.flags.add(Flags::PRESENT);
            self.enqueue(key);
        }
    }

    /// Reads the connection slowly; none lifts the limit.
    pub fn set_read_limit(&mut self, key: Key, limit: Option<ReadLimit>) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        match limit {
            Some(limit) => {
                slot.flags.add(Flags::LIMITED);
                self.limits.insert(key.index, limit);
            }
            None => {
                slot.flags.remove(Flags::LIMITED);
                self.limits.remove(&key.index);
            }
        }
    }

    /// Asks for a receive buffer of so many bytes (the kernel doubles it for its own use), which
    /// bounds what the peer can send to a connection that is not read. A datagram takes its bytes
    /// and some hundreds for the kernel's records of it. [`Io::receive_buffer`] reads back what was
    /// granted: no more than `net.core.rmem_max` (socket(7)).
    pub fn set_receive_buffer(&mut self, key: Key, bytes: usize) {
        if let Some(fd) = self.slab.get(key).and_then(|slot| slot.fd.as_ref()) {
            // A kernel that refuses keeps its own size, which bounds the peer as well.
            let _ = sockopt::set_socket_recv_buffer_size(fd, bytes);
        }
    }

    /// Keeps a number of the handler's beside the connection; it is zero at first.
    pub fn set_tag(&mut self, key: Key, tag: u32) {
        if let Some(slot) = self.slab.get_mut(key) {
            slot.tag = tag;
        }
    }

    /// The number kept by [`Io::set_tag`]; zero for a connection that is gone.
    pub fn tag(&self, key: Key) -> u32 {
        self.slab.get(key).map_or(0, |slot| slot.tag)
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
        self.counts
    }

    /// Connections in the slab: connecting, standing, finishing.
    pub fn connections(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn watch(&mut self, fd: OwnedFd, flags: Flags) -> rustix::io::Result<Key> {
        let key = self.slab.insert(fd, flags);
        let fd = self.slab.get(key).and_then(|slot| slot.fd.as_ref());
        let watched = fd.map_or(Ok(()), |fd| {
            if flags.has(Flags::DATAGRAM) {
                sockets::watch(&self.epoll, fd, key.to_u64())
            } else {
                socket::watch_connection(&self.epoll, fd, key.to_u64())
            }
        });
        if watched.is_err() {
            self.discard(key);
        }
        watched.map(|()| key)
    }

    pub(crate) fn watch_listener(&self, id: ListenerId) -> rustix::io::Result<()> {
        let token = Key {
            index: id.0,
            generation: Slab::RESERVED_GENERATION,
        }
        .to_u64();
        let fd = &self.listeners[id.0 as usize];
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)
    }

    /// Serves the connection in the next turn.
    pub(crate) fn enqueue(&mut self, key: Key) {
        if let Some(slot) = self.slab.get_mut(key)
            && !slot.flags.has(Flags::QUEUED)
        {
            slot.flags.add(Flags::QUEUED);
            self.ready.push(key);
        }
    }

    /// A write failed. What the peer said before it went is still with the kernel, and may answer
    /// what was written: it is read to its end first. One that wants no input ends at once.
    fn fail(&mut self, key: Key, why: Closed) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::PAUSED) || slot.flags.has(Flags::FINISHING) {
            return self.end(key, why);
        }
        for flag in [Flags::BROKEN, Flags::READABLE, Flags::HUNG] {
            slot.flags.add(flag);
        }
        self.failures.insert(key.index, why);
        self.enqueue(key);
    }

    /// Marks the connection as ended; the handler is told at the end of the turn. Where a write
    /// failed before, that is why.
    pub(crate) fn end(&mut self, key: Key, why: Closed) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        let why = self.failures.remove(&key.index).unwrap_or(why);
        if slot.flags.has(Flags::FINISHING) {
            return self.discard(key);
        }
        if !slot.flags.has(Flags::ENDED) {
            slot.flags.add(Flags::ENDED);
            self.endings.push((key, why));
        }
    }

    /// Frees the connection and closes its descriptor.
    pub(crate) fn discard(&mut self, key: Key) {
        if self
            .slab
            .get(key)
            .is_some_and(|slot| slot.flags.has(Flags::LIMITED))
        {
            self.limits.remove(&key.index);
        }
        self.count_drops(key);
        if self.slab.get(key).is_some() {
            self.failures.remove(&key.index);
            self.datagrams.forget(key);
        }
        if let Some((_closed_here, buffers)) = self.slab.remove(key) {
            for buffer in buffers.into_iter().filter(|buffer| buffer.is_some()) {
                self.pool.give_back(buffer);
            }
        }
    }

    pub(crate) fn shut_output(&mut self, key: Key) {
        if let Some(fd) = self.slab.get(key).and_then(|slot| slot.fd.as_ref()) {
            // A socket that is gone needs no FIN; reading it tells so.
            let _ = rustix::net::shutdown(fd, Shutdown::Write);
        }
    }

    fn hold(&mut self, key: Key, bytes: &[u8], taken: usize) -> Written {
        let Some(buffer) = self.pool.take() else {
            self.counts.pool_exhausted += 1;
            if taken > 0 {
                self.end(key, Closed::PoolExhausted);
            }
            return Written::Exhausted;
        };
        self.counts.held += 1;
        self.pool.get(buffer).extend_from_slice(&bytes[taken..]);
        if let Some(slot) = self.slab.get_mut(key) {
            slot.held = buffer;
            slot.held_at = 0;
        }
        Written::Held
    }

    /// Writes held bytes; true when none are left.
    pub(crate) fn flush(&mut self, key: Key) -> bool {
        let Some(slot) = self.slab.get_mut(key) else {
            return false;
        };
        let Some(fd) = &slot.fd else { return false };
        let bytes = self.pool.get(slot.held);
        let sent = send(fd.as_fd(), &bytes[slot.held_at as usize..]);
        self.counts.writes += 1;
        match sent {
            Ok(taken) => {
                self.counts.bytes_out += taken as u64;
                slot.held_at += taken as u32;
                let whole = slot.held_at as usize == bytes.len();
                if whole {
                    let buffer = std::mem::replace(&mut slot.held, BufferId::NONE);
                    self.pool.give_back(buffer);
                }
                whole
            }
            Err(errno) => {
                self.fail(key, socket::failure(errno));
                false
            }
        }
    }
}

/// Returns the number of bytes that the kernel took; none at all is no error.
fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    match rustix::net::send(fd, bytes, SendFlags::NOSIGNAL) {
        Ok(taken) => Ok(taken),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(errno),
    }
}
