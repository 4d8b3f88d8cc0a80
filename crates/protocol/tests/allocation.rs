//! Nothing is allocated per message once buffers have grown to their size.

use std::alloc::System;

use muster_model::Micros;
use muster_protocol::mqtt::{
    Accept, Client, ClientEvent, ClientLimits, Connect, Input, Publish, Qos, Server, ServerEvent,
    ServerLimits, Token, Version,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Micros = Micros(1);
const WARM_UP: u32 = 200;
const MEASURED: u32 = 2_000;
const TRIES: u32 = 5;

/// A client and a server that answer each other at once.
struct Pair {
    client: Client,
    server: Server,
    up: Vec<u8>,
    down: Vec<u8>,
    told: u32,
}

impl Pair {
    fn new(version: Version) -> Self {
        let client = Client::new(version, &ClientLimits::default());
        let server = Server::new(&ServerLimits::default());
        let mut pair = Self {
            client,
            server,
            up: Vec::new(),
            down: Vec::new(),
            told: 0,
        };
        pair.connect();
        pair
    }

    fn connect(&mut self) {
        let will = muster_protocol::mqtt::Will {
            topic: "w",
            payload: b"gone",
            qos: Qos::AtMostOnce,
            retain: false,
            properties: muster_protocol::mqtt::Properties::NONE,
        };
        let connect = Connect {
            clean_start: false,
            session_expiry: 60,
            topic_alias_maximum: 8,
            will: Some(will),
            user_properties: &[("k", "v")],
            ..Connect::new("device")
        };
        assert_eq!(self.client.connect(NOW, &connect, &mut self.up), Ok(()));
        self.exchange();
        assert!(self.client.is_connected());
    }

    /// The transport ends, and the session goes on over a new one.
    fn reconnect(&mut self) {
        self.client.closed();
        let state = self.server.take_session();
        self.server = Server::new(&ServerLimits::default());
        self.server.resume(state);
        self.connect();
    }

    fn message(&mut self, number: u32, qos: Qos) {
        let publish = Publish {
            qos,
            alias_slot: Some((number % 8) as u16),
            message_expiry: Some(9),
            user_properties: &[("k", "v")],
            ..Publish::new(
                ["a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"][number as usize % 8],
                &[7; 100],
            )
        };
        assert_eq!(
            self.client
                .publish(NOW, Token(number), &publish, &mut self.up),
            Ok(())
        );
        assert_eq!(
            self.server.deliver(Token(number), &publish, &mut self.down),
            Ok(())
        );
        self.exchange();
    }

    fn exchange(&mut self) {
        while !self.up.is_empty() || !self.down.is_empty() {
            let mut input = Input::new(&self.up);
            while let Some(event) = self.server.poll(NOW, &mut input, &mut self.down) {
                self.told += 1;
                if let ServerEvent::Publish(incoming) = event
                    && let Some(pending) = incoming.pending
                {
                    self.server.ack(pending, 0, &mut self.down);
                } else if !self.server.is_connected() {
                    let accept = Accept::default();
                    assert_eq!(self.server.accept(NOW, &accept, &mut self.down), Ok(()));
                }
            }
            self.up.clear();
            let mut input = Input::new(&self.down);
            while let Some(event) = self.client.poll(NOW, &mut input, &mut self.up) {
                assert!(!matches!(event, ClientEvent::Malformed(_)));
                self.told += 1;
            }
            self.down.clear();
        }
    }
}

/// The fewest allocations of several tries. Counts are of the whole process, in which the thread
/// of the test harness allocates a few times too, whenever it gets its turn; what the code under
/// test allocates shows in every try.
fn fewest_allocations(mut act: impl FnMut()) -> usize {
    let tries = (0..TRIES).map(|_| {
        let region = Region::new(ALLOCATOR);
        act();
        let change = region.change();
        change.allocations + change.reallocations
    });
    tries.min().expect("there is a try")
}

fn check(version: Version) {
    let mut pair = Pair::new(version);
    let levels = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
    let run = |pair: &mut Pair, count: u32| {
        for number in 0..count {
            pair.message(number, levels[number as usize % 3]);
        }
    };
    run(&mut pair, WARM_UP);
    let told = pair.told;
    let fewest = fewest_allocations(|| run(&mut pair, MEASURED));
    // Per three messages each end hears of three, and of five answers.
    let per_round = 2 * 3 + 2 * 3;
    assert_eq!(
        pair.told - told,
        TRIES * (MEASURED / 3 * per_round + 6),
        "{version:?}"
    );
    assert_eq!(fewest, 0, "{version:?}");
}

fn check_reconnect(version: Version) {
    let mut pair = Pair::new(version);
    let publish = Publish {
        qos: Qos::AtLeastOnce,
        ..Publish::new("t", b"x")
    };
    let cut = |pair: &mut Pair| {
        for token in 0..5 {
            assert_eq!(
                pair.client
                    .publish(NOW, Token(token), &publish, &mut pair.up),
                Ok(())
            );
        }
        pair.up.clear();
        pair.client.closed();
        (0..5).for_each(|token| assert!(pair.client.forget(Token(token))));
        pair.reconnect();
        pair.message(5, Qos::ExactlyOnce);
    };
    (0..3).for_each(|_| cut(&mut pair));
    let fewest = fewest_allocations(|| (0..100).for_each(|_| cut(&mut pair)));
    assert_eq!(fewest, 0, "{version:?}");
}

// One test, since the counts are of the whole process.
#[test]
fn messages_and_reconnects_allocate_nothing() {
    for version in [Version::V311, Version::V5] {
        check(version);
        check_reconnect(version);
    }
}
