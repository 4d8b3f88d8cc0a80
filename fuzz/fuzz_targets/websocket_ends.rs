//! Common part of both WebSocket targets: the same script in one piece and byte by byte.

use std::sync::LazyLock;

use muster_protocol::layer::{Ended, Layer, Pipe, Standing};
use muster_protocol::websocket::{Upgrade, WebSocket};

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 100;
/// More than any answer to a handshake or failure has.
const ANSWER_MAX: usize = 400;
/// Small enough that a script reaches it.
const FRAME_MAX: u32 = 70_000;

/// A client that has not opened, and its request.
pub fn client() -> (WebSocket, Vec<u8>) {
    let upgrade = Upgrade::new("h", "/mqtt");
    let mut client = WebSocket::client(&upgrade, 1).expect("it can be written");
    let mut request = Vec::new();
    client.open(&mut request);
    (client.with_frame_max(FRAME_MAX), request)
}

/// A server on which nothing has come.
pub fn server() -> WebSocket {
    WebSocket::server(Some("/mqtt")).with_frame_max(FRAME_MAX)
}

/// The client's request.
pub static REQUEST: LazyLock<Vec<u8>> = LazyLock::new(|| client().1);

/// The server's answer to it.
pub static ANSWER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut wire = Vec::new();
    let fed = server().feed(&mut REQUEST.clone(), 0, &mut wire);
    assert_eq!(fed.end, None);
    wire
});

/// An end, the bytes that it sent and received, and those that it or its session has not taken.
struct End {
    pipe: Pipe<WebSocket>,
    kept: Vec<u8>,
    wire: Vec<u8>,
    plain: Vec<u8>,
    end: Option<Ended>,
    /// True if bytes come one by one.
    is_slow: bool,
    /// The session takes whole packets of this size.
    packet: usize,
}

