//! Anything from a server, between any calls of devices that share a socket: the client does not
//! panic, ends each exchange at most once, keeps its bounds, and says one right message a call or
//! none.
//!
//! The input is a script: an operation, an operand, a length, and bytes of that length. Answers to what was
//! sent are made of its message id and token, so that they are reached.

#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use muster_model::Micros;
use muster_protocol::coap::{
    BlockSize, ClientEvent, ClientSettings, Code, ExchangeKey, Message, Request, Response,
    SharedClient, Ticket,
};

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 200;
/// Devices behind the socket.
const SLOTS: u32 = 3;
const NSTART: u16 = 2;
const EXCHANGES: usize = 5;

struct World {
    client: SharedClient,
    now: Micros,
    next: u32,
    /// Tickets whose exchange is open; forgotten ones may still be answered late.
    open: BTreeSet<u32>,
    /// Tickets that ask for notifications.
    observers: BTreeSet<u32>,
    forgotten: BTreeSet<u32>,
    keys: Vec<(u32, ExchangeKey)>,
    /// Datagram of each exchange that was sent last, which a server would answer.
    sent: Vec<Vec<u8>>,
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
        let settings = ClientSettings {
            nstart: NSTART,
            exchanges_max: EXCHANGES as u16,
            remembered_max: 3,
            block_size: BlockSize::within(16).expect("a size"),
            body_max: 200,
            ..ClientSettings::default()
        };
        Self {
            client: SharedClient::shared(Arc::new(settings), 7, SLOTS),
            now: Micros(1),
            next: 0,
            open: BTreeSet::new(),
            observers: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            keys: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn step(&mut self, call: u8, operand: u8, bytes: &[u8]) {
        let key = self
            .keys
            .get(usize::from(operand) % self.keys.len().max(1))
            .copied();
        match (call % 8, key) {
            (0, _) => self.ask(operand, bytes),
            (1, _) => self.receive(bytes),
            (2, _) => self.receive(&self.forged(operand, bytes)),
            (3, Some((name, key))) => {
                if self.client.forget(key) && self.open.remove(&name) {
                    self.forgotten.insert(name);
                }
            }
            (5, Some((_, key))) => self.again(key),
            (6, _) => self.ping(operand),
            (7, _) => self.wait(operand),
            (3 | 5, None) | (4 | 8.., _) => {}
        }
        self.check();
    }

    fn ticket(&mut self, operand: u8) -> Ticket {
        self.next += 1;
        Ticket {
            slot: u32::from(operand) % (SLOTS + 1),
            name: self.next,
        }
    }

    fn ask(&mut self, operand: u8, body: &[u8]) {
        let ticket = self.ticket(operand);
        let request = Request {
            is_confirmable: operand & 0x10 != 0,
            ..Request::new(Code::POST, &[], body)
        };
        let mut out = Vec::new();
        let observes = operand & 0x08 != 0;
        let sent = match observes {
            true => self.client.observe(self.now, ticket, &request, &mut out),
            false => self.client.request(self.now, ticket, &request, &mut out),
        };
        self.said(&out);
        if let Ok(key) = sent {
            self.open.insert(ticket.name);
            if observes {
                self.observers.insert(ticket.name);
            }
            self.keys.push((ticket.name, key));
        } else {
            assert!(out.is_empty());
        }
    }

    fn ping(&mut self, operand: u8) {
        let ticket = self.ticket(operand);
        let mut out = Vec::new();
        if let Ok(key) = self.client.ping(self.now, ticket, &mut out) {
            self.open.insert(ticket.name);
            self.keys.push((ticket.name, key));
        }
        self.said(&out);
    }

    fn again(&mut self, key: ExchangeKey) {
        self.write(|client, now, out| {
            let request = Request::new(Code::POST, &[], &[7; 60]);
            client.again(now, key, &request, out).is_ok()
        });
    }

    /// Checks that a call renders one message if it succeeded, else nothing.
    fn write(&mut self, call: impl FnOnce(&mut SharedClient, Micros, &mut Vec<u8>) -> bool) {
        let mut out = Vec::new();
        let went_well = call(&mut self.client, self.now, &mut out);
        assert_eq!(went_well, !out.is_empty());
        self.said(&out);
    }

    /// A datagram that answers what was sent: type and code of the operand, then bytes as they are.
    fn forged(&self, operand: u8, bytes: &[u8]) -> Vec<u8> {
        let Some(sent) = self
            .sent
            .get(usize::from(operand >> 4) % self.sent.len().max(1))
        else {
            return Vec::new();
        };
        let to = Message::decode(sent).expect("what we sent");
        let token = to.token.as_bytes();
        let code = [0x00, 0x44, 0x45, 0x5f, 0x8d, 0xa3, 0x84, 0x45][usize::from(operand & 7)];
        let kind = [0x60, 0x40, 0x50, 0x70][usize::from(operand >> 3 & 3)];
        let [high, low] = to.id.to_be_bytes();
        if code == 0 {
            return vec![kind, 0, high, low];
        }
        let head = [kind | token.len() as u8, code, high, low];
        [&head[..], token, bytes].concat()
    }

    fn receive(&mut self, datagram: &[u8]) {
        let mut out = Vec::new();
        let event = self.client.receive(self.now, datagram, &mut out);
        let again = event.and_then(|event| self.take(&event));
        self.said(&out);
        if let Some(key) = again {
            self.again(key);
        }
    }

    fn wait(&mut self, operand: u8) {
        self.now += Micros(u64::from(operand) << (operand % 24));
        for _ in 0..1_000 {
            let mut out = Vec::new();
            let event = self.client.wake(self.now, &mut out);
            self.said(&out);
            let Some(event) = event else {
                let deadline = self.client.deadline();
                assert!(deadline.is_none_or(|deadline| deadline > self.now));
                return;
            };
            if let (Some(key), true) = (self.take(&event), operand & 1 == 0) {
                self.again(key);
            }
        }
        panic!("an instant does not end");
    }

    /// Notes an event: each exchange ends once. Returns the exchange whose request must be rendered again.
    fn take(&mut self, event: &ClientEvent<'_>) -> Option<ExchangeKey> {
        match event {
            ClientEvent::Response(response) => self.answered(response),
            ClientEvent::Notification(response) => {
                assert!(self.observers.contains(&response.ticket.name));
                self.answered(response);
            }
            ClientEvent::Failed { ticket, .. } | ClientEvent::Pong { ticket } => {
                assert!(self.open.remove(&ticket.name));
            }
            ClientEvent::AnsweredLate { ticket, .. } => {
                assert!(self.forgotten.remove(&ticket.name));
            }
            ClientEvent::Part(response) => return Some(response.key),
            ClientEvent::Again { key, .. } => return Some(*key),
            ClientEvent::Acknowledged { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::PingedAgain => {}
        }
        None
    }

    /// An exchange that is answered is over, unless it observes and goes on.
    fn answered(&mut self, response: &Response<'_>) {
        let name = response.ticket.name;
        assert!(self.open.contains(&name));
        if !(response.is_observed() && self.observers.contains(&name)) {
            self.open.remove(&name);
        }
    }

    fn said(&mut self, out: &[u8]) {
        if out.is_empty() {
            return;
        }
        let message = Message::decode(out).expect("one right message");
        assert_eq!(message.options.unacceptable(), None);
        if message.code.is_request() || message.is_empty() && out[0] == 0x40 {
            self.sent.push(out.to_vec());
        }
    }

    fn check(&mut self) {
        assert!(self.client.open_exchanges() <= EXCHANGES);
        assert!(self.open.len() <= self.client.open_exchanges());
        for slot in 0..SLOTS {
            assert!(self.client.window_free(slot) <= NSTART);
        }
        if self.sent.len() > 16 {
            self.sent.remove(0);
        }
        if self.keys.len() > 16 {
            self.keys.remove(0);
        }
    }

    /// Nothing is lost: every open exchange is reported as dropped, and every window is free.
    fn end(mut self) {
        let mut dropped = BTreeSet::new();
        self.client
            .drop_all(|ticket| assert!(dropped.insert(ticket.name)));
        assert_eq!(dropped, self.open);
        assert!((0..SLOTS).all(|slot| self.client.window_free(slot) == NSTART));
    }
}
