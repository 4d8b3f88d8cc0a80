//! Drives the webhooks of a process over an event loop.

use std::sync::Arc;

use muster_conduct::{
    Commander, Diagnostic, Dispatch, FactWriter, Order, RefusalCause, RefusalKind, Remedy,
};
use muster_model::Micros;
use muster_net::{Closed, Key, ListenerId, Loop, LoopConfig, Mailbox, PortUse, Written};
use muster_plan::Plan;
use muster_protocol::http::{Reply, Server, ServerEvent, ServerRequest, write_field};
use muster_protocol::layer::{Ended, Layer, Pipe};
use muster_transport::{Any, Servers, TlsServer};

use super::entrance::Entrance;
use super::patience::{Bounds, Overdue, Patience};
use super::refusals::{Cause, Refusals};
use super::{batch, confirmation};
use crate::consumers::{ConsumerPlan, ConsumersError, ConsumersSpec};
use crate::intake::Surfaced;
use crate::northbound::{ConsumerLoop, Context, Core, Northbound};

/// Most connections of platforms at once. Their pools have some hundreds at the most; each costs a buffer.
const CONNECTIONS_MAX: usize = 4_096;
/// Least bound on a body, so that a batch of messages has room.
const BODY_LEAST: u32 = 1 << 20;
/// Time after the first message is due after which a webhook without a single request is reported.
const SILENCE: Micros = Micros::from_secs(10);
/// Key of a scenario with the address.
const LISTEN_KEY: &str = "platform.backend.webhook.listen";

/// The webhooks of one thread.
pub struct Webhooks {
    plan: Arc<Plan>,
    /// By consumer.
    doors: Vec<Door>,
    /// By the index of the connection's key.
    connections: Vec<Option<Connection>>,
    open: usize,
    bounds: Bounds,
    body_max: u32,
    /// Due instant of the first message, from the begin of the run; none if no message is due.
    first_due: Option<Micros>,
    out: Vec<u8>,
    /// Further fields of a reply.
    fields: Vec<u8>,
}

/// One webhook.
struct Door {
    consumer: ConsumerPlan,
    entrance: Entrance,
    servers: Servers,
    listener: Option<ListenerId>,
    refusals: Refusals,
    /// Pauses that have begun.
    pauses: usize,
    /// End of the last of them.
    paused_until: Micros,
    /// True once a question for confirmation was reported.
    is_asked: bool,
    /// Grows with each request and each connection that failed.
    attempts: u64,
    /// True once the absence of pushes was reported.
    is_missed: bool,
}

/// The ends of a process's webhooks.
#[derive(Debug, Default)]
pub struct WebhookEnds {
    /// The layers of connections, by backend.
    pub layers: Vec<Servers>,
    /// Times after which connections are ended.
    pub bounds: Bounds,
}

/// A connection of the platform.
struct Connection {
    /// Its webhook.
    at: usize,
    key: Key,
    patience: Patience,
    server: Server,
    pipe: Pipe<Any<TlsServer>>,
}