impl End {
    fn new(layer: WebSocket, is_slow: bool, packet: usize) -> Self {
        Self {
            pipe: Pipe::new(layer),
            kept: Vec::new(),
            wire: Vec::new(),
            plain: Vec::new(),
            end: None,
            is_slow,
            packet,
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let step = if self.is_slow { 1 } else { bytes.len() };
        self.receive_pieces(bytes, step);
    }

    fn receive_pieces(&mut self, bytes: &[u8], step: usize) {
        for piece in bytes.chunks(step.max(1)) {
            self.kept.extend_from_slice(piece);
            let fed = self.pipe.receive(&mut self.kept, &mut self.wire);
            assert!(fed.plain <= fed.used && fed.used == self.kept.len());
            assert!(
                fed.end.is_none() || self.end.is_none(),
                "the end is reported once"
            );
            self.end = self.end.or(fed.end);
            let taken = fed.plain / self.packet * self.packet;
            self.plain.extend_from_slice(&self.kept[..taken]);
            let used = self.pipe.keep(&mut self.kept, &fed, taken);
            self.kept.drain(..used);
            assert!(
                self.kept.len() < self.packet,
                "only a session's bytes are kept"
            );
        }
    }

    fn step(&mut self, call: u8, operand: u8, bytes: &[u8], key: Option<[u8; 4]>) {
        match call & 0x0f {
            0..=3 => self.receive(bytes),
            4 => {
                let from = self.wire.len();
                self.wire.extend_from_slice(bytes);
                self.pipe.layer.wrap(&mut self.wire, from);
            }
            5 if operand < 8 => self.pipe.layer.close(&mut self.wire),
            // Frames of any kind, with a head that is right but for its first byte.
            6..=11 => self.receive(&frame(operand, bytes, key)),
            // Frames that are right.
            12 => self.receive(&frame(0x02, bytes, key)),
            13 => self.receive(&frame(0x80, bytes, key)),
            14 => self.receive(&frame(0x89, bytes, key)),
            _ => self.receive(&frame(0x82, bytes, key)),
        }
    }
}

fn frame(first: u8, payload: &[u8], key: Option<[u8; 4]>) -> Vec<u8> {
    let mut wire = vec![first, payload.len() as u8];
    if let Some(key) = key {
        wire[1] |= 0x80;
        wire.extend_from_slice(&key);
    }
    let key = key.unwrap_or_default().into_iter().cycle();
    wire.extend(payload.iter().zip(key).map(|(byte, key)| byte ^ key));
    wire
}

/// The other end of a connection.
pub struct Peer {
    /// Makes it, with its handshake done.
    pub open: fn() -> WebSocket,
    /// True if it masks its frames, as clients do.
    pub masks: bool,
}

/// Runs the script on an end of `make`, to which the peer may have said `greeting` before.
///
/// Whatever comes: an end does not panic; it makes no more plain bytes than it was given, and
/// answers in a bounded number; it is the same in one piece and byte by byte; and what it says is
/// taken by the other end, `peer`, whose frames are masked if it is a client.
pub fn run(data: &[u8], greeting: &[u8], make: fn() -> WebSocket, peer: Peer) {
    let Some((first, mut script)) = data.split_first() else {
        return;
    };
    let packet = 1 + usize::from(first >> 4);
    let mut ends = [false, true].map(|is_slow| End::new(make(), is_slow, packet));
    let is_greeted = first & 3 == 1;
    if is_greeted {
        // Byte by byte a handshake takes longer than any script behind it.
        let step = if first & 0x0c == 0x0c {
            1
        } else {
            greeting.len()
        };
        let [fast, slow] = &mut ends;
        fast.receive(greeting);
        slow.receive_pieces(greeting, step);
        assert!(ends.iter().all(|end| end.pipe.layer.is_open()));
    } else if first & 3 == 3 {
        let altered = altered(greeting, &mut script);
        ends.iter_mut().for_each(|end| end.receive(&altered));
    }
    // Half of a key is zero, so that the fuzzer can reach what a payload says.
    let key = peer.masks.then_some([0, 0, 1, 0x80]);
    for _ in 0..CALLS {
        let [call, operand, rest @ ..] = script else {
            break;
        };
        let length = usize::from(call >> 4) * 8 + usize::from(operand & 7);
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        script = rest;
        ends.iter_mut()
            .for_each(|end| end.step(*call, *operand, bytes, key));
        let [fast, slow] = &ends;
        assert_eq!((&fast.plain, &fast.wire), (&slow.plain, &slow.wire));
        assert_eq!((fast.end, &fast.kept), (slow.end, &slow.kept));
        assert_eq!(fast.pipe.layer.standing(), slow.pipe.layer.standing());
    }
    let [fast, _] = &mut ends;
    let given = data.len() * 8 + greeting.len();
    assert!(fast.plain.len() <= given && fast.wire.len() <= 3 * given + ANSWER_MAX);
    assert!(fast.end.is_none() || fast.pipe.layer.standing() == Standing::Over);
    if is_greeted {
        understand((peer.open)(), &mut fast.wire);
    }
}

/// The greeting with some of its bytes replaced by some of the script's.
fn altered(greeting: &[u8], script: &mut &[u8]) -> Vec<u8> {
    let [at, drop, insert, rest @ ..] = *script else {
        return greeting.to_vec();
    };
    let (insert, rest) = rest.split_at(usize::from(*insert).min(rest.len()));
    *script = rest;
    let at = usize::from(*at).min(greeting.len());
    let end = (at + usize::from(*drop)).min(greeting.len());
    [&greeting[..at], insert, &greeting[end..]].concat()
}

/// Checks that the bytes of an end behind its handshake are right for the other end.
fn understand(mut peer: WebSocket, wire: &mut [u8]) {
    let head = wire.windows(4).position(|four| four == b"\r\n\r\n");
    let behind = head.filter(|_| wire[0] == b'H').map_or(0, |at| at + 4);
    let fed = peer.feed(&mut wire[behind..], 0, &mut Vec::new());
    assert!(!matches!(fed.end, Some(Ended::Failed(_))), "{:?}", fed.end);
}
