//! The sockets of a loop from the first to the last call, and the streams among them.

use std::collections::VecDeque;
use std::mem::{self, MaybeUninit};

use muster_model::Micros;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use rustix::time::Timespec;

use crate::pool::{BufferId, Pool};
use crate::slab::{Flags, Rare, Slab, Slot};
use crate::{
    Closed, IoCounts, Key, ListenerId, LoopConfig, ReadLimit, Waker, Written, socket, udp,
};

/// Events of a stream: watched once for its whole life.
const STREAM_EVENTS: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);
/// Events of a UDP socket. The kernel reports room after every datagram that left, so it is asked
/// for only while there is none.
const DATAGRAM_EVENTS: EventFlags = EventFlags::IN.union(EventFlags::ET);

/// The sockets of a loop, the bytes that wait at them, and the counters of system calls.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) counts: IoCounts,
    epoll: OwnedFd,
    listeners: Vec<OwnedFd>,
    slab: Slab,
    pool: Pool,
    /// Sockets to serve in the next turn although no event will come for them.
    ready: VecDeque<Key>,
    /// Connections that ended while the handler was using them.
    endings: VecDeque<(Key, Closed)>,
}

impl Sockets {
    pub(crate) fn new(waker: &Waker, config: &LoopConfig) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let token = EventData::new_u64(u64::MAX);
        epoll::add(&epoll, waker.fd(), token, EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            counts: IoCounts::default(),
            epoll,
            listeners: Vec::new(),
            slab: Slab::new(config.connections_max),
            pool: Pool::new(config.buffers_max),
            ready: VecDeque::new(),
            endings: VecDeque::new(),
        })
    }

    /// Waits up to `wait` for events; none if a signal came first.
    pub(crate) fn poll<'a>(
        &self,
        wait: Micros,
        space: &'a mut [MaybeUninit<Event>],
    ) -> Result<Option<&'a [Event]>, Errno> {
        let timeout = (wait != Micros::MAX).then(|| Timespec {
            tv_sec: (wait.get() / 1_000_000) as i64,
            tv_nsec: (wait.get() % 1_000_000 * 1_000) as i64,
        });
        match epoll::wait(&self.epoll, space, timeout.as_ref()) {
            Ok((events, _)) => Ok(Some(events)),
            Err(Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Slot> {
        self.slab.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Slot> {
        self.slab.get_mut(key)
    }

    /// The rare state of a socket that stands.
    pub(crate) fn rare_mut(&mut self, key: Key) -> &mut Rare {
        self.slab.rare_mut(key)
    }

    pub(crate) fn read_limit(&self, key: Key) -> Option<ReadLimit> {
        let slot = self.slab.get(key)?;
        let rare = slot.flags.has(Flags::LIMITED).then(|| self.slab.rare(key));
        rare.flatten()?.read_limit
    }

    /// Sockets in the slab: connecting, standing, finishing.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.slab.is_full()
    }

    /// True if a socket is to be served or reported without a further event.
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.endings.is_empty()
    }

    /// Number of sockets to serve.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next socket to serve; none if it is gone.
    pub(crate) fn next_ready(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.slab.get_mut(key)?.flags.remove(Flags::QUEUED);
        Some(key)
    }

    /// The next connection that ended, and the reason.
    pub(crate) fn next_ending(&mut self) -> Option<(Key, Closed)> {
        self.endings.pop_front()
    }

    /// Serves the socket in the next turn.
    pub(crate) fn enqueue(&mut self, key: Key) {
        if let Some(slot) = self.slab.get_mut(key)
            && !slot.flags.has(Flags::QUEUED)
        {
            slot.flags.add(Flags::QUEUED);
            self.ready.push_back(key);
        }
    }

    /// Takes a socket in and watches it.
    pub(crate) fn watch(&mut self, fd: OwnedFd, flags: Flags) -> Result<Key, Errno> {
        if self.is_full() {
            return Err(Errno::MFILE);
        }
        let is_datagram = flags.has(Flags::DATAGRAM);
        let events = if is_datagram {
            DATAGRAM_EVENTS
        } else {
            STREAM_EVENTS
        };
        let key = self.slab.insert(fd, flags);
        let fd = self.slab.get(key).and_then(Slot::fd);
        let token = EventData::new_u64(key.to_u64());
        if let Err(errno) = fd.map_or(Ok(()), |fd| epoll::add(&self.epoll, fd, token, events)) {
            self.discard(key);
            return Err(errno);
        }
        if flags.has(Flags::CONNECTING) {
            self.counts.opened += 1;
            if is_datagram {
                self.enqueue(key);
            }
        }
        Ok(key)
    }

    /// Asks the kernel to report room for datagrams, or no more.
    pub(crate) fn watch_room(&self, key: Key, wants_room: bool) {
        if let Some(fd) = self.slab.get(key).and_then(Slot::fd) {
            let mut events = DATAGRAM_EVENTS;
            events.set(EventFlags::OUT, wants_room);
            // It is watched already, so that there is nothing to fail for want of memory.
            let _ = epoll::modify(&self.epoll, fd, EventData::new_u64(key.to_u64()), events);
        }
    }

    pub(crate) fn listen(&mut self, fd: OwnedFd) -> Result<ListenerId, Errno> {
        let id = ListenerId(self.listeners.len() as u32);
        self.listeners.push(fd);
        self.watch_listener(id).map(|()| id)
    }

    pub(crate) fn watch_listener(&self, id: ListenerId) -> Result<(), Errno> {
        let token = EventData::new_u64(Slab::reserved(id.0).to_u64());
        let fd = &self.listeners[id.0 as usize];
        epoll::add(&self.epoll, fd, token, EventFlags::IN)
    }

    /// Stops watching a listener that has no descriptor to accept with; true if it was watched.
    pub(crate) fn rest_listener(&mut self, id: ListenerId) -> bool {
        self.counts.accept_failures += 1;
        epoll::delete(&self.epoll, &self.listeners[id.0 as usize]).is_ok()
    }

    pub(crate) fn accept(&mut self, listener: ListenerId) -> Result<Key, Errno> {
        if self.is_full() {
            return Err(Errno::MFILE);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::accept_with(&self.listeners[listener.0 as usize], flags)?;
        let key = self.watch(fd, Flags::default())?;
        self.counts.accepted += 1;
        Ok(key)
    }

    /// Marks the connection as ended; the handler is notified at the end of the turn. An earlier
    /// failure of a write is the reason, if there was one.
    pub(crate) fn end(&mut self, key: Key, why: Closed) {
        let failure = self.slab.rare(key).and_then(|rare| rare.failure);
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::FINISHING) {
            return self.discard(key);
        }
        if !slot.flags.has(Flags::ENDED) {
            slot.flags.add(Flags::ENDED);
            self.endings.push_back((key, failure.unwrap_or(why)));
        }
    }

    /// Frees the socket and closes its descriptor.
    pub(crate) fn discard(&mut self, key: Key) {
        self.count_drops(key);
        if let Some((_closed_here, buffers)) = self.slab.remove(key) {
            for buffer in buffers.into_iter().filter(|buffer| buffer.is_some()) {
                self.pool.give_back(buffer);
            }
        }
    }

    pub(crate) fn shut_output(&mut self, key: Key) {
        if let Some(fd) = self.slab.get(key).and_then(Slot::fd) {
            // A socket that is gone needs no FIN; reading it reports that.
            let _ = rustix::net::shutdown(fd, Shutdown::Write);
        }
    }

    /// Counts the datagrams that a UDP socket dropped and that are not counted yet.
    pub(crate) fn count_drops(&mut self, key: Key) {
        let slot = self.slab.get(key);
        let slot = slot.filter(|slot| slot.flags.has(Flags::DATAGRAM));
        if let Some(dropped) = slot.and_then(Slot::fd).and_then(udp::dropped) {
            self.note_dropped(key, dropped);
        }
    }

    /// Takes note of the number of datagrams that a socket has dropped since it was made.
    pub(crate) fn note_dropped(&mut self, key: Key, dropped: u32) {
        if dropped > 0 {
            let before = mem::replace(&mut self.slab.rare_mut(key).dropped, dropped);
            self.counts.datagrams_dropped += u64::from(dropped.wrapping_sub(before));
        }
    }

    /// Returns true if the socket stands and holds nothing, so that a write would be tried.
    pub(crate) fn is_writable(&self, key: Key) -> bool {
        let barred = Flags::LOST.and(Flags::CONNECTING).and(Flags::BLOCKED);
        self.slab.get(key).is_some_and(|slot| {
            let waits = slot.held.is_some() && !slot.flags.has(Flags::DATAGRAM);
            !waits && !slot.flags.has(barred)
        })
    }

    /// Writes to a stream with one system call.
    pub(crate) fn write(&mut self, key: Key, bytes: &[u8]) -> Written {
        if self.slab.get(key).is_some_and(|slot| slot.held.is_some()) {
            return Written::Busy;
        }
        match self.send(key, bytes) {
            None => Written::Lost,
            Some(taken) if taken == bytes.len() => Written::Whole,
            Some(taken) => match self.held(key) {
                Some(buffer) => {
                    buffer.extend_from_slice(&bytes[taken..]);
                    self.counts.held += 1;
                    Written::Held
                }
                None => {
                    if taken > 0 {
                        self.end(key, Closed::PoolExhausted);
                    }
                    Written::Exhausted
                }
            },
        }
    }

    /// Writes held bytes; true when none are left.
    pub(crate) fn flush(&mut self, key: Key) -> bool {
        let Some((bytes, at)) = self.take_held(key) else {
            return false;
        };
        let taken = self.send(key, &bytes[at..]);
        self.put_held(key, bytes, at + taken.unwrap_or(0))
    }

    /// Returns the number of bytes that the kernel took; none if the write failed.
    fn send(&mut self, key: Key, bytes: &[u8]) -> Option<usize> {
        let fd = self.slab.get(key).and_then(Slot::fd)?;
        let sent = rustix::net::send(fd, bytes, SendFlags::NOSIGNAL);
        self.counts.writes += 1;
        match sent {
            Ok(taken) => {
                self.counts.bytes_out += taken as u64;
                Some(taken)
            }
            Err(Errno::AGAIN | Errno::INTR) => Some(0),
            Err(errno) => {
                self.fail(key, socket::failure(errno));
                None
            }
        }
    }

    /// A write failed. The peer's last bytes are still with the kernel, and may answer what was
    /// written: they are read to the end first. A connection that wants no input ends at once.
    fn fail(&mut self, key: Key, why: Closed) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::PAUSED.and(Flags::FINISHING)) {
            return self.end(key, why);
        }
        let unread = Flags::BROKEN.and(Flags::READABLE).and(Flags::HUNG);
        slot.flags.add(unread);
        self.slab.rare_mut(key).failure = Some(why);
        self.enqueue(key);
    }

    /// The buffer of bytes that wait to be sent, taken from the pool if nothing waits; none if the
    /// pool is empty.
    pub(crate) fn held(&mut self, key: Key) -> Option<&mut Vec<u8>> {
        let slot = self.slab.get_mut(key)?;
        if !slot.held.is_some() {
            let Some(buffer) = self.pool.take() else {
                self.counts.pool_exhausted += 1;
                return None;
            };
            slot.held = buffer;
            slot.held_at = 0;
        }
        Some(self.pool.get(slot.held))
    }

    /// Number of bytes that wait to be sent.
    pub(crate) fn waiting(&mut self, key: Key) -> usize {
        let slot = self.slab.get(key).filter(|slot| slot.held.is_some());
        slot.map_or(0, |slot| {
            self.pool.get(slot.held).len() - slot.held_at as usize
        })
    }

    /// Takes the bytes that wait out of their buffer until [`Sockets::put_held`], with the place
    /// from which on they wait.
    pub(crate) fn take_held(&mut self, key: Key) -> Option<(Vec<u8>, usize)> {
        let slot = self.slab.get(key).filter(|slot| slot.held.is_some())?;
        let bytes = mem::take(self.pool.get(slot.held));
        Some((bytes, slot.held_at as usize))
    }

    /// Puts the bytes back, which wait from `at` on; true if none do.
    pub(crate) fn put_held(&mut self, key: Key, bytes: Vec<u8>, at: usize) -> bool {
        let Some(slot) = self.slab.get_mut(key) else {
            return false;
        };
        let is_done = at == bytes.len();
        *self.pool.get(slot.held) = bytes;
        slot.held_at = at as u32;
        if is_done {
            self.pool
                .give_back(mem::replace(&mut slot.held, BufferId::NONE));
        }
        is_done
    }

    /// One read of a stream; none if there is nothing to present.
    pub(crate) fn read(&mut self, key: Key, room: &mut [u8]) -> Option<usize> {
        let fd = self.slab.get(key).and_then(Slot::fd)?;
        let got = rustix::net::recv(fd, &mut *room, RecvFlags::empty());
        self.account_read(key, got.map(|(count, _)| count), room.len())
    }

    /// Counts a read; none if there is nothing to present. A short read has emptied the socket,
    /// and the next byte raises a new event, unless the end was announced with the last one.
    fn account_read(&mut self, key: Key, got: Result<usize, Errno>, room: usize) -> Option<usize> {
        self.counts.reads += 1;
        let slot = self.slab.get_mut(key)?;
        match got {
            Ok(0) => self.end(key, Closed::Peer),
            Ok(count) => {
                self.counts.bytes_in += count as u64;
                if count < room && !slot.flags.has(Flags::HUNG) {
                    slot.flags.remove(Flags::READABLE);
                }
                return Some(count);
            }
            Err(Errno::AGAIN) if slot.flags.has(Flags::BROKEN) => self.end(key, Closed::Peer),
            Err(Errno::AGAIN) => slot.flags.remove(Flags::READABLE),
            Err(Errno::INTR) => self.enqueue(key),
            Err(errno) => self.end(key, socket::failure(errno)),
        }
        None
    }

    /// Keeps bytes that the handler left unread.
    pub(crate) fn keep(&mut self, key: Key, unread: &[u8]) {
        let Some(slot) = self.slab.get_mut(key) else {
            return;
        };
        match self.pool.take() {
            Some(buffer) => {
                self.pool.get(buffer).extend_from_slice(unread);
                slot.kept = buffer;
            }
            None => {
                self.counts.pool_exhausted += 1;
                self.end(key, Closed::PoolExhausted);
            }
        }
    }

    /// Takes the unread bytes out until [`Sockets::put_kept`], since the handler may end the
    /// connection meanwhile.
    pub(crate) fn take_kept(&mut self, key: Key) -> Option<(BufferId, Vec<u8>)> {
        let slot = self.slab.get_mut(key).filter(|slot| slot.kept.is_some())?;
        let buffer = mem::replace(&mut slot.kept, BufferId::NONE);
        Some((buffer, mem::take(self.pool.get(buffer))))
    }

    pub(crate) fn put_kept(&mut self, key: Key, buffer: BufferId, bytes: Vec<u8>) {
        let is_empty = bytes.is_empty();
        *self.pool.get(buffer) = bytes;
        match self.slab.get_mut(key) {
            Some(slot) if !is_empty => slot.kept = buffer,
            Some(_) | None => self.pool.give_back(buffer),
        }
    }
}
