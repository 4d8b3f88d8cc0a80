//! The loop against real loopback sockets: what it promises of bytes, ends, order and bounds.

#![expect(
    clippy::disallowed_methods,
    reason = "a test's patience is measured apart from the clock that the loop is tested with"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use muster_model::Micros;
use muster_net::{
    Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, PortUse, ReadLimit, Written,
};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes down what it is told, and takes input as told to.
#[derive(Debug, Default)]
struct Witness {
    opened: Vec<Key>,
    accepted: Vec<Key>,
    received: Vec<(Key, Vec<u8>)>,
    flushed: Vec<Key>,
    closed: Vec<(Key, Closed)>,
    timers: Vec<(u64, Micros)>,
    woken: usize,
    /// Input is taken in packets of so many bytes; zero takes all.
    packet: usize,
    echo: bool,
    pause_after_first: bool,
    wants: Option<Micros>,
    turned_at: Vec<Micros>,
}

impl Witness {
    /// Number of bytes taken.
    fn taken(&self) -> usize {
        self.received.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

impl Handler for Witness {
    fn opened(&mut self, _: &mut Io, key: Key) {
        self.opened.push(key);
    }

    fn accepted(&mut self, _: &mut Io, key: Key, _: ListenerId) {
        self.accepted.push(key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let mut used = match self.packet {
            0 => bytes.len(),
            packet => bytes.len() / packet * packet,
        };
        if self.pause_after_first {
            used = used.min(self.packet);
            io.pause_reading(key);
            self.pause_after_first = false;
        }
        if used > 0 {
            self.received.push((key, bytes[..used].to_vec()));
        }
        if self.echo {
            assert_eq!(io.write(key, &bytes[..used]), Written::Whole);
        }
        used
    }

    fn flushed(&mut self, _: &mut Io, key: Key) {
        self.flushed.push(key);
    }

    fn closed(&mut self, _: &mut Io, key: Key, why: Closed) {
        self.closed.push((key, why));
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        self.timers.push((token, io.now()));
    }

    fn woken(&mut self, _: &mut Io) {
        self.woken += 1;
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        self.turned_at.push(io.now());
        self.wants
    }
}

struct Rig {
    event_loop: Loop<Witness>,
    listener: SocketAddr,
}

impl Rig {
    fn new() -> Self {
        Self::with(Witness::default(), &LoopConfig::default())
    }

    fn with(witness: Witness, config: &LoopConfig) -> Self {
        let mut event_loop = Loop::new(Clock::start(), config, witness).expect("a loop");
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (_, listener) = event_loop
            .parts()
            .1
            .listen(at, PortUse::Alone)
            .expect("a port");
        Self {
            event_loop,
            listener,
        }
    }

    fn witness(&mut self) -> &mut Witness {
        self.event_loop.parts().0
    }

    fn io(&mut self) -> &mut Io {
        self.event_loop.parts().1
    }

    /// Runs until `done`; fails if that takes too long.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Witness) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !done(self.witness()) {
            assert!(
                Instant::now() < give_up,
                "never: {what}; {:?}",
                self.witness()
            );
            self.event_loop
                .turn(Micros::from_millis(20))
                .expect("a turn");
        }
    }

    /// Runs so many turns of at most 2 ms.
    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.event_loop
                .turn(Micros::from_millis(2))
                .expect("a turn");
        }
    }

    /// A peer, and the loop's end of its connection.
    fn peer(&mut self) -> (TcpStream, Key) {
        let before = self.witness().accepted.len();
        let peer = TcpStream::connect(self.listener).expect("the loop listens");
        self.until("accepted", |witness| witness.accepted.len() > before);
        peer.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let key = self.witness().accepted[before];
        (peer, key)
    }

    /// Runs until the loop reports an end, which is this one.
    fn ends(&mut self, key: Key, why: Closed) {
        self.until("ended", |witness| !witness.closed.is_empty());
        assert_eq!(self.witness().closed, [(key, why)]);
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.witness()
            .received
            .iter()
            .flat_map(|(_, bytes)| bytes.clone())
            .collect()
    }
}

