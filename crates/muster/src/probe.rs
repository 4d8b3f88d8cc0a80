//! Opens one session at each of several addresses and closes it at once: who answers there?

use std::net::SocketAddr;

use muster_model::{Micros, Reason};
use muster_net::{Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, LoopError};
use muster_protocol::mqtt::{self, ClientEvent, Input};

/// How often is looked whether all is over: the loop tells of ends after its turn.
const LOOK_EVERY: Micros = Micros::from_millis(10);

/// A session to open.
pub(crate) struct Call {
    pub(crate) address: SocketAddr,
    pub(crate) session: mqtt::Client,
    /// Its CONNECT.
    pub(crate) connect: Vec<u8>,
    /// How long the handshake may take, from the SYN.
    pub(crate) at_most: Micros,
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The session was opened, after so long.
    Taken(Micros),
    /// The protocol said no.
    Refused(Reason),
    /// Something answered, but not in the protocol.
    Nonsense(String),
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
    since: Micros,
    key: Option<Key>,
    answer: Option<Answer>,
}

impl Line {
    fn new(call: Call) -> Self {
        Self {
            call,
            since: Micros::ZERO,
            key: None,
            answer: None,
        }
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

    /// The first answer counts; the connection is closed with what the session has to say.
    fn answered(&mut self, io: &mut Io, at: usize, answer: Answer, goodbye: &[u8]) {
        let line = &mut self.lines[at];
        line.answer.get_or_insert(answer);
        if let Some(key) = line.key.take() {
            let _ = io.write(key, goodbye);
            io.finish(key);
        }
    }
}

impl Handler for Probe {
    fn opened(&mut self, io: &mut Io, key: Key) {
        // A CONNECT fits into the buffer of a fresh socket; what does not, is held by the loop.
        let _ = io.write(key, &self.lines[io.tag(key) as usize].call.connect);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        io.close(key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &[u8]) -> usize {
        let (at, now) = (io.tag(key) as usize, io.fresh_now());
        let line = &mut self.lines[at];
        let (mut input, mut out) = (Input::new(bytes), Vec::new());
        let Some(event) = line.call.session.poll(now, &mut input, &mut out) else {
            return input.consumed();
        };
        let answer = answer(&event, now - line.since);
        line.call.session.disconnect(0, &mut out);
        self.answered(io, at, answer, &out);
        bytes.len()
    }

    fn flushed(&mut self, _io: &mut Io, _key: Key) {}

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        let at = io.tag(key) as usize;
        self.lines[at].key = None;
        self.answered(io, at, Answer::Silent(words(why)), &[]);
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let at = token as usize;
        if let Some(key) = self.lines[at].key.take() {
            io.reset(key);
            let why = format!("no answer within {}", self.lines[at].call.at_most);
            self.answered(io, at, Answer::Silent(why), &[]);
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
fn answer(event: &ClientEvent<'_>, took: Micros) -> Answer {
    match event {
        ClientEvent::Connected(_) => Answer::Taken(took),
        ClientEvent::Refused(reason) => Answer::Refused(*reason),
        ClientEvent::Malformed(malformed) => Answer::Nonsense(malformed.to_string()),
        ClientEvent::Auth { .. } => {
            Answer::Nonsense("an authentication that nobody began".to_owned())
        }
        ClientEvent::Accepted { .. }
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

fn words(why: Closed) -> String {
    match why {
        Closed::Peer => "the connection was closed before CONNACK came".to_owned(),
        Closed::Reset => "the connection was reset before CONNACK came".to_owned(),
        Closed::Refused => "the connection was refused; does anybody listen there?".to_owned(),
        Closed::Unreachable => "it cannot be reached from here; check the route".to_owned(),
        Closed::TimedOut => "no answer".to_owned(),
        Closed::Network(errno) => format!("a network error (errno {errno})"),
        Closed::PoolExhausted => "no buffer was left on this side".to_owned(),
        Closed::Overrun => "an answer without an end".to_owned(),
    }
}
