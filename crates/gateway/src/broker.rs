//! Routing: messages go to the sessions that subscribed to their topics, and on to the links of those.

pub(crate) mod links;
mod opening;
pub(crate) mod session;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_net::Key;
use muster_platform::Dialect;
use muster_protocol::mqtt::packet::{Subscribe, Unsubscribe};
use muster_protocol::mqtt::{Filter, Publish, Qos, Refused, ServerEvent, Token, reason};

use self::links::{Link, Links, must_wait};
use self::session::Session;
use self::sessions::{Sessions, deliver_elsewhere};
use crate::config::Role;
use crate::lock::locked;
use crate::message::{Message, Parcel};
use crate::routes::{Gauge, Grant, SessionRef, Subscription};
use crate::thread::Ctx;

/// The links and sessions of one thread, and what goes to them.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    links: Links,
    sessions: Sessions,
    matches: Vec<Match>,
}

/// A subscription that a message is due to.
#[derive(Debug)]
struct Match {
    to: SessionRef,
    grant: Grant,
    /// Of a session on another thread.
    gauge: Option<Arc<Gauge>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Routed {
    /// Copies it is due to, dropped ones included.
    pub(crate) copies: usize,
    /// A copy that must not be dropped went into a queue that is full.
    pub(crate) is_congested: bool,
}

impl Broker {
    pub(crate) fn links(&mut self) -> &mut Links {
        &mut self.links
    }

    fn session_at(&mut self, key: Key) -> Option<&mut Session> {
        self.sessions.get(self.links.session_of(key)?)
    }

    /// Acts on what a client sent, other than a PUBLISH.
    pub(crate) fn handle(&mut self, ctx: &mut Ctx<'_>, key: Key, event: &ServerEvent<'_>) {
        match event {
            ServerEvent::Publish(_) | ServerEvent::Ping => {}
            ServerEvent::Acked { token, reason } => {
                if *reason < 0x80 {
                    ctx.counts().delivered_acknowledged.more();
                }
                self.completed(ctx, key, *token);
            }
            ServerEvent::Completed { token } => self.completed(ctx, key, *token),
            ServerEvent::Resend { token } => self.resend(ctx, key, *token),
            ServerEvent::Connect(connect) => self.connect(ctx, key, connect),
            ServerEvent::Subscribe(subscribe) => self.subscribe(ctx, key, subscribe),
            ServerEvent::Unsubscribe(unsubscribe) => self.unsubscribe(ctx, key, unsubscribe),
            ServerEvent::Auth(auth) => self.authenticate(ctx, key, auth),
            ServerEvent::Disconnect {
                with_will,
                session_expiry,
                ..
            } => {
                if let (Some(session), Some(expiry)) = (self.session_at(key), session_expiry) {
                    session.expiry = *expiry;
                }
                self.end(ctx, key, *with_will);
            }
            ServerEvent::KeepAliveExpired => {
                ctx.counts().keep_alive_expired.more();
                self.end(ctx, key, true);
            }
            ServerEvent::Malformed(_) => {
                ctx.counts().malformed.more();
                self.end(ctx, key, true);
            }
        }
    }

    /// Retains a message if it is to be, and sends it to all subscribers.
    pub(crate) fn publish(&mut self, ctx: &mut Ctx<'_>, mut parcel: Parcel<'_>) -> Routed {
        if parcel.publish.retain {
            let message = Message::new(parcel.publish, ctx.now());
            if !locked(&ctx.shared.retained).set(message) {
                ctx.counts().retained_overflowed.more();
            }
        }
        let mut routed = ctx.shared.outlets.store(ctx, &mut parcel);
        let mut matches = std::mem::take(&mut self.matches);
        find_matches(ctx, &parcel, &mut matches);
        routed.copies += matches.len();
        for Match { to, grant, gauge } in matches.drain(..) {
            let is_congested = match gauge {
                None => self.deliver(ctx, to, grant, &mut parcel),
                Some(gauge) => {
                    let message = parcel.keep(ctx.now());
                    deliver_elsewhere(ctx, to, &gauge, grant, message)
                }
            };
            routed.is_congested |= is_congested;
        }
        self.matches = matches;
        routed
    }

