//! UDP over loopback: what the loop promises of datagrams, batches, errors and drops.

#![expect(
    clippy::disallowed_methods,
    reason = "a test's patience is measured apart from the clock that the loop is tested with"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use muster_model::Micros;
use muster_net::{
    Clock, Closed, ConnectError, Handler, Io, Key, ListenerId, Loop, LoopConfig, PortUse, Written,
};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Witness {
    opened: Vec<Key>,
    received: Vec<(Key, Vec<u8>)>,
    heard: Vec<(Key, SocketAddr, Vec<u8>)>,
    flushed: Vec<Key>,
    closed: Vec<(Key, Closed)>,
    echoes: bool,
    /// True if the first datagram ends its socket.
    ends: bool,
}

impl Handler for Witness {
    fn opened(&mut self, _: &mut Io, key: Key) {
        self.opened.push(key);
    }

    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}

    fn received(&mut self, _: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        self.received.push((key, bytes.to_vec()));
        0
    }

    fn datagram(&mut self, io: &mut Io, key: Key, from: SocketAddr, bytes: &mut [u8]) {
        self.heard.push((key, from, bytes.to_vec()));
        if self.echoes {
            assert_eq!(io.send_to(key, from, bytes), Written::Whole);
        }
        if self.ends {
            io.close(key);
        }
    }

    fn flushed(&mut self, _: &mut Io, key: Key) {
        self.flushed.push(key);
    }

    fn closed(&mut self, _: &mut Io, key: Key, why: Closed) {
        self.closed.push((key, why));
    }

    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn woken(&mut self, _: &mut Io) {}

    fn turn(&mut self, _: &mut Io) -> Option<Micros> {
        None
    }
}

struct Rig(Loop<Witness>);

impl Rig {
    fn new() -> Self {
        Self::with(&LoopConfig::default())
    }

    fn with(config: &LoopConfig) -> Self {
        Self(Loop::new(Clock::start(), config, Witness::default()).expect("a loop"))
    }

    fn witness(&mut self) -> &mut Witness {
        self.0.parts().0
    }

    fn io(&mut self) -> &mut Io {
        self.0.parts().1
    }

    /// Runs until `done`; fails if that takes too long.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Witness) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !done(self.witness()) {
            assert!(Instant::now() < give_up, "never: {what}");
            self.0.turn(Micros::from_millis(20)).expect("a turn");
        }
    }

    /// Runs turns until one finds nothing to do.
    fn until_quiet(&mut self) {
        loop {
            let reads = self.io().counts().reads;
            self.0.turn(Micros::from_millis(5)).expect("a turn");
            if self.io().counts().reads == reads {
                return;
            }
        }
    }

    fn bind(&mut self) -> (Key, SocketAddr) {
        self.io()
            .bind_udp(LOOPBACK, PortUse::Alone)
            .expect("a port")
    }

    fn connect(&mut self, to: SocketAddr) -> Key {
        let key = self.io().connect_udp(to, None).expect("a socket");
        self.until("opened", |witness| witness.opened.contains(&key));
        key
    }

    fn bodies(&mut self) -> Vec<Vec<u8>> {
        let heard = self.witness().heard.iter();
        heard.map(|(_, _, bytes)| bytes.clone()).collect()
    }
}

fn peer() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(LOOPBACK).expect("a port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let addr = socket.local_addr().expect("bound");
    (socket, addr)
}

/// An address at which nobody listens, and where no other test does.
fn closed_port() -> SocketAddr {
    let at = SocketAddr::from(([127, 0, 0, 66], 0));
    let socket = UdpSocket::bind(at).expect("a port");
    socket.local_addr().expect("bound")
}

