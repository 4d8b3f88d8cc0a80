//! The kernel's share over CoAP: one thread, one epoll loop, a socket a link, nothing accounted. Each link sends
//! 100 bytes in a confirmable request on the answer to the one before; prints JSON.

use std::io::{Error, Result, Write, stdout};
use std::{net::SocketAddr, time::Duration};

use muster_bench::{SECOND_NS, arguments, now, unless};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use rustix::time::ClockId::{Monotonic, ThreadCPUTime};

/// A confirmable POST on `/telemetry`, a token of two bytes, octet-stream (RFC 7252 section 3); the message id
/// and the token are written over.
const HEAD: &[u8] = b"\x42\x02\0\0\0\0\xb9telemetry\x11\x2a\xff";
/// Where message id and token stand.
const ID: std::ops::Range<usize> = 2..4;
const TOKEN: std::ops::Range<usize> = 4..6;

struct Link {
    socket: OwnedFd,
    /// Of the request under way; its token is the same.
    id: u16,
}

struct Bare {
    epoll: OwnedFd,
    events: Vec<Event>,
    links: Vec<Link>,
    request: Vec<u8>,
}

fn main() -> Result<()> {
    let (to, [count, seconds]) = arguments("bare-coap ADDRESS LINKS SECONDS")?;
    let mut bare = Bare {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(1024),
        links: Vec::new(),
        request: [HEAD, &[b'x'; 100]].concat(),
    };
    for index in 0..count {
        bare.open(to, index)?;
    }
    let end = now(Monotonic) + seconds * SECOND_NS;
    for index in 0..bare.links.len() {
        bare.send(index)?;
    }
    let mut messages: u64 = 0;
    while now(Monotonic) < end {
        for at in 0..bare.wait()? {
            let index = bare.events[at].data.u64() as usize;
            if bare.hear(index)? {
                messages += 1;
                bare.send(index)?;
            }
        }
    }
    let cpu = now(ThreadCPUTime) as f64 / SECOND_NS as f64;
    writeln!(stdout(), r#"{{"messages":{messages},"cpu_s":{cpu}}}"#)
}

impl Bare {
    fn open(&mut self, to: SocketAddr, index: u64) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        connect(&socket, &to)?;
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(index), events)?;
        self.links.push(Link { socket, id: 0 });
        Ok(())
    }

    fn wait(&mut self) -> Result<usize> {
        let wait = Duration::from_secs(1).try_into().ok();
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        Ok(epoll::wait(&self.epoll, room, wait.as_ref())?)
    }

    fn send(&mut self, index: usize) -> Result<()> {
        let link = &mut self.links[index];
        link.id = link.id.wrapping_add(1);
        self.request[ID].copy_from_slice(&link.id.to_be_bytes());
        self.request[TOKEN].copy_from_slice(&link.id.to_be_bytes());
        send(&link.socket, &self.request, SendFlags::empty())?;
        Ok(())
    }

    /// Whether that was the acknowledgement of what is under way, with a response of success.
    fn hear(&mut self, index: usize) -> Result<bool> {
        let (link, mut bytes) = (&self.links[index], [0; 256]);
        let got = recv(&link.socket, &mut bytes, RecvFlags::empty()).map(|(length, _)| length);
        let id = link.id.to_be_bytes();
        match bytes[..unless(Errno::AGAIN, 0, got)?] {
            [] => Ok(false),
            [0x62, 0x44, ref rest @ ..] if rest.starts_with(&[id, id].concat()) => Ok(true),
            _ => Err(Error::other("the target says something else")),
        }
    }
}
