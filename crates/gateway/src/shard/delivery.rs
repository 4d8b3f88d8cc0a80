//! Messages on their way to subscribers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_model::Micros;
use muster_net::{Io, Key};
use muster_platform::Dialect;
use muster_protocol::mqtt::{Publish, Refused, Token};

use super::link::Pause;
use super::session::{QUEUE_HIGH, QUEUE_LOW, QUEUE_MAX};
use super::uplink::may_be_dropped;
use super::{OUT_MAX, Shard};
use crate::message::Message;
use crate::routes::{Gauge, SessionRef, Subscription};
use crate::shared::{Grant, Mail, locked};

/// A subscription that a message is due to.
#[derive(Debug)]
pub(crate) struct Match {
    to: SessionRef,
    grant: Grant,
    /// Of a session on another thread.
    gauge: Option<Arc<Gauge>>,
}

/// A message on its way, which gets memory of its own once somebody has to keep it.
#[derive(Debug)]
pub(super) struct Parcel<'a> {
    publish: &'a Publish<'a>,
    kept: Option<Arc<Message>>,
    now: Micros,
}

impl Parcel<'_> {
    /// Whether the message has waited too long to be sent to anybody (MQTT-3.3.2-5).
    fn is_void(&self) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|message| message.is_void(self.now))
    }

    fn keep(&mut self) -> Arc<Message> {
        let (publish, now) = (self.publish, self.now);
        Arc::clone(
            self.kept
                .get_or_insert_with(|| Arc::new(Message::new(publish, now))),
        )
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Routed {
    /// Copies it is due to, dropped ones included.
    pub(super) copies: usize,
    /// A copy that must not be dropped went into a queue that is full.
    pub(super) is_congested: bool,
}

impl Shard {
    /// Retains a message if it is to be, and sends it to all subscribers. `kept` is the same
    /// message in memory of its own, if there is one already.
    pub(super) fn publish(
        &mut self,
        io: &mut Io,
        publish: &Publish<'_>,
        from: Option<SessionRef>,
        kept: Option<Arc<Message>>,
    ) -> Routed {
        if publish.retain {
            let message = Message::new(publish, io.now());
            if !locked(&self.shared.retained).set(message) {
                self.counts().retained_overflowed.more();
            }
        }
        let mut parcel = Parcel {
            publish,
            kept,
            now: io.now(),
        };
        let mut matches = std::mem::take(&mut self.matches);
        self.find_matches(publish, from, &mut matches);
        let mut routed = Routed {
            copies: matches.len(),
            is_congested: false,
        };
        for Match { to, grant, gauge } in matches.drain(..) {
            let is_congested = match gauge {
                None => self.deliver(io, to, grant, &mut parcel),
                Some(gauge) => {
                    let message = parcel.keep();
                    self.deliver_elsewhere(to, grant, &gauge, message)
                }
            };
            routed.is_congested |= is_congested;
        }
        self.matches = matches;
        routed
    }

    pub(super) fn publish_kept(
        &mut self,
        io: &mut Io,
        message: &Arc<Message>,
        from: Option<SessionRef>,
    ) -> Routed {
        let kept = Some(Arc::clone(message));
        message.publish(io.now(), |publish| self.publish(io, publish, from, kept))
    }

    fn find_matches(
        &self,
        publish: &Publish<'_>,
        from: Option<SessionRef>,
        matches: &mut Vec<Match>,
    ) {
        let Ok(routes) = self.shared.routes.read() else {
            return;
        };
        if routes.len() == 0 {
            return;
        }
        routes.matching(publish.topic, |subscription| {
            if !(subscription.no_local && from == Some(subscription.session)) {
                self.add_match(publish, subscription, matches);
            }
        });
    }

    /// One copy a session at the highest QoS granted (MQTT-3.3.4-2), but one each for
    /// subscriptions with an identifier of their own.
    fn add_match(&self, publish: &Publish<'_>, found: &Subscription, matches: &mut Vec<Match>) {
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
        let is_here = found.session.shard == self.index;
        let gauge = (!is_here).then(|| Arc::clone(&found.gauge));
        matches.push(Match {
            to: found.session,
            grant,
            gauge,
        });
    }

    pub(super) fn deliver_kept(
        &mut self,
        io: &mut Io,
        to: SessionRef,
        grant: Grant,
        message: &Arc<Message>,
    ) {
        let (now, kept) = (io.now(), Some(Arc::clone(message)));
        message.publish(now, |publish| {
            self.deliver(io, to, grant, &mut Parcel { publish, kept, now })
        });
    }

    /// Writes a copy, or queues it; true if the queue is full and the copy not to be dropped.
    pub(super) fn deliver(
        &mut self,
        io: &mut Io,
        to: SessionRef,
        grant: Grant,
        parcel: &mut Parcel<'_>,
    ) -> bool {
        if parcel.is_void() {
            self.counts().expired.more();
            return false;
        }
        match self.write_copy(io, to, grant, parcel) {
            Some(Copied::Written) => false,
            Some(Copied::Impossible) => {
                self.counts().undeliverable.more();
                false
            }
            Some(Copied::MustWait) => self.enqueue(to, grant, parcel),
            None => {
                self.counts().discarded.more();
                false
            }
        }
    }

    fn write_copy(
        &mut self,
        io: &mut Io,
        to: SessionRef,
        grant: Grant,
        parcel: &mut Parcel<'_>,
    ) -> Option<Copied> {
        let dialect = self.shared.config.dialect;
        let session = self.sessions.get_mut(to.key)?;
        let Some(key) = session.link else {
            return Some(Copied::MustWait);
        };
        let link = self
            .links
            .get_mut(key.index())
            .and_then(Option::as_deref_mut)?;
        if link.session.is_none() || link.is_held || !session.queue.is_empty() {
            return Some(Copied::MustWait);
        }
        let token = session.token();
        let copy = granted(dialect, parcel.publish, grant);
        let copied = Copied::of(link.server.deliver(token, &copy, &mut link.out));
        if copied == Copied::Written {
            if !may_be_dropped(grant.qos) && session.is_persistent() {
                session.inflight.insert(token.0, (grant, parcel.keep()));
            }
            let is_much = link.out.len() >= OUT_MAX;
            self.counts().delivered.more();
            if is_much {
                self.send(io, key);
            } else {
                self.mark_dirty(key);
            }
        }
        Some(copied)
    }

    fn enqueue(&mut self, to: SessionRef, grant: Grant, parcel: &mut Parcel<'_>) -> bool {
        let kept = self.shared.config.behaviour.session_queue;
        let kept = kept.map_or(QUEUE_MAX, |kept| (kept as usize).min(QUEUE_MAX));
        let Some(session) = self.sessions.get_mut(to.key) else {
            return false;
        };
        let is_online = session.link.is_some();
        let bound = if is_online { QUEUE_MAX } else { kept };
        let is_full = session.gauge.waiting.load(Ordering::SeqCst) >= bound;
        if may_be_dropped(grant.qos) && (is_full || !is_online) {
            self.counts().overflowed.more();
            return false;
        }
        if is_full && !is_online {
            self.counts().offline_overflowed.more();
            return false;
        }
        session.enqueue(grant, parcel.keep());
        is_online && !may_be_dropped(grant.qos) && is_congested(&session.gauge)
    }

    fn deliver_elsewhere(
        &mut self,
        to: SessionRef,
        grant: Grant,
        gauge: &Gauge,
        message: Arc<Message>,
    ) -> bool {
        let is_full = gauge.waiting.load(Ordering::SeqCst) >= QUEUE_MAX;
        if may_be_dropped(grant.qos) && is_full {
            self.counts().overflowed.more();
            return false;
        }
        gauge.waiting.fetch_add(1, Ordering::SeqCst);
        self.outboxes[usize::from(to.shard)].push(Mail::Deliver { to, grant, message });
        let is_online = gauge.online.load(Ordering::Relaxed);
        is_online && !may_be_dropped(grant.qos) && is_congested(gauge)
    }

    /// A copy came from another thread.
    pub(super) fn arrived(
        &mut self,
        io: &mut Io,
        to: SessionRef,
        grant: Grant,
        message: Arc<Message>,
    ) {
        if let Some(session) = self.session(to) {
            let left = session.gauge.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
            let tell = left <= QUEUE_LOW && session.gauge.congested.swap(false, Ordering::SeqCst);
            self.deliver_kept(io, to, grant, &message);
            if tell {
                self.tell_room(io);
            }
            return;
        }
        let moved = self.moved.iter().find(|(old, ..)| *old == to);
        let moved = moved.map(|(_, new, gauge)| (*new, Arc::clone(gauge)));
        match moved {
            Some((new, gauge)) => {
                self.deliver_elsewhere(new, grant, &gauge, message);
            }
            None => self.counts().discarded.more(),
        }
    }

    /// Writes queued copies as long as the client takes them.
    pub(super) fn drain(&mut self, io: &mut Io, key: Key) {
        let now = io.now();
        let dialect = self.shared.config.dialect;
        let mut tell = false;
        while let Some((token, grant, message, told)) = self.next_queued(io, key) {
            tell |= told;
            if message.is_void(now) {
                self.counts().expired.more();
                continue;
            }
            let Some(link) = self.link(key) else { break };
            let copied = message.publish(now, |publish| {
                Copied::of(link.server.deliver(
                    token,
                    &granted(dialect, publish, grant),
                    &mut link.out,
                ))
            });
            match copied {
                Copied::Written => {
                    self.counts().delivered.more();
                    self.keep_inflight(key, token, grant, message);
                }
                Copied::Impossible => self.counts().undeliverable.more(),
                Copied::MustWait => {
                    self.put_back(key, grant, message);
                    break;
                }
            }
        }
        self.send(io, key);
        if tell {
            self.tell_room(io);
        }
    }

    /// The next queued copy, if it may be written now.
    fn next_queued(&mut self, io: &mut Io, key: Key) -> Option<(Token, Grant, Arc<Message>, bool)> {
        if self.link(key)?.out.len() >= OUT_MAX {
            self.send(io, key);
        }
        let link = self.link(key)?;
        let (me, is_held, window) = (link.session?, link.is_held, link.server.window_free());
        let session = self.session(me)?;
        let (grant, _) = session.queue.front()?;
        if is_held || (window == 0 && !may_be_dropped(grant.qos)) {
            return None;
        }
        let ((grant, message), tell) = session.dequeue()?;
        Some((session.token(), grant, message, tell))
    }

    fn keep_inflight(&mut self, key: Key, token: Token, grant: Grant, message: Arc<Message>) {
        let Some(me) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        if let Some(session) = self.session(me)
            && session.is_persistent()
            && !may_be_dropped(grant.qos)
        {
            session.inflight.insert(token.0, (grant, message));
        }
    }

    fn put_back(&mut self, key: Key, grant: Grant, message: Arc<Message>) {
        let Some(me) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        if let Some(session) = self.session(me) {
            session.gauge.waiting.fetch_add(1, Ordering::SeqCst);
            session.queue.push_front((grant, message));
        }
    }

    pub(super) fn acked(&mut self, io: &mut Io, key: Key, token: Token, reason: u8) {
        if reason < 0x80 {
            self.counts().delivered_acknowledged.more();
        }
        self.completed(io, key, token);
    }

    pub(super) fn completed(&mut self, io: &mut Io, key: Key, token: Token) {
        let Some(me) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        let Some(session) = self.session(me) else {
            return;
        };
        if session.is_persistent() {
            session.inflight.remove(&token.0);
        }
        if !session.queue.is_empty() {
            self.drain(io, key);
        }
    }

    /// The session was resumed and this copy has no answer yet (MQTT-4.4.0-1).
    pub(super) fn resend(&mut self, io: &mut Io, key: Key, token: Token) {
        let now = io.now();
        let Some(me) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        let kept = self
            .session(me)
            .and_then(|session| session.inflight.get(&token.0).cloned());
        let dialect = self.shared.config.dialect;
        let Some(link) = self.link(key) else { return };
        let Some((grant, message)) = kept else {
            link.server.forget(token);
            return;
        };
        let copied = message.publish(now, |publish| {
            Copied::of(link.server.redeliver(
                token,
                &granted(dialect, publish, grant),
                &mut link.out,
            ))
        });
        if copied == Copied::Written {
            self.counts().redelivered.more();
        }
    }

    /// Stops reading a client that does not read our answers.
    pub(super) fn throttle(&mut self, io: &mut Io, key: Key) {
        let Some(link) = self.link(key) else { return };
        let is_much = link.is_held && link.out.len() >= OUT_MAX;
        let is_paused = link.pauses & Pause::Output as u8 != 0;
        match (is_much, is_paused) {
            (true, false) => self.pause(io, key, Pause::Output),
            (false, true) => self.resume(io, key, Pause::Output),
            (true, true) | (false, false) => {}
        }
    }

    /// A full queue has room again: publishers of all threads may be read.
    pub(super) fn tell_room(&mut self, io: &mut Io) {
        for (shard, outbox) in self.outboxes.iter_mut().enumerate() {
            if shard != usize::from(self.index) {
                outbox.push(Mail::Room);
            }
        }
        self.resume_waiting(io);
    }

    pub(super) fn tell_first_uplink(&mut self, io: &mut Io, at: Micros) {
        for (shard, outbox) in self.outboxes.iter_mut().enumerate() {
            if shard != usize::from(self.index) {
                outbox.push(Mail::FirstUplink(at));
            }
        }
        self.plan_alarms(io, at);
    }
}

/// What came of writing a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Written,
    /// The client cannot take it now.
    MustWait,
    /// The client can never take it.
    Impossible,
}

impl Copied {
    fn of(result: Result<(), Refused>) -> Self {
        match result {
            Ok(()) => Self::Written,
            Err(Refused::Window | Refused::PacketIds | Refused::NotConnected) => Self::MustWait,
            Err(
                Refused::TooLarge { .. }
                | Refused::TextTooLong
                | Refused::RetainUnavailable
                | Refused::QosUnavailable
                | Refused::Authentication
                | Refused::Unknown,
            ) => Self::Impossible,
        }
    }
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

/// Whether publishers are to wait. The flag is set before the count is read again, and the reader
/// lowers the count before it looks at the flag: one of the two sees the other.
fn is_congested(gauge: &Gauge) -> bool {
    if gauge.waiting.load(Ordering::SeqCst) < QUEUE_HIGH {
        return false;
    }
    gauge.congested.store(true, Ordering::SeqCst);
    gauge.waiting.load(Ordering::SeqCst) > QUEUE_LOW
}
