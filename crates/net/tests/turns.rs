//! Promises of a turn: it knows until when all input is presented, and its begin bounds the age of
//! that input.

#![expect(
    clippy::disallowed_methods,
    reason = "a test's patience is measured apart from the clock that the loop is tested with"
)]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use muster_model::{Micros, Turn};
use muster_net::{Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, WaitsOf};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Length of a long turn.
const LONG: Micros = Micros::from_millis(3);

/// Writes down in which turn, and behind how many bytes, timers run out.
#[derive(Debug, Default)]
struct Witness {
    is_open: bool,
    bytes: usize,
    /// By read: the turn in which it was.
    reads: Vec<Turn>,
    /// By timer: the bytes read before it, and when it ran out.
    timers: Vec<(usize, Turn)>,
    /// Due instant of the timer.
    due: Micros,
    turn: Turn,
    /// The first read takes long.
    is_slow: bool,
}

impl Handler for Witness {
    fn turn_begins(&mut self, io: &mut Io) {
        self.turn = io.turn();
    }

    fn opened(&mut self, _: &mut Io, _: Key) {
        self.is_open = true;
    }

    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}

    fn received(&mut self, io: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
        self.bytes += bytes.len();
        self.reads.push(self.turn);
        if std::mem::take(&mut self.is_slow) {
            let until = io.now() + LONG;
            while io.fresh_now() < until {}
        }
        bytes.len()
    }

    fn flushed(&mut self, _: &mut Io, _: Key) {}

    fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}

    fn timer(&mut self, io: &mut Io, _: u64) {
        if io.presented_until() < self.due {
            let next = io.now() + Micros(17);
            io.set_timer(next, 0);
            return;
        }
        self.timers.push((self.bytes, self.turn));
    }

    fn woken(&mut self, _: &mut Io) {}

    fn turn(&mut self, _: &mut Io) -> Option<Micros> {
        None
    }
}

/// A loop with a connection, and its peer.
fn rig() -> (Loop<Witness>, Key, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let at: SocketAddr = listener.local_addr().expect("it is bound");
    let config = LoopConfig::default();
    let mut event_loop = Loop::new(Clock::start(), &config, Witness::default()).expect("a loop");
    let io = event_loop.parts().1;
    let key = io.connect(at, None).expect("it listens");
    io.set_receive_buffer(key, 200 << 10);
    let (peer, _) = listener.accept().expect("it connects");
    until(&mut event_loop, |witness| witness.is_open);
    (event_loop, key, peer)
}

fn until(event_loop: &mut Loop<Witness>, done: impl Fn(&Witness) -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !done(event_loop.parts().0) {
        assert!(Instant::now() < give_up, "{:?}", event_loop.parts().0);
        event_loop.turn(Micros::from_millis(20)).expect("a turn");
    }
}

/// One turn reads no more than a part of what lies in a socket; a time-out that is decided by what is
/// heard waits for the rest.
#[test]
fn nothing_is_heard_until_all_that_came_is_presented() {
    let (mut event_loop, _, mut peer) = rig();
    let all = vec![7; 150 << 10];
    peer.write_all(&all).expect("it stands");
    let (witness, io) = event_loop.parts();
    witness.due = io.fresh_now();
    io.set_timer(witness.due, 0);
    until(&mut event_loop, |witness| !witness.timers.is_empty());
    let witness = event_loop.parts().0;
    assert!(witness.reads.len() > 1, "{witness:?}");
    assert_eq!(witness.timers[0].0, all.len());
}

/// Law: input that comes during a turn has waited since that turn began at most; input that comes
/// during a sleep, since the wake-up.
#[test]
fn a_turn_began_when_the_loop_last_looked_at_its_sockets() {
    let (mut event_loop, _, mut peer) = rig();
    let (witness, io) = event_loop.parts();
    witness.is_slow = true;
    let set = io.fresh_now();
    io.set_timer(set + Micros::from_millis(5), 0);
    until(&mut event_loop, |witness| !witness.timers.is_empty());
    let slept = event_loop.parts().0.timers[0].1;
    assert!(set < slept.began && slept.began <= slept.now, "{slept:?}");
    peer.write_all(&vec![7; 100 << 10]).expect("it stands");
    until(&mut event_loop, |witness| witness.reads.len() > 1);
    let reads = &event_loop.parts().0.reads;
    assert_eq!(reads[1].began, reads[0].now, "{reads:?}");
    assert!(reads[1].now - reads[1].began >= LONG, "{reads:?}");
}

/// The CPU wait of the thread is read in each turn, where it is asked for, and only grows.
#[test]
fn the_wait_for_a_cpu_is_known_where_it_is_asked_for() {
    let (mut event_loop, _, _peer) = rig();
    let timers = |event_loop: &mut Loop<Witness>, count: u64| {
        let (witness, io) = event_loop.parts();
        witness.timers.clear();
        let now = io.fresh_now();
        for n in 0..count {
            io.set_timer(now + Micros(300 * n), n);
        }
        until(event_loop, |witness| witness.timers.len() == count as usize);
        let timers = event_loop.parts().0.timers.iter();
        timers.map(|(_, turn)| turn.waited).collect::<Vec<_>>()
    };
    assert_eq!(timers(&mut event_loop, 3), [Micros::ZERO; 3]);
    event_loop.parts().1.watch_cpu_wait(WaitsOf::default());
    let waits = timers(&mut event_loop, 20);
    assert!(waits.is_sorted(), "{waits:?}");
}