/// Makes the event loop of all webhooks of a process, to be run on a thread.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled or the loop cannot start.
pub fn webhooks_loop(
    spec: &ConsumersSpec,
    ends: &WebhookEnds,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<Webhooks>>, ConsumersError> {
    let door = |consumer: &ConsumerPlan| {
        Some(Door {
            consumer: *consumer,
            entrance: Entrance::new(&spec.plan.backends[consumer.backend.index()])?,
            servers: ends.layers[consumer.backend.index()].clone(),
            listener: None,
            refusals: Refusals::default(),
            pauses: 0,
            paused_until: Micros::ZERO,
            is_asked: false,
            attempts: 0,
            is_missed: false,
        })
    };
    let webhooks = Webhooks {
        plan: Arc::clone(&spec.plan),
        doors: spec.consumers.iter().filter_map(door).collect(),
        connections: Vec::new(),
        open: 0,
        bounds: ends.bounds,
        body_max: spec.plan.receive_limit().max(BODY_LEAST),
        first_due: spec.first_due(),
        out: Vec::new(),
        fields: Vec::new(),
    };
    let address = |consumer: &ConsumerPlan| {
        let endpoint = &spec.plan.backends[consumer.backend.index()].endpoint;
        endpoint.to_string()
    };
    let core = Core::new(spec, writer, None, address)?;
    let consumer_loop = ConsumerLoop::new(spec, webhooks, core, mailbox);
    Ok(consumer_loop.start(spec, &LoopConfig::default(), None)?)
}

impl Northbound for Webhooks {
    fn connect(&mut self, cx: &mut Context<'_>) {
        for (at, door) in self.doors.iter_mut().enumerate() {
            if door.listener.is_some() {
                continue;
            }
            let (now, consumer) = (cx.io.now(), cx.core.consumer(at));
            match cx.io.listen(door.consumer.target, PortUse::Alone) {
                Ok((listener, _)) => {
                    door.listener = Some(listener);
                    consumer.up(now);
                }
                Err(error) => {
                    let cause = RefusalCause {
                        remedy: Remedy::see(LISTEN_KEY),
                        ..RefusalCause::new(RefusalKind::Refused, error.to_string())
                    };
                    consumer.refused(&cause, true);
                }
            }
        }
    }

    /// A webhook that is paused still answers: the platform learns that it must wait.
    fn pause(&mut self, cx: &mut Context<'_>, at: usize) {
        if !cx.core.consumer(at).is_paused() {
            return;
        }
        let door = &mut self.doors[at];
        let pauses = &self.plan.backends[door.consumer.backend.index()].pause;
        let lasts = pauses.get(door.pauses).map_or(Micros::ZERO, |it| it.lasts);
        door.paused_until = cx.io.now() + lasts;
        door.pauses += 1;
    }

    fn issue(&mut self, _: &mut Context<'_>) {}

    fn next_issue(&mut self, _: &mut Commander) -> Option<Micros> {
        None
    }

    /// All that came is counted, so that a silence since then is the platform's.
    fn look_after(&mut self, cx: &mut Context<'_>) {
        let presented = cx.io.presented_until();
        for at in 0..self.doors.len() {
            let consumer = cx.core.consumer(at);
            if consumer.is_up() && !consumer.is_paused() {
                consumer.note_received(presented);
            }
        }
        self.end_overdue(cx);
        self.report_silence(cx, SILENCE);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.look_after(cx);
        self.report_silence(cx, Micros::ZERO);
        for (at, door) in self.doors.iter_mut().enumerate() {
            door.refusals.finish(cx.core.consumer(at));
        }
    }

    fn timer(&mut self, _: &mut Context<'_>, _: u64) {}

    fn accepted(&mut self, cx: &mut Context<'_>, key: Key, listener: ListenerId) {
        let mut doors = self.doors.iter();
        let Some(at) = doors.position(|door| door.listener == Some(listener)) else {
            return cx.io.close(key);
        };
        if self.open >= CONNECTIONS_MAX {
            let why = format!("the platform has {CONNECTIONS_MAX} open; bound its pool");
            cx.core.consumer(at).limited("take a connection", why);
            return cx.io.reset(key);
        }
        let mut pipe = Pipe::new(self.doors[at].servers.layer());
        pipe.layer.open(&mut self.out);
        self.out.clear();
        let connection = Connection {
            at,
            key,
            patience: Patience::new(cx.io.now(), pipe.layer.is_open()),
            server: Server::new(self.body_max),
            pipe,
        };
        if self.connections.len() <= key.index() {
            self.connections.resize_with(key.index() + 1, || None);
        }
        self.connections[key.index()] = Some(connection);
        self.open += 1;
    }

    fn received(&mut self, cx: &mut Context<'_>, key: Key, bytes: &mut [u8]) -> usize {
        let Some(mut connection) = self.take(key) else {
            return bytes.len();
        };
        let fed = connection.pipe.receive(bytes, &mut self.out);
        let from = self.out.len();
        let requests = self.doors[connection.at].attempts;
        let (taken, is_over) = self.read(cx, &mut connection, &bytes[..fed.plain]);
        let has_completed = self.doors[connection.at].attempts > requests;
        let is_partial = !connection.pipe.layer.is_open()
            || connection.server.is_inside()
            || taken < fed.plain
            || fed.used < bytes.len();
        let now = cx.io.now();
        connection.patience.received(now, is_partial, has_completed);
        connection.pipe.layer.wrap(&mut self.out, from);
        if let Some(Ended::Failed(error)) = fed.end {
            let detail = connection.pipe.layer.detail();
            let detail = detail.map_or_else(|| error.to_string(), str::to_owned);
            self.refuse(cx, connection.at, Cause::Handshake, Some(detail));
        }
        let is_over = is_over || fed.end.is_some();
        if is_over {
            connection.pipe.layer.close(&mut self.out);
        }
        let is_written = self.write(cx, connection.at, key);
        if !cx.io.is_writable(key) {
            connection.patience.held(now);
        }
        if is_over {
            cx.io.finish(key);
        } else if !is_written {
            cx.io.reset(key);
        } else {
            let used = connection.pipe.keep(bytes, &fed, taken);
            self.put(key, connection);
            return used;
        }
        bytes.len()
    }

    fn flushed(&mut self, cx: &mut Context<'_>, key: Key) {
        if let Some(Some(connection)) = self.connections.get_mut(key.index()) {
            connection.patience.flushed(cx.io.now());
        }
        cx.io.resume_reading(key);
    }

    fn closed(&mut self, cx: &mut Context<'_>, key: Key, why: Closed) {
        if let Some(connection) = self.take(key)
            && why == Closed::PoolExhausted
        {
            let why = "no buffer was left for its bytes";
            cx.core
                .consumer(connection.at)
                .limited("keep a connection", why);
        }
    }
}

impl Webhooks {
    fn take(&mut self, key: Key) -> Option<Connection> {
        let connection = self.connections.get_mut(key.index())?.take()?;
        self.open -= 1;
        Some(connection)
    }

    fn put(&mut self, key: Key, connection: Connection) {
        self.connections[key.index()] = Some(connection);
        self.open += 1;
    }

    /// Ends the connections whose time is over.
    fn end_overdue(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        for place in 0..self.connections.len() {
            let connection = self.connections[place].as_ref();
            let overdue = connection.and_then(|it| it.patience.overdue(now, &self.bounds));
            let Some((overdue, key)) = overdue.zip(connection.map(|it| it.key)) else {
                continue;
            };
            if let Some(connection) = self.take(key) {
                self.end(cx, connection, overdue);
            }
        }
    }

    /// Ends a connection whose time is over: in order, unless the platform does not listen.
    fn end(&mut self, cx: &mut Context<'_>, mut connection: Connection, overdue: Overdue) {
        let Connection { at, key, .. } = connection;
        let is_open = connection.pipe.layer.is_open();
        match overdue {
            Overdue::Answer => {
                self.refuse(cx, at, Cause::Unread, None);
                return cx.io.reset(key);
            }
            Overdue::Request if !is_open => {
                let detail = format!("it took more than {}", self.bounds.request);
                self.refuse(cx, at, Cause::Handshake, Some(detail));
                return cx.io.reset(key);
            }
            Overdue::Request => {
                let detail = format!("of {}", self.bounds.request);
                self.refuse(cx, at, Cause::Slow, Some(detail));
                let reply = Reply {
                    is_last: true,
                    ..Reply::new(408)
                };
                reply.write(&mut self.out);
                connection.pipe.layer.wrap(&mut self.out, 0);
            }
            Overdue::Idle => {}
        }
        connection.pipe.layer.close(&mut self.out);
        self.write(cx, at, key);
        cx.io.finish(key);
    }

    /// Reports each webhook that nobody has spoken to this long after the first message was due, once.
    fn report_silence(&mut self, cx: &mut Context<'_>, within: Micros) {
        let now = cx.io.now();
        let is_due =
            |first: Micros| now >= first + within && cx.core.has_begun(now - first - within);
        if !self.first_due.is_some_and(is_due) {
            return;
        }
        for (at, door) in self.doors.iter_mut().enumerate() {
            let is_silent = door.attempts == 0 && door.listener.is_some();
            if is_silent && !std::mem::replace(&mut door.is_missed, true) {
                let what = "no push has come: does the platform's rule name this address, and can the platform reach it?";
                let consumer = cx.core.consumer(at);
                consumer.report_of_backend(Diagnostic::PushAbsent, what);
            }
        }
    }

    /// Handles the requests that came. Returns how many bytes are used up, and whether the connection is at its
    /// end.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        plain: &[u8],
    ) -> (usize, bool) {
        let (at, seen) = (connection.at, cx.io.fresh_now());
        let mut input = plain;
        while let Some(event) = connection.server.poll(&mut input, &mut self.out) {
            match event {
                ServerEvent::Request(request) => {
                    self.doors[at].attempts += 1;
                    self.handle(cx, at, seen, &request);
                }
                ServerEvent::Malformed(malformed) => {
                    let cause = Cause::Malformed(malformed.status());
                    self.refuse(cx, at, cause, Some(malformed.to_string()));
                }
            }
        }
        (plain.len() - input.len(), connection.server.is_over())
    }

    /// Counts the copies of a request, and answers it.
    fn handle(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        request: &ServerRequest<'_>,
    ) {
        self.fields.clear();
        let status = match self.enter(cx, at, seen, request) {
            Ok(()) => 200,
            Err(cause) => {
                self.refuse(cx, at, cause, None);
                self.explain(cx, at, cause);
                cause.status().unwrap_or(400)
            }
        };
        let reply = Reply {
            fields: &self.fields,
            is_last: request.is_last,
            ..Reply::new(status)
        };
        reply.write(&mut self.out);
    }

    fn enter(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        request: &ServerRequest<'_>,
    ) -> Result<(), Cause> {
        let door = &mut self.doors[at];
        door.entrance.is_for_it(request)?;
        // AWS IoT asks without the headers of the rule.
        if confirmation::is_asked(&request.head) {
            if !std::mem::replace(&mut door.is_asked, true) {
                let what = confirmation::in_words(&request.body);
                let consumer = cx.core.consumer(at);
                consumer.report_of_backend(Diagnostic::PushConfirmation, what);
            }
            return Ok(());
        }
        let push = door.entrance.admit(request)?;
        if cx.core.consumer(at).is_paused() {
            return Err(Cause::Paused);
        }
        let mut receive = |payload: &[u8]| {
            let copy = Surfaced {
                topic: &push.topic,
                payload,
                property: push.property,
            };
            cx.core.receive(at, seen, &copy, || false);
        };
        if !push.is_batch || !batch::elements(push.body, &mut receive) {
            receive(push.body);
        }
        self.doors[at].refusals.note_accepted();
        Ok(())
    }

    /// Adds the fields that go with a refusal.
    fn explain(&mut self, cx: &mut Context<'_>, at: usize, cause: Cause) {
        let door = &self.doors[at];
        let (name, value) = match cause {
            Cause::Unproven => ("WWW-Authenticate", door.entrance.challenge().to_owned()),
            Cause::Method => ("Allow", "POST, PUT".to_owned()),
            Cause::Paused => {
                let left = door.paused_until - cx.io.now();
                (
                    "Retry-After",
                    left.as_secs_f64().ceil().max(1.0).to_string(),
                )
            }
            Cause::Path
            | Cause::Compressed
            | Cause::Malformed(_)
            | Cause::Slow
            | Cause::Unread
            | Cause::Handshake => return,
        };
        // Both are ours, and of plain letters.
        let _ = write_field(&mut self.fields, name, value.as_bytes());
    }

    fn refuse(&mut self, cx: &mut Context<'_>, at: usize, cause: Cause, detail: Option<String>) {
        let door = &mut self.doors[at];
        door.attempts += 1;
        door.refusals.add(cause, detail, cx.core.consumer(at));
    }

    /// Writes the output. Returns false if the connection cannot go on.
    fn write(&mut self, cx: &mut Context<'_>, at: usize, key: Key) -> bool {
        if self.out.is_empty() {
            return true;
        }
        let written = cx.io.write(key, &self.out);
        self.out.clear();
        match written {
            Written::Whole | Written::Lost | Written::Refused => true,
            Written::Held => {
                // Whoever does not read its answers is read no further.
                cx.io.pause_reading(key);
                true
            }
            Written::Busy => false,
            Written::Exhausted => {
                let why = "no buffer was left for its answers";
                cx.core.consumer(at).limited("answer a request", why);
                false
            }
        }
    }
}
