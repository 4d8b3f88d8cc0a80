//! Drives the consumers of a process over an event loop.

use std::sync::Arc;

use muster_conduct::{DISPATCH_EVERY, Dispatch, Order, Progress, Scribe, Trouble};
use muster_model::{Listening, Micros};
use muster_net::{
    Closed, ConnectError, Handler, Io, Key, ListenerId, Loop, LoopConfig, Mailbox, WaitsOf, Written,
};
use muster_protocol::layer::{Layer, Layers, Pipe};
use muster_protocol::mqtt::Input;
use muster_scenario::Plan;
use muster_transport::Clients;

use crate::commanding::Commanding;
use crate::consumers::{Consumer, ConsumersError, ConsumersSpec, Seat, State};
use crate::ending::words;
use crate::intake::Intake;

/// Bytes of acknowledgements that may wait for a broker that does not read: some 250,000 of them.
const WAITING_MAX: usize = 1 << 20;
/// How often a consumer that is paused says that it lives: a broker must not take one for dead that
/// does not read because the scenario says so.
const SIGN_OF_LIFE: Micros = Micros::from_secs(1);
/// Time that a broker may be silent until a consumer asks whether it is there. Silence counts as quiet only up to the
/// last answer, so this is well below any useful `settle.quiet`.
const SILENCE: Micros = Micros::from_millis(100);
/// How long a consumer that was paused has to find the answers to its pings.
const CATCH_UP: Micros = Micros::from_secs(2);
/// How long a consumer's handshake may take.
const HANDSHAKE_MAX: Micros = Micros::from_secs(10);

/// The driver of all consumers of a process.
#[derive(Debug)]
pub struct Driver {
    pub(crate) plan: Arc<Plan>,
    pub(crate) consumers: Vec<Consumer>,
    pub(crate) intake: Intake,
    /// Who issues commands, if one of these consumers does.
    pub(crate) commanding: Option<Commanding>,
    /// One a backend: where the layers of its consumers come from.
    layers: Vec<Clients>,
    pub(crate) out: Vec<u8>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
    pub(crate) next_dispatch: Micros,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) is_over: bool,
}

/// What a timer of the loop is for; its token says which consumer.
#[derive(Debug, Clone, Copy)]
enum Alarm {
    Connect,
    Session,
    Pause,
    Resume,
}

impl Alarm {
    fn token(self, consumer: usize) -> u64 {
        (self as u64) << 32 | consumer as u64
    }