/// Bytes in which a lost, doubled or swapped stretch shows.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| muster_model::mix(1, at / 8) as u8 ^ at as u8)
        .collect()
}

#[test]
fn every_connection_gets_its_own_bytes_back() {
    let mut rig = Rig::new();
    rig.witness().echo = true;
    let mut peers: Vec<(TcpStream, Key)> = (0..50).map(|_| rig.peer()).collect();
    for (n, (peer, _)) in peers.iter_mut().enumerate() {
        peer.write_all(&[n as u8; 100]).expect("it stands");
    }
    rig.until("all heard", |witness| witness.received.len() >= 50);
    for (n, (peer, key)) in peers.iter_mut().enumerate() {
        let mut back = [0; 100];
        peer.read_exact(&mut back).expect("the echo");
        assert_eq!(back, [n as u8; 100]);
        assert!(rig.witness().received.contains(&(*key, vec![n as u8; 100])));
    }
    let counts = rig.io().counts();
    assert_eq!((counts.accepted, counts.writes, counts.held), (50, 50, 0));
    assert_eq!(counts.reads, 50, "a short read needs no second one");
}

#[test]
fn a_write_is_held_for_a_slow_reader_and_arrives_whole() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    let sent = pattern(8 << 20);
    assert_eq!(rig.io().write(key, &sent), Written::Held);
    assert_eq!(rig.io().write(key, b"x"), Written::Busy);
    assert!(!rig.io().is_writable(key));
    let reader = thread::spawn(move || {
        let mut got = vec![0; 8 << 20];
        peer.read_exact(&mut got).expect("all of it");
        (peer, got)
    });
    rig.until("flushed", |witness| !witness.flushed.is_empty());
    let (_peer, got) = reader.join().expect("the reader");
    assert!(got == sent, "the bytes differ");
    assert_eq!(rig.witness().flushed, [key]);
    assert_eq!(rig.io().write(key, b"x"), Written::Whole);
}

#[test]
fn unread_bytes_are_presented_again_in_front_of_later_ones() {
    let mut rig = Rig::new();
    rig.witness().packet = 10;
    let (mut peer, _) = rig.peer();
    let sent = pattern(95);
    for piece in sent.chunks(7) {
        peer.write_all(piece).expect("it stands");
        rig.turns(2);
    }
    rig.until("nine packets", |witness| witness.taken() == 90);
    assert_eq!(rig.bytes(), sent[..90]);
}

#[test]
fn a_packet_larger_than_the_read_buffer_comes_whole() {
    let mut rig = Rig::new();
    rig.witness().packet = 300_000;
    let (mut peer, _) = rig.peer();
    let sent = pattern(600_000);
    let copy = sent.clone();
    let writer = thread::spawn(move || peer.write_all(&copy).map(|()| peer));
    rig.until("both packets", |witness| witness.taken() == 600_000);
    assert!(rig.bytes() == sent, "the bytes differ");
    writer.join().expect("the writer").expect("it stood");
}

#[test]
fn unread_bytes_above_the_bound_end_the_connection() {
    let config = LoopConfig {
        kept_max: 100_000,
        ..LoopConfig::default()
    };
    let witness = Witness {
        packet: 1 << 30,
        ..Witness::default()
    };
    let mut rig = Rig::with(witness, &config);
    let (mut peer, key) = rig.peer();
    let writer = thread::spawn(move || {
        // It fails when the loop ends the connection, which is what is tested.
        let _ = peer.write_all(&pattern(1 << 20));
    });
    rig.ends(key, Closed::Overrun);
    writer.join().expect("the writer");
}

#[test]
fn the_last_bytes_come_before_the_end() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    peer.write_all(&pattern(200_000)).expect("it stands");
    drop(peer);
    rig.ends(key, Closed::Peer);
    assert!(
        rig.bytes() == pattern(200_000),
        "bytes were lost before the end"
    );
    assert_eq!(rig.io().connections(), 0);
}

