//! Any bytes from a server, in the handshake or after it: the client end of WebSocket keeps the
//! laws of `websocket_ends`.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

mod websocket_ends;

use libfuzzer_sys::fuzz_target;
use muster_protocol::layer::Layer;
use muster_protocol::websocket::WebSocket;
use websocket_ends::{ANSWER, Peer, REQUEST, client, run, server};

fn open() -> WebSocket {
    let mut peer = server();
    let _ = peer.feed(&mut REQUEST.clone(), 0, &mut Vec::new());
    peer
}

fuzz_target!(|data: &[u8]| {
    let peer = Peer { open, masks: false };
    run(data, &ANSWER, || client().0, peer);
});
