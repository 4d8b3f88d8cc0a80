//! Drives the consumers of a process over an event loop.

use std::sync::Arc;

use muster_conduct::{Commander, Dispatch, FactWriter, Order};
use muster_model::Micros;
use muster_net::{Closed, ConnectError, Key, Loop, LoopConfig, Mailbox};
use muster_plan::Plan;
use muster_protocol::layer::{Layer, Layers, Pipe};
use muster_protocol::mqtt::Input;
use muster_transport::Clients;

use super::connection::{Alarm, Connection, Stage, Unwritten};
use super::ending::Loss;
use super::issuer::Issuer;
use super::session::Session;
use crate::consumers::{ConsumerPlan, ConsumersError, ConsumersSpec};
use crate::northbound::{ConsumerLoop, Context, Core, Northbound};

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
    pub(super) links: Vec<Link>,
    /// The consumer that issues commands, if one of these does.
    pub(super) issuer: Option<Issuer>,
    /// One a backend: where the layers of its consumers come from.
    layers: Vec<Clients>,
    pub(super) out: Vec<u8>,
}

/// Connection and session of one consumer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) consumer: ConsumerPlan,
    pub(super) connection: Connection,
    pub(super) session: Session,
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
    let link = |consumer: &ConsumerPlan| {
        let mqtt = spec.plan.backends[consumer.backend.index()].mqtt()?;
        Some(Link {
            consumer: *consumer,
            connection: Connection::default(),
            session: Session::new(consumer, mqtt, spec.run, limit),
        })
    };
    let northbound = MqttConsumers {
        plan: Arc::clone(&spec.plan),
        links: spec.consumers.iter().filter_map(link).collect(),
        issuer: Issuer::new(spec),
        layers,
        out: Vec::new(),
    };
    let address = |consumer: &ConsumerPlan| consumer.target.to_string();
    let issuer = northbound.issuer.as_ref().map(Issuer::at);
    let core = Core::new(spec, writer, issuer, address)?;
    let config = LoopConfig::default().with_packets_of(limit);
    let consumer_loop = ConsumerLoop::new(spec, northbound, core, mailbox);
    Ok(consumer_loop.start(spec, &config, None)?)
}

impl Northbound for MqttConsumers {
    fn connect(&mut self, cx: &mut Context<'_>) {
        for at in 0..self.links.len() {
            self.connect_one(cx, at);
        }
    }

    fn pause(&mut self, cx: &mut Context<'_>, at: usize) {
        if is_deaf(cx, at) {
            return self.stop_reading(cx, at);
        }
        if let Some(key) = self.links[at].connection.key() {
            cx.io.resume_reading(key);
            self.arm(cx, Alarm::Session, at, cx.io.now() + CATCH_UP);
        }
    }

    fn issue(&mut self, cx: &mut Context<'_>) {
        self.issue_commands(cx);
    }

    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros> {
        self.next_command(commander)
    }

    fn look_after(&mut self, cx: &mut Context<'_>) {
        self.note_received(cx);
        self.probe(cx);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.finish_commands(cx);
        self.report_silence(cx);
        self.note_received(cx);
        for link in &mut self.links {
            if let Some(key) = link.connection.take_key() {
                // Left behind, its subscription would get copies of the next run.
                link.session.client().end_session(&mut self.out);
                link.connection.wrap(&mut self.out, 0);
                link.connection.pipe().layer.close(&mut self.out);
                let _ = cx.io.write(key, &self.out);
                self.out.clear();
                cx.io.finish(key);
            }
        }
    }

    fn opened(&mut self, cx: &mut Context<'_>, key: Key) {
        let at = cx.io.tag(key) as usize;
        let consumer = self.links[at].consumer;
        let layers = &mut self.layers[consumer.backend.index()];
        match layers.layer(u32::from(consumer.consumer.0)) {
            Ok(layer) => {
                let pipe = self.links[at].connection.pipe();
                *pipe = Pipe::new(layer);
                pipe.layer.open(&mut self.out);
                if pipe.layer.is_open() {
                    self.greet(cx, at, cx.io.now());
                }
                self.send(cx, at);
            }
            Err(error) => self.give_up(cx, at, &Loss::silent(error)),
        }
    }

