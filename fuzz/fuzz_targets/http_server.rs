//! Any bytes from a client, in any pieces: the server does not panic, keeps its bound, reads the same
//! whatever the pieces are, and refuses a request once.
//!
//! The first byte is the size of a piece.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_protocol::http::{Malformed, Server, ServerEvent};

const BODY_MAX: u32 = 300;

type Read = Result<(String, String, Vec<u8>), Malformed>;

fuzz_target!(|data: &[u8]| {
    let [piece, bytes @ ..] = data else {
        return;
    };
    let whole = read(bytes.len().max(1), bytes);
    assert_eq!(whole, read(usize::from(*piece).max(1), bytes));
});

fn read(piece: usize, bytes: &[u8]) -> Vec<Read> {
    let mut server = Server::new(BODY_MAX);
    let (mut held, mut seen, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        held.extend_from_slice(piece);
        let mut input = &held[..];
        while let Some(event) = server.poll(&mut input, &mut out) {
            seen.push(match event {
                ServerEvent::Request(request) => {
                    assert!(request.body.len() <= BODY_MAX as usize);
                    Ok((
                        request.method().to_owned(),
                        request.target().to_owned(),
                        request.body.to_vec(),
                    ))
                }
                ServerEvent::Malformed(malformed) => Err(malformed),
            });
        }
        held = input.to_vec();
    }
    assert!(seen.iter().filter(|read| read.is_err()).count() <= 1);
    seen
}
