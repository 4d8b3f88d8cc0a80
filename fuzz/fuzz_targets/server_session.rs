//! Any bytes from a client, between any calls of a gateway: the server session does not panic,
//! takes a stream in pieces as it takes it whole, and its state moves between connections.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_model::Micros;
use muster_protocol::mqtt::{
    Accept, Input, Pending, Publish, Qos, Server, ServerEvent, ServerLimits, Token,
};

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 200;

const LIMITS: ServerLimits = ServerLimits {
    maximum_packet_size: 512,
    receive_maximum: 4,
    topic_alias_maximum: 3,
};

/// Reaction of the caller to an event.
enum Due {
    Accept,
    Challenge,
    Proved,
    Ack(Pending),
    Suback(u16, usize),
    Resend(Token),
    Nothing,
}

/// A server, its output, and the bytes it has not taken.
struct End {
    server: Server,
    out: Vec<u8>,
    held: Vec<u8>,
    events: u64,
    /// True if bytes come one by one.
    is_slow: bool,
}

impl End {
    fn new(is_slow: bool) -> Self {
        let server = Server::new(&LIMITS);
        Self {
            server,
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
            alias_slot: (operand & 0x20 != 0).then_some(u16::from(operand & 3)),
            ..Publish::new(["a", "b", "c/d", "e"][usize::from(operand & 3)], bytes)
        };
        let id = u16::from(operand >> 2);
        match call {
            0 => self.reconnect(now, operand),
            1 => _ = self.server.deliver(token, &publish, &mut self.out),
            2 => _ = self.server.forget(token),
            3 => _ = self.server.timer(now, &mut self.out),
            4 => self
                .server
                .ack(Pending { packet_id: id, qos }, operand, &mut self.out),
            // A step of authentication.
            13 => self.feed(now, &[0xf0, 6, 0x18 + (operand & 1), 4, 0x15, 0, 1, b'm']),
            // An answer or a release of a packet id that may be in use.
            5 => self.feed(now, &[0x40 + 0x10 * (operand & 3), 2, 0, operand >> 2]),
            6 => self.feed(now, &[0x62, 2, 0, operand >> 2]),
            // A publish at QoS 1 or 2.
            7 => self.feed(
                now,
                &[0x32 + 2 * (operand & 1), 6, 0, 1, b't', 0, operand >> 2, 0],
            ),
            8 if operand == 0 => self.server.disconnect(operand, &mut self.out),
            // A packet of any type, framed so that its body is reached.
            9..=12 => self.feed(now, &[&[operand, bytes.len() as u8], bytes].concat()),
            _ => self.feed(now, bytes),
        }
    }

    /// The session goes on over a new connection, or a new one begins.
    fn reconnect(&mut self, now: Micros, operand: u8) {
        let state = self.server.take_session();
        self.server = Server::new(&LIMITS);
        self.held.clear();
        if operand & 1 != 0 {
            self.server.resume(state);
        }
        self.feed(now, connect(operand));
    }

    fn feed(&mut self, now: Micros, bytes: &[u8]) {
        let step = if self.is_slow { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(step) {
            self.held.extend_from_slice(piece);
            let mut held = std::mem::take(&mut self.held);
            let mut input = Input::new(&held);
            while let Some(event) = self.server.poll(now, &mut input, &mut self.out) {
                self.events += 1;
                let due = due(&event);
                self.answer(now, due);
            }
            let taken = input.consumed();
            held.drain(..taken);
            self.held = held;
        }
    }

    fn answer(&mut self, now: Micros, due: Due) {
        match due {
            Due::Accept => self.accept(now),
            Due::Challenge if self.server.challenge(b"c", &mut self.out).is_ok() => {}
            Due::Challenge => self.accept(now),
            Due::Proved if self.server.is_connected() => {
                _ = self.server.authenticated(&mut self.out);
            }
            Due::Proved => self.accept(now),
            // Some are never answered, and some by another call.
            Due::Ack(pending) if pending.packet_id % 3 == 0 => {
                self.server.ack(pending, 0, &mut self.out);
            }
            Due::Ack(_) | Due::Nothing => {}
            Due::Suback(id, filters) => {
                // A client that takes no packet so large is not answered.
                let _sent = self.server.suback(id, &vec![0; filters], &mut self.out);
            }
            Due::Resend(token) => self.resend(token),
        }
    }

    /// Takes the connection, unless no CONNACK is small enough for the client.
    fn accept(&mut self, now: Micros) {
        let accept = Accept::default();
        if self.server.accept(now, &accept, &mut self.out).is_err() {
            self.server.refuse(0x95, &mut self.out);
        }
    }

    /// Sends again, or gives up what cannot be sent.
    fn resend(&mut self, token: Token) {
        for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
            let publish = Publish {
                qos,
                ..Publish::new("a", b"again")
            };
            if self
                .server
                .redeliver(token, &publish, &mut self.out)
                .is_ok()
            {
                return;
            }
        }
        self.server.forget(token);
    }
}

fn due(event: &ServerEvent<'_>) -> Due {
    match event {
        ServerEvent::Connect(connect) if connect.authentication_method().is_some() => {
            Due::Challenge
        }
        ServerEvent::Connect(_) => Due::Accept,
        ServerEvent::Auth(_) => Due::Proved,
        ServerEvent::Publish(incoming) => incoming.pending.map_or(Due::Nothing, Due::Ack),
        ServerEvent::Subscribe(subscribe) => {
            Due::Suback(subscribe.packet_id, subscribe.filters.iter().count())
        }
        ServerEvent::Resend { token } => Due::Resend(*token),
        ServerEvent::Unsubscribe(_)
        | ServerEvent::Acked { .. }
        | ServerEvent::Completed { .. }
        | ServerEvent::Ping
        | ServerEvent::Disconnect { .. }
        | ServerEvent::KeepAliveExpired
        | ServerEvent::Malformed(_) => Due::Nothing,
    }
}

/// One of a few CONNECTs.
fn connect(operand: u8) -> &'static [u8] {
    match (operand >> 1) % 5 {
        0 => b"\x10\x0d\x00\x04MQTT\x04\x00\x00\x0a\x00\x01c",
        1 => b"\x10\x0e\x00\x04MQTT\x05\x00\x00\x0a\x00\x00\x01c",
        2 => b"\x10\x14\x00\x04MQTT\x05\x00\x00\x0a\x06\x21\x00\x02\x22\x00\x02\x00\x01c",
        3 => b"\x10\x12\x00\x04MQTT\x05\x00\x00\x0a\x04\x15\x00\x01m\x00\x01c",
        _ => b"",
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, mut script)) = data.split_first() else {
        return;
    };
    let mut ends = [End::new(false), End::new(true)];
    let mut now = Micros::ZERO;
    ends.iter_mut().for_each(|end| end.reconnect(now, *first));
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
        assert_eq!(fast.server.counts(), slow.server.counts());
        assert_eq!(fast.server.window_free(), slow.server.window_free());
        ends.iter_mut().for_each(|end| end.out.clear());
    }
});
