//! Links that begin and end, and the sessions they take up and leave behind.
//!
//! Enhanced authentication (MQTT 5 section 4.12) has a method for tests, as simple as one with a
//! challenge can be: whatever data come with the CONNECT, the gateway answers with a challenge of
//! sixteen bytes, and the client with these bytes followed by the secret. A further authentication goes
//! the same way.

use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::Key;
use muster_platform::Protocol;
use muster_protocol::mqtt::packet::{Auth, Connect};
use muster_protocol::mqtt::{Accept, Input, Property, Publish, Server, Version, reason};

use super::Broker;
use super::links::Challenge;
use super::session::{Opening, Session, Will};
use super::sessions::unsubscribe_all;
use crate::config::Role;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::{Message, with_properties};
use crate::routes::{Claim, SessionRef};
use crate::shared::{LinkOwner, Shared};
use crate::thread::{Ctx, Pause};
use crate::uplink::{Alarm, Sender, Timer};

/// Keeps challenges apart from other draws of the seed.
const CHALLENGE_STREAM: u64 = 0xa074_0000;

impl Broker {
    pub(super) fn connect(&mut self, ctx: &mut Ctx<'_>, key: Key, connect: &Connect<'_>) {
        let config = &ctx.shared.config;
        let Some(role) = config.role(connect.user, connect.password) else {
            return self.refuse(ctx, key, login_refusal(ctx.shared, connect));
        };
        let is_challenged = match wants_challenge(ctx.shared, role, connect) {
            Ok(is_challenged) => is_challenged,
            Err(code) => return self.refuse(ctx, key, code),
        };
        let is_nameless = connect.client_id.is_empty();
        // MQTT-3.1.3-8 of 3.1.1: without a name there is no session to come back to.
        if is_nameless && connect.version == Version::V311 && !connect.clean_start {
            return self.refuse(ctx, key, reason::CLIENT_ID_NOT_VALID);
        }
        let client_id = if is_nameless {
            unused_name(ctx, key)
        } else {
            connect.client_id.into()
        };
        if role == Role::Device && !ctx.shared.is_registered(&client_id) {
            return self.refuse(ctx, key, reason::NOT_AUTHORIZED);
        }
        if role == Role::Device && ctx.shared.is_used_up(ctx.now()) {
            return self.refuse(ctx, key, reason::CONNECTION_RATE_EXCEEDED);
        }
        let name = (config.dialect.server.link_name)(connect.user, &client_id);
        let owner = match role {
            Role::Device => ctx.shared.link_owner(name.into()),
            Role::Northbound => Some(LinkOwner {
                name: name.into(),
                is_gateway: true,
            }),
        };
        let Some(LinkOwner { name, is_gateway }) = owner else {
            return self.refuse(ctx, key, login_refusal(ctx.shared, connect));
        };
        if let Some(seconds) = (config.dialect.server.lifetime_s)(&name) {
            let at = ctx.now() + Micros::from_secs(u64::from(seconds));
            ctx.set_alarm(at, Alarm::End(Protocol::Mqtt, Timer::Lifetime(key)));
        }
        let opening = Opening {
            client_id,
            is_assigned: is_nameless,
            clean_start: connect.clean_start,
            expiry: connect.session_expiry(),
            is_present: false,
        };
        if let Some(link) = self.links.get(key) {
            link.role = role;
            link.is_gateway = is_gateway;
            link.will = connect
                .will
                .as_ref()
                .map(|will| Box::new(kept_will(will, ctx.now())));
            link.name = config.dialect.knows_links.then(|| name.as_ref().into());
        }
        if is_challenged {
            self.challenge(ctx, key, Some(Box::new(opening)));
        } else {
            self.find_session(ctx, key, opening);
        }
    }

    fn refuse(&mut self, ctx: &mut Ctx<'_>, key: Key, code: u8) {
        ctx.shared.account.refused(code);
        self.links
            .write(key, |server, out| server.refuse(code, out));
        self.end(ctx, key, false);
    }

