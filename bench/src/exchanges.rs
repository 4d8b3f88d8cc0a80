//! The loop of the bare clients that send requests: one thread, one epoll, one unanswered request a link, nothing
//! accounted, timed as exactly as Muster. Rate 0 is saturated: a link sends on the answer. Else evenly paced, and
//! a request that comes due before the last answer is sent on that.

use std::io::Result;
use std::{num::NonZeroU64, time::Duration};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::thread::set_current_timer_slack;
use rustix::time::ClockId::{Monotonic, ThreadCPUTime};

use crate::{SECOND_NS, now, p99};

/// Handshakes under way, as Muster's.
const PENDING: usize = 128;

/// Requests and answers of a protocol.
pub trait Wire {
    /// Events of a socket; with [`EventFlags::OUT`] the first of that kind ends a handshake.
    const EVENTS: EventFlags;

    /// Opens the socket of a link.
    ///
    /// # Errors
    /// If the system refuses it.
    fn open(&self) -> Result<OwnedFd>;

    /// Sends the request of a number. A link's requests have numbers that follow each other.
    ///
    /// # Errors
    /// If the socket does not take it.
    fn send(&mut self, socket: &OwnedFd, number: u16) -> Result<()>;

    /// Receives the answer to it; false if nothing came.
    ///
    /// # Errors
    /// If anything else came.
    fn receive(&mut self, socket: &OwnedFd, number: u16) -> Result<bool>;
}

struct Link {
    socket: OwnedFd,
    is_open: bool,
    is_unanswered: bool,
    /// Of the request under way.
    number: u16,
    /// Due and not sent.
    owed: u64,
}

struct Bare<W> {
    wire: W,
    epoll: OwnedFd,
    events: Vec<Event>,
    links: Vec<Link>,
    opened: usize,
    answers: u64,
}

/// Opens `count` links, sends `rate` requests a second for `seconds`, and returns its account as JSON.
///
/// # Errors
/// If the system or the target refuses anything.
pub fn run<W: Wire>(wire: W, [count, rate, seconds]: [u64; 3]) -> Result<String> {
    let mut bare = Bare {
        wire,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(1024),
        links: Vec::new(),
        opened: 0,
        answers: 0,
    };
    set_current_timer_slack(NonZeroU64::new(1))?;
    bare.connect(count as usize)?;
    let (open_cpu, begin) = (now(ThreadCPUTime), now(Monotonic));
    let (end, mut late) = (begin + seconds * SECOND_NS, Vec::new());
    match rate {
        0 => bare.saturated(end)?,
        _ => bare.paced([begin, end, SECOND_NS / rate], &mut late)?,
    }
    let (cpu, wall) = (now(ThreadCPUTime) - open_cpu, now(Monotonic) - begin);
    let (answers, p99) = (bare.answers, p99(late));
    let counts = format!(r#""messages":{answers},"cpu_ns":{cpu},"wall_ns":{wall}"#);
    Ok(format!(r#"{{{counts},"lateness_p99_ns":{p99}}}"#))
}

impl<W: Wire> Bare<W> {
    fn connect(&mut self, count: usize) -> Result<()> {
        while self.opened < count {
            if self.links.len() < count.min(self.opened + PENDING) {
                self.open()?;
            } else {
                self.wait(SECOND_NS)?;
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let (socket, index) = (self.wire.open()?, self.links.len() as u64);
        epoll::add(
            &self.epoll,
            &socket,
            EventData::new_u64(index),
            W::EVENTS | EventFlags::ET,
        )?;
        let is_open = !W::EVENTS.contains(EventFlags::OUT);
        self.opened += usize::from(is_open);
        self.links.push(Link {
            socket,
            is_open,
            is_unanswered: false,
            number: 0,
            owed: 0,
        });
        Ok(())
    }

    fn saturated(&mut self, end: u64) -> Result<()> {
        for index in 0..self.links.len() {
            self.owe(index, u64::MAX)?;
        }
        while now(Monotonic) < end {
            self.wait(SECOND_NS)?;
        }
        Ok(())
    }

    fn paced(&mut self, [begin, end, period]: [u64; 3], late: &mut Vec<u64>) -> Result<()> {
        for due in (begin..end).step_by(period as usize) {
            let mut taken = now(Monotonic);
            while taken < due {
                self.wait(due - taken)?;
                taken = now(Monotonic);
            }
            let index = late.len() % self.links.len();
            late.push(taken - due);
            self.owe(index, 1)?;
        }
        Ok(())
    }

    /// Receives what comes within `wait_ns`.
    fn wait(&mut self, wait_ns: u64) -> Result<()> {
        let wait = Duration::from_nanos(wait_ns).try_into().ok();
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        for at in 0..epoll::wait(&self.epoll, room, wait.as_ref())? {
            let Event { flags, data } = self.events[at];
            let index = data.u64() as usize;
            if flags.contains(EventFlags::OUT) && !self.links[index].is_open {
                self.links[index].is_open = true;
                self.opened += 1;
            }
            if flags.contains(EventFlags::IN) {
                self.receive(index)?;
            }
        }
        Ok(())
    }

    fn owe(&mut self, index: usize, requests: u64) -> Result<()> {
        self.links[index].owed += requests;
        self.send(index)
    }

    /// Sends what is owed, if the last request has its answer.
    fn send(&mut self, index: usize) -> Result<()> {
        let link = &mut self.links[index];
        if link.is_unanswered || link.owed == 0 {
            return Ok(());
        }
        (link.is_unanswered, link.owed) = (true, link.owed - 1);
        link.number = link.number.wrapping_add(1);
        self.wire.send(&link.socket, link.number)
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        let link = &mut self.links[index];
        if !self.wire.receive(&link.socket, link.number)? {
            return Ok(());
        }
        (self.answers, link.is_unanswered) = (self.answers + 1, false);
        self.send(index)
    }
}
