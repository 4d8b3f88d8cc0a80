//! A port for a test, which no other socket takes before the test listens there.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports below those that the kernel gives to connections: no socket of another test takes one before its owner
/// listens there.
const PORTS: Range<u32> = 16_000..32_000;

/// A port of this machine that nobody has, over TCP and UDP, and that is given out once.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(251);
    let is_free = |port: &u16| {
        let at = (Ipv4Addr::LOCALHOST, *port);
        TcpListener::bind(at).is_ok() && UdpSocket::bind(at).is_ok()
    };
    let mut candidates = std::iter::repeat_with(|| {
        let place = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
        u16::try_from(PORTS.start + place).expect("a port")
    });
    candidates.find(is_free).expect("most of them are free")
}