#[test]
fn each_socket_of_a_device_gets_its_own_datagrams_whole() {
    let mut rig = Rig::new();
    rig.witness().echoes = true;
    let (_, addr) = rig.bind();
    let sizes = [0, 1, 1_200, 9_000, 65_507];
    let keys = sizes.map(|_| rig.connect(addr));
    for (key, size) in keys.into_iter().zip(sizes) {
        assert_eq!(rig.io().write(key, &vec![size as u8; size]), Written::Whole);
        let expected = (key, vec![size as u8; size]);
        rig.until("the echo", |witness| witness.received.contains(&expected));
    }
    assert_eq!(rig.witness().received.len(), sizes.len());
    let counts = rig.io().counts();
    assert_eq!((counts.datagrams_out, counts.datagrams_in), (10, 10));
    let bytes = 2 * sizes.iter().sum::<usize>() as u64;
    assert_eq!((counts.bytes_out, counts.bytes_in), (bytes, bytes));
    assert!(rig.witness().closed.is_empty());
}

#[test]
fn ipv6_is_spoken_too() {
    let mut rig = Rig::new();
    rig.witness().echoes = true;
    let at = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let (_, addr) = rig.io().bind_udp(at, PortUse::Alone).expect("a port");
    let key = rig.connect(addr);
    assert_eq!(rig.io().write(key, &[6; 65_527]), Written::Whole);
    rig.until("the echo", |witness| {
        witness.received == [(key, vec![6; 65_527])]
    });
}

#[test]
fn a_datagram_that_cannot_be_is_refused_and_the_socket_stands() {
    let mut rig = Rig::new();
    let (peer, addr) = peer();
    let key = rig.connect(addr);
    assert_eq!(rig.io().write(key, &[0; 65_508]), Written::Refused);
    assert_eq!(rig.io().gather(key, &[0; 65_508]), Written::Whole);
    assert_eq!(rig.io().gather_marked(key, 7, b"after it"), Written::Whole);
    assert_eq!(rig.io().send_gathered(key), Written::Whole);
    let mut buffer = [0; 32];
    let length = peer.recv(&mut buffer).expect("the one that can be");
    assert_eq!(&buffer[..length], b"after it");
    let counts = rig.io().counts();
    assert_eq!((counts.datagrams_refused, counts.datagrams_out), (2, 1));
    assert_eq!(counts.icmp_errors, 0);
    let mut marks = vec![1];
    rig.io().take_refused(key, &mut marks);
    assert_eq!(marks, [], "neither had a mark, and this one went");
}

#[test]
fn of_gathered_datagrams_those_are_named_that_the_kernel_refused() {
    let mut rig = Rig::new();
    let (peer, addr) = peer();
    let key = rig.connect(addr);
    let other = rig.connect(addr);
    for mark in 0..4 {
        let bytes = vec![0; if mark % 2 == 0 { 10 } else { 65_508 }];
        assert_eq!(rig.io().gather_marked(key, mark, &bytes), Written::Whole);
    }
    assert_eq!(rig.io().send_gathered(key), Written::Whole);
    let mut marks = Vec::new();
    rig.io().take_refused(other, &mut marks);
    assert_eq!(marks, []);
    rig.io().take_refused(key, &mut marks);
    assert_eq!(marks, [1, 3]);
    rig.io().take_refused(key, &mut marks);
    assert_eq!(marks, [], "each once");
    let why = rig.io().refusal().and_then(|why| why.raw_os_error());
    assert_eq!(why, Some(rustix::io::Errno::MSGSIZE.raw_os_error()));
    for _ in 0..2 {
        assert_eq!(peer.recv(&mut [0; 32]).expect("the short ones"), 10);
    }
}

#[test]
fn nobody_at_home_is_counted_and_the_socket_lives_on() {
    let mut rig = Rig::new();
    let addr = closed_port();
    let key = rig.connect(addr);
    for sent in 1..=3 {
        assert_eq!(rig.io().write(key, b"hello?"), Written::Whole);
        rig.until_quiet();
        assert_eq!(rig.io().counts().icmp_errors, sent);
        let why = rig.io().icmp_error().map(|why| why.kind());
        assert_eq!(why, Some(std::io::ErrorKind::ConnectionRefused));
    }
    // Without a turn between, the error of one is found by the next.
    assert_eq!(rig.io().write(key, b"hello?"), Written::Whole);
    assert_eq!(rig.io().write(key, b"hello?"), Written::Whole);
    rig.until_quiet();
    assert_eq!(rig.io().counts().icmp_errors, 5);
    let late = UdpSocket::bind(addr).expect("nobody took the port");
    late.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    assert_eq!(rig.io().write(key, b"hello!"), Written::Whole);
    let mut buffer = [0; 32];
    let (length, from) = late.recv_from(&mut buffer).expect("somebody is at home");
    assert_eq!(&buffer[..length], b"hello!");
    late.send_to(b"yes", from).expect("it stands");
    rig.until("an answer", |witness| {
        witness.received == [(key, b"yes".to_vec())]
    });
    assert!(rig.witness().closed.is_empty());
    assert_eq!(rig.io().counts().datagrams_refused, 0);
}