    /// Asks for an answer; `opening` is what waits for it.
    fn challenge(&mut self, ctx: &mut Ctx<'_>, key: Key, opening: Option<Box<Opening>>) {
        let seed = ctx.shared.config.seed ^ CHALLENGE_STREAM ^ key.index() as u64;
        let at = ctx.now().get();
        let mut bytes = [0; Challenge::BYTES];
        let (first, second) = bytes.split_at_mut(Challenge::BYTES / 2);
        first.copy_from_slice(&mix(seed, at).to_be_bytes());
        second.copy_from_slice(&mix(!seed, at).to_be_bytes());
        if let Some(link) = self.links.get(key) {
            link.challenge = Some(Box::new(Challenge { bytes, opening }));
        }
        let asked = self
            .links
            .write(key, |server, out| server.challenge(&bytes, out));
        if asked.is_some_and(|asked| asked.is_err()) {
            self.end(ctx, key, true);
        }
    }

    /// A step of a client: its answer, or on an open connection the beginning of a further
    /// authentication.
    pub(super) fn authenticate(&mut self, ctx: &mut Ctx<'_>, key: Key, auth: &Auth<'_>) {
        if auth.reason == reason::REAUTHENTICATE {
            return self.challenge(ctx, key, None);
        }
        let challenge = self.links.get(key).and_then(|link| link.challenge.take());
        let Some(challenge) = challenge else {
            return self.expel(ctx, key, reason::PROTOCOL_ERROR);
        };
        let answer = auth.data().unwrap_or_default();
        let secret = answer.strip_prefix(&challenge.bytes);
        let demand = ctx.shared.config.authentication.as_ref();
        let is_right = demand.is_some_and(|demand| secret == Some(demand.secret.as_bytes()));
        match (is_right, challenge.opening) {
            (true, Some(opening)) => {
                ctx.counts().authenticated.more();
                self.find_session(ctx, key, *opening);
            }
            (true, None) => self.confirm(ctx, key),
            (false, Some(_)) => self.refuse(ctx, key, reason::NOT_AUTHORIZED),
            (false, None) => self.expel(ctx, key, reason::NOT_AUTHORIZED),
        }
    }

    fn confirm(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        ctx.counts().authenticated.more();
        let confirmed = self.links.write(key, Server::authenticated);
        if confirmed.is_some_and(|confirmed| confirmed.is_err()) {
            self.end(ctx, key, true);
        }
    }

    /// Ends an open connection and says why (MQTT-4.12.1-2).
    pub(crate) fn expel(&mut self, ctx: &mut Ctx<'_>, key: Key, code: u8) {
        self.links
            .write(key, |server, out| server.disconnect(code, out));
        self.end(ctx, key, true);
    }

    /// Looks where the client's session lives: nowhere, here, or with another thread.
    fn find_session(&mut self, ctx: &mut Ctx<'_>, key: Key, opening: Opening) {
        let known = locked(&ctx.shared.registry)
            .get(&opening.client_id)
            .copied();
        if let Some(old) = known.filter(|old| old.shard == ctx.index()) {
            return self.take_over_here(ctx, key, old, opening);
        }
        let me = self.sessions.create(ctx, &opening);
        let other = locked(&ctx.shared.registry).insert(opening.client_id.clone(), me);
        match other {
            Some(of) if of.shard != ctx.index() => {
                let Some(session) = self.sessions.get(me) else {
                    return;
                };
                session.link = Some(key);
                let claim = Claim {
                    of,
                    by: me,
                    gauge: Arc::clone(&session.gauge),
                    discard: opening.clean_start,
                };
                if let Some(link) = self.links.get(key) {
                    link.opening = Some(Box::new(opening));
                }
                ctx.pause(key, Pause::Claim);
                ctx.mail(of.shard, Mail::Claim(claim));
            }
            Some(_) | None => self.open(ctx, key, me, &opening),
        }
    }

    fn take_over_here(
        &mut self,
        ctx: &mut Ctx<'_>,
        key: Key,
        mut me: SessionRef,
        mut opening: Opening,
    ) {
        if let Some(other) = self.sessions.get(me).and_then(|session| session.link) {
            self.take_over(ctx, other);
        }
        if opening.clean_start {
            self.remove_session(ctx, me);
        }
        opening.is_present = self.sessions.get(me).is_some();
        if !opening.is_present {
            me = self.sessions.create(ctx, &opening);
            locked(&ctx.shared.registry).insert(opening.client_id.clone(), me);
        }
        self.open(ctx, key, me, &opening);
    }

