//! Nothing is allocated per frame once buffers have grown to their size.

use std::alloc::System;

use muster_protocol::layer::{Layer, Pipe};
use muster_protocol::websocket::{Upgrade, WebSocket};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One end, and the bytes on their way to it.
struct End {
    pipe: Pipe<WebSocket>,
    coming: Vec<u8>,
    heard: usize,
}

impl End {
    fn new(layer: WebSocket) -> Self {
        Self {
            pipe: Pipe::new(layer),
            coming: Vec::new(),
            heard: 0,
        }
    }

    fn say(&mut self, payload: &[u8], to: &mut Self) {
        let from = to.coming.len();
        to.coming.extend_from_slice(payload);
        self.pipe.layer.wrap(&mut to.coming, from);
    }

    /// Takes the first bytes of what comes, in packets of 10 bytes.
    fn hear(&mut self, count: usize, answers: &mut Vec<u8>) {
        let bytes = &mut self.coming[..count];
        let fed = self.pipe.receive(bytes, answers);
        assert_eq!(fed.end, None);
        let taken = fed.plain / 10 * 10;
        self.heard += taken;
        let used = self.pipe.keep(bytes, &fed, taken);
        self.coming.drain(..used);
    }
}

fn shake_hands() -> (End, End) {
    let upgrade = Upgrade::new("h", "/mqtt");
    let client = WebSocket::client(&upgrade, 1).expect("it can be written");
    let (mut up, mut down) = (End::new(client), End::new(WebSocket::server(None)));
    up.pipe.layer.open(&mut down.coming);
    down.hear(down.coming.len(), &mut up.coming);
    up.hear(up.coming.len(), &mut down.coming);
    assert!(up.pipe.layer.is_open() && down.pipe.layer.is_open());
    (up, down)
}

/// Both sides speak, in frames that are cut, and each is pinged.
fn talk(up: &mut End, down: &mut End, payload: &[u8]) {
    for _ in 0..100 {
        up.say(payload, down);
        down.coming.extend_from_slice(b"\x89\x81\x00\x00\x00\x00?");
        down.say(payload, up);
        up.coming.extend_from_slice(b"\x89\x01?");
        for _ in 0..2 {
            // Twice, so that the pongs to the pings are taken as well.
            down.hear(down.coming.len() / 2, &mut up.coming);
            down.hear(down.coming.len(), &mut up.coming);
            up.hear(up.coming.len() / 2, &mut down.coming);
            up.hear(up.coming.len(), &mut down.coming);
        }
    }
}

/// Counts are of the whole process, in which the thread of the test harness allocates a few times
/// too, whenever it gets its turn; what the code under test allocates shows in every try.
const TRIES: u32 = 5;

// One test, since the counts are of the whole process.
#[test]
fn frames_allocate_nothing_and_the_handshake_leaves_nothing() {
    let payload = [7; 1_000];
    let (mut up, mut down) = shake_hands();
    talk(&mut up, &mut down, &payload);
    let fewest = (0..TRIES).map(|_| {
        let region = Region::new(ALLOCATOR);
        let heard = up.heard + down.heard;
        talk(&mut up, &mut down, &payload);
        let change = region.change();
        assert_eq!(up.heard + down.heard - heard, 2 * 100 * payload.len());
        change.allocations + change.reallocations
    });
    assert_eq!(fewest.min(), Some(0));

    let leaves_its_buffers_only = (0..TRIES).any(|_| {
        let region = Region::new(ALLOCATOR);
        let (up, down) = shake_hands();
        let change = region.change();
        let kept = up.coming.capacity() + down.coming.capacity();
        change.bytes_allocated - change.bytes_deallocated == kept
    });
    assert!(leaves_its_buffers_only);
}
