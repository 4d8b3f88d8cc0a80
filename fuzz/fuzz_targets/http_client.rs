//! Any bytes from a server, in any pieces: the client does not panic, reports each request's end at most
//! once, keeps its bound, and reads the same whatever the pieces are.
//!
//! The first byte is the number of open requests, the second the size of a piece.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_protocol::http::{Client, ClientEvent, Request, Ticket};

const BODY_MAX: u32 = 300;
const WINDOW: u16 = 4;

fuzz_target!(|data: &[u8]| {
    let [requests, piece, bytes @ ..] = data else {
        return;
    };
    let requests = u32::from(*requests) % u32::from(WINDOW + 1);
    let whole = read(requests, bytes.len().max(1), bytes);
    assert_eq!(whole, read(requests, usize::from(*piece).max(1), bytes));
});

fn read(requests: u32, piece: usize, bytes: &[u8]) -> Vec<(Option<u32>, u16, Vec<u8>)> {
    let mut client = Client::new(WINDOW, BODY_MAX);
    for ticket in 0..requests {
        let request = Request::new("GET", "/", "h");
        client
            .submit(Ticket(ticket), &request, &mut Vec::new())
            .expect("a free window");
    }
    let (mut held, mut seen) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        held.extend_from_slice(piece);
        let mut input = &held[..];
        while let Some(event) = client.poll(&mut input) {
            if !note(event, &mut seen) {
                return seen;
            }
        }
        held = input.to_vec();
    }
    if let Some(event) = client.end() {
        note(event, &mut seen);
    }
    let ended = seen.iter().filter(|(ticket, ..)| ticket.is_some()).count();
    assert_eq!(client.waiting().count() + ended, requests as usize);
    seen
}

/// False once the connection is at its end.
fn note(event: ClientEvent<'_>, seen: &mut Vec<(Option<u32>, u16, Vec<u8>)>) -> bool {
    let (ticket, response) = match event {
        ClientEvent::Answered { ticket, response } => (Some(ticket.0), response),
        ClientEvent::Unasked(response) => (None, response),
        ClientEvent::Malformed(_) => {
            seen.push((None, 0, Vec::new()));
            return false;
        }
    };
    assert!(response.body.len() <= BODY_MAX as usize);
    for (name, _) in response.head.fields() {
        assert!(
            response
                .head
                .field(std::str::from_utf8(name).expect("a token"))
                .is_some()
        );
    }
    seen.push((ticket, response.status, response.body.into_owned()));
    true
}
