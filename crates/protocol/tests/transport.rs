//! Client against server over a transport that delivers in pieces and breaks at any byte.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "the world's steps are the test; what is not expected of them ends it"
)]

use std::collections::{BTreeMap, BTreeSet};

use muster_model::Micros;
use muster_protocol::mqtt::{
    Accept, Client, ClientEvent, ClientLimits, Connect, Input, Pending, Publish, Qos, Refused,
    Server, ServerEvent, ServerLimits, SessionState, Token, Version,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const NOW: Micros = Micros(1);
/// More turns than any case needs to come to rest.
const TURNS: usize = 10_000;

/// One end's view of the messages it sends.
#[derive(Debug, Default)]
struct Sender {
    /// Quality of service by token; tokens count up from 0.
    sent: Vec<Qos>,
    accepted: BTreeSet<u32>,
    completed: BTreeSet<u32>,
    forgotten: BTreeSet<u32>,
}

impl Sender {
    fn accept(&mut self, token: Token) {
        assert!(self.accepted.insert(token.0), "{token:?} accepted twice");
        assert!(
            !self.forgotten.contains(&token.0),
            "{token:?} was forgotten"
        );
    }

    fn complete(&mut self, token: Token) {
        assert!(
            self.accepted.contains(&token.0),
            "{token:?} completed before it was accepted"
        );
        assert!(self.completed.insert(token.0), "{token:?} completed twice");
    }

    /// A sent message that still waits for its first answer.
    fn waiting(&self, pick: usize) -> Option<u32> {
        let is_open = |token: &u32| {
            !self.accepted.contains(token)
                && !self.forgotten.contains(token)
                && self.sent[*token as usize] != Qos::AtMostOnce
        };
        let open: Vec<u32> = (0..self.sent.len() as u32).filter(is_open).collect();
        (!open.is_empty()).then(|| open[pick % open.len()])
    }
}

/// Received messages, by token, in order.
type Received = Vec<u32>;

fn payload(token: u32) -> [u8; 4] {
    token.to_be_bytes()
}

fn token_of(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload.try_into().unwrap())
}

fn message(token: u32, qos: Qos, bytes: &[u8; 4]) -> Publish<'_> {
    let alias_slot = Some((token % 3) as u16);
    let topic = ["a", "b/c", "d"][token as usize % 3];
    Publish {
        qos,
        alias_slot,
        ..Publish::new(topic, bytes)
    }
}

/// Both ends and the bytes between them.
struct World {
    version: Version,
    window: u16,
    client: Client,
    server: Server,
    kept: Option<SessionState>,
    is_server_connected: bool,
    /// Written by the client and not yet arrived, and the other way.
    upward: Vec<u8>,
    downward: Vec<u8>,
    /// Arrived and not yet taken.
    at_server: Vec<u8>,
    at_client: Vec<u8>,
    /// Publishes the server has not answered.
    undecided: Vec<(Pending, u32)>,
    up: Sender,
    down: Sender,
    at_backend: Received,
    at_device: Received,
}

