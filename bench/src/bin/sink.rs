//! The cheapest target: takes every CONNECT, PUBLISH and POST, answers once for each read, keeps nothing.
//!
//! `sink ADDRESS` prints the address it listens on, and for each line on its standard input a line
//! of counts as JSON; it ends when that input ends. All messages go on, at QoS 0, to the client
//! that subscribed last, so that a consumer has something to do.

use std::io::{Error, Result, Write, stdout};
use std::net::SocketAddr;

use muster_bench::packet::{self, Packet, Publish};
use muster_bench::request;
use muster_bench::{arguments, now, unless};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, read, write};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, getsockname, listen, socket_with,
    sockopt,
};
use rustix::time::{ClockId, Timespec};

/// Connections that may wait to be accepted; the kernel lowers it to its own bound.
const BACKLOG: i32 = 65_535;
/// Most bytes of one read, which also bounds a packet.
const READ_BYTES: usize = 64 * 1024;
/// Topic on which bodies of requests go on, with its length before it.
const TOPIC: &[u8] = b"\0\x09telemetry";
/// Forwarded messages are written in pieces of about this size.
const FORWARD_BYTES: usize = 256 * 1024;
/// Time of polling before a sleep. A write to a sleeping process pays for its wake-up; without
/// this, slow clients would pay for the sink's sleep and fast ones would not.
const AWAKE_NS: u64 = 1_000_000;
/// Longest time that a client may keep the sink waiting.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

struct Sink {
    epoll: OwnedFd,
    listener: OwnedFd,
    /// By descriptor.
    links: Vec<Option<Link>>,
    /// Links that may have more to read.
    unread: Vec<usize>,
    subscriber: Option<usize>,
    forward: Vec<u8>,
    answers: Vec<u8>,
    counts: Counts,
}

struct Link {
    fd: OwnedFd,
    v5: bool,
    /// The beginning of a packet whose rest has not come.
    tail: Vec<u8>,
}

#[derive(Default)]
struct Counts {
    connects: u64,
    messages: u64,
    bytes: u64,
    /// Reads that got bytes. One may take the bytes of several writes, so this is at most their number.
    reads: u64,
}

fn main() -> Result<()> {
    let (at, []) = arguments("sink ADDRESS")?;
    let mut sink = Sink::listen(at)?;
    writeln!(
        stdout(),
        "{}",
        SocketAddr::try_from(getsockname(&sink.listener)?)?
    )?;
    sink.serve()
}

