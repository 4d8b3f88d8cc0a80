//! Ends of the tests over a wire in pieces, and frames written by hand.

use muster_protocol::layer::{Ended, Layer, LayerError, Pipe};
use muster_protocol::websocket::{Fault, Upgrade, WebSocket};

pub(crate) const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const SEED: u64 = 7;

/// Result of an end's input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) plain: Vec<u8>,
    pub(crate) wire: Vec<u8>,
    pub(crate) end: Option<Ended>,
}

/// Presents `wire` in pieces that end at `cuts`; the session takes whole groups of `group` bytes.
pub(crate) fn hear(end: &mut Pipe<WebSocket>, wire: &[u8], cuts: &[usize], group: usize) -> Heard {
    let (mut heard, mut kept, mut from) = (Heard::default(), Vec::new(), 0);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
    cuts.push(wire.len());
    cuts.sort_unstable();
    for until in cuts {
        kept.extend_from_slice(&wire[from..until]);
        from = until;
        let fed = end.receive(&mut kept, &mut heard.wire);
        assert!(fed.plain <= fed.used && fed.used <= kept.len());
        let taken = fed.plain / group * group;
        heard.plain.extend_from_slice(&kept[..taken]);
        let used = end.keep(&mut kept, &fed, taken);
        kept.drain(..used);
        assert!(
            fed.end.is_none() || heard.end.is_none(),
            "the end is told once"
        );
        heard.end = heard.end.or(fed.end);
    }
    // The rest of the session's bytes: an incomplete group.
    heard.plain.append(&mut kept);
    heard
}

/// A client that has not opened, and its request.
pub(crate) fn asking() -> (Pipe<WebSocket>, Vec<u8>) {
    let upgrade = Upgrade::new("server.example.com", "/mqtt");
    let mut client = WebSocket::client(&upgrade, SEED).expect("it can be written");
    let mut request = Vec::new();
    client.open(&mut request);
    (Pipe::new(client), request)
}

/// The right answer to the request of [`asking`].
pub(crate) fn answer() -> Vec<u8> {
    let (_, request) = asking();
    let mut server = Pipe::new(WebSocket::server(None));
    hear(&mut server, &request, &[], 1).wire
}

/// A client whose handshake is over.
pub(crate) fn client() -> Pipe<WebSocket> {
    let (mut client, _) = asking();
    assert_eq!(hear(&mut client, &answer(), &[], 1), Heard::default());
    assert!(client.layer.is_open());
    client
}

/// A server whose handshake is over.
pub(crate) fn server() -> Pipe<WebSocket> {
    let mut server = Pipe::new(WebSocket::server(None));
    assert_eq!(hear(&mut server, &asking().1, &[], 1).end, None);
    assert!(server.layer.is_open());
    server
}

/// Returns a client's view of the server's frames.
pub(crate) fn from_server(frames: &[u8]) -> Heard {
    hear(&mut client(), frames, &[], 1)
}

/// Returns a server's view of the client's frames.
pub(crate) fn from_client(frames: &[u8]) -> Heard {
    hear(&mut server(), frames, &[], 1)
}

pub(crate) fn failed(fault: Fault) -> Option<Ended> {
    Some(Ended::Failed(LayerError::WebSocket(fault)))
}

/// A frame, written without the code under test.
pub(crate) fn frame(first: u8, payload: &[u8], key: Option<[u8; 4]>) -> Vec<u8> {
    let mask_bit = if key.is_some() { 0x80 } else { 0 };
    let mut wire = vec![first];
    match payload.len() {
        short @ 0..126 => wire.push(mask_bit | short as u8),
        middle @ 126..65_536 => {
            wire.push(mask_bit | 126);
            wire.extend((middle as u16).to_be_bytes());
        }
        long => {
            wire.push(mask_bit | 127);
            wire.extend((long as u64).to_be_bytes());
        }
    }
    wire.extend(key.unwrap_or_default().iter().filter(|_| key.is_some()));
    let key = key.unwrap_or_default();
    wire.extend(
        payload
            .iter()
            .enumerate()
            .map(|(at, byte)| byte ^ key[at % 4]),
    );
    wire
}

/// The frames of a wire: first byte and unmasked payload, read without the code under test.
pub(crate) fn frames(mut wire: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while !wire.is_empty() {
        let (first, second) = (wire[0], wire[1]);
        let (length, mut at) = match second & 0x7f {
            126 => (usize::from(u16::from_be_bytes([wire[2], wire[3]])), 4),
            127 => (
                u64::from_be_bytes(*wire[2..].first_chunk().expect("8")) as usize,
                10,
            ),
            short => (usize::from(short), 2),
        };
        let mut key = [0; 4];
        if second & 0x80 != 0 {
            key = *wire[at..].first_chunk().expect("a masking key");
            at += 4;
        }
        let payload = wire[at..at + length].iter().enumerate();
        frames.push((
            first,
            payload.map(|(at, byte)| byte ^ key[at % 4]).collect(),
        ));
        wire = &wire[at + length..];
    }
    frames
}
