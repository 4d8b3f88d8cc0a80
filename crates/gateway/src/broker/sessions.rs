//! The sessions of one thread: their subscriptions, their queues, and where they went.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_model::Micros;
use muster_net::Key;
use muster_protocol::mqtt::topic::Subscription as Parsed;
use muster_protocol::mqtt::{Filter, RetainHandling, SessionState, reason};
use slotmap::SlotMap;

use super::session::{Opening, Session, Will};
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::{Message, Parcel};
use crate::routes::{Claim, Gauge, Grant, QUEUE_MAX, SessionKey, SessionRef, Subscription};
use crate::thread::Ctx;
use crate::uplink::Alarm;

/// Sessions that moved away and are remembered for mail still under way.
const MOVED_KEPT: usize = 1_024;
/// A session that never expires (section 3.1.2.11.2).
const FOR_EVER: u32 = u32::MAX;
/// Most subscriptions of one session: consumers have a handful, devices one or two.
const SUBSCRIPTIONS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: SlotMap<SessionKey, Session>,
    /// Sessions that moved to another thread lately, for mail that was under way to them.
    moved: VecDeque<(SessionRef, SessionRef, Arc<Gauge>)>,
}

impl Sessions {
    pub(super) fn get(&mut self, session: SessionRef) -> Option<&mut Session> {
        self.all.get_mut(session.key)
    }

    pub(super) fn create(&mut self, ctx: &Ctx<'_>, opening: &Opening) -> SessionRef {
        let shard = ctx.index();
        let key = self.all.insert_with_key(|key| {
            let me = SessionRef { shard, key };
            Session::new(me, &opening.client_id, opening.expiry)
        });
        SessionRef { shard, key }
    }

    /// Binds a session to a link; gives its state, and whether it has subscribed.
    pub(super) fn open(
        &mut self,
        ctx: &mut Ctx<'_>,
        me: SessionRef,
        key: Key,
        expiry: u32,
    ) -> Option<(SessionState, bool)> {
        let session = self.get(me)?;
        session.link = Some(key);
        session.expiry = expiry;
        session.gauge.online.store(true, Ordering::Relaxed);
        ctx.cancel_alarm(session.expiring.take());
        ctx.cancel_alarm(session.pending_will.take().map(|(alarm, _)| alarm));
        let has_subscribed = !session.subscriptions.is_empty();
        Some((std::mem::take(&mut session.state), has_subscribed))
    }

    /// The link of a session is gone. Gives the will that is to be published now.
    pub(super) fn leave(
        &mut self,
        ctx: &mut Ctx<'_>,
        me: SessionRef,
        state: SessionState,
        will: Option<Box<Will>>,
    ) -> Option<Message> {
        let session = self.get(me)?;
        session.link = None;
        session.state = state;
        session.gauge.online.store(false, Ordering::Relaxed);
        if session.gauge.congested.swap(false, Ordering::SeqCst) {
            // Nobody waits for an absent reader.
            ctx.announce_room();
        }
        let at = |ctx: &Ctx<'_>, seconds: u32| ctx.now() + Micros::from_secs(seconds.into());
        let mut due = None;
        if let Some(Will { message, delay }) = will.map(|will| *will) {
            match delay.min(session.expiry) {
                0 => due = Some(message),
                delay => {
                    let alarm = ctx.set_alarm(at(ctx, delay), Alarm::Will(me));
                    session.pending_will = Some((alarm, Box::new(message)));
                }
            }
        }
        match session.expiry {
            0 | FOR_EVER => {}
            expiry => session.expiring = Some(ctx.set_alarm(at(ctx, expiry), Alarm::Expire(me))),
        }
        due
    }

    /// Ends a session: its subscriptions, its queue, and its will if that still waits (MQTT-3.1.3-9),
    /// which is to be published.
    pub(super) fn remove(&mut self, ctx: &mut Ctx<'_>, me: SessionRef) -> Option<Message> {
        let mut session = self.all.remove(me.key)?;
        ctx.cancel_alarm(session.expiring.take());
        unsubscribe_all(ctx, &session, me);
        let mut registry = locked(&ctx.shared.registry);
        if registry.get(&session.client_id) == Some(&me) {
            registry.remove(&session.client_id);
        }
        drop(registry);
        ctx.counts().discarded.add(session.queue.len() as u64);
        let (alarm, message) = session.pending_will.take()?;
        ctx.cancel_alarm(Some(alarm));
        Some(*message)
    }

    /// Takes a session out and points its subscriptions to where it goes, without a gap.
    pub(super) fn hand_over(&mut self, ctx: &mut Ctx<'_>, claim: Claim) -> Option<Box<Session>> {
        let Claim { of, by, gauge, .. } = claim;
        let mut session = self.all.remove(of.key)?;
        ctx.cancel_alarm(session.expiring.take());
        ctx.cancel_alarm(session.pending_will.take().map(|(alarm, _)| alarm));
        if let Ok(mut routes) = ctx.shared.routes.write() {
            for (filter, subscription) in &session.subscriptions {
                let Ok(parsed) = Parsed::parse(filter) else {
                    continue;
                };
                routes.remove(parsed, of);
                let mut moved = subscription.clone();
                moved.session = by;
                moved.gauge = Arc::clone(&gauge);
                routes.insert(parsed, moved);
            }
        }
        if self.moved.len() >= MOVED_KEPT {
            self.moved.pop_front();
        }
        self.moved.push_back((of, by, gauge));
        Some(Box::new(session))
    }