impl Sink {
    fn listen(at: SocketAddr) -> Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        // Accepted sockets inherit it.
        sockopt::set_tcp_nodelay(&listener, true)?;
        bind(&listener, &at)?;
        listen(&listener, BACKLOG)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for fd in [listener.as_fd(), rustix::stdio::stdin()] {
            epoll::add(&epoll, fd, token(fd), EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            listener,
            links: Vec::new(),
            unread: Vec::new(),
            subscriber: None,
            forward: Vec::with_capacity(2 * FORWARD_BYTES),
            answers: Vec::with_capacity(READ_BYTES),
            counts: Counts::default(),
        })
    }

    fn serve(&mut self) -> Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        let mut bytes = vec![0; READ_BYTES];
        let listener = self.listener.as_raw_fd() as u64;
        let mut last_event = now(ClockId::Monotonic);
        loop {
            events.clear();
            let at_once = Timespec::default();
            let is_awake =
                !self.unread.is_empty() || now(ClockId::Monotonic) - last_event < AWAKE_NS;
            let room = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&self.epoll, room, is_awake.then_some(&at_once))?;
            if !events.is_empty() {
                last_event = now(ClockId::Monotonic);
            }
            for index in std::mem::take(&mut self.unread) {
                self.receive(index, false, &mut bytes);
            }
            for event in &events {
                let (fd, flags) = (event.data.u64(), event.flags);
                if fd == listener {
                    self.accept()?;
                } else if fd != 0 {
                    self.receive(fd as usize, flags.contains(EventFlags::RDHUP), &mut bytes);
                } else if read(rustix::stdio::stdin(), &mut bytes)? == 0 {
                    return Ok(());
                } else {
                    self.print_counts()?;
                }
            }
            self.flush();
        }
    }

    fn print_counts(&self) -> Result<()> {
        let Counts {
            connects,
            messages,
            bytes,
            reads,
        } = self.counts;
        let got = format!(r#""messages":{messages},"bytes":{bytes},"reads":{reads}"#);
        let text = format!(r#""connects":{connects},{got}"#);
        writeln!(stdout(), "{{{text}}}")
    }

    fn accept(&mut self) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Some(fd) = unless(
            Errno::AGAIN,
            None,
            accept_with(&self.listener, flags).map(Some),
        )? {
            let events = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &fd, token(fd.as_fd()), events)?;
            let index = fd.as_raw_fd() as usize;
            if self.links.len() <= index {
                self.links.resize_with(index + 1, || None);
            }
            self.links[index] = Some(Link {
                fd,
                v5: false,
                tail: Vec::new(),
            });
        }
        Ok(())
    }

    /// `ended`: no more will come, so that everything has to be read until the end shows.
    fn receive(&mut self, index: usize, ended: bool, bytes: &mut [u8]) {
        let Some(mut link) = self.links.get_mut(index).and_then(Option::take) else {
            return;
        };
        match self.take(&mut link, index, bytes) {
            Some(more) => {
                self.links[index] = Some(link);
                if more || ended {
                    self.unread.push(index);
                }
            }
            None if self.subscriber == Some(index) => {
                self.subscriber = None;
                self.forward.clear();
            }
            None => {}
        }
    }

    /// Reads once, so that a link that never pauses delays no other. Returns whether there may be
    /// more; none once the link has ended or sent nonsense.
    fn take(&mut self, link: &mut Link, index: usize, bytes: &mut [u8]) -> Option<bool> {
        let kept = link.tail.len();
        bytes.get_mut(..kept)?.copy_from_slice(&link.tail);
        link.tail.clear();
        let got = match read(&link.fd, &mut bytes[kept..]) {
            Ok(0) => return None,
            Ok(got) => got,
            Err(Errno::AGAIN) => 0,
            Err(_) => return None,
        };
        self.counts.bytes += got as u64;
        self.counts.reads += u64::from(got > 0);
        let mut rest = &bytes[..kept + got];
        self.answers.clear();
        if request::is_begun(rest) {
            while let Some((body, after)) = request::split(rest) {
                self.answer_request(body);
                rest = after;
            }
        } else {
            while let Some((packet, after)) = packet::split(rest) {
                self.answer(link, index, packet)?;
                rest = after;
            }
        }
        link.tail.extend_from_slice(rest);
        write_all(link.fd.as_fd(), &self.answers).ok()?;
        Some(kept + got == bytes.len())
    }

    fn answer(&mut self, link: &mut Link, index: usize, packet: Packet<'_>) -> Option<()> {
        match packet.head >> 4 {
            1 => {
                link.v5 = packet::is_v5(packet.body);
                self.answers.extend_from_slice(packet::connack(link.v5));
                self.counts.connects += 1;
            }
            3 => self.publish(link, packet)?,
            8 => {
                packet::suback(packet.body, link.v5, &mut self.answers)?;
                self.subscriber = Some(index);
            }
            12 => self.answers.extend_from_slice(packet::PINGRESP),
            _ => return None,
        }
        Some(())
    }

    fn publish(&mut self, link: &Link, packet: Packet<'_>) -> Option<()> {
        let message = packet::publish(packet, link.v5)?;
        if let [high, low] = message.id {
            self.answers.extend_from_slice(&[0x40, 2, *high, *low]);
        }
        self.take_message(&message);
        Some(())
    }

    fn answer_request(&mut self, body: &[u8]) {
        self.answers.extend_from_slice(request::ACCEPTED);
        self.take_message(&Publish {
            topic: TOPIC,
            id: &[],
            payload: body,
        });
    }

    fn take_message(&mut self, message: &Publish<'_>) {
        self.counts.messages += 1;
        let to = self.subscriber.and_then(|index| self.links[index].as_ref());
        if let Some(to) = to {
            packet::forward(message, to.v5, &mut self.forward);
            if self.forward.len() > FORWARD_BYTES {
                self.flush();
            }
        }
    }

    /// Writes what is to be forwarded; a subscriber that reads no more loses its subscription.
    fn flush(&mut self) {
        let to = self.subscriber.and_then(|index| self.links[index].as_ref());
        if to.is_some_and(|to| write_all(to.fd.as_fd(), &self.forward).is_err()) {
            self.subscriber = None;
        }
        self.forward.clear();
    }
}

fn token(fd: BorrowedFd<'_>) -> EventData {
    EventData::new_u64(fd.as_raw_fd() as u64)
}

/// Waits where the kernel's buffer is full: a target may hold up everybody, as long as it is cheap.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let taken = unless(Errno::AGAIN, 0, write(fd, bytes))?;
        bytes = &bytes[taken..];
        if taken == 0 && poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&PATIENCE))? == 0 {
            return Err(Error::other("the client does not read"));
        }
    }
    Ok(())
}