    fn received(&mut self, cx: &mut Context<'_>, key: Key, bytes: &mut [u8]) -> usize {
        let at = cx.io.tag(key) as usize;
        let seen = cx.io.fresh_now();
        let pipe = self.links[at].connection.pipe();
        let was_open = pipe.layer.is_open();
        let fed = pipe.receive(bytes, &mut self.out);
        if !was_open && pipe.layer.is_open() {
            self.greet(cx, at, seen);
        }
        let from = self.out.len();
        let Some(taken) = self.read(cx, at, seen, &bytes[..fed.plain]) else {
            return bytes.len();
        };
        self.wrap(at, from);
        self.send(cx, at);
        let used = self.links[at].connection.pipe().keep(bytes, &fed, taken);
        if let Some(end) = fed.end {
            self.ended(cx, at, end);
        }
        used
    }

    fn flushed(&mut self, cx: &mut Context<'_>, key: Key) {
        let at = cx.io.tag(key) as usize;
        let written = self.links[at].connection.flush(cx.io, &mut self.out);
        self.handle_unwritten(cx, at, written);
    }

    fn closed(&mut self, cx: &mut Context<'_>, key: Key, why: Closed) {
        let at = cx.io.tag(key) as usize;
        let connection = &mut self.links[at].connection;
        connection.take_key();
        let stage = connection.stage();
        if why == Closed::PoolExhausted {
            let why = "no buffer was left for bytes that its socket did not take";
            cx.core.consumer(at).away(why);
        }
        let mut loss = Loss::closed(why, stage.awaited());
        let is_hung_up = matches!(why, Closed::Peer | Closed::Reset);
        if is_hung_up && matches!(stage, Stage::Opening | Stage::Handshaking) {
            loss = loss.with(&self.security(at).hint_on_silence());
        }
        self.lost(cx, at, &loss);
    }

    fn timer(&mut self, cx: &mut Context<'_>, token: u64) {
        let (alarm, at) = Alarm::of_token(token);
        match alarm {
            Alarm::Connect => self.connect_one(cx, at),
            Alarm::Session => self.session_timer(cx, at),
        }
    }
}

impl MqttConsumers {
    /// The layer of a consumer is open: its session connects.
    fn greet(&mut self, cx: &mut Context<'_>, at: usize, now: Micros) {
        let from = self.out.len();
        let link = &mut self.links[at];
        let plan = &self.plan.backends[link.consumer.backend.index()];
        link.connection.reach(Stage::Handshaking);
        let continues = cx.core.consumer(at).was_up();
        link.session.connect(plan, continues, now, &mut self.out);
        link.connection.wrap(&mut self.out, from);
    }

