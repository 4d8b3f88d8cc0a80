//! The kernel's share over CoAP: a socket a link. Sends 100 bytes in confirmable requests; prints JSON.

use std::io::{Error, Result, Write, stdout};
use std::net::SocketAddr;

use muster_bench::exchanges::{Wire, run};
use muster_bench::{arguments, unless};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

/// A confirmable POST on `/telemetry`, a token of two bytes, octet-stream (RFC 7252 section 3); the message id
/// and the token are written over.
const HEAD: &[u8] = b"\x42\x02\0\0\0\0\xb9telemetry\x11\x2a\xff";
/// Position of message id and token.
const ID: std::ops::Range<usize> = 2..4;
const TOKEN: std::ops::Range<usize> = 4..6;

struct Coap {
    to: SocketAddr,
    request: Vec<u8>,
}

fn main() -> Result<()> {
    let (to, numbers) = arguments("bare-coap ADDRESS LINKS RATE SECONDS")?;
    let request = [HEAD, &[b'x'; 100]].concat();
    writeln!(stdout(), "{}", run(Coap { to, request }, numbers)?)
}

impl Wire for Coap {
    const EVENTS: EventFlags = EventFlags::IN;

    fn open(&self) -> Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        connect(&socket, &self.to)?;
        Ok(socket)
    }

    fn send(&mut self, socket: &OwnedFd, number: u16) -> Result<()> {
        self.request[ID].copy_from_slice(&number.to_be_bytes());
        self.request[TOKEN].copy_from_slice(&number.to_be_bytes());
        send(socket, &self.request, SendFlags::empty())?;
        Ok(())
    }

    /// Receives an acknowledgement with a response of success.
    fn receive(&mut self, socket: &OwnedFd, number: u16) -> Result<bool> {
        let mut bytes = [0; 256];
        let got = recv(socket, &mut bytes, RecvFlags::empty()).map(|(length, _)| length);
        let [high, low] = number.to_be_bytes();
        match bytes[..unless(Errno::AGAIN, 0, got)?] {
            [] => Ok(false),
            [0x62, 0x44, ref rest @ ..] if *rest == [high, low, high, low] => Ok(true),
            _ => Err(Error::other("the target says something else")),
        }
    }
}
