//! Opens one session at each of several addresses and closes it at once: who answers there?

use std::net::SocketAddr;

use muster_backend::{Security, words};
use muster_model::{Micros, Reason};
use muster_net::{Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, LoopError};
use muster_protocol::layer::{Ended, Layer, Pipe};
use muster_protocol::mqtt::{self, ClientEvent, Input};
use muster_transport::{Any, TlsClient};

/// How often is looked whether all is over: the loop tells of ends after its turn.
const LOOK_EVERY: Micros = Micros::from_millis(10);

/// What a call waits for.
const CONNACK: Option<&str> = Some("CONNACK");

/// A session to open.
pub(crate) struct Call {
    pub(crate) address: SocketAddr,
    /// What stands between its socket and its session, not opened yet.
    pub(crate) layer: Any<TlsClient>,
    pub(crate) session: mqtt::Client,
    /// Its CONNECT.
    pub(crate) connect: Vec<u8>,
    /// What answers a challenge, if the CONNECT names a method for one.
    pub(crate) proof: Option<Proof>,
    /// What the scenario says of TLS there.
    pub(crate) security: Security,
    /// How long the handshake may take, from the SYN.
    pub(crate) at_most: Micros,
    /// Bytes of the largest packet that the run would send on such a session.
    pub(crate) packet: u32,
}

/// What answers a challenge (MQTT 5 section 4.12).
pub(crate) struct Proof {
    pub(crate) answer: Vec<u8>,
    /// Whether the challenge itself stands before it.
    pub(crate) echo: bool,
}

impl Call {
    /// Answers a step of authentication.
    fn prove(&mut self, now: Micros, challenge: &[u8], out: &mut Vec<u8>) {
        let Some(Proof { answer, echo }) = &self.proof else {
            return;
        };
        let challenge = if *echo { challenge } else { &[] };
        // What cannot be sent is not answered, and so the call ends with its time.
        let _sent = self
            .session
            .authenticate(now, &[challenge, answer.as_slice()].concat(), out);
    }
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The session was opened, after so long.
    Taken(Micros),
    /// The session was opened, and takes packets of at most so many bytes: too few for the scenario's.
    TakesLess(u32),
    /// The protocol said no, with the platform's own words if it gave any.
    Refused(Reason, Option<String>),
    /// Something answered, but not in the protocol.
    Nonsense(String),
    /// TLS or WebSocket could not be agreed upon, for this reason.
    NoHandshake(String),
    /// Nothing answered, for this reason.
    Silent(String),
}

/// Makes all calls at once; the answers are in their order.
pub(crate) fn probe(calls: Vec<Call>) -> Result<Vec<Answer>, LoopError> {
    let lines = calls.into_iter().map(Line::new).collect();
    let mut event_loop = Loop::new(Clock::start(), &LoopConfig::default(), Probe { lines })?;
    let (probe, io) = event_loop.parts();
    for at in 0..probe.lines.len() {
        probe.call(io, at);
    }
    event_loop.run()?;
    let lines = event_loop.into_handler().lines.into_iter();
    Ok(lines.filter_map(|line| line.answer).collect())
}

struct Probe {
    lines: Vec<Line>,
}

struct Line {
    call: Call,
    pipe: Pipe<Any<TlsClient>>,
    since: Micros,
    key: Option<Key>,
    /// Whether a byte came.
    is_heard: bool,
    answer: Option<Answer>,
}

impl Line {
    fn new(mut call: Call) -> Self {
        Self {
            pipe: Pipe::new(std::mem::take(&mut call.layer)),
            call,
            since: Micros::ZERO,
            key: None,
            is_heard: false,
            answer: None,
        }
    }
}

impl Line {
    /// Says CONNECT as soon as the layer is open.
    fn greet(&mut self, was_open: bool, wire: &mut Vec<u8>) {
        if !was_open && self.pipe.layer.is_open() {
            let from = wire.len();
            wire.extend_from_slice(&self.call.connect);
            self.pipe.layer.wrap(wire, from);
        }
    }

    /// What the end of the layer means.
    fn ended(&self, end: Ended) -> Answer {
        match end {
            Ended::Closed(_) => Answer::Silent(words(Closed::Peer, CONNACK)),
            Ended::Failed(error) => {
                let detail = self.pipe.layer.detail();
                let detail = detail.map_or_else(|| error.to_string(), str::to_owned);
                let remedy = self.call.security.remedy(error);
                Answer::NoHandshake(format!("{detail}{remedy}"))
            }
        }
    }

    /// What the end of the connection means.
    fn closed(&self, why: Closed) -> Answer {
        let said = words(why, CONNACK);
        let is_hung_up = matches!(why, Closed::Peer | Closed::Reset) && !self.is_heard;
        let hint = if is_hung_up {
            self.call.security.hint_on_silence()
        } else {
            String::new()
        };
        Answer::Silent(format!("{said}{hint}"))
    }
}

