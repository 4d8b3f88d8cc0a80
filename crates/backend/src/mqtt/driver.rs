//! Drives the consumers of a process over an event loop.

use std::sync::Arc;

use muster_conduct::{Commander, Dispatch, FactWriter, Order};
use muster_model::{Listening, Micros};
use muster_net::{Closed, ConnectError, Key, Loop, LoopConfig, Mailbox, Written};
use muster_plan::Plan;
use muster_protocol::layer::{Layer, Layers, Pipe};
use muster_protocol::mqtt::Input;
use muster_transport::Clients;

use super::consumer::{Consumer, State};
use super::ending::words;
use super::issuer::Issuer;
use crate::consumers::{ConsumersError, ConsumersSpec, Seat};
use crate::northbound::{ConsumerLoop, Context, Core, Northbound, Standing};

/// Bytes of acknowledgements that may wait for a broker that does not read: some 250,000 of them.
const WAITING_MAX: usize = 1 << 20;
/// Interval between signs of life of a paused consumer: a broker must not take it for dead because
/// it does not read.
const SIGN_OF_LIFE: Micros = Micros::from_secs(1);
/// Time that a broker may be silent until a consumer asks whether it is there. Silence counts as quiet only up to the
/// last answer, so this is well below any useful `settle.quiet`.
const SILENCE: Micros = Micros::from_millis(100);
/// Time for a consumer after a pause to find the answers to its pings.
const CATCH_UP: Micros = Micros::from_secs(2);
/// Longest handshake of a consumer.
const HANDSHAKE_MAX: Micros = Micros::from_secs(10);

/// The consumers of MQTT brokers on one thread.
#[derive(Debug)]
pub struct MqttConsumers {
    pub(super) plan: Arc<Plan>,
    pub(super) consumers: Vec<Consumer>,
    /// The consumer that issues commands, if one of these does.
    pub(super) issuer: Option<Issuer>,
    /// One a backend: where the layers of its consumers come from.
    layers: Vec<Clients>,
    pub(super) out: Vec<u8>,
}

/// Purpose of a timer of the loop; its token names the consumer.
#[derive(Debug, Clone, Copy)]
enum Alarm {
    Connect,
    Session,
}

impl Alarm {
    fn token(self, consumer: usize) -> u64 {
        (self as u64) << 32 | consumer as u64
    }

    fn of(token: u64) -> (Self, usize) {
        let alarm = match token >> 32 {
            0 => Self::Connect,
            _ => Self::Session,
        };
        (alarm, token as u32 as usize)
    }
}

