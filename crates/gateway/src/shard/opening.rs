//! Links that begin and end, and the sessions they take up and leave behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_model::Micros;
use muster_net::{Io, Key};
use muster_protocol::layer::Layer;
use muster_protocol::mqtt::packet::Connect;
use muster_protocol::mqtt::topic::Subscription as Parsed;
use muster_protocol::mqtt::{Accept, Input, Property, Publish, SessionState, Version, reason};

use super::Shard;
use super::alarms::Alarm;
use super::link::{Link, Pause};
use super::session::{Session, Will};
use crate::config::Role;
use crate::message::{Message, with_properties};
use crate::routes::SessionRef;
use crate::shared::{Claim, Mail, locked};

/// What a CONNECT asked for.
#[derive(Debug)]
pub(crate) struct Opening {
    client_id: Box<str>,
    is_assigned: bool,
    clean_start: bool,
    expiry: u32,
    /// Whether a session was found.
    is_present: bool,
}

/// Sessions that moved away and are remembered for mail still under way.
const MOVED_KEPT: usize = 1_024;
/// A session that never expires (section 3.1.2.11.2).
const FOR_EVER: u32 = u32::MAX;

impl Shard {
    pub(super) fn connect(&mut self, io: &mut Io, key: Key, connect: &Connect<'_>) {
        let Some(role) = self.shared.config.role(connect.user, connect.password) else {
            return self.refuse(io, key, self.login_refusal(connect));
        };
        let is_challenged = match self.wants_challenge(role, connect) {
            Ok(is_challenged) => is_challenged,
            Err(code) => return self.refuse(io, key, code),
        };
        let is_nameless = connect.client_id.is_empty();
        // MQTT-3.1.3-8 of 3.1.1: without a name there is no session to come back to.
        if is_nameless && connect.version == Version::V311 && !connect.clean_start {
            return self.refuse(io, key, reason::CLIENT_ID_NOT_VALID);
        }
        let client_id = if is_nameless {
            self.unused_name(key)
        } else {
            connect.client_id.into()
        };
        if role == Role::Device && !self.is_known(&client_id) {
            return self.refuse(io, key, reason::NOT_AUTHORIZED);
        }
        let opening = Opening {
            client_id,
            is_assigned: is_nameless,
            clean_start: connect.clean_start,
            expiry: connect.session_expiry(),
            is_present: false,
        };
        let will = connect
            .will
            .as_ref()
            .map(|will| Box::new(kept_will(will, io.now())));
        let knows_links = self.shared.config.dialect.knows_links;
        let dialect = self.shared.config.dialect;
        let name = knows_links
            .then(|| (dialect.server.link_name)(connect.user, &opening.client_id).into());
        if let Some(link) = self.link(key) {
            link.role = role;
            link.will = will;
            link.name = name;
        }
        if is_challenged {
            self.challenge(io, key, Some(Box::new(opening)));
        } else {
            self.find_session(io, key, opening);
        }
    }

    /// A name that no session has (MQTT-3.2.2-16).
    fn unused_name(&self, key: Key) -> Box<str> {
        let mut number = self.counts().read().connected;
        let registry = locked(&self.shared.registry);
        loop {
            let name = format!("auto-{}-{}-{number}", self.index, key.index());
            if !registry.contains_key(name.as_str()) {
                return name.into();
            }
            number += 1;
        }
    }

    pub(super) fn refuse(&mut self, io: &mut Io, key: Key, code: u8) {
        self.shared.refuse(code);
        if let Some(link) = self.link(key) {
            link.server.refuse(code, &mut link.out);
            self.end(io, key, false);
        }
    }

