//! The cheapest target over CoAP: acknowledges every confirmable request with 2.04, keeps nothing.
//!
//! `coap-sink ADDRESS` prints the address that it is bound to, and ends when its standard input ends.

use std::io::{Error, ErrorKind, Read, Result, Write, stdin, stdout};
use std::net::SocketAddr;

use muster_bench::{arguments, now, unless};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recvfrom,
    sendto, socket_with, sockopt,
};
use rustix::time::{ClockId, Timespec};

/// Room for what all clients have under way; the kernel lowers it to its own bound.
const ROOM_BYTES: usize = 4 << 20;
/// How long it looks for more before it sleeps, as the sink of MQTT does.
const AWAKE_NS: u64 = 1_000_000;
/// How long it sleeps before it looks whether it is to go on.
const NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

fn main() -> Result<()> {
    let (at, []) = arguments("coap-sink ADDRESS")?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES)?;
    bind(&socket, &at)?;
    let bound = SocketAddr::try_from(getsockname(&socket)?)?;
    writeln!(stdout(), "{bound}")?;
    std::thread::Builder::new().spawn(move || serve(&socket))?;
    // The end of the input ends the process.
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn serve(socket: &OwnedFd) -> Result<()> {
    let (mut bytes, mut last) = ([0; 2_048], 0);
    loop {
        let got = unless(
            Errno::AGAIN,
            None,
            recvfrom(socket, &mut bytes, RecvFlags::empty()).map(Some),
        )?;
        let Some((length, _, from)) = got else {
            if now(ClockId::Monotonic) - last > AWAKE_NS {
                poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&NAP))?;
            }
            continue;
        };
        last = now(ClockId::Monotonic);
        let nobody = || Error::new(ErrorKind::InvalidData, "a datagram of nobody");
        let from = from.ok_or_else(nobody)?;
        if let Some(answer) = answer(&mut bytes[..length]) {
            unless(
                Errno::AGAIN,
                0,
                sendto(socket, answer, SendFlags::empty(), &from),
            )?;
        }
    }
}

/// The acknowledgement in the request's own bytes: its message id and token, 2.04 (RFC 7252 section 5.2.1);
/// none for what is no confirmable request.
fn answer(request: &mut [u8]) -> Option<&[u8]> {
    let [head, code, ..] = request else {
        return None;
    };
    let (kind, token) = (*head >> 4, usize::from(*head & 0x0f));
    (kind == 0b0100 && *code != 0).then_some(())?;
    (*head, *code) = (0x60 | token as u8, 0x44);
    request.get(..4 + token)
}