    fn of(token: u64) -> (Self, usize) {
        let alarm = match token >> 32 {
            0 => Self::Connect,
            1 => Self::Session,
            2 => Self::Pause,
            _ => Self::Resume,
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
    scribe: Option<Box<dyn Scribe>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<Driver>, ConsumersError> {
    let limit = spec.plan.receive_limit();
    let consumer = |seat: &Seat| {
        let mqtt = spec.plan.backends[seat.backend.index()].mqtt()?;
        Some(Consumer::new(*seat, mqtt, spec.run, limit))
    };
    let driver = Driver {
        plan: Arc::clone(&spec.plan),
        consumers: spec.seats.iter().filter_map(consumer).collect(),
        intake: Intake::new(spec, scribe)?,
        commanding: Commanding::of(spec, spec.clock.wall_ms_at_t0()),
        layers,
        out: Vec::new(),
        mailbox,
        next_dispatch: Micros::ZERO,
        troubles: Vec::new(),
        is_over: false,
    };
    let config = LoopConfig::default().with_packets_of(limit);
    let mut event_loop = Loop::new(spec.clock, &config, driver)?;
    event_loop.parts().1.watch_cpu_wait(WaitsOf {
        gateways: spec.gateways.clone(),
        library: None,
    });
    Ok(event_loop)
}

impl Handler for Driver {
    fn turn_begins(&mut self, io: &mut Io) {
        self.intake.reading.turn_begins(&io.turn());
    }

    fn opened(&mut self, io: &mut Io, key: Key) {
        let at = io.tag(key) as usize;
        let seat = self.consumers[at].seat;
        let layers = &mut self.layers[seat.backend.index()];
        match layers.layer(u32::from(seat.consumer.0)) {
            Ok(layer) => {
                let pipe = &mut self.consumers[at].pipe;
                *pipe = Pipe::new(layer);
                pipe.layer.open(&mut self.out);
                if pipe.layer.is_open() {
                    self.greet(at, io.now());
                }
                self.send(io, at);
            }
            Err(error) => self.give_up(io, at, &error.to_string()),
        }
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        // Consumers listen on nothing; whatever came is none of their business.
        io.close(key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let at = io.tag(key) as usize;
        let seen = io.fresh_now();
        let pipe = &mut self.consumers[at].pipe;
        let was_open = pipe.layer.is_open();
        let fed = pipe.receive(bytes, &mut self.out);
        if !was_open && pipe.layer.is_open() {
            self.greet(at, seen);
        }
        let from = self.out.len();
        let Some(taken) = self.read(io, at, seen, &bytes[..fed.plain]) else {
            return bytes.len();
        };
        self.wrap(at, from);
        self.send(io, at);
        let used = self.consumers[at].pipe.keep(bytes, &fed, taken);
        if let Some(end) = fed.end {
            self.ended(io, at, end);
        }
        used
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        let at = io.tag(key) as usize;
        self.out.append(&mut self.consumers[at].waiting);
        self.send(io, at);
    }

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        let at = io.tag(key) as usize;
        self.consumers[at].key = None;
        if why == Closed::PoolExhausted {
            self.away(
                at,
                "no buffer was left for bytes that its socket did not take",
            );
        }
        let words = words(why, self.consumers[at].state.still_waits_for());
        self.lost(io, at, &words);
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let (alarm, at) = Alarm::of(token);
        match alarm {
            Alarm::Connect => self.connect(io, at),
            Alarm::Session => self.session_timer(io, at),
            Alarm::Pause => self.pause(io, at, true),
            Alarm::Resume => self.pause(io, at, false),
        }
    }

    fn woken(&mut self, io: &mut Io) {
        while let Some(order) = self.mailbox.next_order() {
            self.obey(io, order);
        }
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.is_over {
            return None;
        }
        self.command(io);
        if io.now() >= self.next_dispatch {
            self.note_heard();
            self.prove_life(io);
            self.dispatch(io.now());
        }
        let command = self.next_command();
        Some(command.map_or(self.next_dispatch, |next| next.min(self.next_dispatch)))
    }
}

impl Driver {
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
    fn read(&mut self, io: &mut Io, at: usize, seen: Micros, plain: &[u8]) -> Option<usize> {
        let mut input = Input::new(plain);
        loop {
            let session = &mut self.consumers[at].session;
            let Some(event) = session.poll(seen, &mut input, &mut self.out) else {
                return Some(input.consumed());
            };
            if !self.happened(io, at, seen, &event) {
                return None;
            }
            if self.consumers[at].is_deaf() {
                return Some(input.consumed());
            }
        }
    }

    /// Turns what a session appended to the output into what goes over the wire.
    pub(crate) fn wrap(&mut self, at: usize, from: usize) {
        self.consumers[at].pipe.layer.wrap(&mut self.out, from);
    }

    fn obey(&mut self, io: &mut Io, order: Order) {
        match order {
            Order::Connect => {
                for at in 0..self.consumers.len() {
                    self.connect(io, at);
                }
            }
            Order::Start { origin } => {
                self.intake.due_times.start(origin);
                self.start_commands(origin);
                self.intake.tape.recorder().start(origin);
                self.plan_pauses(io, origin);
            }
            Order::EndDue { at } => self.end_due(at),
            Order::MarkDrain => self.intake.tape.recorder().mark_drain(),
            Order::Finish => self.finish(io),
        }
    }

    fn plan_pauses(&mut self, io: &mut Io, origin: Micros) {
        for (at, consumer) in self.consumers.iter().enumerate() {
            for pause in &self.plan.backends[consumer.seat.backend.index()].pause {
                let from = origin + pause.at;
                io.set_timer(from, Alarm::Pause.token(at));
                io.set_timer(from + pause.lasts, Alarm::Resume.token(at));
            }
        }
    }

    fn connect(&mut self, io: &mut Io, at: usize) {
        let consumer = &mut self.consumers[at];
        match consumer.state {
            State::Down if !self.is_over => {}
            State::Opening | State::Handshaking | State::Subscribing => {
                let why = consumer.waits_in_vain(io.now()).unwrap_or_default();
                return self.give_up(io, at, &why);
            }
            State::Down | State::Up => return,
        }
        match io.connect(consumer.seat.target, None) {
            Ok(key) => {
                io.set_tag(key, at as u32);
                consumer.key = Some(key);
                consumer.state = State::Opening;
                consumer.since = io.now();
                self.arm_connect(io, at, HANDSHAKE_MAX);
            }
            Err(error) => {
                if let ConnectError::Descriptors | ConnectError::Ports(_) = error {
                    self.away(at, &error.to_string());
                }
                self.lost(io, at, &error.to_string());
            }
        }
    }

    fn pause(&mut self, io: &mut Io, at: usize, is_paused: bool) {
        let consumer = &mut self.consumers[at];
        consumer.is_paused = is_paused;
        consumer.hears_since = io.now();
        if consumer.is_deaf() {
            return self.stop_reading(io, at);
        }
        if let Some(key) = consumer.key {
            io.resume_reading(key);
            self.arm_session_at(io, at, io.now() + CATCH_UP);
        }
    }

    /// A consumer whose subscription stands reads nothing while it is paused.
    pub(crate) fn stop_reading(&mut self, io: &mut Io, at: usize) {
        if let Some(key) = self.consumers[at].key {
            io.pause_reading(key);
            self.arm_session_at(io, at, io.now() + SIGN_OF_LIFE);
        }
    }

    /// One timer a consumer: a new try, or a new handshake, takes the place of the one before.
    pub(crate) fn arm_connect(&mut self, io: &mut Io, at: usize, wait: Micros) {
        let timer = io.set_timer(io.now() + wait, Alarm::Connect.token(at));
        if let Some(before) = self.consumers[at].connect_timer.replace(timer) {
            io.cancel_timer(before);
        }
    }

    pub(crate) fn arm_session(&mut self, io: &mut Io, at: usize) {
        if let Some(deadline) = self.consumers[at].session.deadline() {
            self.arm_session_at(io, at, deadline);
        }
    }

    fn arm_session_at(&mut self, io: &mut Io, at: usize, when: Micros) {
        let timer = io.set_timer(when, Alarm::Session.token(at));
        if let Some(before) = self.consumers[at].session_timer.replace(timer) {
            io.cancel_timer(before);
        }
    }

    fn session_timer(&mut self, io: &mut Io, at: usize) {
        let consumer = &mut self.consumers[at];
        if consumer.key.is_none() {
            return;
        }
        if consumer.is_deaf() {
            consumer.session.ping_unheard(io.now(), &mut self.out);
            self.wrap(at, 0);
            self.send(io, at);
            return self.arm_session_at(io, at, io.now() + SIGN_OF_LIFE);
        }
        let event = self.consumers[at].session.timer(io.now(), &mut self.out);
        self.wrap(at, 0);
        self.send(io, at);
        match event {
            Some(event) => {
                self.happened(io, at, io.now(), &event);
            }
            None => self.arm_session(io, at),
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
    fn prove_life(&mut self, io: &mut Io) {
        let now = io.now();
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
            self.send(io, at);
        }
    }

    /// Sends what a session has to say; what the kernel does not take waits, up to a bound.
    pub(crate) fn send(&mut self, io: &mut Io, at: usize) {
        if self.out.is_empty() {
            return;
        }
        let Some(key) = self.consumers[at].key else {
            return self.out.clear();
        };
        let written = io.write(key, &self.out);
        let waiting = &mut self.consumers[at].waiting;
        match written {
            // The last is only of datagrams.
            Written::Whole | Written::Held | Written::Lost | Written::Refused => self.out.clear(),
            Written::Busy if waiting.len() < WAITING_MAX => waiting.append(&mut self.out),
            Written::Busy => {
                self.give_up(io, at, "the broker does not read acknowledgements");
            }
            Written::Exhausted => {
                self.away(at, "no buffer was left for acknowledgements");
                self.give_up(io, at, "no buffer was left for acknowledgements");
            }
        }
    }

    fn finish(&mut self, io: &mut Io) {
        self.is_over = true;
        self.finish_commands(io.now());
        self.tell_of_silence(io.now());
        self.note_heard();
        for at in 0..self.consumers.len() {
            let consumer = &mut self.consumers[at];
            if let Some(key) = consumer.key.take() {
                // Left behind, its subscription would get copies of the next run.
                consumer.session.end_session(&mut self.out);
                consumer.pipe.layer.wrap(&mut self.out, 0);
                consumer.pipe.layer.close(&mut self.out);
                let _ = io.write(key, &self.out);
                self.out.clear();
                io.finish(key);
            }
        }
        self.dispatch(io.now());
        let account = std::mem::take(&mut self.intake.account);
        let last = self.intake.tape.hand_over(account);
        let _ = self.mailbox.post(last);
        io.stop();
    }

    fn dispatch(&mut self, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        let up = self
            .consumers
            .iter()
            .filter(|consumer| consumer.state == State::Up)
            .count();
        let refused = self.consumers.iter().filter(|it| it.is_refused()).count();
        self.expire_commands(now);
        let next_command = self.next_command();
        let listening = self.consumers.iter();
        let listening = listening.map(|consumer| consumer.listening(now));
        let progress = Progress {
            at: now,
            consumers_wanted: self.consumers.len() as u64,
            consumers_up: up as u64,
            consumers_refused: refused as u64,
            listening: listening.fold(Listening::NOBODY, Listening::and),
            open: self.open_commands(),
            behind: u64::from(next_command.is_some_and(|due| due <= now)),
            ..Progress::default()
        };
        let dispatch = self.intake.tape.dispatch(progress, &mut self.troubles);
        if !self.mailbox.post(dispatch) {
            self.troubles.push(Trouble::unheard());
        }
    }
}
