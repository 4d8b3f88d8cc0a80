//! Anything from a client, between any answers of a gateway: the server does not panic, hands on no
//! message id twice within its lifetime, keeps its bounds, and says one right message a call or none.
//!
//! The input is a script: an operation, an operand, a length, and bytes of that length.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use muster_model::Micros;
use muster_protocol::coap::{
    BlockSize, Code, Message, Opt, OptionNumber, Pending, Reply, Server, ServerEvent,
    ServerSettings,
};

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 200;

struct World {
    server: Server,
    settings: ServerSettings,
    now: Micros,
    pending: Vec<Pending>,
    /// Instants at which message ids were handed on.
    reported: BTreeMap<u16, Micros>,
    /// Message ids of confirmable messages that the server sent.
    sent: Vec<u16>,
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut rest = data;
    for _ in 0..CALLS {
        let [call, operand, length, after @ ..] = rest else {
            break;
        };
        let (bytes, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        world.step(*call, *operand, bytes);
    }
    world.end();
});

impl World {
    fn new() -> Self {
        let settings = ServerSettings {
            replies_max: 300,
            transmissions_max: 3,
            block_size: BlockSize::within(32).expect("a size"),
            body_max: 200,
            bodies_max: 2,
            ..ServerSettings::default()
        };
        Self {
            server: Server::new(Arc::new(settings), 7),
            settings,
            now: Micros(1),
            pending: Vec::new(),
            reported: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    fn step(&mut self, call: u8, operand: u8, bytes: &[u8]) {
        match call % 7 {
            0 => self.receive(bytes),
            1 => self.receive(&request(operand, bytes)),
            2 => self.answer(operand, bytes),
            3 => self.acknowledge(operand),
            4 | 5 => self.receive(&self.empty(operand)),
            _ => self.wait(operand),
        }
        assert_eq!(self.server.counts().evicted, 0);
    }

    fn receive(&mut self, datagram: &[u8]) {
        let mut out = Vec::new();
        let event = self.server.receive(self.now, datagram, &mut out);
        if let Some(ServerEvent::Request(incoming)) = event {
            assert!(out.is_empty(), "a request is answered by its handler");
            assert!(incoming.payload.len() <= datagram.len().max(self.settings.body_max as usize));
            let id = Message::decode(datagram).expect("a request").id;
            let before = self.reported.insert(id, self.now);
            let lifetime = self.settings.transmission.exchange_lifetime;
            assert!(
                before.is_none_or(|before| before + lifetime <= self.now),
                "reported twice"
            );
            self.pending.push(incoming.pending);
        }
        self.said(&out);
    }

    fn answer(&mut self, operand: u8, bytes: &[u8]) {
        if self.pending.is_empty() {
            return;
        }
        let at = usize::from(operand >> 4) % self.pending.len();
        let pending = self.pending.swap_remove(at);
        let mut out = Vec::new();
        let answered = self
            .server
            .respond(self.now, pending, &reply(operand, bytes), &mut out);
        assert!(answered.is_ok() || out.is_empty());
        self.said(&out);
    }

    fn acknowledge(&mut self, operand: u8) {
        if self.pending.is_empty() {
            return;
        }
        let at = usize::from(operand) % self.pending.len();
        let mut out = Vec::new();
        self.pending[at] = self.server.acknowledge(self.pending[at], &mut out);
        self.said(&out);
    }

    /// An acknowledgement, a reset or a ping, for something that was sent if there is such.
    fn empty(&self, operand: u8) -> Vec<u8> {
        let at = usize::from(operand >> 2) % self.sent.len().max(1);
        let [high, low] = self.sent.get(at).copied().unwrap_or_default().to_be_bytes();
        vec![
            [0x60, 0x70, 0x40, 0x60][usize::from(operand & 3)],
            0,
            high,
            low,
        ]
    }

    fn wait(&mut self, operand: u8) {
        self.now += Micros(u64::from(operand) << (operand % 24));
        for _ in 0..1_000 {
            let mut out = Vec::new();
            let event = self.server.wake(self.now, &mut out);
            self.said(&out);
            if event.is_none() {
                let deadline = self.server.deadline();
                assert!(deadline.is_none_or(|deadline| deadline > self.now));
                return;
            }
        }
        panic!("an instant does not end");
    }

    fn said(&mut self, out: &[u8]) {
        if out.is_empty() {
            return;
        }
        let message = Message::decode(out).expect("one right message");
        assert_eq!(message.options.unacceptable(), None);
        assert!(message.payload.len() <= 32 || !message.code.is_success());
        if !message.is_empty() && out[0] & 0x20 == 0 {
            self.sent.push(message.id);
        }
        if self.sent.len() > 16 {
            self.sent.remove(0);
        }
    }

    /// In the end there is peace: after two lifetimes nothing waits.
    fn end(mut self) {
        for _ in 0..20 {
            self.now += Micros::from_secs(50);
            self.wait(0);
        }
        assert_eq!(self.server.deadline(), None);
        assert!(self.server.is_idle(self.now));
    }
}

/// A request whose message id and token are of few values, so that they come again.
fn request(operand: u8, bytes: &[u8]) -> Vec<u8> {
    let code = [1, 2, 3, 5][usize::from(operand >> 2 & 3)];
    let kind = [0x41, 0x51][usize::from(operand >> 7)];
    let head = [kind, code, 0, operand >> 4 & 7, operand & 3];
    [&head[..], bytes].concat()
}

fn reply(operand: u8, body: &[u8]) -> Reply<'_> {
    const TAG: [Opt<'static>; 1] = [Opt::new(OptionNumber::ETAG, &[1])];
    let code = if operand & 4 == 0 {
        Code::CONTENT
    } else {
        Code::NOT_FOUND
    };
    // A diagnostic payload is short.
    let body = if operand & 4 == 0 {
        body
    } else {
        &body[..body.len().min(20)]
    };
    Reply {
        is_confirmable: operand & 1 != 0,
        ticket: u32::from(operand),
        ..Reply::new(code, &TAG, body)
    }
}