#[test]
fn errors_of_a_socket_without_a_peer_are_counted_one_by_one() {
    let mut rig = Rig::new();
    let (key, _) = rig.bind();
    let (peer, there) = peer();
    let nowhere: Vec<SocketAddr> = (0..5).map(|_| closed_port()).collect();
    for addr in &nowhere {
        assert_eq!(rig.io().send_to(key, *addr, b"hello?"), Written::Whole);
        assert_eq!(rig.io().send_to(key, there, b"hello!"), Written::Whole);
    }
    assert_eq!(rig.io().send_gathered(key), Written::Whole);
    rig.until_quiet();
    assert_eq!(rig.io().counts().icmp_errors, 5);
    let counts = rig.io().counts();
    assert_eq!((counts.datagrams_out, counts.datagrams_refused), (10, 0));
    for _ in &nowhere {
        let length = peer.recv(&mut [0; 32]).expect("all of them came");
        assert_eq!(length, 6);
    }
}

#[test]
fn ten_thousand_datagrams_go_in_order_and_by_batches() {
    const MANY: u32 = 10_000;
    const EACH: u32 = 64;
    let mut rig = Rig::new();
    let (_, addr) = rig.bind();
    let key = rig.connect(addr);
    let (before, mut sent) = (rig.io().counts(), 0);
    while sent < MANY {
        let next = (sent + EACH).min(MANY);
        for number in sent..next {
            assert_eq!(rig.io().gather(key, &number.to_be_bytes()), Written::Whole);
        }
        sent = next;
        rig.until("what was sent", |witness| {
            witness.heard.len() == sent as usize
        });
    }
    let expected: Vec<Vec<u8>> = (0..MANY).map(|n| n.to_be_bytes().to_vec()).collect();
    assert_eq!(rig.bodies(), expected);
    let counts = rig.io().counts();
    assert_eq!(counts.datagrams_out - before.datagrams_out, MANY.into());
    assert_eq!(counts.datagrams_in - before.datagrams_in, MANY.into());
    let rounds = u64::from(MANY.div_ceil(EACH));
    assert_eq!(counts.writes - before.writes, 2 * rounds - 1, "32 a call");
    assert!(counts.reads - before.reads <= 5 * rounds, "{counts:?}");
}

#[test]
fn gathered_datagrams_wait_for_the_end_of_the_turn_or_the_word() {
    let mut rig = Rig::new();
    let (peer, addr) = peer();
    peer.set_nonblocking(true).expect("a socket");
    let key = rig.connect(addr);
    assert_eq!(rig.io().gather(key, b"one"), Written::Whole);
    assert!(peer.recv(&mut [0; 8]).is_err(), "it waits");
    assert_eq!(rig.io().send_gathered(key), Written::Whole);
    assert_eq!(peer.recv(&mut [0; 8]).expect("at once"), 3);
    assert_eq!(rig.io().gather(key, b"three"), Written::Whole);
    // What is written goes behind what was gathered before it.
    assert_eq!(rig.io().write(key, b"last"), Written::Whole);
    assert_eq!(peer.recv(&mut [0; 8]).expect("first"), 5);
    assert_eq!(peer.recv(&mut [0; 8]).expect("then"), 4);
    assert_eq!(rig.io().gather(key, b"ending"), Written::Whole);
    rig.0.turn(Micros::from_secs(5)).expect("a turn");
    assert_eq!(peer.recv(&mut [0; 8]).expect("the turn has ended"), 6);
    assert_eq!(rig.io().gather(key, b"goodbye"), Written::Whole);
    rig.io().finish(key);
    assert_eq!(peer.recv(&mut [0; 8]).expect("before the end"), 7);
    assert_eq!(rig.io().connections(), 0);
    assert_eq!(rig.io().gather(key, b"x"), Written::Lost);
    assert_eq!(rig.io().write(key, b"x"), Written::Lost);
}