    /// Looks where the client's session lives: nowhere, here, or with another thread.
    pub(super) fn find_session(&mut self, io: &mut Io, key: Key, opening: Opening) {
        let known = locked(&self.shared.registry)
            .get(&opening.client_id)
            .copied();
        if let Some(old) = known.filter(|old| old.shard == self.index) {
            return self.take_over_here(io, key, old, opening);
        }
        let me = self.new_session(&opening);
        let other = locked(&self.shared.registry).insert(opening.client_id.clone(), me);
        match other {
            Some(of) if of.shard != self.index => self.claim(io, key, opening, [me, of]),
            Some(_) | None => self.open(io, key, me, &opening),
        }
    }

    fn new_session(&mut self, opening: &Opening) -> SessionRef {
        let shard = self.index;
        let key = self.sessions.insert_with_key(|key| {
            let me = SessionRef { shard, key };
            Session::new(me, &opening.client_id, opening.expiry)
        });
        SessionRef { shard, key }
    }

    fn take_over_here(&mut self, io: &mut Io, key: Key, old: SessionRef, opening: Opening) {
        if let Some(other) = self.session(old).and_then(|session| session.link) {
            self.take_over(io, other);
        }
        if opening.clean_start {
            self.remove_session(io, old);
        }
        if self.session(old).is_some() {
            return self.open(
                io,
                key,
                old,
                &Opening {
                    is_present: true,
                    ..opening
                },
            );
        }
        let me = self.new_session(&opening);
        locked(&self.shared.registry).insert(opening.client_id.clone(), me);
        self.open(io, key, me, &opening);
    }

    /// The client came again: its old connection ends (MQTT-3.1.4-3).
    fn take_over(&mut self, io: &mut Io, key: Key) {
        self.counts().taken_over.more();
        if let Some(link) = self.link(key) {
            if link.session.is_some() {
                link.server
                    .disconnect(reason::SESSION_TAKEN_OVER, &mut link.out);
            }
            self.end(io, key, true);
        }
    }

    fn claim(&mut self, io: &mut Io, key: Key, opening: Opening, [me, of]: [SessionRef; 2]) {
        let discard = opening.clean_start;
        let Some(session) = self.session(me) else {
            return;
        };
        session.link = Some(key);
        let gauge = Arc::clone(&session.gauge);
        if let Some(link) = self.link(key) {
            link.opening = Some(Box::new(opening));
        }
        self.pause(io, key, Pause::Claim);
        let claim = Claim {
            of,
            by: me,
            gauge,
            discard,
        };
        self.outboxes[usize::from(of.shard)].push(Mail::Claim(claim));
    }

    /// Another thread's client is the one of a session here.
    pub(super) fn claimed(&mut self, io: &mut Io, claim: Claim) {
        let of = claim.of;
        let link = self.session(of).and_then(|session| session.link);
        if let Some(key) = link {
            let is_claiming = self.link(key).is_some_and(|link| link.opening.is_some());
            if let Some(session) = self.session(of).filter(|_| is_claiming) {
                session.claim = Some(claim);
                return;
            }
            self.take_over(io, key);
        }
        if claim.discard {
            self.remove_session(io, of);
        }
        let to = claim.by;
        let session = self.hand_over(io, claim);
        self.outboxes[usize::from(to.shard)].push(Mail::Granted { to, session });
    }

