//! The kernel's share over HTTP: a kept connection a link. Posts 100 bytes a request; prints JSON.

use std::io::{Error, Result, Write, stdout};
use std::net::SocketAddr;

use muster_bench::exchanges::{Wire, run};
use muster_bench::{arguments, unless};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// Beginning and end of every answer of the target, which is short enough to come in one piece.
const BEGIN: &[u8] = b"HTTP/1.1 202 ";
const END: &[u8] = b"\r\n\r\n";

struct Http {
    to: SocketAddr,
    request: Vec<u8>,
}

fn main() -> Result<()> {
    let (to, numbers) = arguments("bare-http ADDRESS LINKS RATE SECONDS")?;
    let fields = "Content-Type: application/octet-stream\r\nContent-Length: 100";
    let head = format!(
        "POST /telemetry/DEFAULT_TENANT/d-00000 HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n\r\n"
    );
    let request = [head.as_bytes(), &[b'x'; 100]].concat();
    writeln!(stdout(), "{}", run(Http { to, request }, numbers)?)
}

impl Wire for Http {
    const EVENTS: EventFlags = EventFlags::IN
        .union(EventFlags::OUT)
        .union(EventFlags::RDHUP);

    fn open(&self) -> Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        unless(Errno::INPROGRESS, (), connect(&socket, &self.to))?;
        Ok(socket)
    }

    fn send(&mut self, socket: &OwnedFd, _number: u16) -> Result<()> {
        // One request is far less than a socket takes.
        match write(socket, &self.request)? {
            taken if taken == self.request.len() => Ok(()),
            _ => Err(Error::other("a socket took only a part of a request")),
        }
    }

    fn receive(&mut self, socket: &OwnedFd, _number: u16) -> Result<bool> {
        let mut bytes = [0; 256];
        match unless(Errno::AGAIN, None, read(socket, &mut bytes).map(Some))? {
            None => Ok(false),
            Some(got) if bytes.starts_with(BEGIN) && bytes[..got].ends_with(END) => Ok(true),
            Some(_) => Err(Error::other("the target says something else")),
        }
    }
}
