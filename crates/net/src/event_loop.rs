//! One epoll loop on one thread, driving one handler.

mod udp;

use std::fmt;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;

use muster_model::Micros;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, sockopt};
use rustix::time::Timespec;

use crate::io::{Alarm, Poll};
use crate::pool::BufferId;
use crate::slab::{Flags, Slab};
use crate::udp::Inbox;
use crate::{Clock, Closed, Handler, Io, Key, ListenerId, LoopConfig, LoopError, socket};

/// Events taken from the kernel at once: enough to spread the cost of the call, few enough that
/// due work is not kept waiting.
const EVENTS_MAX: usize = 1_024;

/// The shortest sleep. Falling asleep and waking up costs about as much CPU as a small write, so a
/// loop that is wanted more often than this is better late by so little and has several things to
/// do when it wakes.
const WAIT_LEAST: Micros = Micros(25);

/// One epoll loop on one thread, driving one handler.
pub struct Loop<H> {
    handler: H,
    io: Io,
    scratch: Vec<u8>,
    /// Made for the first datagram.
    inbox: Option<Box<Inbox>>,
    serving: Vec<Key>,
    wanted: Option<Micros>,
}

impl<H: fmt::Debug> fmt::Debug for Loop<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop")
            .field("handler", &self.handler)
            .field("io", &self.io)
            .finish()
    }
}

impl<H: Handler> Loop<H> {
    /// Bytes read from one connection in one turn, so that one peer cannot starve the others.
    const READ_MAX: usize = 64 * 1024;
    /// Room for a read behind unread bytes.
    const READ_BEHIND: usize = 16 * 1024;
    /// Connections accepted in one turn.
    const ACCEPT_MAX: usize = 256;
    /// Pause of accepting when no descriptor is left.
    const ACCEPT_REST: Micros = Micros::from_millis(50);

    /// A loop that has not run yet.
    ///
    /// # Errors
    /// [`LoopError`] if the kernel has no descriptor for it.
    pub fn new(clock: Clock, config: &LoopConfig, handler: H) -> Result<Self, LoopError> {
        let io = Io::new(clock, config).map_err(|errno| LoopError::of("start", errno))?;
        Ok(Self {
            handler,
            io,
            scratch: vec![0; Self::READ_MAX],
            inbox: None,
            serving: Vec::new(),
            wanted: Some(Micros::ZERO),
        })
    }

    /// The handler and its io, to set up before and to read out after running.
    pub fn parts(&mut self) -> (&mut H, &mut Io) {
        (&mut self.handler, &mut self.io)
    }

    /// The handler, when the loop is no longer needed; its sockets are closed.
    pub fn into_handler(self) -> H {
        self.handler
    }

    /// Runs on this thread until [`Io::stop`].
    ///
    /// # Errors
    /// [`LoopError`] if waiting for events fails.
    pub fn run(&mut self) -> Result<(), LoopError> {
        precise_wake_ups();
        self.io.stopping = false;
        while !self.io.stopping {
            self.turn(Micros::MAX)?;
        }
        Ok(())
    }

    /// One turn: waits for events, due timers or work, at most `wait_max`, and handles them.
    ///
    /// # Errors
    /// [`LoopError`] if waiting for events fails.
    pub fn turn(&mut self, wait_max: Micros) -> Result<(), LoopError> {
        let wait = self.wait(wait_max);
        let mut space = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let asked = self.io.clock().now();
        let mut again = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match self.poll(wait, &mut space)? {
            Some(events) => events,
            // A process that was stopped is interrupted when it goes on: what came meanwhile is there.
            None => self.poll(Micros::ZERO, &mut again)?.unwrap_or_default(),
        };
        let now = self.io.fresh_now();
        self.io.turns.woke(&Poll { asked, wait }, now, events.len());
        self.handler.turn_begins(&mut self.io);
        self.io.counts.turns += 1;
        self.serve_ready();
        for Event { flags, data } in events.iter().copied() {
            self.dispatch(Key::from_u64(data.u64()), flags);
        }
        let is_behind = events.len() == EVENTS_MAX || !self.io.ready.is_empty();
        self.io.turns.presented(is_behind);
        self.run_timers();
        // Before the handler's own turn, which takes up what it does about them; of those that end
        // in it, it hears at once in the next one.
        self.tell_endings();
        self.wanted = self.handler.turn(&mut self.io);
        self.io.send_all_gathered();
        Ok(())
    }