    /// Handles packets. Returns how many bytes are used up; none if the connection is over.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        plain: &[u8],
    ) -> Option<usize> {
        let mut input = Input::new(plain);
        loop {
            let client = self.links[at].session.client();
            let Some(event) = client.poll(seen, &mut input, &mut self.out) else {
                return Some(input.consumed());
            };
            if !self.handle(cx, at, seen, &event) {
                return None;
            }
            if is_deaf(cx, at) {
                return Some(input.consumed());
            }
        }
    }

    /// Turns what a session appended to the output into what goes over the wire.
    pub(super) fn wrap(&mut self, at: usize, from: usize) {
        self.links[at].connection.wrap(&mut self.out, from);
    }

    fn connect_one(&mut self, cx: &mut Context<'_>, at: usize) {
        let link = &mut self.links[at];
        if let Some(why) = link.connection.overdue(cx.io.now()) {
            return self.give_up(cx, at, &Loss::silent(why));
        }
        if link.connection.stage() == Stage::Up || cx.core.is_over() {
            return;
        }
        match cx.io.connect(link.consumer.target, None) {
            Ok(key) => {
                cx.io.set_tag(key, at as u32);
                link.connection.open(key, cx.io.now());
                self.arm(cx, Alarm::Connect, at, cx.io.now() + HANDSHAKE_MAX);
            }
            Err(error) => {
                if let ConnectError::Descriptors | ConnectError::Ports(_) = error {
                    cx.core.consumer(at).away(&error.to_string());
                }
                self.lost(cx, at, &Loss::silent(error));
            }
        }
    }

    /// Stops reading of a consumer that is paused and subscribed.
    pub(super) fn stop_reading(&mut self, cx: &mut Context<'_>, at: usize) {
        if let Some(key) = self.links[at].connection.key() {
            cx.io.pause_reading(key);
            self.arm(cx, Alarm::Session, at, cx.io.now() + SIGN_OF_LIFE);
        }
    }

    pub(super) fn arm(&mut self, cx: &mut Context<'_>, alarm: Alarm, at: usize, when: Micros) {
        self.links[at].connection.arm(cx.io, alarm, at, when);
    }

    pub(super) fn arm_session(&mut self, cx: &mut Context<'_>, at: usize) {
        if let Some(deadline) = self.links[at].session.client().deadline() {
            self.arm(cx, Alarm::Session, at, deadline);
        }
    }

    fn session_timer(&mut self, cx: &mut Context<'_>, at: usize) {
        let (link, now) = (&mut self.links[at], cx.io.now());
        if link.connection.key().is_none() {
            return;
        }
        if is_deaf(cx, at) {
            link.session.client().ping_unawaited(now, &mut self.out);
            self.wrap(at, 0);
            self.send(cx, at);
            return self.arm(cx, Alarm::Session, at, now + SIGN_OF_LIFE);
        }
        let event = link.session.client().timer(now, &mut self.out);
        self.wrap(at, 0);
        self.send(cx, at);
        match event {
            Some(event) => {
                self.handle(cx, at, now, &event);
            }
            None => self.arm_session(cx, at),
        }
    }

    /// Notes up to which instant brokers are known to have sent all that they have.
    fn note_received(&mut self, cx: &mut Context<'_>) {
        for (at, link) in self.links.iter_mut().enumerate() {
            let consumer = cx.core.consumer(at);
            if consumer.is_up()
                && !consumer.is_paused()
                && let Some(received) = link.session.client().last_received()
            {
                consumer.note_received(received);
            }
        }
    }

    /// Asks brokers that were silent for a while whether they are there. A missing answer is left to the
    /// keep-alive.
    fn probe(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        for at in 0..self.links.len() {
            let consumer = cx.core.consumer(at);
            let is_listening = consumer.is_up() && !consumer.is_paused();
            let (received, session) = (consumer.received_until(), &mut self.links[at].session);
            if is_listening && session.probe(now, received, SILENCE, &mut self.out) {
                self.wrap(at, 0);
                self.send(cx, at);
            }
        }
    }

    /// Sends the output; what the kernel does not take waits, up to a bound.
    pub(super) fn send(&mut self, cx: &mut Context<'_>, at: usize) {
        let written = self.links[at].connection.write(cx.io, &mut self.out);
        self.handle_unwritten(cx, at, written);
    }

    fn handle_unwritten(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        written: Result<(), Unwritten>,
    ) {
        let why = match written {
            Ok(()) => return,
            Err(Unwritten::Unread) => "the broker does not read acknowledgements",
            Err(Unwritten::NoBuffer) => {
                let why = "no buffer was left for acknowledgements";
                cx.core.consumer(at).away(why);
                why
            }
        };
        self.give_up(cx, at, &Loss::silent(why));
    }
}

/// Returns true if a consumer is subscribed and reads nothing because the scenario pauses it.
pub(super) fn is_deaf(cx: &mut Context<'_>, at: usize) -> bool {
    let consumer = cx.core.consumer(at);
    consumer.is_up() && consumer.is_paused()
}