#[test]
fn what_is_for_the_other_kind_of_socket_is_lost() {
    let mut rig = Rig::new();
    let (_, addr) = peer();
    let (bound, _) = rig.bind();
    let connected = rig.connect(addr);
    assert_eq!(rig.io().gather(bound, b"to whom?"), Written::Lost);
    assert_eq!(rig.io().write(bound, b"to whom?"), Written::Refused);
    assert_eq!(rig.io().send_to(connected, addr, b"x"), Written::Lost);
    assert_eq!(rig.io().counts().datagrams_out, 0);
}

/// The kernel drops at once what finds no room, so that this does not depend on time.
#[test]
fn what_a_small_receive_buffer_loses_is_counted() {
    const SENT: usize = 200;
    let mut rig = Rig::new();
    let (key, addr) = rig.bind();
    rig.io().set_receive_buffer(key, 16 * 1024);
    assert_eq!(rig.io().receive_buffer(key), Some(16 * 1024));
    let (peer, _) = peer();
    let flood = || {
        for _ in 0..SENT {
            peer.send_to(&[7; 500], addr).expect("it is sent");
        }
    };
    flood();
    rig.until_quiet();
    let came = rig.witness().heard.len();
    assert!(came > 0 && came < SENT, "{came}");
    assert_eq!(rig.io().counts().datagrams_dropped, 0, "nothing came since");
    peer.send_to(b"and?", addr).expect("it is sent");
    rig.until("one more", |witness| witness.heard.len() > came);
    let dropped = (SENT - came) as u64;
    assert_eq!(rig.io().counts().datagrams_dropped, dropped);
    flood();
    rig.until_quiet();
    rig.io().count_drops(key);
    let lost = (2 * SENT + 1 - rig.witness().heard.len()) as u64;
    assert_eq!(rig.io().counts().datagrams_dropped, lost);
    rig.io().count_drops(key);
    assert_eq!(rig.io().counts().datagrams_dropped, lost, "once");
    flood();
    rig.io().close(key);
    let counts = rig.io().counts();
    let lost = (3 * SENT + 1) as u64 - counts.datagrams_in;
    assert!(counts.datagrams_dropped < lost, "the rest was never read");
    assert!(counts.datagrams_dropped > lost - SENT as u64);
}

#[test]
fn no_more_room_is_granted_than_the_system_has() {
    let mut rig = Rig::new();
    let (key, _) = rig.bind();
    rig.io().set_receive_buffer(key, 1 << 30);
    let granted = rig.io().receive_buffer(key).expect("it stands");
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").expect("Linux");
    assert_eq!(granted, most.trim().parse::<usize>().expect("a number"));
    rig.io().close(key);
    assert_eq!(rig.io().receive_buffer(key), None);
}

#[test]
fn a_flood_on_one_socket_leaves_turns_to_others() {
    let mut rig = Rig::new();
    let (flooded, addr) = rig.bind();
    let (quiet, other) = rig.bind();
    let (peer, _) = peer();
    for _ in 0..150 {
        peer.send_to(&[7; 10], addr).expect("it is sent");
    }
    peer.send_to(b"me too", other).expect("it is sent");
    rig.0.turn(Micros::from_secs(5)).expect("a turn");
    let of = |witness: &Witness, wanted| {
        let heard = witness.heard.iter();
        heard.filter(|(key, ..)| *key == wanted).count()
    };
    assert_eq!(of(rig.witness(), flooded), 32, "a batch");
    assert_eq!(of(rig.witness(), quiet), 1);
    rig.until("all", |witness| of(witness, flooded) == 150);
}