    /// The client came again: its old connection ends (MQTT-3.1.4-3).
    fn take_over(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        ctx.counts().taken_over.more();
        if self.links.session_of(key).is_some() {
            return self.expel(ctx, key, reason::SESSION_TAKEN_OVER);
        }
        self.end(ctx, key, true);
    }

    /// Another thread's client is the one of a session here.
    pub(crate) fn claimed(&mut self, ctx: &mut Ctx<'_>, claim: Claim) {
        let of = claim.of;
        let link = self.sessions.get(of).and_then(|session| session.link);
        if let Some(key) = link {
            let link = self.links.get(key);
            let is_claiming = link.is_some_and(|link| link.opening.is_some());
            if let Some(session) = self.sessions.get(of).filter(|_| is_claiming) {
                session.claim = Some(claim);
                return;
            }
            self.take_over(ctx, key);
        }
        if claim.discard {
            self.remove_session(ctx, of);
        }
        let to = claim.by;
        let session = self.sessions.hand_over(ctx, claim);
        ctx.mail(to.shard, Mail::Granted { to, session });
    }

    /// The answer to a claim: what the session was.
    pub(crate) fn granted(&mut self, ctx: &mut Ctx<'_>, to: SessionRef, old: Option<Box<Session>>) {
        let is_present = old.is_some();
        let Some(session) = self.sessions.get(to) else {
            // The client went away again meanwhile, and what it left with it.
            return old
                .into_iter()
                .for_each(|old| unsubscribe_all(ctx, &old, to));
        };
        if let Some(old) = old {
            session.inherit(*old);
        }
        let claim = session.claim.take();
        let key = session.link;
        let opening = key.and_then(|key| self.links.get(key)?.opening.take());
        if let (Some(key), Some(mut opening)) = (key, opening) {
            opening.is_present = is_present;
            // A link that is paused sends nothing again.
            ctx.resume(key, Pause::Claim);
            self.open(ctx, key, to, &opening);
        }
        if let Some(claim) = claim {
            self.claimed(ctx, claim);
        }
    }

    /// Binds link and session, and answers the CONNECT.
    fn open(&mut self, ctx: &mut Ctx<'_>, key: Key, me: SessionRef, opening: &Opening) {
        let resumed = self.sessions.open(ctx, me, key, opening.expiry);
        let Some((state, has_subscribed)) = resumed else {
            return;
        };
        let Some(link) = self.links.get(key) else {
            return;
        };
        link.session = Some(me);
        link.has_subscribed = has_subscribed;
        if opening.is_present {
            link.server.resume(state);
        }
        let accept = Accept {
            assigned_client_id: opening.is_assigned.then_some(&*opening.client_id),
            ..Accept::default()
        };
        let out = &mut link.wire.out;
        let is_open = link.server.accept(ctx.now(), &accept, out).is_ok();
        ctx.cancel_alarm(link.alarm.take());
        if !is_open {
            // Only a client that takes no packet of a CONNACK's size is not accepted.
            return self.refuse(ctx, key, reason::PACKET_TOO_LARGE);
        }
        ctx.counts().connected.more();
        if let Some(peer) = link.wire.tls().and_then(|tls| tls.peer()) {
            ctx.shared.account.certificate(peer, &opening.client_id);
        }
        if opening.is_present {
            ctx.counts().resumed.more();
        }
        if let Some(deadline) = link.server.deadline() {
            self.links.watch(ctx, key, deadline);
        }
        self.links.mark_dirty(key);
        if opening.is_present {
            // What was in flight goes first, and the queue behind it.
            self.resend_all(ctx, key);
            self.drain(ctx, key);
        }
    }

    fn resend_all(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let mut nothing = Input::new(&[]);
        while !ctx.is_paused(key)
            && let Some(link) = self.links.get(key)
            && let Some(event) = link
                .server
                .poll(ctx.now(), &mut nothing, &mut link.wire.out)
        {
            self.handle(ctx, key, &event);
        }
    }