#[test]
fn a_reset_is_told_from_an_orderly_end() {
    let mut rig = Rig::new();
    let (peer, key) = rig.peer();
    assert_eq!(rig.io().write(key, b"never read"), Written::Whole);
    // Closing with unread input makes the kernel send RST.
    peer.peek(&mut [0]).expect("it came");
    drop(peer);
    rig.ends(key, Closed::Reset);
}

#[test]
fn what_the_peer_said_is_read_although_a_write_failed() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    assert_eq!(rig.io().write(key, b"never read"), Written::Whole);
    peer.write_all(b"an answer").expect("it stands");
    // Closing with unread input makes the kernel send RST.
    drop(peer);
    let give_up = Instant::now() + PATIENCE;
    while rig.io().write(key, b"x") != Written::Lost {
        assert!(Instant::now() < give_up, "the reset never came");
    }
    assert_eq!(rig.io().write(key, b"x"), Written::Lost);
    assert!(!rig.io().is_writable(key));
    rig.until("ended", |witness| !witness.closed.is_empty());
    assert_eq!(rig.bytes(), b"an answer");
    assert_eq!(rig.witness().closed, [(key, Closed::Reset)]);
    assert_eq!(rig.io().connections(), 0);
}

#[test]
fn our_reset_reaches_the_peer_as_one() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    rig.io().reset(key);
    let error = peer.read(&mut [0; 8]).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(rig.io().write(key, b"x"), Written::Lost);
    rig.turns(2);
    assert!(rig.witness().closed.is_empty(), "our own end is not told");
}

#[test]
fn a_refused_connection_is_told_as_such() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let addr = free.local_addr().expect("bound");
    drop(free);
    let mut rig = Rig::new();
    let key = rig.io().connect(addr, None).expect("begun");
    rig.until("refused", |witness| !witness.closed.is_empty());
    assert_eq!(rig.witness().closed, [(key, Closed::Refused)]);
    assert!(rig.witness().opened.is_empty());
    assert_eq!(rig.io().counts().opened, 1);
}

#[test]
fn a_connection_can_be_given_up_before_it_stands() {
    let mut rig = Rig::new();
    let full = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .expect("a socket");
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&full, &at).expect("a port");
    rustix::net::listen(&full, 0).expect("it listens, with room for one");
    let name = rustix::net::getsockname(&full).expect("bound");
    let addr = SocketAddr::try_from(name).expect("an internet address");
    let _waiting = TcpStream::connect(addr).expect("the one place");
    let key = rig.io().connect(addr, None).expect("begun");
    assert_eq!(rig.io().write(key, b"early"), Written::Busy);
    let at = rig.io().fresh_now() + Micros::from_millis(50);
    rig.io().set_timer(at, 1);
    rig.until("timed out", |witness| !witness.timers.is_empty());
    assert!(rig.witness().opened.is_empty() && rig.witness().closed.is_empty());
    rig.io().reset(key);
    assert_eq!(rig.io().connections(), 0);
}

#[test]
fn a_paused_connection_is_silent_until_it_is_resumed() {
    let mut rig = Rig::new();
    rig.witness().packet = 10;
    rig.witness().pause_after_first = true;
    let (mut peer, key) = rig.peer();
    peer.write_all(&pattern(40)).expect("it stands");
    rig.until("the first packet", |witness| !witness.received.is_empty());
    peer.write_all(&pattern(40)).expect("it stands");
    rig.turns(10);
    assert_eq!(rig.bytes(), pattern(10));
    rig.io().resume_reading(key);
    rig.until("the rest", |witness| witness.taken() == 80);
    assert_eq!(rig.bytes(), [pattern(40), pattern(40)].concat());
}