#[test]
fn a_paused_socket_is_not_read_until_it_is_resumed() {
    let mut rig = Rig::new();
    let (key, addr) = rig.bind();
    rig.io().pause_reading(key);
    let (peer, _) = peer();
    for _ in 0..10 {
        peer.send_to(b"x", addr).expect("it is sent");
    }
    rig.until_quiet();
    assert!(rig.witness().heard.is_empty());
    rig.io().resume_reading(key);
    rig.until("all", |witness| witness.heard.len() == 10);
}

#[test]
fn a_socket_that_its_datagram_ends_hears_no_more() {
    let mut rig = Rig::new();
    rig.witness().ends = true;
    let (_, addr) = rig.bind();
    let (peer, _) = peer();
    for _ in 0..10 {
        peer.send_to(b"x", addr).expect("it is sent");
    }
    rig.until_quiet();
    assert_eq!(rig.witness().heard.len(), 1);
    assert_eq!(rig.io().connections(), 0);
    assert!(rig.witness().closed.is_empty(), "our own end is not told");
}

#[test]
fn a_socket_comes_from_the_source_it_was_given_and_hears_its_peer_only() {
    let mut rig = Rig::new();
    let (server, addr) = peer();
    let source = IpAddr::from([127, 0, 0, 7]);
    let key = rig.io().connect_udp(addr, Some(source)).expect("a socket");
    assert_eq!(rig.io().write(key, b"early"), Written::Busy);
    assert_eq!(rig.io().gather(key, b"early"), Written::Busy);
    rig.until("opened", |witness| witness.opened == [key]);
    assert_eq!(rig.io().write(key, b"hello"), Written::Whole);
    let (_, from) = server.recv_from(&mut [0; 8]).expect("it came");
    assert_eq!(from.ip(), source);
    let (stranger, _) = peer();
    stranger.send_to(b"psst", from).expect("it is sent");
    server.send_to(b"well", from).expect("it is sent");
    rig.until("the peer's", |witness| !witness.received.is_empty());
    assert_eq!(rig.witness().received, [(key, b"well".to_vec())]);
}

#[test]
fn own_limits_are_told_before_anything_is_begun() {
    let mut rig = Rig::with(&LoopConfig {
        connections_max: 1,
        ..LoopConfig::default()
    });
    let (_, addr) = peer();
    let foreign = Some(IpAddr::from([192, 0, 2, 1]));
    let error = rig.io().connect_udp(addr, foreign).expect_err("not ours");
    assert!(matches!(error, ConnectError::Unreachable(..)), "{error}");
    rig.bind();
    let error = rig.io().connect_udp(addr, None).expect_err("full");
    assert_eq!(error, ConnectError::Descriptors);
    let error = rig.io().bind_udp(LOOPBACK, PortUse::Alone);
    error.expect_err("full");
    let mut other = Rig::new();
    let taken = other.io().bind_udp(addr, PortUse::Alone).map(|(_, at)| at);
    let (_, in_use) = other.bind();
    assert_eq!(taken, Ok(addr), "the peer is gone");
    let error = other
        .io()
        .bind_udp(in_use, PortUse::Alone)
        .expect_err("taken");
    let text = error.to_string();
    assert!(text.contains("another program listens there"), "{text}");
}

#[test]
fn two_loops_share_a_port_and_each_peer_has_one_of_them() {
    let mut rigs = [Rig::new(), Rig::new()];
    let (_, at) = rigs[0]
        .io()
        .bind_udp(LOOPBACK, PortUse::First)
        .expect("a port");
    let shared = rigs[1].io().bind_udp(at, PortUse::Further);
    assert_eq!(shared.expect("the same port").1, at);
    let peers: Vec<UdpSocket> = (0..64).map(|_| peer().0).collect();
    for peer in peers.iter().chain(&peers) {
        peer.send_to(b"x", at).expect("it is sent");
    }
    rigs.iter_mut().for_each(Rig::until_quiet);
    let each = [0, 1].map(|rig: usize| {
        let mut from: Vec<SocketAddr> = rigs[rig].witness().heard.iter().map(|h| h.1).collect();
        from.sort_unstable();
        assert!(from.chunks(2).all(|two| two.len() == 2 && two[0] == two[1]));
        from.len()
    });
    assert_eq!(each[0] + each[1], 128);
    assert!(each[0] > 0 && each[1] > 0, "{each:?}");
}
