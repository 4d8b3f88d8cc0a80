//! The cheapest target over CoAP: acknowledges every confirmable request with 2.04, keeps nothing.
//!
//! `coap-sink ADDRESS` prints the address it is bound to, and for each line on its standard input a line of
//! counts as JSON; it ends when that input ends. All payloads go on to the client that subscribes there over
//! MQTT, so that a consumer has something to do.

use std::io::{Error, ErrorKind, Result, Write, stdin, stdout};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use muster_bench::subscriber::Subscriber;
use muster_bench::{arguments, now, unless};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto,
    socket_with, sockopt,
};
use rustix::time::{ClockId, Timespec};

/// Room for what all clients have under way; the kernel lowers it to its own bound.
const ROOM_BYTES: usize = 4 << 20;
/// Time of polling before a sleep, as in the sink of MQTT.
const AWAKE_NS: u64 = 1_000_000;
/// Longest sleep before the next check for the end.
const NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// On which payloads go on, with its length before it.
const TOPIC: &[u8] = b"\0\x09telemetry";
/// Marker in front of a payload (RFC 7252 section 3). Short paths and numbers below 128 have no
/// such byte.
const MARKER: u8 = 0xff;

static SUBSCRIBER: Subscriber = Subscriber::new();
/// Confirmable requests, and their bytes.
static MESSAGES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<()> {
    let (at, []) = arguments("coap-sink ADDRESS")?;
    let listener = TcpListener::bind(at)?;
    let bound = listener.local_addr()?;
    let socket = open(bound)?;
    writeln!(stdout(), "{bound}")?;
    std::thread::Builder::new().spawn(move || SUBSCRIBER.attend(&listener))?;
    std::thread::Builder::new().spawn(move || serve(&socket))?;
    for line in stdin().lines() {
        line?;
        print_counts()?;
    }
    Ok(())
}

fn open(at: SocketAddr) -> Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES)?;
    bind(&socket, &at)?;
    Ok(socket)
}

/// As the sink of MQTT does; nobody connects, and a read takes one message.
fn print_counts() -> Result<()> {
    let (messages, bytes) = (MESSAGES.load(Relaxed), BYTES.load(Relaxed));
    let got = format!(r#""messages":{messages},"bytes":{bytes},"reads":{messages}"#);
    writeln!(stdout(), r#"{{"connects":0,{got}}}"#)
}

fn serve(socket: &OwnedFd) -> Result<()> {
    let (mut bytes, mut last) = ([0; 2_048], 0);
    let mut forward = SUBSCRIBER.forward(TOPIC);
    loop {
        let got = unless(
            Errno::AGAIN,
            None,
            recvfrom(socket, &mut bytes, RecvFlags::empty()).map(Some),
        )?;
        let Some((length, _, from)) = got else {
            forward.flush();
            if now(ClockId::Monotonic) - last > AWAKE_NS {
                poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&NAP))?;
            }
            continue;
        };
        last = now(ClockId::Monotonic);
        let nobody = || Error::new(ErrorKind::InvalidData, "a datagram of nobody");
        let from = from.ok_or_else(nobody)?;
        let request = &mut bytes[..length];
        if let Some(answer) = answer(request) {
            unless(
                Errno::AGAIN,
                0,
                sendto(socket, answer, SendFlags::empty(), &from),
            )?;
            count(length as u64);
            forward.push(payload(request));
        }
    }
}

/// Only one thread counts.
fn count(bytes: u64) {
    MESSAGES.store(MESSAGES.load(Relaxed) + 1, Relaxed);
    BYTES.store(BYTES.load(Relaxed) + bytes, Relaxed);
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

/// Returns the payload of a request that has been answered.
fn payload(request: &[u8]) -> &[u8] {
    let options = 4 + usize::from(request[0] & 0x0f);
    let mut parts = request[options..].splitn(2, |byte| *byte == MARKER);
    parts.nth(1).unwrap_or_default()
}
