//! One epoll loop on one thread, driving one handler.

mod udp;

use std::mem::MaybeUninit;
use std::num::NonZeroU64;

use muster_model::Micros;
use rustix::event::epoll::{Event, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::io::{Alarm, Poll};
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

/// Events that an end, orderly or not, is reported by.
const HANG_UP: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
/// States in which nothing is read.
const UNREAD: Flags = Flags::PAUSED
    .and(Flags::RESTING)
    .and(Flags::ENDED)
    .and(Flags::CONNECTING);

/// One epoll loop on one thread, driving one handler.
#[derive(Debug)]
pub struct Loop<H> {
    handler: H,
    io: Io,
    scratch: Vec<u8>,
    /// Made for the first datagram.
    inbox: Option<Box<Inbox>>,
    kept_max: usize,
    wanted: Option<Micros>,
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
        let io = Io::new(clock, config).map_err(|errno| LoopError::new("start", errno))?;
        Ok(Self {
            handler,
            io,
            scratch: vec![0; Self::READ_MAX],
            inbox: None,
            kept_max: config.kept_max as usize,
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
        let failed = |errno| LoopError::new("wait for events", errno);
        let events = match self.io.sockets.poll(wait, &mut space).map_err(failed)? {
            Some(events) => events,
            // A process that was stopped is interrupted when it goes on: what came meanwhile is there.
            None => {
                let events = self.io.sockets.poll(Micros::ZERO, &mut again);
                events.map_err(failed)?.unwrap_or_default()
            }
        };
        let now = self.io.fresh_now();
        self.io.turns.woke(&Poll { asked, wait }, now, events.len());
        self.handler.turn_begins(&mut self.io);
        self.io.sockets.counts.turns += 1;
        self.serve_ready();
        for Event { flags, data } in events.iter().copied() {
            self.dispatch(Key::from_u64(data.u64()), flags);
        }
        let is_behind = events.len() == EVENTS_MAX || self.io.sockets.ready() > 0;
        self.io.turns.presented(is_behind);
        self.run_timers();
        // Before the handler's own turn, which takes up what it does about them; of those that end
        // in it, it hears at once in the next one.
        self.report_endings();
        self.wanted = self.handler.turn(&mut self.io);
        self.io.datagrams.send_all(&mut self.io.sockets);
        Ok(())
    }

    fn wait(&mut self, wait_max: Micros) -> Micros {
        if self.io.sockets.has_work() || self.io.datagrams.are_gathered() {
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

    /// Connections with more input than one turn may read, and those that were resumed.
    fn serve_ready(&mut self) {
        for _ in 0..self.io.sockets.ready() {
            if let Some(key) = self.io.sockets.next_ready() {
                self.serve(key);
            }
        }
    }

    fn dispatch(&mut self, key: Key, events: EventFlags) {
        if key.generation == Slab::RESERVED_GENERATION {
            if key.index == u32::MAX {
                self.io.waker_noticed();
                return self.handler.woken(&mut self.io);
            }
            return self.accept(ListenerId(key.index));
        }
        let Some(slot) = self.io.sockets.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::DATAGRAM) {
            return self.datagram_event(key, events);
        }
        if events.intersects(HANG_UP) {
            slot.flags.add(Flags::HUNG);
        }
        if slot.flags.has(Flags::CONNECTING) {
            return self.shake(key, events);
        }
        if events.intersects(HANG_UP | EventFlags::IN) {
            slot.flags.add(Flags::READABLE);
        }
        let may_flush = slot.held.is_some() && !slot.flags.has(Flags::BROKEN);
        if may_flush && events.contains(EventFlags::OUT) {
            self.flush(key);
        }
        self.serve(key);
    }

    /// The handshake is over, one way or the other.
    fn shake(&mut self, key: Key, events: EventFlags) {
        let Some(slot) = self.io.sockets.get_mut(key) else {
            return;
        };
        if events.intersects(EventFlags::ERR | EventFlags::HUP) {
            let pending = slot.fd().map(sockopt::socket_error);
            let errno = pending.and_then(|pending| pending.flatten().err());
            let why = errno.map_or(Closed::Reset, socket::handshake_failure);
            return self.io.sockets.end(key, why);
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
        if !self.io.sockets.flush(key) {
            return;
        }
        let slot = self.io.sockets.get(key);
        if slot.is_some_and(|slot| slot.flags.has(Flags::FINISHING)) {
            self.io.sockets.shut_output(key);
        } else {
            self.handler.flushed(&mut self.io, key);
        }
    }

    fn accept(&mut self, listener: ListenerId) {
        for _ in 0..Self::ACCEPT_MAX {
            match self.io.sockets.accept(listener) {
                Ok(key) => self.handler.accepted(&mut self.io, key, listener),
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    if self.io.sockets.rest_listener(listener) {
                        self.accept_later(listener);
                    }
                    return;
                }
                // The peer gave up between its handshake and our call (accept(2)).
                Err(_) => {}
            }
        }
    }

    fn accept_later(&mut self, listener: ListenerId) {
        let at = self.io.now() + Self::ACCEPT_REST;
        self.io.wheel.set(at, Alarm::Accept(listener));
    }

    /// Presents what there is to read, within what the handler wants and one turn allows.
    fn serve(&mut self, key: Key) {
        let Some(slot) = self.io.sockets.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::DATAGRAM) {
            return self.serve_datagrams(key);
        }
        if slot.flags.has(UNREAD) {
            return;
        }
        if slot.flags.has(Flags::FINISHING) {
            return self.discard_input(key);
        }
        let presents = slot.flags.has(Flags::PRESENT);
        slot.flags.remove(Flags::PRESENT);
        let is_readable = slot.flags.has(Flags::READABLE);
        match slot.kept.is_some() {
            true if presents => self.present_kept(key, 0),
            true if is_readable => {
                let room = self.io.read_room(key, Self::READ_BEHIND);
                self.present_kept(key, room);
            }
            false if is_readable => self.read(key),
            true | false => {}
        }
    }

    /// One read into the loop's own buffer.
    fn read(&mut self, key: Key) {
        let room = self.io.read_room(key, Self::READ_MAX);
        let room = &mut self.scratch[..room];
        let Some(count) = self.io.sockets.read(key, room) else {
            return;
        };
        let used = self.handler.received(&mut self.io, key, &mut room[..count]);
        if used < count {
            self.io.sockets.keep(key, &room[used..count]);
        }
        self.serve_again(key);
    }

    /// Presents unread bytes again, after a read of up to `room` bytes behind them if that is
    /// above zero.
    fn present_kept(&mut self, key: Key, room: usize) {
        let Some((buffer, mut bytes)) = self.io.sockets.take_kept(key) else {
            return;
        };
        if room > 0 {
            let before = bytes.len();
            bytes.resize(before + room, 0);
            let count = self.io.sockets.read(key, &mut bytes[before..]);
            bytes.truncate(before + count.unwrap_or(0));
            if count.is_none() {
                return self.io.sockets.put_kept(key, buffer, bytes);
            }
        }
        let used = self.handler.received(&mut self.io, key, &mut bytes);
        bytes.drain(..used.min(bytes.len()));
        let overruns = bytes.len() > self.kept_max;
        self.io.sockets.put_kept(key, buffer, bytes);
        if overruns {
            self.io.sockets.end(key, Closed::Overrun);
        }
        self.serve_again(key);
    }

    fn serve_again(&mut self, key: Key) {
        let more = self.io.sockets.get(key).is_some_and(|slot| {
            let waits = Flags::PAUSED.and(Flags::RESTING);
            slot.flags.has(Flags::READABLE) && !slot.flags.has(waits)
        });
        if more {
            self.io.sockets.enqueue(key);
        }
    }

    fn discard_input(&mut self, key: Key) {
        if self.io.sockets.read(key, &mut self.scratch).is_some() {
            self.serve_again(key);
        }
    }

    fn run_timers(&mut self) {
        while let Some(alarm) = self.io.wheel.expire(self.io.now()) {
            match alarm {
                Alarm::Handler(token) => self.handler.timer(&mut self.io, token),
                Alarm::Linger(key) => self.io.close(key),
                Alarm::Rested(key) => {
                    if let Some(slot) = self.io.sockets.get_mut(key) {
                        slot.flags.remove(Flags::RESTING);
                        self.serve(key);
                    }
                }
                Alarm::Accept(listener) => {
                    if self.io.sockets.watch_listener(listener).is_err() {
                        self.accept_later(listener);
                    }
                }
            }
        }
    }

    /// Reports the connections that ended in this turn.
    fn report_endings(&mut self) {
        while let Some((key, why)) = self.io.sockets.next_ending() {
            if self.io.sockets.get(key).is_some() {
                self.handler.closed(&mut self.io, key, why);
                self.io.close(key);
            }
        }
    }
}

/// Lets the kernel wake this thread to the microsecond; by default it may be 50 us late
/// (`PR_SET_TIMERSLACK`, prctl(2)).
fn precise_wake_ups() {
    // Where it is refused, wake-ups are late by the default slack, which lateness shows.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