    /// Ends a link, whoever ended it, and leaves its session behind if it is to stay.
    pub(crate) fn end(&mut self, ctx: &mut Ctx<'_>, key: Key, with_will: bool) {
        let Some(mut link) = self.links.take(key) else {
            return;
        };
        ctx.cancel_alarm(link.alarm.take());
        link.wire.close(ctx.io, key);
        ctx.forget_socket(key);
        ctx.note_gone(Sender::link(key));
        if let Some(batch) = link.batch.take() {
            // Nobody is there to receive them.
            let counted = batch.answers.iter().filter(|answer| answer.is_counted);
            ctx.counts().unanswerable.add(counted.count() as u64);
        }
        if let Some(opening) = link.opening.take() {
            self.forget_opening(ctx, key, &opening);
        }
        let Some(me) = link.session else { return };
        let will = link.will.take().filter(|_| with_will);
        let state = link.server.take_session();
        let will = self.sessions.leave(ctx, me, state, will);
        self.publish_will(ctx, will, me);
        let session = self.sessions.get(me);
        if session.is_some_and(|session| session.expiry == 0) {
            self.remove_session(ctx, me);
        }
    }

    /// A link that waited for its session is gone: the session stays until it is granted.
    fn forget_opening(&mut self, ctx: &Ctx<'_>, key: Key, opening: &Opening) {
        let me = locked(&ctx.shared.registry)
            .get(&opening.client_id)
            .copied();
        let session = me.and_then(|me| self.sessions.get(me));
        if let Some(session) = session.filter(|session| session.link == Some(key)) {
            session.link = None;
        }
    }

    /// A will has waited out its delay.
    pub(crate) fn publish_pending_will(&mut self, ctx: &mut Ctx<'_>, me: SessionRef) {
        let session = self.sessions.get(me);
        let will = session.and_then(|session| session.pending_will.take());
        self.publish_will(ctx, will.map(|(_, message)| *message), me);
    }

    /// Ends a session, and publishes its will if that still waits.
    pub(crate) fn remove_session(&mut self, ctx: &mut Ctx<'_>, me: SessionRef) {
        let will = self.sessions.remove(ctx, me);
        self.publish_will(ctx, will, me);
    }

    fn publish_will(&mut self, ctx: &mut Ctx<'_>, will: Option<Message>, from: SessionRef) {
        if let Some(message) = will {
            ctx.counts().wills.more();
            self.publish_kept(ctx, &Arc::new(message), Some(from));
        }
    }
}

/// The code for credentials that nobody has. Where a token is all that a device gives, MQTT 3.1.1 has
/// another code for one that is unknown, and a link without any is taken for its client id.
fn login_refusal(shared: &Shared, connect: &Connect<'_>) -> u8 {
    if shared.config.dialect.server.hides_logins {
        return reason::BAD_USER_OR_PASSWORD;
    }
    match (
        shared.config.dialect.knows_links,
        connect.user,
        connect.version,
    ) {
        (true, None, _) => reason::CLIENT_ID_NOT_VALID,
        (true, Some(_), Version::V311) => reason::NOT_AUTHORIZED,
        (true, Some(_), Version::V5) | (false, _, _) => reason::BAD_USER_OR_PASSWORD,
    }
}

/// Returns whether a link has to answer a challenge first, or the code if it is refused.
fn wants_challenge(shared: &Shared, role: Role, connect: &Connect<'_>) -> Result<bool, u8> {
    let demand = shared.config.authentication.as_ref();
    let demand = demand.filter(|_| role == Role::Device);
    match (demand, connect.authentication_method()) {
        (None, None) => Ok(false),
        (Some(demand), Some(method)) if demand.method == method => Ok(true),
        (Some(_), None) => Err(reason::NOT_AUTHORIZED),
        (Some(_) | None, Some(_)) => Err(reason::BAD_AUTHENTICATION_METHOD),
    }
}

/// A name that no session has (MQTT-3.2.2-16).
fn unused_name(ctx: &Ctx<'_>, key: Key) -> Box<str> {
    let mut number = ctx.counts().read().connected;
    let registry = locked(&ctx.shared.registry);
    loop {
        let name = format!("auto-{}-{}-{number}", ctx.index(), key.index());
        if !registry.contains_key(name.as_str()) {
            return name.into();
        }
        number += 1;
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