    pub(crate) fn publish_kept(
        &mut self,
        ctx: &mut Ctx<'_>,
        message: &Arc<Message>,
        from: Option<SessionRef>,
    ) -> Routed {
        self.publish_as(ctx, message, from, false)
    }

    /// The same with a message that a receiver over AMQP has already.
    pub(crate) fn publish_taken(
        &mut self,
        ctx: &mut Ctx<'_>,
        message: &Arc<Message>,
        from: Option<SessionRef>,
    ) -> Routed {
        self.publish_as(ctx, message, from, true)
    }

    fn publish_as(
        &mut self,
        ctx: &mut Ctx<'_>,
        message: &Arc<Message>,
        from: Option<SessionRef>,
        is_taken: bool,
    ) -> Routed {
        let kept = Some(Arc::clone(message));
        message.publish(ctx.now(), |publish| {
            let parcel = Parcel {
                kept,
                is_taken,
                ..Parcel::new(publish, from)
            };
            self.publish(ctx, parcel)
        })
    }

    /// Sends a message to a client that has not subscribed: the number of copies.
    pub(crate) fn send_unasked(
        &mut self,
        ctx: &mut Ctx<'_>,
        key: Key,
        publish: &Publish<'_>,
    ) -> usize {
        let Some(to) = self.links.session_of(key) else {
            return 0;
        };
        let grant = Grant {
            qos: Qos::AtMostOnce,
            retain: false,
            id: None,
        };
        let message = Arc::new(Message::new(publish, ctx.now()));
        self.deliver_kept(ctx, to, grant, &message);
        1
    }

    fn deliver_kept(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: SessionRef,
        grant: Grant,
        message: &Arc<Message>,
    ) {
        let kept = Some(Arc::clone(message));
        message.publish(ctx.now(), |publish| {
            let parcel = Parcel::new(publish, None);
            self.deliver(ctx, to, grant, &mut Parcel { kept, ..parcel })
        });
    }

    /// Writes a copy, or queues it; true if the queue is full and the copy not to be dropped.
    fn deliver(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: SessionRef,
        grant: Grant,
        parcel: &mut Parcel<'_>,
    ) -> bool {
        if parcel.is_void(ctx.now()) {
            ctx.counts().expired.more();
            return false;
        }
        match self.write_copy(ctx, to, grant, parcel) {
            Some(Ok(())) => {}
            Some(Err(refused)) if must_wait(refused) => {
                return self.sessions.enqueue(ctx, to, grant, parcel);
            }
            Some(Err(_)) => ctx.counts().undeliverable.more(),
            None => ctx.counts().discarded.more(),
        }
        false
    }

    fn write_copy(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: SessionRef,
        grant: Grant,
        parcel: &mut Parcel<'_>,
    ) -> Option<Result<(), Refused>> {
        let session = self.sessions.get(to)?;
        let Some(key) = session.link else {
            return Some(Err(Refused::NotConnected));
        };
        let link = self.links.get(key)?;
        if link.session.is_none() || link.wire.is_held || !session.queue.is_empty() {
            return Some(Err(Refused::NotConnected));
        }
        let token = session.token();
        let copy = granted(ctx.shared.config.dialect, parcel.publish, grant);
        let copied = self.links.deliver(ctx, key, token, &copy);
        if copied.is_ok() {
            session.keep(token, grant, || parcel.keep(ctx.now()));
        }
        Some(copied)
    }

    /// A copy came from another thread.
    pub(crate) fn arrived(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: SessionRef,
        grant: Grant,
        message: Arc<Message>,
    ) {
        if let Some(session) = self.sessions.get(to) {
            let has_room = session.lower();
            self.deliver_kept(ctx, to, grant, &message);
            if has_room {
                ctx.announce_room();
            }
        } else if let Some((new, gauge)) = self.sessions.moved_to(to) {
            deliver_elsewhere(ctx, new, &gauge, grant, message);
        } else {
            ctx.counts().discarded.more();
        }
    }