    /// The session that replaced a moved one, and its gauge.
    pub(super) fn moved_to(&self, old: SessionRef) -> Option<(SessionRef, Arc<Gauge>)> {
        let moved = self.moved.iter().find(|(moved, ..)| *moved == old);
        moved.map(|(_, new, gauge)| (*new, Arc::clone(gauge)))
    }

    /// Queues a copy; true if the queue is full and the copy not to be dropped.
    pub(super) fn enqueue(
        &mut self,
        ctx: &Ctx<'_>,
        to: SessionRef,
        grant: Grant,
        parcel: &mut Parcel<'_>,
    ) -> bool {
        let Some(session) = self.get(to) else {
            return false;
        };
        let is_online = session.link.is_some();
        let kept = ctx.shared.config.behaviour.session_queue;
        let bound = match kept.filter(|_| !is_online) {
            Some(kept) => (kept as usize).min(QUEUE_MAX),
            None => QUEUE_MAX,
        };
        let is_full = session.gauge.waiting.load(Ordering::SeqCst) >= bound;
        if grant.may_be_dropped() && (is_full || !is_online) {
            ctx.counts().overflowed.more();
            return false;
        }
        if is_full && !is_online {
            ctx.counts().offline_overflowed.more();
            return false;
        }
        session.enqueue(grant, parcel.keep(ctx.now()));
        is_online && !grant.may_be_dropped() && session.gauge.is_congested()
    }

    /// Takes one subscription and gives the retained messages it brings, or the code why not.
    pub(super) fn subscribe(
        &mut self,
        ctx: &Ctx<'_>,
        me: SessionRef,
        filter: &Filter<'_>,
        id: Option<u32>,
    ) -> Result<Vec<(Grant, Arc<Message>)>, u8> {
        let parsed = Parsed::parse(filter.filter).map_err(|_| reason::TOPIC_FILTER_INVALID)?;
        let Some(session) = self.get(me) else {
            return Err(reason::UNSPECIFIED_ERROR);
        };
        let subscription = Subscription {
            session: me,
            gauge: Arc::clone(&session.gauge),
            qos: filter.qos,
            no_local: filter.no_local,
            retain_as_published: filter.retain_as_published,
            id,
        };
        let known = &mut session.subscriptions;
        match known.iter().position(|(text, _)| **text == *filter.filter) {
            Some(place) => known[place].1 = subscription.clone(),
            None if known.len() >= SUBSCRIPTIONS_MAX => return Err(reason::QUOTA_EXCEEDED),
            None => known.push((filter.filter.into(), subscription.clone())),
        }
        let Ok(mut routes) = ctx.shared.routes.write() else {
            return Err(reason::UNSPECIFIED_ERROR);
        };
        let is_new = routes.insert(parsed, subscription);
        drop(routes);
        // MQTT-3.3.1-9 to -11; a shared subscription brings none (section 4.8.2).
        let wants_retained = match filter.retain_handling {
            RetainHandling::Send => true,
            RetainHandling::SendIfNew => is_new,
            RetainHandling::Keep => false,
        };
        if !wants_retained || parsed.group.is_some() {
            return Ok(Vec::new());
        }
        let messages = locked(&ctx.shared.retained).matching(parsed.filter, ctx.now());
        let grant = |message: Arc<Message>| {
            let qos = filter.qos.min(message.qos);
            let retain = true;
            (Grant { qos, retain, id }, message)
        };
        Ok(messages.into_iter().map(grant).collect())
    }

    pub(super) fn unsubscribe(&mut self, ctx: &Ctx<'_>, me: SessionRef, filter: &str) -> u8 {
        let Ok(parsed) = Parsed::parse(filter) else {
            return reason::TOPIC_FILTER_INVALID;
        };
        if let Some(session) = self.get(me) {
            session.subscriptions.retain(|(text, _)| **text != *filter);
        }
        let Ok(mut routes) = ctx.shared.routes.write() else {
            return reason::UNSPECIFIED_ERROR;
        };
        if routes.remove(parsed, me) {
            reason::SUCCESS
        } else {
            reason::NO_SUBSCRIPTION_EXISTED
        }
    }
}

pub(super) fn unsubscribe_all(ctx: &Ctx<'_>, session: &Session, me: SessionRef) {
    if session.subscriptions.is_empty() {
        return;
    }
    let Ok(mut routes) = ctx.shared.routes.write() else {
        return;
    };
    for (filter, _) in &session.subscriptions {
        if let Ok(parsed) = Parsed::parse(filter) {
            routes.remove(parsed, me);
        }
    }
}

/// Sends a copy to a session on another thread; true if its queue is full and the copy not to be
/// dropped.
pub(super) fn deliver_elsewhere(
    ctx: &mut Ctx<'_>,
    to: SessionRef,
    gauge: &Gauge,
    grant: Grant,
    message: Arc<Message>,
) -> bool {
    let is_full = gauge.waiting.load(Ordering::SeqCst) >= QUEUE_MAX;
    if grant.may_be_dropped() && is_full {
        ctx.counts().overflowed.more();
        return false;
    }
    gauge.waiting.fetch_add(1, Ordering::SeqCst);
    ctx.mail(to.shard, Mail::Deliver { to, grant, message });
    let is_online = gauge.online.load(Ordering::Relaxed);
    is_online && !grant.may_be_dropped() && gauge.is_congested()
}