impl Probe {
    fn call(&mut self, io: &mut Io, at: usize) {
        let line = &mut self.lines[at];
        line.since = io.fresh_now();
        match io.connect(line.call.address, None) {
            Ok(key) => {
                io.set_tag(key, at as u32);
                io.set_timer(line.since + line.call.at_most, at as u64);
                line.key = Some(key);
            }
            Err(error) => line.answer = Some(Answer::Silent(error.to_string())),
        }
    }

    /// The first answer counts; the connection is closed with what is still to be said.
    fn answered(&mut self, io: &mut Io, at: usize, answer: Answer, mut wire: Vec<u8>) {
        let line = &mut self.lines[at];
        line.answer.get_or_insert(answer);
        if let Some(key) = line.key.take() {
            line.pipe.layer.close(&mut wire);
            let _ = io.write(key, &wire);
            io.finish(key);
        }
    }
}

impl Handler for Probe {
    fn opened(&mut self, io: &mut Io, key: Key) {
        let line = &mut self.lines[io.tag(key) as usize];
        let mut wire = Vec::new();
        line.pipe.layer.open(&mut wire);
        line.greet(false, &mut wire);
        // It fits into the buffer of a fresh socket; what does not, is held by the loop.
        let _ = io.write(key, &wire);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        io.close(key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let (at, now) = (io.tag(key) as usize, io.fresh_now());
        let line = &mut self.lines[at];
        let mut wire = Vec::new();
        if !std::mem::replace(&mut line.is_heard, true)
            && let Some(what) = line.call.security.misread(bytes)
        {
            self.answered(io, at, Answer::Nonsense(what), wire);
            return bytes.len();
        }
        let was_open = line.pipe.layer.is_open();
        let fed = line.pipe.receive(bytes, &mut wire);
        line.greet(was_open, &mut wire);
        let from = wire.len();
        let mut input = Input::new(&bytes[..fed.plain]);
        let event = line.call.session.poll(now, &mut input, &mut wire);
        let taken = input.consumed();
        let answer = match (&event, fed.end) {
            (Some(ClientEvent::Auth(auth)), _) => {
                let challenge = auth.data().unwrap_or_default();
                line.call.prove(now, challenge, &mut wire);
                None
            }
            (Some(event), _) => Some(answer(event, now - line.since, line.call.packet)),
            (None, Some(end)) => Some(line.ended(end)),
            (None, None) => None,
        };
        let Some(answer) = answer else {
            line.pipe.layer.wrap(&mut wire, from);
            if !wire.is_empty() {
                let _ = io.write(key, &wire);
            }
            return line.pipe.keep(bytes, &fed, taken);
        };
        line.call.session.disconnect(0, &mut wire);
        line.pipe.layer.wrap(&mut wire, from);
        self.answered(io, at, answer, wire);
        bytes.len()
    }

    fn flushed(&mut self, _io: &mut Io, _key: Key) {}

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        let at = io.tag(key) as usize;
        self.lines[at].key = None;
        let answer = self.lines[at].closed(why);
        self.answered(io, at, answer, Vec::new());
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let at = token as usize;
        if let Some(key) = self.lines[at].key.take() {
            io.reset(key);
            let why = format!("no answer within {}", self.lines[at].call.at_most);
            self.answered(io, at, Answer::Silent(why), Vec::new());
        }
    }

    fn woken(&mut self, _io: &mut Io) {}

    /// It is over when every call has its answer and every goodbye is out.
    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if io.connections() == 0 {
            io.stop();
        }
        Some(io.now() + LOOK_EVERY)
    }
}

/// What the first event of a session means.
fn answer(event: &ClientEvent<'_>, took: Micros, packet: u32) -> Answer {
    match event {
        ClientEvent::Connected(connected) if connected.maximum_packet_size < packet => {
            Answer::TakesLess(connected.maximum_packet_size)
        }
        ClientEvent::Connected(_) => Answer::Taken(took),
        ClientEvent::Refused { reason, .. } => {
            Answer::Refused(*reason, event.reason_string().map(str::to_owned))
        }
        ClientEvent::Malformed(malformed) => Answer::Nonsense(malformed.to_string()),
        ClientEvent::Auth(_)
        | ClientEvent::Accepted { .. }
        | ClientEvent::Rejected { .. }
        | ClientEvent::Completed { .. }
        | ClientEvent::AnsweredLate { .. }
        | ClientEvent::Resend { .. }
        | ClientEvent::Subscribed { .. }
        | ClientEvent::Unsubscribed { .. }
        | ClientEvent::Message(_)
        | ClientEvent::Pong
        | ClientEvent::KeepAliveExpired
        | ClientEvent::Disconnected { .. } => Answer::Nonsense("no CONNACK came first".to_owned()),
    }
}
