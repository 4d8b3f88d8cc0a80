//! Nothing is allocated per message, datagram, connection or timer once the loop has grown to its size.

use std::alloc::System;
use std::net::{Ipv4Addr, SocketAddr};

use muster_model::Micros;
use muster_net::{
    Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, PortUse, TimerId, Written,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LINKS: usize = 200;
const PACKET: usize = 100;

/// Both ends of many links that bounce packets, with a time-out for each, and reconnect now and
/// then.
struct Bouncer {
    listener: SocketAddr,
    timeouts: Vec<Option<TimerId>>,
    bounced: u64,
    reconnects: u64,
    timed_out: u64,
}

impl Bouncer {
    fn bounce(&mut self, io: &mut Io, key: Key) {
        assert_eq!(io.write(key, &[9; PACKET]), Written::Whole);
        let timeout = io.set_timer(io.now() + Micros::from_secs(10), key.index() as u64);
        if let Some(old) = self.timeouts[key.index()].replace(timeout) {
            io.cancel_timer(old);
        }
        io.set_timer(io.now(), 0);
    }
}

impl Handler for Bouncer {
    fn opened(&mut self, io: &mut Io, key: Key) {
        self.bounce(io, key);
    }

    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        // Leaving a tail now and then takes the path of kept bytes.
        let used = if self.bounced.is_multiple_of(7) {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        self.bounced += 1;
        if self.bounced.is_multiple_of(97) {
            self.reconnects += 1;
            io.reset(key);
            io.connect(self.listener, None).expect("begun");
        } else {
            self.bounce(io, key);
        }
        used
    }

    fn flushed(&mut self, _: &mut Io, _: Key) {}
    fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}

    fn timer(&mut self, _: &mut Io, _: u64) {
        self.timed_out += 1;
    }

    fn woken(&mut self, _: &mut Io) {}

    fn turn(&mut self, _: &mut Io) -> Option<Micros> {
        None
    }
}

fn a_message_a_reconnect_and_a_time_out_allocate_nothing() {
    let bouncer = Bouncer {
        listener: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        timeouts: vec![None; 8 * LINKS],
        bounced: 0,
        reconnects: 0,
        timed_out: 0,
    };
    let mut event_loop =
        Loop::new(Clock::start(), &LoopConfig::default(), bouncer).expect("a loop");
    let (bouncer, io) = event_loop.parts();
    let (_, listener) = io.listen(bouncer.listener, PortUse::Alone).expect("a port");
    bouncer.listener = listener;
    for _ in 0..LINKS {
        io.connect(listener, None).expect("begun");
    }
    run_until(&mut event_loop, 60_000);
    let region = Region::new(ALLOCATOR);
    let before = event_loop.parts().0.reconnects;
    run_until(&mut event_loop, 120_000);
    let change = region.change();
    let bouncer = event_loop.parts().0;
    assert!(bouncer.reconnects - before > 500 && bouncer.timed_out > 100_000);
    assert_eq!(
        (change.allocations, change.reallocations),
        (0, 0),
        "{change:?}"
    );
}

fn run_until(event_loop: &mut Loop<Bouncer>, bounced: u64) {
    while event_loop.parts().0.bounced < bounced {
        event_loop.turn(Micros::from_secs(1)).expect("a turn");
    }
}

/// Both ends of many UDP sockets that bounce datagrams.
struct Throwing {
    keys: Vec<Key>,
    thrown: u64,
}

impl Handler for Throwing {
    fn opened(&mut self, _: &mut Io, key: Key) {
        self.keys.push(key);
    }

    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        self.thrown += 1;
        let written = if self.thrown.is_multiple_of(2) {
            io.write(key, bytes)
        } else {
            io.gather(key, bytes)
        };
        assert_eq!(written, Written::Whole);
        bytes.len()
    }

    fn datagram(&mut self, io: &mut Io, key: Key, from: SocketAddr, bytes: &mut [u8]) {
        assert_eq!(io.send_to(key, from, bytes), Written::Whole);
    }

    fn flushed(&mut self, _: &mut Io, _: Key) {}
    fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn woken(&mut self, _: &mut Io) {}

    fn turn(&mut self, _: &mut Io) -> Option<Micros> {
        None
    }
}

/// Allocations are counted for the whole process, and so tests run one after the other.
#[test]
fn nothing_is_allocated_per_message_reconnect_time_out_or_datagram() {
    a_message_a_reconnect_and_a_time_out_allocate_nothing();
    a_datagram_allocates_nothing();
}

fn a_datagram_allocates_nothing() {
    let throwing = Throwing {
        keys: Vec::new(),
        thrown: 0,
    };
    let mut event_loop =
        Loop::new(Clock::start(), &LoopConfig::default(), throwing).expect("a loop");
    let (_, io) = event_loop.parts();
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (_, there) = io.bind_udp(at, PortUse::Alone).expect("a port");
    for _ in 0..LINKS {
        io.connect_udp(there, None).expect("a socket");
    }
    while event_loop.parts().0.keys.len() < LINKS {
        event_loop.turn(Micros::from_secs(1)).expect("a turn");
    }
    let (throwing, io) = event_loop.parts();
    for key in &throwing.keys {
        assert_eq!(io.write(*key, &[9; PACKET]), Written::Whole);
    }
    throw_until(&mut event_loop, 20_000);
    let region = Region::new(ALLOCATOR);
    throw_until(&mut event_loop, 60_000);
    let change = region.change();
    let made = (change.allocations, change.reallocations);
    assert_eq!(made, (0, 0), "{change:?}");
    let counts = event_loop.parts().1.counts();
    assert_eq!((counts.datagrams_dropped, counts.icmp_errors), (0, 0));
}

fn throw_until(event_loop: &mut Loop<Throwing>, thrown: u64) {
    while event_loop.parts().0.thrown < thrown {
        event_loop.turn(Micros::from_secs(1)).expect("a turn");
    }
}
