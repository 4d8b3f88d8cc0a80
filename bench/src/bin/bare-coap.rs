//! The kernel's share over CoAP: one thread, one epoll loop, a socket a link, nothing accounted. Sends 100 bytes in
//! a confirmable request, one unanswered a link, timed as exactly as Muster; prints JSON. Rate 0 is saturated: a link
//! sends on the answer. Else evenly paced, and what comes due before the last answer is sent on that.

use std::io::{Error, Result, Write, stdout};
use std::{net::SocketAddr, num::NonZeroU64, time::Duration};

use muster_bench::{SECOND_NS, arguments, now, p99, unless};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use rustix::thread::set_current_timer_slack;
use rustix::time::ClockId::{Monotonic, ThreadCPUTime};

/// A confirmable POST on `/telemetry`, a token of two bytes, octet-stream (RFC 7252 section 3); the message id
/// and the token are written over.
const HEAD: &[u8] = b"\x42\x02\0\0\0\0\xb9telemetry\x11\x2a\xff";
/// Position of message id and token.
const ID: std::ops::Range<usize> = 2..4;
const TOKEN: std::ops::Range<usize> = 4..6;

struct Link {
    socket: OwnedFd,
    /// Of the request under way; its token is the same.
    id: u16,
    is_unanswered: bool,
    /// Due and not sent.
    owed: u64,
}

struct Bare {
    epoll: OwnedFd,
    events: Vec<Event>,
    links: Vec<Link>,
    request: Vec<u8>,
    answers: u64,
}

fn main() -> Result<()> {
    let (to, [count, rate, seconds]) = arguments("bare-coap ADDRESS LINKS RATE SECONDS")?;
    let mut bare = Bare {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(1024),
        links: Vec::new(),
        request: [HEAD, &[b'x'; 100]].concat(),
        answers: 0,
    };
    set_current_timer_slack(NonZeroU64::new(1))?;
    for index in 0..count {
        bare.open(to, index)?;
    }
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
    fn open(&mut self, to: SocketAddr, index: u64) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        connect(&socket, &to)?;
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(index), events)?;
        self.links.push(Link {
            socket,
            id: 0,
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
            self.receive(self.events[at].data.u64() as usize)?;
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
        link.id = link.id.wrapping_add(1);
        self.request[ID].copy_from_slice(&link.id.to_be_bytes());
        self.request[TOKEN].copy_from_slice(&link.id.to_be_bytes());
        send(&link.socket, &self.request, SendFlags::empty())?;
        Ok(())
    }

    /// Takes the acknowledgement of what is under way, with a response of success.
    fn receive(&mut self, index: usize) -> Result<()> {
        let (link, mut bytes) = (&mut self.links[index], [0; 256]);
        let got = recv(&link.socket, &mut bytes, RecvFlags::empty()).map(|(length, _)| length);
        let [high, low] = link.id.to_be_bytes();
        match bytes[..unless(Errno::AGAIN, 0, got)?] {
            [] => return Ok(()),
            [0x62, 0x44, ref rest @ ..] if *rest == [high, low, high, low] => {}
            _ => return Err(Error::other("the target says something else")),
        }
        (self.answers, link.is_unanswered) = (self.answers + 1, false);
        self.send(index)
    }
}