impl World {
    fn new(version: Version, window: u16) -> Self {
        let limits = ServerLimits {
            receive_maximum: window,
            ..ServerLimits::default()
        };
        let mut world = Self {
            version,
            window,
            client: Client::new(version, &ClientLimits::default()),
            server: Server::new(&limits),
            kept: None,
            is_server_connected: false,
            upward: Vec::new(),
            downward: Vec::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            undecided: Vec::new(),
            up: Sender::default(),
            down: Sender::default(),
            at_backend: Vec::new(),
            at_device: Vec::new(),
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        let connect = Connect {
            clean_start: false,
            session_expiry: u32::MAX,
            receive_maximum: self.window,
            topic_alias_maximum: 2,
            ..Connect::new("device")
        };
        self.client
            .connect(NOW, &connect, &mut self.upward)
            .unwrap();
    }

    /// The transport breaks: what is on the way is lost at both ends, and a new one is opened.
    fn cut(&mut self) {
        for bytes in [
            &mut self.upward,
            &mut self.downward,
            &mut self.at_server,
            &mut self.at_client,
        ] {
            bytes.clear();
        }
        self.client.closed();
        // A connection whose CONNECT never came has no session to give back.
        if self.is_server_connected {
            self.kept = Some(self.server.take_session());
            self.is_server_connected = false;
        }
        self.undecided.clear();
        let limits = ServerLimits {
            receive_maximum: self.window,
            ..ServerLimits::default()
        };
        self.server = Server::new(&limits);
        self.connect();
    }

    fn publish(&mut self, qos: Qos) {
        let token = self.up.sent.len() as u32;
        let bytes = payload(token);
        let publish = message(token, qos, &bytes);
        match self
            .client
            .publish(NOW, Token(token), &publish, &mut self.upward)
        {
            Ok(()) => self.up.sent.push(qos),
            Err(Refused::NotConnected | Refused::Window) => {}
            Err(refused) => unreachable!("{refused}"),
        }
    }

    fn deliver(&mut self, qos: Qos) {
        let token = self.down.sent.len() as u32;
        let bytes = payload(token);
        let publish = message(token, qos, &bytes);
        match self
            .server
            .deliver(Token(token), &publish, &mut self.downward)
        {
            Ok(()) => self.down.sent.push(qos),
            Err(Refused::NotConnected | Refused::Window) => {}
            Err(refused) => unreachable!("{refused}"),
        }
    }

    fn forget(&mut self, pick: usize) {
        if let Some(token) = self.up.waiting(pick) {
            assert!(self.client.forget(Token(token)));
            self.up.forgotten.insert(token);
        }
    }

    /// The server takes responsibility for one message.
    fn decide(&mut self, pick: usize) {
        if self.undecided.is_empty() {
            return;
        }
        let (pending, token) = self.undecided.remove(pick % self.undecided.len());
        self.at_backend.push(token);
        self.server.ack(pending, 0, &mut self.downward);
    }

    fn move_up(&mut self, count: usize) {
        let count = count.min(self.upward.len());
        self.at_server.extend(self.upward.drain(..count));
        let bytes = std::mem::take(&mut self.at_server);
        let mut input = Input::new(&bytes);
        while let Some(event) = self.server.poll(NOW, &mut input, &mut self.downward) {
            match event {
                ServerEvent::Connect(_) => {
                    if let Some(kept) = self.kept.take() {
                        self.server.resume(kept);
                    }
                    self.server
                        .accept(NOW, &Accept::default(), &mut self.downward)
                        .unwrap();
                    self.is_server_connected = true;
                }
                ServerEvent::Publish(incoming) => {
                    let token = token_of(incoming.payload);
                    assert_eq!(&*incoming.topic, ["a", "b/c", "d"][token as usize % 3]);
                    assert_eq!(incoming.qos, self.up.sent[token as usize]);
                    match incoming.pending {
                        Some(pending) => self.undecided.push((pending, token)),
                        None => self.at_backend.push(token),
                    }
                }
                ServerEvent::Acked { token, reason: 0 } => self.down.accept(token),
                ServerEvent::Completed { token } => self.down.complete(token),
                ServerEvent::Resend { token } => {
                    let (qos, bytes) = (self.down.sent[token.0 as usize], payload(token.0));
                    let publish = message(token.0, qos, &bytes);
                    self.server
                        .redeliver(token, &publish, &mut self.downward)
                        .unwrap();
                }
                event => unreachable!("{event:?}"),
            }
        }
        self.at_server = input.rest().to_vec();
    }

    fn move_down(&mut self, count: usize) {
        let count = count.min(self.downward.len());
        self.at_client.extend(self.downward.drain(..count));
        let bytes = std::mem::take(&mut self.at_client);
        let mut input = Input::new(&bytes);
        while let Some(event) = self.client.poll(NOW, &mut input, &mut self.upward) {
            match event {
                ClientEvent::Connected(connected) if !connected.session_present => {
                    // Only a connection on which CONNECT never came leaves no session.
                    assert_eq!(self.client.in_flight(), 0);
                }
                ClientEvent::Connected(_) => {}
                ClientEvent::Message(message) => self.at_device.push(token_of(message.payload)),
                ClientEvent::Accepted { token, reason: 0 } => self.up.accept(token),
                ClientEvent::Completed { token } => self.up.complete(token),
                ClientEvent::AnsweredLate { token, .. } => {
                    assert!(self.up.forgotten.contains(&token.0));
                }
                ClientEvent::Resend { token } => {
                    let (qos, bytes) = (self.up.sent[token.0 as usize], payload(token.0));
                    let publish = message(token.0, qos, &bytes);
                    self.client
                        .republish(NOW, token, &publish, &mut self.upward)
                        .unwrap();
                }
                event => unreachable!("{event:?}"),
            }
        }
        self.at_client = input.rest().to_vec();
    }

    fn settle(&mut self) {
        for _ in 0..TURNS {
            let is_still = self.upward.is_empty() && self.downward.is_empty();
            if is_still && self.undecided.is_empty() {
                return;
            }
            self.move_up(usize::MAX);
            self.decide(0);
            self.move_down(usize::MAX);
        }
        unreachable!("the world does not come to rest");
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Publish(qos) => self.publish(qos),
            Step::Deliver(qos) => self.deliver(qos),
            Step::MoveUp(count) => self.move_up(count.into()),
            Step::MoveDown(count) => self.move_down(count.into()),
            Step::Decide(pick) => self.decide(pick.into()),
            Step::Forget(pick) => self.forget(pick.into()),
            Step::Cut => self.cut(),
        }
    }

