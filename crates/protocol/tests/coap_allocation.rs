//! Nothing is allocated per exchange once memory has grown to its size, and a device at rest has
//! little.

use std::alloc::System;
use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, Opt, OptionNumber, Reply, Request, Server,
    ServerEvent, ServerSettings, SharedClient, Ticket,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const EXCHANGES: u32 = 2_000;
/// Counts are of the whole process, in which the thread of the test harness allocates a few times
/// too, whenever it gets its turn; what the code under test allocates shows in every try.
const TRIES: u32 = 5;
/// From one exchange to the next: slow enough for the message ids, fast enough that requests of the
/// last lifetime are of a steady number.
const STEP: Micros = Micros::from_millis(50);

/// A client and a server that answer each other at once.
struct Pair {
    client: Client,
    server: Server,
    now: Micros,
    up: Vec<u8>,
    down: Vec<u8>,
}

impl Pair {
    fn new() -> Self {
        Self {
            client: Client::new(Arc::new(ClientSettings::default()), 1),
            server: Server::new(Arc::new(ServerSettings::default()), 2),
            now: Micros(1),
            up: Vec::new(),
            down: Vec::new(),
        }
    }

    /// One exchange, by its number piggybacked, separate, or with a copy of the request.
    fn exchange(&mut self, number: u32) {
        self.now += STEP;
        let path = [Opt::text(OptionNumber::URI_PATH, "t")];
        let request = Request::new(Code::POST, &path, &[7; 100]);
        let ticket = Ticket {
            slot: 0,
            name: number,
        };
        let (now, up, down) = (self.now, &mut self.up, &mut self.down);
        let key = self
            .client
            .request(now, ticket, &request, up)
            .expect("it is sent");
        if number.is_multiple_of(3) {
            up.clear();
            let due = self.client.deadline().expect("a copy is due");
            let event = self.client.wake(due, up);
            assert!(matches!(event, Some(ClientEvent::Again { .. })));
            self.client
                .again(due, key, &request, up)
                .expect("it is sent");
        }
        let Some(ServerEvent::Request(incoming)) = self.server.receive(now, up, down) else {
            panic!("a request");
        };
        let mut pending = incoming.pending;
        if number.is_multiple_of(2) {
            pending = self.server.acknowledge(pending, down);
            let event = self.client.receive(now, down, up);
            assert!(matches!(event, Some(ClientEvent::Acknowledged { .. })));
            down.clear();
        }
        let reply = Reply::new(Code::CHANGED, &[], &[9; 20]);
        self.server
            .respond(now, pending, &reply, down)
            .expect("it is sent");
        up.clear();
        let event = self.client.receive(now, down, up);
        assert!(matches!(event, Some(ClientEvent::Response(_))));
        down.clear();
        if !up.is_empty() {
            let event = self.server.receive(now, up, down);
            assert!(matches!(event, Some(ServerEvent::Acknowledged { .. })));
        }
        up.clear();
    }

    fn exchanges(&mut self) {
        for number in 0..EXCHANGES {
            self.exchange(number);
        }
    }
}

/// Bytes of the heap that a value keeps.
fn heap_of<T>(make: impl Fn() -> T) -> usize {
    let tries = (0..TRIES).map(|_| {
        let region = Region::new(ALLOCATOR);
        let value = make();
        let change = region.change();
        drop(value);
        change
            .bytes_allocated
            .saturating_sub(change.bytes_deallocated)
    });
    tries.min().unwrap_or(0)
}

/// A client that had one exchange with a piggybacked answer, and one with a separate one if it is
/// told to.
fn rested(settings: &Arc<ClientSettings>, answers: &[bool]) -> Client {
    let mut client = Client::new(Arc::clone(settings), 1);
    let mut server = Server::new(Arc::new(ServerSettings::default()), 2);
    for is_separate in answers.iter().copied() {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let ticket = Ticket { slot: 0, name: 0 };
        let request = Request::new(Code::POST, &[], &[7; 100]);
        client
            .request(Micros(1), ticket, &request, &mut up)
            .expect("it is sent");
        let Some(ServerEvent::Request(incoming)) = server.receive(Micros(1), &up, &mut down) else {
            panic!("a request");
        };
        let mut pending = incoming.pending;
        if is_separate {
            pending = server.acknowledge(pending, &mut down);
            client.receive(Micros(1), &down, &mut up);
            down.clear();
        }
        let reply = Reply::new(Code::CHANGED, &[], b"");
        server
            .respond(Micros(1), pending, &reply, &mut down)
            .expect("it is sent");
        assert!(client.receive(Micros(1), &down, &mut up).is_some());
    }
    client
}

// One test, since the counts are of the whole process.
#[test]
fn exchanges_allocate_nothing_and_a_device_at_rest_is_small() {
    let mut pair = Pair::new();
    // Until what is remembered over a lifetime no longer grows: 247 s are 4,940 steps.
    for _ in 0..4 {
        pair.exchanges();
    }
    let fewest = (0..TRIES).map(|_| {
        let region = Region::new(ALLOCATOR);
        pair.exchanges();
        let change = region.change();
        change.allocations + change.reallocations
    });
    assert_eq!(fewest.min(), Some(0));

    let settings = Arc::new(ClientSettings::default());
    let own = size_of::<Client>();
    assert!(own <= 128, "{own} bytes");
    let heap = heap_of(|| Client::new(Arc::clone(&settings), 1));
    assert_eq!(heap, 0, "a client that never spoke");
    let heap = heap_of(|| rested(&settings, &[false]));
    assert!(own + heap <= 208, "{own} and {heap} bytes at rest");
    let heap = heap_of(|| rested(&settings, &[false, true]));
    assert!(
        own + heap <= 512,
        "{own} and {heap} bytes at rest, with a separate answer known"
    );

    let slots = 1_000;
    let heap = heap_of(|| SharedClient::shared(Arc::clone(&settings), 1, slots));
    assert_eq!(
        heap,
        24 * slots as usize,
        "24 bytes a device behind a shared socket"
    );
}
