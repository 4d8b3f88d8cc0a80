//! Any bytes from a server, in the handshake or after it: the client end of WebSocket keeps the
//! laws of `websocket_ends`.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

mod websocket_ends;

use libfuzzer_sys::fuzz_target;
use muster_protocol::layer::Layer;
use websocket_ends::{answer, client, run, server};

fuzz_target!(|data: &[u8]| {
    let (_, mut request) = client();
    let mut peer = server();
    let _ = peer.feed(&mut request, 0, &mut Vec::new());
    run(data, &answer(), || client().0, peer);
});