    fn check(&self) {
        check_direction(&self.up, &self.at_backend);
        check_direction(&self.down, &self.at_device);
        assert_eq!(self.client.in_flight(), 0, "nothing is left in flight");
        assert_eq!(self.server.in_flight(), 0, "nothing is left in flight");
        let window = if self.version == Version::V5 {
            self.window
        } else {
            u16::MAX
        };
        assert_eq!(
            self.client.window_free(),
            window,
            "the whole window is free again"
        );
        assert_eq!(
            self.server.window_free(),
            window,
            "the whole window is free again"
        );
    }
}

fn check_direction(sender: &Sender, received: &Received) {
    let mut copies = BTreeMap::new();
    received
        .iter()
        .for_each(|token| *copies.entry(*token).or_insert(0u32) += 1);
    for (token, qos) in (0u32..).zip(&sender.sent) {
        let copies = copies.get(&token).copied().unwrap_or(0);
        let is_forgotten = sender.forgotten.contains(&token);
        let is_right = match qos {
            Qos::AtMostOnce => copies <= 1,
            Qos::AtLeastOnce => copies >= 1 || is_forgotten,
            Qos::ExactlyOnce => copies == 1 || (copies == 0 && is_forgotten),
        };
        assert!(is_right, "{token} at {qos:?} came {copies} times");
        if !is_forgotten && *qos != Qos::AtMostOnce {
            assert!(sender.accepted.contains(&token), "{token} was not accepted");
            let is_complete = sender.completed.contains(&token);
            assert_eq!(is_complete, *qos == Qos::ExactlyOnce, "{token}");
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish(Qos),
    Deliver(Qos),
    MoveUp(u8),
    MoveDown(u8),
    Decide(u8),
    Forget(u8),
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    let qos = || {
        select(vec![
            Qos::AtMostOnce,
            Qos::AtLeastOnce,
            Qos::ExactlyOnce,
            Qos::ExactlyOnce,
        ])
    };
    prop_oneof![
        6 => qos().prop_map(Step::Publish),
        4 => qos().prop_map(Step::Deliver),
        8 => any::<u8>().prop_map(Step::MoveUp),
        8 => any::<u8>().prop_map(Step::MoveDown),
        6 => any::<u8>().prop_map(Step::Decide),
        1 => any::<u8>().prop_map(Step::Forget),
        2 => Just(Step::Cut),
    ]
}

fn versions() -> impl Strategy<Value = Version> {
    select(vec![Version::V311, Version::V5])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// However the bytes are cut and wherever the transport breaks: QoS 2 arrives exactly once,
    /// QoS 1 at least once, QoS 0 at most once, in both directions; what was forgotten may stay
    /// away but comes no more often; and in the end nothing is in flight.
    /// MQTT-4.3.3-10.
    #[test]
    fn every_quality_of_service_keeps_its_promise(
        version in versions(), window in 1u16..6, steps in vec(step(), 1..200)
    ) {
        let mut world = World::new(version, window);
        steps.iter().for_each(|step| world.step(step));
        world.settle();
        world.check();
    }

    /// While nobody forgets and the server decides in order, first copies arrive in the order in
    /// which they were sent, QoS 1 and 2 each for itself (MQTT-4.6.0-5).
    #[test]
    fn messages_arrive_in_order(
        version in versions(),
        qos in select(vec![Qos::AtLeastOnce, Qos::ExactlyOnce]),
        steps in vec(step(), 1..200),
    ) {
        let mut world = World::new(version, 20);
        for step in &steps {
            match step {
                Step::Publish(_) => world.publish(qos),
                Step::Deliver(_) => world.deliver(qos),
                Step::Decide(_) => world.decide(0),
                Step::Forget(_) => {}
                Step::MoveUp(_) | Step::MoveDown(_) | Step::Cut => world.step(step),
            }
        }
        world.settle();
        for (sent, mut received) in
            [(&world.up.sent, world.at_backend), (&world.down.sent, world.at_device)]
        {
            let mut seen = BTreeSet::new();
            received.retain(|token| seen.insert(*token));
            prop_assert_eq!(received, (0..sent.len() as u32).collect::<Vec<_>>());
        }
    }
}

/// A stream of valid packets for a client of MQTT 5 that authenticates by method "m", and has
/// subscribed and published.
fn downstream() -> Vec<u8> {
    let mut bytes = b"\xf0\x06\x18\x04\x15\x00\x01m".to_vec();
    bytes.extend_from_slice(b"\x20\x0a\x00\x00\x07\x22\x00\x09\x15\x00\x01m");
    bytes.extend_from_slice(&[0x40, 2, 0, 1, 0x50, 2, 0, 2, 0x70, 2, 0, 2, 0xd0, 0]);
    bytes.extend_from_slice(b"\x34\x08\x00\x01t\x00\x07\x00xy\x62\x02\x00\x07");
    bytes.extend_from_slice(b"\x32\x0b\x00\x01t\x00\x08\x03\x23\x00\x01xy");
    bytes.extend_from_slice(b"\x30\x08\x00\x00\x03\x23\x00\x01xy");
    bytes.extend_from_slice(&[0xe0, 2, 0x8b, 0]);
    bytes
}

/// The events and the answers of a client that is fed in pieces.
fn fed(bytes: &[u8], cuts: &[usize]) -> (Vec<String>, Vec<u8>) {
    let mut client = Client::new(Version::V5, &ClientLimits::default());
    let mut out = Vec::new();
    let connect = Connect {
        topic_alias_maximum: 1,
        authentication: Some(("m", b"")),
        ..Connect::new("c")
    };
    client.connect(NOW, &connect, &mut out).unwrap();
    let (mut events, mut held) = (Vec::new(), Vec::new());
    let mut from = 0;
    for to in cuts.iter().copied().chain([bytes.len()]) {
        held.extend_from_slice(&bytes[from..to]);
        from = to;
        let mut input = Input::new(&held);
        while let Some(event) = client.poll(NOW, &mut input, &mut out) {
            let is_connected = matches!(event, ClientEvent::Connected(_));
            events.push(format!("{event:?}"));
            for (token, qos) in [(1, Qos::AtLeastOnce), (2, Qos::ExactlyOnce)] {
                let publish = Publish {
                    qos,
                    ..Publish::new("t", b"")
                };
                if is_connected {
                    client
                        .publish(NOW, Token(token), &publish, &mut out)
                        .unwrap();
                }
            }
        }
        let taken = input.consumed();
        held.drain(..taken);
    }
    assert_eq!(held, [0; 0]);
    (events, out)
}

#[test]
fn a_stream_byte_by_byte_gives_the_same_events() {
    let bytes = downstream();
    let whole = fed(&bytes, &[]);
    assert_eq!(whole.0.len(), 10, "{:#?}", whole.0);
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(fed(&bytes, &every), whole);
}

proptest! {
    /// Any split of the stream gives the same events and the same answers.
    /// MQTT-4.2.0-1.
    #[test]
    fn any_split_gives_the_same_events(mut cuts in vec(0..downstream().len(), 0..8)) {
        let bytes = downstream();
        cuts.sort_unstable();
        prop_assert_eq!(fed(&bytes, &cuts), fed(&bytes, &[]));
    }

    /// No bytes make a session panic, whatever has happened before.
    #[test]
    fn any_bytes_can_be_fed(
        version in versions(),
        steps in vec(step(), 0..40),
        noise in vec(any::<u8>(), 0..40),
        is_up: bool,
    ) {
        let mut world = World::new(version, 5);
        steps.iter().for_each(|step| world.step(step));
        let mut input = Input::new(&noise);
        if is_up {
            while world.server.poll(NOW, &mut input, &mut world.downward).is_some() {}
        } else {
            while world.client.poll(NOW, &mut input, &mut world.upward).is_some() {}
        }
    }
}