    fn wait(&mut self, wait_max: Micros) -> Micros {
        let has_work = !self.io.ready.is_empty()
            || !self.io.endings.is_empty()
            || !self.io.datagrams.gathering.is_empty();
        if has_work {
            return Micros::ZERO;
        }
        let next = match (self.wanted, self.io.wheel.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match next {
            Some(Micros::ZERO) => Micros::ZERO,
            Some(at) => match at - self.io.fresh_now() {
                Micros::ZERO => Micros::ZERO,
                wait => wait.max(WAIT_LEAST).min(wait_max),
            },
            None => wait_max,
        }
    }

    /// Waits up to `wait` for events; none if a signal came first.
    fn poll<'a>(
        &self,
        wait: Micros,
        space: &'a mut [MaybeUninit<Event>],
    ) -> Result<Option<&'a [Event]>, LoopError> {
        let timeout = (wait != Micros::MAX).then(|| Timespec {
            tv_sec: (wait.get() / 1_000_000) as i64,
            tv_nsec: (wait.get() % 1_000_000 * 1_000) as i64,
        });
        match epoll::wait(&self.io.epoll, space, timeout.as_ref()) {
            Ok((events, _)) => Ok(Some(events)),
            Err(Errno::INTR) => Ok(None),
            Err(errno) => Err(LoopError::of("wait for events", errno)),
        }
    }

    /// Connections with more input than one turn may read, and those that were resumed.
    fn serve_ready(&mut self) {
        std::mem::swap(&mut self.io.ready, &mut self.serving);
        for at in 0..self.serving.len() {
            let key = self.serving[at];
            if let Some(slot) = self.io.slab.get_mut(key) {
                slot.flags.remove(Flags::QUEUED);
                self.serve(key);
            }
        }
        self.serving.clear();
    }

    fn dispatch(&mut self, key: Key, events: EventFlags) {
        if key.generation == Slab::RESERVED_GENERATION {
            if key.index == u32::MAX {
                self.io.waker_noticed();
                return self.handler.woken(&mut self.io);
            }
            return self.accept(ListenerId(key.index));
        }
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::DATAGRAM) {
            return self.datagram_event(key, events);
        }
        if events.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            slot.flags.add(Flags::HUNG);
        }
        if slot.flags.has(Flags::CONNECTING) {
            return self.shake(key, events);
        }
        let has_held = slot.held.is_some();
        if events.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            slot.flags.add(Flags::READABLE);
        }
        let is_broken = slot.flags.has(Flags::BROKEN);
        if has_held && !is_broken && events.contains(EventFlags::OUT) {
            self.flush(key);
        }
        self.serve(key);
    }

    /// The handshake is over, one way or the other.
    fn shake(&mut self, key: Key, events: EventFlags) {
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        let Some(fd) = &slot.fd else { return };
        if events.intersects(EventFlags::ERR | EventFlags::HUP) {
            let errno = sockopt::socket_error(fd).and_then(|pending| pending).err();
            let why = errno.map_or(Closed::Reset, socket::handshake_failure);
            return self.io.end(key, why);
        }
        if events.contains(EventFlags::OUT) {
            slot.flags.remove(Flags::CONNECTING);
            if events.intersects(EventFlags::IN | EventFlags::RDHUP) {
                slot.flags.add(Flags::READABLE);
            }
            self.handler.opened(&mut self.io, key);
            self.serve(key);
        }
    }

    fn flush(&mut self, key: Key) {
        if !self.io.flush(key) {
            return;
        }
        let finishing = self
            .io
            .slab
            .get(key)
            .is_some_and(|slot| slot.flags.has(Flags::FINISHING));
        if finishing {
            self.io.shut_output(key);
        } else {
            self.handler.flushed(&mut self.io, key);
        }
    }

    fn accept(&mut self, listener: ListenerId) {
        for _ in 0..Self::ACCEPT_MAX {
            if self.io.slab.is_full() {
                return self.rest_accepting(listener);
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let taken = rustix::net::accept_with(&self.io.listeners[listener.0 as usize], flags);
            match taken.and_then(|fd| self.io.watch(fd, Flags::default())) {
                Ok(key) => {
                    self.io.counts.accepted += 1;
                    self.handler.accepted(&mut self.io, key, listener);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return self.rest_accepting(listener);
                }
                // The peer gave up between its handshake and our call (accept(2)).
                Err(_) => {}
            }
        }
    }

    fn rest_accepting(&mut self, listener: ListenerId) {
        self.io.counts.accept_failures += 1;
        let fd = &self.io.listeners[listener.0 as usize];
        if epoll::delete(&self.io.epoll, fd).is_ok() {
            self.io
                .wheel
                .set(self.io.now + Self::ACCEPT_REST, Alarm::Accept(listener));
        }
    }

    /// Presents what there is to read, as far as the handler wants it and one turn allows.
    fn serve(&mut self, key: Key) {
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::DATAGRAM) {
            return self.serve_datagrams(key);
        }
        let barred = [
            Flags::PAUSED,
            Flags::RESTING,
            Flags::ENDED,
            Flags::CONNECTING,
        ];
        if barred.iter().any(|flag| slot.flags.has(*flag)) {
            return;
        }
        if slot.flags.has(Flags::FINISHING) {
            return self.discard_input(key);
        }
        if slot.flags.has(Flags::PRESENT) {
            slot.flags.remove(Flags::PRESENT);
            if slot.kept.is_some() {
                self.present_kept(key);
                return self.serve_again(key);
            }
        }
        if slot.flags.has(Flags::READABLE) {
            if slot.kept.is_some() {
                self.read_behind(key);
            } else {
                self.read(key);
            }
        }
    }

    /// One read into the loop's own buffer.
    fn read(&mut self, key: Key) {
        let room = self.room(key, Self::READ_MAX);
        let Some(fd) = self.io.slab.get(key).and_then(|slot| slot.fd.as_ref()) else {
            return;
        };
        let got = rustix::net::recv(fd, &mut self.scratch[..room], RecvFlags::empty());
        let Some(count) = self.account_read(key, got.map(|(count, _)| count), room) else {
            return;
        };
        let used = self
            .handler
            .received(&mut self.io, key, &mut self.scratch[..count]);
        if used < count {
            self.keep(key, used, count);
        }
        self.serve_again(key);
    }

    /// One read behind unread bytes.
    fn read_behind(&mut self, key: Key) {
        let room = self.room(key, Self::READ_BEHIND);
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        let Some(fd) = &slot.fd else { return };
        let kept = self.io.pool.get(slot.kept);
        let before = kept.len();
        kept.resize(before + room, 0);
        let got = rustix::net::recv(fd, &mut kept[before..], RecvFlags::empty());
        let got = got.map(|(count, _)| count);
        kept.truncate(before + got.unwrap_or(0));
        if self.account_read(key, got, room).is_some() {
            self.present_kept(key);
            self.serve_again(key);
        }
    }

    /// Returns how much may be read; begins a pause for a connection with a read limit.
    fn room(&mut self, key: Key, most: usize) -> usize {
        let limit = self.io.limits.get(&key.index).copied();
        let limited = self
            .io
            .slab
            .get_mut(key)
            .filter(|slot| slot.flags.has(Flags::LIMITED));
        let (Some(limit), Some(slot)) = (limit, limited) else {
            return most;
        };
        slot.flags.add(Flags::RESTING);
        self.io
            .wheel
            .set(self.io.now + limit.every, Alarm::Rested(key));
        most.min(limit.bytes as usize)
    }

    /// Books a read; none if there is nothing to present. A short read has emptied the socket,
    /// and the next byte raises a new event, unless the end was announced with the last one.
    fn account_read(&mut self, key: Key, got: Result<usize, Errno>, room: usize) -> Option<usize> {
        self.io.counts.reads += 1;
        let slot = self.io.slab.get_mut(key)?;
        match got {
            Ok(0) => self.io.end(key, Closed::Peer),
            Ok(count) => {
                self.io.counts.bytes_in += count as u64;
                if count < room && !slot.flags.has(Flags::HUNG) {
                    slot.flags.remove(Flags::READABLE);
                }
                return Some(count);
            }
            Err(Errno::AGAIN) if slot.flags.has(Flags::BROKEN) => self.io.end(key, Closed::Peer),
            Err(Errno::AGAIN) => slot.flags.remove(Flags::READABLE),
            Err(Errno::INTR) => self.io.enqueue(key),
            Err(errno) => self.io.end(key, socket::failure(errno)),
        }
        None
    }

    fn keep(&mut self, key: Key, used: usize, count: usize) {
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        let Some(buffer) = self.io.pool.take() else {
            self.io.counts.pool_exhausted += 1;
            return self.io.end(key, Closed::PoolExhausted);
        };
        self.io
            .pool
            .get(buffer)
            .extend_from_slice(&self.scratch[used..count]);
        slot.kept = buffer;
    }

    /// Presents unread bytes again. The buffer is taken out meanwhile, since the handler may end
    /// the connection.
    fn present_kept(&mut self, key: Key) {
        let Some(slot) = self.io.slab.get_mut(key) else {
            return;
        };
        let buffer = std::mem::replace(&mut slot.kept, BufferId::NONE);
        let mut bytes = std::mem::take(self.io.pool.get(buffer));
        let used = self.handler.received(&mut self.io, key, &mut bytes);
        bytes.drain(..used.min(bytes.len()));
        let overrun = bytes.len() > self.io.kept_max as usize;
        let empty = bytes.is_empty();
        *self.io.pool.get(buffer) = bytes;
        match self.io.slab.get_mut(key) {
            Some(slot) if !empty => slot.kept = buffer,
            Some(_) | None => self.io.pool.give_back(buffer),
        }
        if overrun {
            self.io.end(key, Closed::Overrun);
        }
    }

    fn serve_again(&mut self, key: Key) {
        let more = self.io.slab.get(key).is_some_and(|slot| {
            slot.flags.has(Flags::READABLE)
                && !slot.flags.has(Flags::PAUSED)
                && !slot.flags.has(Flags::RESTING)
        });
        if more {
            self.io.enqueue(key);
        }
    }

    fn discard_input(&mut self, key: Key) {
        let Some(fd) = self.io.slab.get(key).and_then(|slot| slot.fd.as_ref()) else {
            return;
        };
        let got = rustix::net::recv(fd, self.scratch.as_mut_slice(), RecvFlags::empty());
        if self
            .account_read(key, got.map(|(count, _)| count), Self::READ_MAX)
            .is_some()
        {
            self.serve_again(key);
        }
    }

    fn run_timers(&mut self) {
        while let Some(alarm) = self.io.wheel.expire(self.io.now) {
            match alarm {
                Alarm::Handler(token) => self.handler.timer(&mut self.io, token),
                Alarm::Linger(key) => self.io.discard(key),
                Alarm::Rested(key) => {
                    if let Some(slot) = self.io.slab.get_mut(key) {
                        slot.flags.remove(Flags::RESTING);
                        self.serve(key);
                    }
                }
                Alarm::Accept(listener) => {
                    if self.io.watch_listener(listener).is_err() {
                        let at = self.io.now + Self::ACCEPT_REST;
                        self.io.wheel.set(at, Alarm::Accept(listener));
                    }
                }
            }
        }
    }

    /// Tells the handler of the connections that ended in this turn.
    fn tell_endings(&mut self) {
        let mut at = 0;
        while let Some((key, why)) = self.io.endings.get(at).copied() {
            at += 1;
            if self.io.slab.get(key).is_some() {
                self.handler.closed(&mut self.io, key, why);
                self.io.discard(key);
            }
        }
        self.io.endings.clear();
    }
}

/// Lets the kernel wake this thread to the microsecond; by default it may be 50 us late
/// (`PR_SET_TIMERSLACK`, prctl(2)).
fn precise_wake_ups() {
    // Where it is refused, wake-ups are late by the default slack, which lateness shows.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
