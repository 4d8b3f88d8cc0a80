//! The kernel's share over HTTP: one thread, one epoll loop, a kept connection a link, nothing accounted. Posts 100
//! bytes, one unanswered request a link, timed as exactly as Muster; prints JSON. Rate 0 is saturated: a link sends
//! on the answer. Else evenly paced, and what comes due before the last answer is sent on that.

use std::io::{Error, Result, Write, stdout};
use std::{net::SocketAddr, num::NonZeroU64, time::Duration};

use muster_bench::{SECOND_NS, arguments, now, p99, unless};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::thread::set_current_timer_slack;
use rustix::time::ClockId::{Monotonic, ThreadCPUTime};

/// Handshakes under way, as Muster's.
const PENDING: usize = 128;
/// Beginning and end of every answer of the target, which is short enough to come in one piece.
const BEGIN: &[u8] = b"HTTP/1.1 202 ";
const END: &[u8] = b"\r\n\r\n";

struct Link {
    socket: OwnedFd,
    is_open: bool,
    is_unanswered: bool,
    /// Due and not sent.
    owed: u64,
}

struct Bare {
    epoll: OwnedFd,
    events: Vec<Event>,
    links: Vec<Link>,
    request: Vec<u8>,
    opened: usize,
    answers: u64,
}

fn main() -> Result<()> {
    let (to, [count, rate, seconds]) = arguments("bare-http ADDRESS LINKS RATE SECONDS")?;
    let fields = "Content-Type: application/octet-stream\r\nContent-Length: 100";
    let head = format!(
        "POST /telemetry/DEFAULT_TENANT/d-00000 HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n\r\n"
    );
    let mut bare = Bare {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(1024),
        links: Vec::new(),
        request: [head.as_bytes(), &[b'x'; 100]].concat(),
        opened: 0,
        answers: 0,
    };
    set_current_timer_slack(NonZeroU64::new(1))?;
    bare.connect(to, count as usize)?;
    let (open_cpu, begin) = (now(ThreadCPUTime), now(Monotonic));
    let (end, mut late) = (begin + seconds * SECOND_NS, Vec::new());
    match rate {
        0 => bare.saturated(end)?,
        _ => bare.paced([begin, end, SECOND_NS / rate], &mut late)?,
    }
    let (cpu, wall) = (now(ThreadCPUTime) - open_cpu, now(Monotonic) - begin);
    let (answers, p99) = (bare.answers, p99(late));
    let counts = format!(r#""messages":{answers},"cpu_ns":{cpu},"wall_ns":{wall}"#);
    writeln!(stdout(), r#"{{{counts},"lateness_p99_ns":{p99}}}"#)
}

impl Bare {
    fn connect(&mut self, to: SocketAddr, count: usize) -> Result<()> {
        while self.opened < count {
            while self.links.len() < count.min(self.opened + PENDING) {
                self.open(to, self.links.len())?;
            }
            self.wait(SECOND_NS)?;
        }
        Ok(())
    }

    fn open(&mut self, to: SocketAddr, index: usize) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        unless(Errno::INPROGRESS, (), connect(&socket, &to))?;
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(
            &self.epoll,
            &socket,
            EventData::new_u64(index as u64),
            events,
        )?;
        self.links.push(Link {
            socket,
            is_open: false,
            is_unanswered: false,
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
            let link = &mut self.links[data.u64() as usize];
            if flags.contains(EventFlags::OUT) && !link.is_open {
                link.is_open = true;
                self.opened += 1;
            }
            if flags.contains(EventFlags::IN) {
                self.receive(data.u64() as usize)?;
            }
        }
        Ok(())
    }

    fn owe(&mut self, index: usize, messages: u64) -> Result<()> {
        self.links[index].owed += messages;
        self.send(index)
    }

    /// Sends what is owed, if the last request has its answer.
    fn send(&mut self, index: usize) -> Result<()> {
        let link = &mut self.links[index];
        if link.is_unanswered || link.owed == 0 {
            return Ok(());
        }
        (link.is_unanswered, link.owed) = (true, link.owed - 1);
        // One request is far less than a socket takes.
        match write(&link.socket, &self.request)? {
            taken if taken == self.request.len() => Ok(()),
            _ => Err(Error::other("a socket took only a part of a request")),
        }
    }

    /// Takes the answer to what is under way.
    fn receive(&mut self, index: usize) -> Result<()> {
        let (link, mut bytes) = (&mut self.links[index], [0; 256]);
        let got = unless(Errno::AGAIN, None, read(&link.socket, &mut bytes).map(Some))?;
        match got {
            None => return Ok(()),
            Some(got) if bytes.starts_with(BEGIN) && bytes[..got].ends_with(END) => {}
            Some(_) => return Err(Error::other("the target says something else")),
        }
        (self.answers, link.is_unanswered) = (self.answers + 1, false);
        self.send(index)
    }
}