/// All consumers of a process on one event loop, to be run on its own thread. Orders are read
/// when the loop's waker is called. `layers` gives for each backend what stands between the sockets
/// and the sessions of its consumers.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled or the loop cannot start.
pub fn consumers_loop(
    spec: &ConsumersSpec,
    layers: Vec<Clients>,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<MqttConsumers>>, ConsumersError> {
    let limit = spec.plan.receive_limit();
    let consumer = |seat: &Seat| {
        let mqtt = spec.plan.backends[seat.backend.index()].mqtt()?;
        Some(Consumer::new(*seat, mqtt, spec.run, limit))
    };
    let northbound = MqttConsumers {
        plan: Arc::clone(&spec.plan),
        consumers: spec.seats.iter().filter_map(consumer).collect(),
        issuer: Issuer::new(spec),
        layers,
        out: Vec::new(),
    };
    let core = Core::new(spec, writer, northbound.issuer.is_some())?;
    let config = LoopConfig::default().with_packets_of(limit);
    let consumer_loop = ConsumerLoop::new(spec, northbound, core, mailbox);
    Ok(consumer_loop.start(spec, &config, None)?)
}

impl Northbound for MqttConsumers {
    fn connect(&mut self, cx: &mut Context<'_>) {
        for at in 0..self.consumers.len() {
            self.connect_one(cx, at);
        }
    }

    fn pause(&mut self, cx: &mut Context<'_>, at: usize, is_paused: bool) {
        let consumer = &mut self.consumers[at];
        consumer.is_paused = is_paused;
        consumer.hears_since = cx.io.now();
        if consumer.is_deaf() {
            return self.stop_reading(cx, at);
        }
        if let Some(key) = consumer.key {
            cx.io.resume_reading(key);
            self.arm_session_at(cx, at, cx.io.now() + CATCH_UP);
        }
    }

    fn issue(&mut self, cx: &mut Context<'_>) {
        self.issue_commands(cx);
    }

    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros> {
        self.next_command(commander)
    }

    fn look_after(&mut self, cx: &mut Context<'_>) {
        self.note_heard();
        self.prove_life(cx);
    }

    fn standing(&mut self, _: &mut Core, now: Micros) -> Standing {
        let count = |is_it: fn(&Consumer) -> bool| {
            self.consumers.iter().filter(|it| is_it(it)).count() as u64
        };
        let listening = self.consumers.iter();
        let listening = listening.map(|consumer| consumer.listening(now));
        Standing {
            wanted: self.consumers.len() as u64,
            up: count(|consumer| consumer.state == State::Up),
            refused: count(Consumer::is_refused),
            listening: listening.fold(Listening::NOBODY, Listening::and),
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.finish_commands(cx);
        self.tell_of_silence(cx);
        self.note_heard();
        for consumer in &mut self.consumers {
            if let Some(key) = consumer.key.take() {
                // Left behind, its subscription would get copies of the next run.
                consumer.session.end_session(&mut self.out);
                consumer.pipe.layer.wrap(&mut self.out, 0);
                consumer.pipe.layer.close(&mut self.out);
                let _ = cx.io.write(key, &self.out);
                self.out.clear();
                cx.io.finish(key);
            }
        }
    }

    fn opened(&mut self, cx: &mut Context<'_>, key: Key) {
        let at = cx.io.tag(key) as usize;
        let seat = self.consumers[at].seat;
        let layers = &mut self.layers[seat.backend.index()];
        match layers.layer(u32::from(seat.consumer.0)) {
            Ok(layer) => {
                let pipe = &mut self.consumers[at].pipe;
                *pipe = Pipe::new(layer);
                pipe.layer.open(&mut self.out);
                if pipe.layer.is_open() {
                    self.greet(at, cx.io.now());
                }
                self.send(cx, at);
            }
            Err(error) => self.give_up(cx, at, &error.to_string()),
        }
    }

    fn received(&mut self, cx: &mut Context<'_>, key: Key, bytes: &mut [u8]) -> usize {
        let at = cx.io.tag(key) as usize;
        let seen = cx.io.fresh_now();
        let pipe = &mut self.consumers[at].pipe;
        let was_open = pipe.layer.is_open();
        let fed = pipe.receive(bytes, &mut self.out);
        if !was_open && pipe.layer.is_open() {
            self.greet(at, seen);
        }
        let from = self.out.len();
        let Some(taken) = self.read(cx, at, seen, &bytes[..fed.plain]) else {
            return bytes.len();
        };
        self.wrap(at, from);
        self.send(cx, at);
        let used = self.consumers[at].pipe.keep(bytes, &fed, taken);
        if let Some(end) = fed.end {
            self.ended(cx, at, end);
        }
        used
    }

    fn flushed(&mut self, cx: &mut Context<'_>, key: Key) {
        let at = cx.io.tag(key) as usize;
        self.out.append(&mut self.consumers[at].waiting);
        self.send(cx, at);
    }

    fn closed(&mut self, cx: &mut Context<'_>, key: Key, why: Closed) {
        let at = cx.io.tag(key) as usize;
        self.consumers[at].key = None;
        if why == Closed::PoolExhausted {
            self.away(
                cx,
                at,
                "no buffer was left for bytes that its socket did not take",
            );
        }
        let consumer = &self.consumers[at];
        let mut told = words(why, consumer.state.still_waits_for());
        let is_hung_up = matches!(why, Closed::Peer | Closed::Reset);
        if is_hung_up && matches!(consumer.state, State::Opening | State::Handshaking) {
            told += &self.security(at).hint_on_silence();
        }
        self.lost(cx, at, &told);
    }

    fn timer(&mut self, cx: &mut Context<'_>, token: u64) {
        let (alarm, at) = Alarm::of(token);
        match alarm {
            Alarm::Connect => self.connect_one(cx, at),
            Alarm::Session => self.session_timer(cx, at),
        }
    }
}

impl MqttConsumers {
    /// The layer of a consumer is open: its session may speak.
    fn greet(&mut self, at: usize, now: Micros) {
        let from = self.out.len();
        let consumer = &mut self.consumers[at];
        let plan = &self.plan.backends[consumer.seat.backend.index()];
        consumer.state = State::Handshaking;
        consumer.render_connect(plan, now, &mut self.out);
        self.wrap(at, from);
    }

    /// Takes packets: how many bytes are used up; none if the connection is over.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        plain: &[u8],
    ) -> Option<usize> {
        let mut input = Input::new(plain);
        loop {
            let session = &mut self.consumers[at].session;
            let Some(event) = session.poll(seen, &mut input, &mut self.out) else {
                return Some(input.consumed());
            };
            if !self.happened(cx, at, seen, &event) {
                return None;
            }
            if self.consumers[at].is_deaf() {
                return Some(input.consumed());
            }
        }
    }

    /// Turns what a session appended to the output into what goes over the wire.
    pub(super) fn wrap(&mut self, at: usize, from: usize) {
        self.consumers[at].pipe.layer.wrap(&mut self.out, from);
    }

    fn connect_one(&mut self, cx: &mut Context<'_>, at: usize) {
        let consumer = &mut self.consumers[at];
        match consumer.state {
            State::Down if !cx.core.is_over => {}
            State::Opening | State::Handshaking | State::Subscribing => {
                let why = consumer.waits_in_vain(cx.io.now()).unwrap_or_default();
                return self.give_up(cx, at, &why);
            }
            State::Down | State::Up => return,
        }
        match cx.io.connect(consumer.seat.target, None) {
            Ok(key) => {
                cx.io.set_tag(key, at as u32);
                consumer.key = Some(key);
                consumer.state = State::Opening;
                consumer.since = cx.io.now();
                self.arm_connect(cx, at, HANDSHAKE_MAX);
            }
            Err(error) => {
                if let ConnectError::Descriptors | ConnectError::Ports(_) = error {
                    self.away(cx, at, &error.to_string());
                }
                self.lost(cx, at, &error.to_string());
            }
        }
    }

    /// A consumer whose subscription stands reads nothing while it is paused.
    pub(super) fn stop_reading(&mut self, cx: &mut Context<'_>, at: usize) {
        if let Some(key) = self.consumers[at].key {
            cx.io.pause_reading(key);
            self.arm_session_at(cx, at, cx.io.now() + SIGN_OF_LIFE);
        }
    }

    /// One timer a consumer: a new try, or a new handshake, takes the place of the one before.
    pub(super) fn arm_connect(&mut self, cx: &mut Context<'_>, at: usize, wait: Micros) {
        let timer = cx
            .io
            .set_timer(cx.io.now() + wait, Alarm::Connect.token(at));
        if let Some(before) = self.consumers[at].connect_timer.replace(timer) {
            cx.io.cancel_timer(before);
        }
    }

    pub(super) fn arm_session(&mut self, cx: &mut Context<'_>, at: usize) {
        if let Some(deadline) = self.consumers[at].session.deadline() {
            self.arm_session_at(cx, at, deadline);
        }
    }

    fn arm_session_at(&mut self, cx: &mut Context<'_>, at: usize, when: Micros) {
        let timer = cx.io.set_timer(when, Alarm::Session.token(at));
        if let Some(before) = self.consumers[at].session_timer.replace(timer) {
            cx.io.cancel_timer(before);
        }
    }

    fn session_timer(&mut self, cx: &mut Context<'_>, at: usize) {
        let consumer = &mut self.consumers[at];
        if consumer.key.is_none() {
            return;
        }
        if consumer.is_deaf() {
            consumer.session.ping_unheard(cx.io.now(), &mut self.out);
            self.wrap(at, 0);
            self.send(cx, at);
            return self.arm_session_at(cx, at, cx.io.now() + SIGN_OF_LIFE);
        }
        let event = self.consumers[at].session.timer(cx.io.now(), &mut self.out);
        self.wrap(at, 0);
        self.send(cx, at);
        match event {
            Some(event) => {
                self.happened(cx, at, cx.io.now(), &event);
            }
            None => self.arm_session(cx, at),
        }
    }

    /// Notes up to when brokers are known to have sent all that they have.
    fn note_heard(&mut self) {
        let up = self.consumers.iter_mut();
        for consumer in up.filter(|it| it.state == State::Up && !it.is_deaf()) {
            let heard = consumer.session.last_received();
            consumer.heard = heard.unwrap_or(consumer.heard).max(consumer.heard);
        }
    }

    /// Asks brokers that were silent for a while whether they are there. An answer that does not come is
    /// left to the keep-alive.
    fn prove_life(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        for at in 0..self.consumers.len() {
            let consumer = &mut self.consumers[at];
            if consumer.state != State::Up || consumer.is_deaf() {
                continue;
            }
            if now < consumer.heard.max(consumer.asked) + SILENCE {
                continue;
            }
            consumer.asked = now;
            consumer.session.ping_unheard(now, &mut self.out);
            self.wrap(at, 0);
            self.send(cx, at);
        }
    }

    /// Sends what a session has to say; what the kernel does not take waits, up to a bound.
    pub(super) fn send(&mut self, cx: &mut Context<'_>, at: usize) {
        if self.out.is_empty() {
            return;
        }
        let Some(key) = self.consumers[at].key else {
            return self.out.clear();
        };
        let written = cx.io.write(key, &self.out);
        let waiting = &mut self.consumers[at].waiting;
        match written {
            // The last is only of datagrams.
            Written::Whole | Written::Held | Written::Lost | Written::Refused => self.out.clear(),
            Written::Busy if waiting.len() < WAITING_MAX => waiting.append(&mut self.out),
            Written::Busy => {
                self.give_up(cx, at, "the broker does not read acknowledgements");
            }
            Written::Exhausted => {
                self.away(cx, at, "no buffer was left for acknowledgements");
                self.give_up(cx, at, "no buffer was left for acknowledgements");
            }
        }
    }
}
