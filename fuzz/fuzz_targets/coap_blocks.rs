//! Bodies in blocks between both ends, whatever their sizes and whatever the network does to whole
//! datagrams: they arrive as they were, and the handler is asked once; where bytes are altered too,
//! nobody panics and every exchange still ends.
//!
//! The input: sizes of blocks and bodies, then what becomes of each datagram.

#![no_main]

use std::collections::VecDeque;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use muster_model::Micros;
use muster_protocol::coap::{
    BlockSize, Client, ClientEvent, ClientSettings, Code, ExchangeKey, Reply, Request, Server,
    ServerEvent, ServerSettings, Ticket,
};

/// Steps of one exchange: more than the blocks and copies of the longest bodies.
const STEPS: usize = 20_000;

struct World<'a> {
    client: Client,
    server: Server,
    now: Micros,
    script: &'a [u8],
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    bodies: [Vec<u8>; 2],
    is_altered: bool,
    asked: u32,
    received: Vec<u8>,
    end: Option<bool>,
}

fuzz_target!(|data: &[u8]| {
    let [sizes, up_high, up_low, down_high, down_low, script @ ..] = data else {
        return;
    };
    let size = |exponent: u8| BlockSize::within(16 << (exponent % 7)).expect("a size");
    let body = |high: &u8, low: &u8, salt: u8| -> Vec<u8> {
        let length = u16::from_be_bytes([*high & 0x03, *low]);
        (0..length)
            .map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ salt)
            .collect()
    };
    let client = ClientSettings {
        block_size: size(sizes & 0x0f),
        asks_block_size: up_high & 0x80 != 0,
        ..ClientSettings::default()
    };
    let server = ServerSettings {
        block_size: size(sizes >> 4),
        ..ServerSettings::default()
    };
    let world = World {
        client: Client::new(Arc::new(client), 1),
        server: Server::new(Arc::new(server), 2),
        now: Micros(1),
        script,
        up: VecDeque::new(),
        down: VecDeque::new(),
        bodies: [body(up_high, up_low, 1), body(down_high, down_low, 2)],
        is_altered: false,
        asked: 0,
        received: Vec::new(),
        end: None,
    };
    world.run(up_high & 0x20 == 0);
});

impl World<'_> {
    fn run(mut self, is_confirmable: bool) {
        let ticket = Ticket { slot: 0, name: 0 };
        let body = self.bodies[0].clone();
        let request = Request {
            is_confirmable,
            ..Request::new(Code::POST, &[], &body)
        };
        let mut out = Vec::new();
        let sent = self.client.request(self.now, ticket, &request, &mut out);
        sent.expect("the first request");
        self.carry(true, out);
        for _ in 0..STEPS {
            if self.end.is_some() {
                break;
            }
            self.step(&request);
        }
        let is_answered = self.end.expect("it ends");
        if !self.is_altered {
            assert!(self.asked <= 1);
            assert!(!is_answered || self.received == self.bodies[1]);
        }
    }

    /// The next datagram, or, where none is under way, the next deadline.
    fn step(&mut self, request: &Request<'_>) {
        let mut out = Vec::new();
        if let Some(datagram) = self.up.pop_front() {
            self.serve(&datagram, out);
        } else if let Some(datagram) = self.down.pop_front() {
            let event = self.client.receive(self.now, &datagram, &mut out);
            let key = event.and_then(|event| take(&event, &mut self.received, &mut self.end));
            self.carry(true, out);
            self.again(key, request);
        } else if let Some(deadline) = self.client.deadline() {
            self.now = self.now.max(deadline);
            let event = self.client.wake(self.now, &mut out);
            let key = event.and_then(|event| take(&event, &mut self.received, &mut self.end));
            self.carry(true, out);
            self.again(key, request);
            while self.server.wake(self.now, &mut Vec::new()).is_some() {}
        }
    }

    fn serve(&mut self, datagram: &[u8], mut out: Vec<u8>) {
        let event = self.server.receive(self.now, datagram, &mut out);
        if let Some(ServerEvent::Request(incoming)) = event {
            self.asked += 1;
            assert!(self.is_altered || *incoming.payload == self.bodies[0]);
            let reply = Reply {
                is_confirmable: false,
                ..Reply::new(Code::CHANGED, &[], &self.bodies[1])
            };
            let said = self
                .server
                .respond(self.now, incoming.pending, &reply, &mut out);
            said.expect("there are ids");
        }
        self.carry(false, out);
    }

    fn again(&mut self, key: Option<ExchangeKey>, request: &Request<'_>) {
        let Some(key) = key else { return };
        let mut out = Vec::new();
        let again = self.client.again(self.now, key, request, &mut out);
        again.expect("it is due");
        self.carry(true, out);
    }

    /// The script's next byte decides: as it is, twice, lost, behind others, or altered.
    fn carry(&mut self, is_up: bool, mut datagram: Vec<u8>) {
        if datagram.is_empty() {
            return;
        }
        let fault = match self.script {
            [fault, rest @ ..] => {
                self.script = rest;
                *fault
            }
            [] => 0,
        };
        let queue = if is_up { &mut self.up } else { &mut self.down };
        match fault % 8 {
            1 => queue.push_back(datagram.clone()),
            2 => return,
            3 => {
                queue.push_front(datagram);
                return;
            }
            4 if fault > 200 => {
                let at = usize::from(fault / 8) % datagram.len();
                datagram[at] ^= fault;
                self.is_altered = true;
            }
            _ => {}
        }
        queue.push_back(datagram);
    }
}

/// Notes an event; returns the exchange whose request must be rendered again.
fn take(
    event: &ClientEvent<'_>,
    received: &mut Vec<u8>,
    end: &mut Option<bool>,
) -> Option<ExchangeKey> {
    match event {
        ClientEvent::Response(response) => {
            received.extend_from_slice(response.payload);
            assert!(end.replace(response.code == Code::CHANGED).is_none());
        }
        ClientEvent::Failed { .. } => assert!(end.replace(false).is_none()),
        ClientEvent::Part(response) => {
            received.extend_from_slice(response.payload);
            return Some(response.key);
        }
        ClientEvent::Again { key, .. } => return Some(*key),
        ClientEvent::Notification(_) => unreachable!("nobody observes"),
        ClientEvent::Acknowledged { .. }
        | ClientEvent::AnsweredLate { .. }
        | ClientEvent::Pong { .. }
        | ClientEvent::Duplicate { .. }
        | ClientEvent::PingedAgain => {}
    }
    None
}