    /// Writes queued copies as long as the client takes them.
    pub(crate) fn drain(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let dialect = ctx.shared.config.dialect;
        let me = self.links.session_of(key);
        let session = me.and_then(|me| self.sessions.get(me));
        let mut has_room = false;
        if let Some(session) = session {
            while let Some(link) = self.links.get(key) {
                let (is_held, window) = (link.wire.is_held, link.server.window_free());
                let may_be_dropped = session
                    .queue
                    .front()
                    .map(|(grant, _)| grant.may_be_dropped());
                if is_held || may_be_dropped.is_none_or(|may| window == 0 && !may) {
                    break;
                }
                let Some(((grant, message), lowered)) = session.dequeue() else {
                    break;
                };
                has_room |= lowered;
                let token = session.token();
                let now = ctx.now();
                if message.is_void(now) {
                    ctx.counts().expired.more();
                    continue;
                }
                let copied = message.publish(now, |publish| {
                    let copy = granted(dialect, publish, grant);
                    self.links.deliver(ctx, key, token, &copy)
                });
                match copied {
                    Ok(()) => session.keep(token, grant, || message),
                    Err(refused) if must_wait(refused) => {
                        session.gauge.waiting.fetch_add(1, Ordering::SeqCst);
                        session.queue.push_front((grant, message));
                        break;
                    }
                    Err(_) => ctx.counts().undeliverable.more(),
                }
            }
        }
        self.links.send(ctx, key);
        if has_room {
            ctx.announce_room();
        }
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, key: Key, token: Token) {
        let Some(session) = self.session_at(key) else {
            return;
        };
        session.completed(token);
        if !session.queue.is_empty() {
            self.drain(ctx, key);
        }
    }

    /// The session was resumed and this copy has no answer yet (MQTT-4.4.0-1).
    fn resend(&mut self, ctx: &Ctx<'_>, key: Key, token: Token) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        let session = link.session.and_then(|me| self.sessions.get(me));
        let kept = session.and_then(|session| session.inflight.get(&token.0));
        let Some((grant, message)) = kept else {
            link.server.forget(token);
            return;
        };
        let copied = message.publish(ctx.now(), |publish| {
            let copy = granted(ctx.shared.config.dialect, publish, *grant);
            link.server.redeliver(token, &copy, &mut link.wire.out)
        });
        if copied.is_ok() {
            ctx.counts().redelivered.more();
        }
    }

    fn subscribe(&mut self, ctx: &mut Ctx<'_>, key: Key, subscribe: &Subscribe<'_>) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        let Some(me) = link.session else { return };
        link.has_subscribed = true;
        let (is_v5, role) = (link.is_v5(), link.role);
        let name = link.name.clone();
        let name = name.as_deref().unwrap_or_default();
        let (config, dialect) = (&ctx.shared.config, ctx.shared.config.dialect);
        let is_device = role == Role::Device && config.northbound.is_some();
        let takes = |filter: &Filter<'_>| !is_device || (dialect.server.has_filter)(filter.filter);
        let most = Qos::from_bits(dialect.publishing().qos_maximum).unwrap_or(Qos::ExactlyOnce);
        let answers_unasked = (dialect.server.answers_unasked)(name);
        let id = subscribe.subscription_id();
        let mut retained = Vec::new();
        let mut codes = Vec::new();
        for filter in subscribe.filters.iter() {
            let mut routed = String::new();
            let is_taken = takes(&filter);
            let filter = match (dialect.server.route)(name, filter.filter, &mut routed) {
                true => Filter {
                    filter: &routed,
                    qos: filter.qos.min(most),
                    ..filter
                },
                false => filter,
            };
            let subscribed = match (is_taken, answers_unasked) {
                (false, _) => Err(reason::TOPIC_FILTER_INVALID),
                // It is granted, and adds nothing.
                (true, true) => Ok(Vec::new()),
                (true, false) => self.sessions.subscribe(ctx, me, &filter, id),
            };
            match subscribed {
                Ok(mut messages) => {
                    codes.push(filter.qos.bits());
                    retained.append(&mut messages);
                }
                // MQTT 3.1.1 knows one failure only (section 3.9.3 there).
                Err(code) => codes.push(if is_v5 {
                    code
                } else {
                    reason::UNSPECIFIED_ERROR
                }),
            }
        }
        let answered = self.links.write(key, |server, out| {
            server.suback(subscribe.packet_id, &codes, out)
        });
        if answered.is_some_and(|answered| answered.is_err()) {
            return self.expel(ctx, key, reason::PACKET_TOO_LARGE);
        }
        for (grant, message) in retained {
            self.deliver_kept(ctx, me, grant, &message);
        }
    }

