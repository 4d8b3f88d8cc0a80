//! Any bytes from a server, between any calls of a device: the client session does not panic,
//! keeps its window, and takes a stream in pieces as it takes it whole.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_model::Micros;
use muster_protocol::mqtt::{
    Client, ClientEvent, ClientLimits, Connect, Filter, Input, Publish, Qos, Subscribe, Token,
    Version,
};

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 200;

/// A client, its output, and the bytes it has not taken.
struct End {
    client: Client,
    out: Vec<u8>,
    held: Vec<u8>,
    events: u64,
    /// True if bytes come one by one.
    is_slow: bool,
}

impl End {
    fn new(version: Version, is_slow: bool) -> Self {
        let client = Client::new(version, &ClientLimits::default());
        Self {
            client,
            out: Vec::new(),
            held: Vec::new(),
            events: 0,
            is_slow,
        }
    }

    fn step(&mut self, now: Micros, call: u8, operand: u8, bytes: &[u8]) {
        let qos = Qos::from_bits(operand % 3).expect("it is below three");
        let token = Token(u32::from(operand));
        let publish = Publish {
            qos,
            retain: operand & 0x40 != 0,
            alias_slot: (operand & 0x20 != 0).then_some(u16::from(operand & 7)),
            ..Publish::new(
                ["a", "b/c", "", "d", "e", "f", "g", "h"][usize::from(operand & 7)],
                bytes,
            )
        };
        match call {
            0 => self.connect(now, operand),
            1 => _ = self.client.publish(now, token, &publish, &mut self.out),
            2 => _ = self.client.forget(token),
            3 => self.subscribe(now, operand),
            4 => _ = self.client.unsubscribe(now, 1, &["a"], &mut self.out),
            5 => _ = self.client.timer(now, &mut self.out),
            6 => self.client.ping(now, &mut self.out),
            7 => self.client.disconnect(operand, &mut self.out),
            8 => self.client.drop_inflight(|_, _| ()),
            // An answer to a packet id that may be in use.
            9 => self.feed(now, &[0x40 + 0x10 * (operand & 3), 2, 0, operand >> 2]),
            10 => self.feed(now, connack(operand)),
            // A packet of any type, framed so that its body is reached.
            11..=13 => self.feed(now, &[&[operand, bytes.len() as u8], bytes].concat()),
            // A step of authentication, or the beginning of a further one.
            14 if operand & 4 != 0 => {
                _ = self.client.reauthenticate(now, bytes, &mut self.out);
            }
            14 => self.feed(now, auth(operand)),
            _ => self.feed(now, bytes),
        }
    }

    fn connect(&mut self, now: Micros, operand: u8) {
        self.client.closed();
        self.held.clear();
        let connect = Connect {
            clean_start: operand & 1 != 0,
            receive_maximum: 1 + u16::from(operand >> 5),
            topic_alias_maximum: u16::from(operand & 6),
            keep_alive: u16::from(operand & 8),
            authentication: (operand & 0x10 != 0).then_some(("m", b"1")),
            ..Connect::new("c")
        };
        self.client
            .connect(now, &connect, &mut self.out)
            .expect("the last one was closed");
    }

    fn subscribe(&mut self, now: Micros, operand: u8) {
        let filters = [Filter::new("a", Qos::AtLeastOnce)];
        let id = u32::from(operand);
        let subscription_id = (id > 0).then_some(id);
        let subscribe = Subscribe {
            id,
            filters: &filters,
            subscription_id,
            user_properties: &[],
        };
        _ = self.client.subscribe(now, &subscribe, &mut self.out);
    }

    fn feed(&mut self, now: Micros, bytes: &[u8]) {
        let step = if self.is_slow { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(step) {
            self.held.extend_from_slice(piece);
            let mut held = std::mem::take(&mut self.held);
            let mut input = Input::new(&held);
            while let Some(event) = self.client.poll(now, &mut input, &mut self.out) {
                self.events += 1;
                if let ClientEvent::Resend { token } = event {
                    self.resend(now, token);
                } else if let ClientEvent::Auth(_) = event {
                    _ = self.client.authenticate(now, b"2", &mut self.out);
                }
            }
            let taken = input.consumed();
            held.drain(..taken);
            self.held = held;
        }
    }

    /// Sends again, or gives up what cannot be sent.
    fn resend(&mut self, now: Micros, token: Token) {
        for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
            let publish = Publish {
                qos,
                ..Publish::new("a", b"again")
            };
            if self
                .client
                .republish(now, token, &publish, &mut self.out)
                .is_ok()
            {
                return;
            }
        }
        self.client.forget(token);
    }
}

/// One of a few answers to a CONNECT.
fn connack(operand: u8) -> &'static [u8] {
    match operand % 7 {
        0 => &[0x20, 3, 0, 0, 0],
        1 => &[0x20, 3, 1, 0, 0],
        2 => &[0x20, 2, 0, 0],
        3 => &[0x20, 2, 1, 0],
        4 => &[0x20, 9, 1, 0, 6, 0x21, 0, 2, 0x22, 0, 3],
        5 => &[0x20, 7, 0, 0, 4, 0x15, 0, 1, b'm'],
        _ => &[0x20, 10, 0, 0, 7, 0x27, 0, 0, 0, 12, 0x24, 1],
    }
}

/// One of a few steps of the server.
fn auth(operand: u8) -> &'static [u8] {
    match operand & 3 {
        0 => &[0xf0, 6, 0x18, 4, 0x15, 0, 1, b'm'],
        1 => &[0xf0, 6, 0x00, 4, 0x15, 0, 1, b'm'],
        2 => &[0xf0, 6, 0x18, 4, 0x15, 0, 1, b'n'],
        _ => &[0xf0, 0],
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, mut script)) = data.split_first() else {
        return;
    };
    let version = if first & 1 == 0 {
        Version::V311
    } else {
        Version::V5
    };
    let mut ends = [End::new(version, false), End::new(version, true)];
    let mut now = Micros::ZERO;
    ends.iter_mut().for_each(|end| end.connect(now, *first));
    for _ in 0..CALLS {
        let [call, operand, rest @ ..] = script else {
            break;
        };
        let length = (3 * usize::from(call >> 4)).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        script = rest;
        now += Micros::from_millis(u64::from(*operand) * 10);
        ends.iter_mut()
            .for_each(|end| end.step(now, *call & 0x0f, *operand, bytes));
        let [fast, slow] = &ends;
        assert_eq!((fast.events, &fast.out), (slow.events, &slow.out));
        assert_eq!(fast.client.counts(), slow.client.counts());
        assert_eq!(fast.client.window_free(), slow.client.window_free());
        assert_eq!(fast.client.deadline(), slow.client.deadline());
        ends.iter_mut().for_each(|end| end.out.clear());
    }
});
