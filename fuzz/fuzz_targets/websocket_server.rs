//! Any bytes from a client, in the handshake or after it: the server end of WebSocket keeps the
//! laws of `websocket_ends`.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

mod websocket_ends;

use libfuzzer_sys::fuzz_target;
use muster_protocol::layer::Layer;
use websocket_ends::{answer, client, run, server};

fuzz_target!(|data: &[u8]| {
    let (mut peer, request) = client();
    let _ = peer.feed(&mut answer(), 0, &mut Vec::new());
    run(data, &request, server, peer);
});