#[test]
fn finishing_sends_what_is_held_and_does_not_reset() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    let sent = pattern(8 << 20);
    peer.write_all(b"input that nobody reads")
        .expect("it stands");
    assert_eq!(rig.io().write(key, &sent), Written::Held);
    rig.io().finish(key);
    assert_eq!(rig.io().write(key, b"x"), Written::Lost);
    let reader = thread::spawn(move || {
        let mut got = Vec::new();
        peer.read_to_end(&mut got).map(|_| got)
    });
    let give_up = Instant::now() + PATIENCE;
    while rig.io().connections() > 0 && Instant::now() < give_up {
        rig.turns(1);
    }
    let got = reader.join().expect("the reader").expect("no reset");
    assert!(got == sent, "the bytes differ");
    assert_eq!(rig.io().connections(), 0);
    assert!(rig.witness().closed.is_empty() && rig.witness().received.is_empty());
}

#[test]
fn a_finished_connection_goes_when_the_peer_goes() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    rig.io().finish(key);
    assert_eq!(peer.read(&mut [0; 8]).expect("an orderly end"), 0);
    assert_eq!(rig.io().connections(), 1);
    peer.shutdown(Shutdown::Both).expect("it stands");
    let give_up = Instant::now() + Duration::from_secs(4);
    while rig.io().connections() > 0 && Instant::now() < give_up {
        rig.turns(1);
    }
    assert_eq!(rig.io().connections(), 0, "before the linger time ran out");
}

#[test]
fn an_exhausted_pool_is_told_and_not_hidden() {
    let mut rig = Rig::with(
        Witness::default(),
        &LoopConfig {
            buffers_max: 0,
            ..LoopConfig::default()
        },
    );
    let (_peer, key) = rig.peer();
    assert_eq!(rig.io().write(key, &pattern(64 << 20)), Written::Exhausted);
    rig.ends(key, Closed::PoolExhausted);
    assert_eq!(rig.io().counts().pool_exhausted, 1);
}

#[test]
fn a_flooding_connection_gets_one_read_a_turn() {
    let mut rig = Rig::new();
    let (mut flood, _) = rig.peer();
    let (mut quiet, quiet_key) = rig.peer();
    flood.set_nonblocking(true).expect("a socket");
    let bytes = vec![7; 1 << 20];
    while flood.write(&bytes).is_ok() {}
    quiet.write_all(b"me too").expect("it stands");
    let reads = rig.io().counts().reads;
    rig.turns(1);
    assert!(rig.io().counts().reads - reads <= 2);
    rig.turns(1);
    assert!(
        rig.witness()
            .received
            .iter()
            .any(|(key, _)| *key == quiet_key)
    );
    assert!(
        rig.witness()
            .received
            .iter()
            .all(|(_, bytes)| bytes.len() <= 64 * 1024)
    );
}

#[test]
fn a_read_limit_makes_a_slow_reader() {
    let mut rig = Rig::new();
    let (mut peer, key) = rig.peer();
    let every = Micros::from_millis(5);
    rig.io().set_read_limit(
        key,
        Some(ReadLimit {
            bytes: 1_000,
            every,
        }),
    );
    let began = rig.io().fresh_now();
    peer.write_all(&pattern(10_000)).expect("it stands");
    rig.until("all", |witness| witness.taken() == 10_000);
    assert!(
        rig.io().now() - began >= Micros::from_millis(45),
        "{}",
        rig.io().now() - began
    );
    assert_eq!(rig.bytes(), pattern(10_000));
    rig.io().set_read_limit(key, None);
    peer.write_all(&pattern(10_000)).expect("it stands");
    rig.until("the rest", |witness| witness.taken() == 20_000);
}

#[test]
fn a_connection_comes_from_the_source_it_was_given() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let addr = listener.local_addr().expect("bound");
    let mut rig = Rig::new();
    let source = IpAddr::from([127, 0, 0, 7]);
    rig.io().connect(addr, Some(source)).expect("begun");
    let (_peer, from) = listener.accept().expect("it connects");
    assert_eq!(from.ip(), source);
    rig.until("opened", |witness| witness.opened.len() == 1);
}