    /// Takes a session out and points its subscriptions to where it goes, without a gap.
    fn hand_over(&mut self, io: &mut Io, claim: Claim) -> Option<Box<Session>> {
        let Claim { of, by, gauge, .. } = claim;
        let mut session = self.sessions.remove(of.key)?;
        self.cancel_alarm(io, session.expiring.take());
        let will = session
            .pending_will
            .take()
            .map(|(timer, token, _)| (timer, token));
        self.cancel_alarm(io, will);
        if let Ok(mut routes) = self.shared.routes.write() {
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

    pub(super) fn granted(&mut self, io: &mut Io, to: SessionRef, old: Option<Box<Session>>) {
        let is_present = old.is_some();
        let Some(session) = self.session(to) else {
            // The client went away again meanwhile, and what it left with it.
            return old
                .into_iter()
                .for_each(|old| self.unsubscribe_all(&old, to));
        };
        if let Some(old) = old {
            session.inherit(*old);
        }
        let claim = session.claim.take();
        let key = session.link;
        let opening = key.and_then(|key| self.link(key)?.opening.take());
        if let (Some(key), Some(opening)) = (key, opening) {
            self.open(
                io,
                key,
                to,
                &Opening {
                    is_present,
                    ..*opening
                },
            );
            self.resume(io, key, Pause::Claim);
        }
        if let Some(claim) = claim {
            self.claimed(io, claim);
        }
    }

    /// Binds link and session, and answers the CONNECT.
    fn open(&mut self, io: &mut Io, key: Key, me: SessionRef, opening: &Opening) {
        let Some(session) = self.session(me) else {
            return;
        };
        session.link = Some(key);
        session.expiry = opening.expiry;
        session.gauge.online.store(true, Ordering::Relaxed);
        let state = std::mem::take(&mut session.state);
        let has_subscribed = !session.subscriptions.is_empty();
        let alarms = [
            session.expiring.take(),
            session
                .pending_will
                .take()
                .map(|(timer, token, _)| (timer, token)),
        ];
        alarms
            .into_iter()
            .for_each(|alarm| self.cancel_alarm(io, alarm));
        let now = io.now();
        let Some(link) = self.link(key) else { return };
        link.session = Some(me);
        link.has_subscribed = has_subscribed;
        if opening.is_present {
            link.server.resume(state);
        }
        let accept = Accept {
            assigned_client_id: opening.is_assigned.then_some(&*opening.client_id),
            ..Accept::default()
        };
        let is_open = link.server.accept(now, &accept, &mut link.out).is_ok();
        if !is_open {
            // Only a client that takes no packet of a CONNACK's size is not accepted.
            link.server.refuse(reason::PACKET_TOO_LARGE, &mut link.out);
        }
        let deadline = link.server.deadline();
        let alarm = link.alarm.take();
        self.cancel_alarm(io, alarm);
        if !is_open {
            self.shared.refuse(reason::PACKET_TOO_LARGE);
            return self.end(io, key, false);
        }
        self.counts().connected.more();
        self.note_subject(key, &opening.client_id);
        if opening.is_present {
            self.counts().resumed.more();
        }
        if let Some(deadline) = deadline {
            self.watch(io, key, deadline);
        }
        self.mark_dirty(key);
        if opening.is_present {
            // What was in flight goes first, and the queue behind it.
            self.pump(io, key, &mut Input::new(&[]));
            self.drain(io, key);
        }
    }

    pub(super) fn goodbye(&mut self, key: Key, session_expiry: Option<u32>) {
        let Some(me) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        if let (Some(session), Some(expiry)) = (self.session(me), session_expiry) {
            session.expiry = expiry;
        }
    }

    /// Ends a link, whoever ended it, and leaves its session behind if it is to stay.
    pub(super) fn end(&mut self, io: &mut Io, key: Key, with_will: bool) {
        if self.link(key).is_none() {
            return;
        }
        let Some(mut link) = self.links[key.index()].take() else {
            return;
        };
        self.cancel_alarm(io, link.alarm.take());
        if !link.is_held {
            link.wrap();
            link.pipe.layer.close(&mut link.out);
        }
        if !link.is_held && !link.out.is_empty() {
            // A last word; who does not hear it sees the connection end all the same.
            let _ = io.write(key, &link.out);
        }
        io.finish(key);
        self.deliver_overtaken(io, std::mem::take(&mut link.overtaken));
        self.drop_batch(link.batch.take());
        if link.opening.is_some() {
            self.forget_opening(&link);
        }
        if let Some(me) = link.session {
            let will = link.will.take().filter(|_| with_will);
            self.leave(io, me, link.server.take_session(), will);
        }
    }

    /// A link that waited for its session is gone: the session stays until it is granted.
    fn forget_opening(&mut self, link: &Link) {
        let waits = |session: &&mut Session| session.link == Some(link.key);
        let id = link
            .opening
            .as_ref()
            .map(|opening| opening.client_id.clone());
        let me = id.and_then(|id| locked(&self.shared.registry).get(&id).copied());
        if let Some(session) = me.and_then(|me| self.session(me)).filter(waits) {
            session.link = None;
        }
    }

    fn leave(&mut self, io: &mut Io, me: SessionRef, state: SessionState, will: Option<Box<Will>>) {
        let Some(session) = self.session(me) else {
            return;
        };
        session.link = None;
        session.state = state;
        session.gauge.online.store(false, Ordering::Relaxed);
        let expiry = session.expiry;
        if session.gauge.congested.swap(false, Ordering::SeqCst) {
            // Nobody waits for an absent reader.
            self.tell_room(io);
        }
        if let Some(will) = will {
            let delay = will.delay.min(expiry);
            if delay == 0 {
                self.publish_will(io, will.message, me);
            } else {
                let at = io.now() + Micros::from_secs(u64::from(delay));
                let (timer, token) = self.set_alarm(io, at, Alarm::Will(me));
                if let Some(session) = self.session(me) {
                    session.pending_will = Some((timer, token, Box::new(will.message)));
                }
            }
        }
        match expiry {
            0 => self.remove_session(io, me),
            FOR_EVER => {}
            seconds => {
                let at = io.now() + Micros::from_secs(u64::from(seconds));
                let alarm = self.set_alarm(io, at, Alarm::Expire(me));
                if let Some(session) = self.session(me) {
                    session.expiring = Some(alarm);
                }
            }
        }
    }

    pub(super) fn publish_pending_will(&mut self, io: &mut Io, me: SessionRef) {
        let will = self
            .session(me)
            .and_then(|session| session.pending_will.take());
        if let Some((_, _, message)) = will {
            self.publish_will(io, *message, me);
        }
    }

    fn publish_will(&mut self, io: &mut Io, message: Message, from: SessionRef) {
        self.counts().wills.more();
        self.publish_kept(io, &Arc::new(message), Some(from));
    }

    /// Ends a session: its subscriptions, its queue, and its will if that still waits
    /// (MQTT-3.1.3-9).
    pub(super) fn remove_session(&mut self, io: &mut Io, me: SessionRef) {
        let Some(mut session) = self.sessions.remove(me.key) else {
            return;
        };
        self.cancel_alarm(io, session.expiring.take());
        self.unsubscribe_all(&session, me);
        let mut registry = locked(&self.shared.registry);
        if registry.get(&session.client_id) == Some(&me) {
            registry.remove(&session.client_id);
        }
        drop(registry);
        self.counts().discarded.add(session.queue.len() as u64);
        if let Some((timer, token, message)) = session.pending_will.take() {
            self.cancel_alarm(io, Some((timer, token)));
            self.publish_will(io, *message, me);
        }
    }

    fn unsubscribe_all(&mut self, session: &Session, me: SessionRef) {
        if session.subscriptions.is_empty() {
            return;
        }
        let Ok(mut routes) = self.shared.routes.write() else {
            return;
        };
        for (filter, _) in &session.subscriptions {
            if let Ok(parsed) = Parsed::parse(filter) {
                routes.remove(parsed, me);
            }
        }
    }
}

fn kept_will(will: &muster_protocol::mqtt::Will<'_>, now: Micros) -> Will {
    let plain = Publish {
        qos: will.qos,
        retain: will.retain,
        ..Publish::new(will.topic, will.payload)
    };
    let mut user = Vec::new();
    let publish = with_properties(plain, will.properties, &mut user);
    let delay = will.properties.find(|property| {
        if let Property::WillDelay(seconds) = property {
            Some(seconds)
        } else {
            None
        }
    });
    Will {
        message: Message::new(&publish, now),
        delay: delay.unwrap_or(0),
    }
}