    fn unsubscribe(&mut self, ctx: &mut Ctx<'_>, key: Key, unsubscribe: &Unsubscribe<'_>) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        let Some(me) = link.session else { return };
        let name = link.name.as_deref().unwrap_or_default();
        let route = ctx.shared.config.dialect.server.route;
        let codes = unsubscribe.filters.iter().map(|filter| {
            let mut routed = String::new();
            let is_routed = route(name, filter, &mut routed);
            let filter = if is_routed { &routed } else { filter };
            self.sessions.unsubscribe(ctx, me, filter)
        });
        let codes: Vec<u8> = codes.collect();
        let answered = self.links.write(key, |server, out| {
            server.unsuback(unsubscribe.packet_id, &codes, out)
        });
        if answered.is_some_and(|answered| answered.is_err()) {
            self.expel(ctx, key, reason::PACKET_TOO_LARGE);
        }
    }

    /// Looks after a link at the instant that was set for it.
    pub(crate) fn check(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        link.alarm = None;
        if link.session.is_none() {
            return self.end(ctx, key, false);
        }
        // What waits in a connection that is not read counts as a sign of life.
        if ctx.is_paused(key) {
            let at = ctx.now() + Link::CONNECT_TIMEOUT;
            return self.links.watch(ctx, key, at);
        }
        let event: Option<ServerEvent<'_>> = link.server.timer(ctx.now(), &mut link.wire.out);
        if let Some(event) = event {
            return self.handle(ctx, key, &event);
        }
        if let Some(deadline) = link.server.deadline() {
            self.links.watch(ctx, key, deadline);
        }
    }

    pub(crate) fn close_share(&mut self, ctx: &mut Ctx<'_>, seed: u64, share: f64) {
        for key in self.links.choose(ctx.shared.config.dialect, seed, share) {
            ctx.counts().closed_links.more();
            self.end(ctx, key, true);
        }
    }
}

fn find_matches(ctx: &Ctx<'_>, parcel: &Parcel<'_>, matches: &mut Vec<Match>) {
    let Ok(routes) = ctx.shared.routes.read() else {
        return;
    };
    if routes.len() == 0 {
        return;
    }
    routes.matching(parcel.publish.topic, |subscription| {
        if !(subscription.no_local && parcel.from == Some(subscription.session)) {
            add_match(ctx, parcel.publish, subscription, matches);
        }
    });
}

/// One copy a session at the highest QoS granted (MQTT-3.3.4-2), but one for each subscription
/// identifier.
fn add_match(ctx: &Ctx<'_>, publish: &Publish<'_>, found: &Subscription, matches: &mut Vec<Match>) {
    let grant = Grant {
        qos: found.qos.min(publish.qos),
        retain: found.retain_as_published && publish.retain,
        id: found.id,
    };
    let same = |other: &&mut Match| other.to == found.session && other.grant.id == found.id;
    if let Some(other) = matches.iter_mut().find(same) {
        other.grant.qos = other.grant.qos.max(grant.qos);
        return;
    }
    let is_here = found.session.shard == ctx.index();
    let gauge = (!is_here).then(|| Arc::clone(&found.gauge));
    matches.push(Match {
        to: found.session,
        grant,
        gauge,
    });
}

/// A copy as its link knows it.
fn granted<'a>(dialect: Dialect, publish: &Publish<'a>, grant: Grant) -> Publish<'a> {
    Publish {
        topic: (dialect.server.unrouted)(publish.topic),
        qos: grant.qos,
        retain: grant.retain,
        subscription_id: grant.id,
        ..*publish
    }
}