#[test]
fn a_full_slab_lets_newcomers_wait_at_the_door() {
    let mut rig = Rig::with(
        Witness::default(),
        &LoopConfig {
            connections_max: 1,
            ..LoopConfig::default()
        },
    );
    let (first, key) = rig.peer();
    let _second = TcpStream::connect(rig.listener).expect("the kernel takes it");
    rig.turns(10);
    assert_eq!(rig.witness().accepted, [key]);
    assert!(rig.io().counts().accept_failures > 0);
    drop(first);
    rig.until("the second", |witness| witness.accepted.len() == 2);
}

#[test]
fn timers_run_out_in_order_and_never_early() {
    let mut rig = Rig::new();
    let began = rig.io().fresh_now();
    let due = |ms: u64| began + Micros::from_millis(ms);
    let cancelled = rig.io().set_timer(due(4), 4);
    for ms in [9, 3, 7] {
        rig.io().set_timer(due(ms), ms);
    }
    assert!(rig.io().cancel_timer(cancelled));
    rig.until("all", |witness| witness.timers.len() == 3);
    let timers = rig.witness().timers.clone();
    assert_eq!(
        timers.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
        [3, 7, 9]
    );
    assert!(
        timers.iter().all(|(token, at)| *at >= due(*token)),
        "{timers:?} from {began}"
    );
}

#[test]
fn a_turn_comes_when_it_was_asked_for() {
    let mut rig = Rig::new();
    rig.turns(1);
    let wanted = rig.io().fresh_now() + Micros(1_500);
    rig.witness().wants = Some(wanted);
    rig.turns(1);
    let before = rig.witness().turned_at.len();
    let mut turned = wanted - Micros(1);
    while turned < wanted {
        rig.event_loop.turn(Micros::from_secs(5)).expect("a turn");
        turned = *rig.witness().turned_at.last().expect("it turned");
    }
    assert!(
        rig.witness().turned_at.len() - before <= 2,
        "no busy waiting"
    );
    assert!(
        turned < wanted + Micros::from_secs(1),
        "{turned} instead of {wanted}"
    );
}

#[test]
fn another_thread_wakes_the_loop() {
    let mut rig = Rig::new();
    rig.turns(1);
    let waker = rig.io().waker();
    let caller = thread::spawn(move || (0..1_000).for_each(|_| waker.wake()));
    rig.until("woken", |witness| witness.woken > 0);
    caller.join().expect("the caller");
    rig.turns(3);
    let woken = rig.witness().woken;
    rig.io().waker().wake();
    rig.until("woken again", |witness| witness.woken > woken);
}

#[test]
fn nobody_shares_a_port_that_was_not_begun_together() {
    let new = || Loop::new(Clock::start(), &LoopConfig::default(), Witness::default());
    let (mut first, mut second) = (new().expect("a loop"), new().expect("a loop"));
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (_, taken) = first.parts().1.listen(at, PortUse::First).expect("a port");
    for port in [PortUse::First, PortUse::Alone] {
        let error = second
            .parts()
            .1
            .listen(taken, port)
            .expect_err("it is taken");
        assert!(
            error.to_string().contains("another program listens there"),
            "{error}"
        );
    }
}

#[test]
fn two_loops_share_a_port() {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut loops: Vec<Loop<Witness>> = (0..2)
        .map(|_| {
            Loop::new(Clock::start(), &LoopConfig::default(), Witness::default()).expect("a loop")
        })
        .collect();
    let (_, shared) = loops[0]
        .parts()
        .1
        .listen(at, PortUse::First)
        .expect("a port");
    loops[1]
        .parts()
        .1
        .listen(shared, PortUse::Further)
        .expect("the same port");
    let peers: Vec<TcpStream> = (0..64)
        .map(|_| TcpStream::connect(shared).expect("one of them listens"))
        .collect();
    for _ in 0..100 {
        for one in &mut loops {
            one.turn(Micros::ZERO).expect("a turn");
        }
    }
    let each: Vec<usize> = loops
        .iter_mut()
        .map(|one| one.parts().0.accepted.len())
        .collect();
    assert_eq!(each.iter().sum::<usize>(), peers.len());
    assert!(each.iter().all(|count| *count > 0), "{each:?}");
}
