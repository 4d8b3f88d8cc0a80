//! What the gateway does later.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_model::behaviour::{CloseLinks, Stall};
use muster_model::{Micros, mix};
use muster_net::{Io, Key, TimerId};
use muster_protocol::mqtt::ServerEvent;
use slotmap::{Key as _, KeyData};

use super::acknowledging::Asked;
use super::answering::Asker;
use super::coap::{PeerRef, QueryRef};
use super::link::Pause;
use super::uplink::Uplink;
use super::{SessionRef, Shard};
use crate::message::Message;

/// Keeps the choice of links to close apart from other draws of the seed.
const CLOSE_STREAM: u64 = 0xc105_e000;

/// What the gateway does later.
#[derive(Debug)]
pub(crate) enum Alarm {
    /// A link's CONNECT or next packet is due.
    Link(Key),
    /// Something is due of a peer of CoAP.
    Peer(PeerRef),
    /// A query has waited long enough for its acknowledgement, or for a command.
    Query(QueryRef),
    /// An uplink has been served.
    Settle(Box<Uplink>),
    /// A late answer: yes.
    Answer { asker: Asker, copies: usize },
    /// A late acknowledgement by the application.
    Acknowledge { key: Key, asked: Asked, code: u16 },
    /// The acknowledgements of a link have waited for others long enough.
    Batch(Key),
    /// A late delivery.
    Deliver {
        from: Option<SessionRef>,
        message: Arc<Message>,
    },
    /// A command has to be handed on.
    Command {
        from: SessionRef,
        message: Arc<Message>,
    },
    /// The one server's queue has a place for the link's uplink.
    Unblock(Key),
    /// A will has waited out its delay.
    Will(SessionRef),
    /// An absent client's session ends.
    Expire(SessionRef),
    /// Look whether uplinks that wait to be overtaken wait in vain.
    Overtaken,
    /// Stand still.
    Stall(Stall),
    /// Close part of the device links.
    CloseLinks(CloseLinks),
}

impl Shard {
    pub(super) fn set_alarm(&mut self, io: &mut Io, at: Micros, alarm: Alarm) -> (TimerId, u64) {
        let token = self.alarms.insert(alarm).data().as_ffi();
        (io.set_timer(at, token), token)
    }

    pub(super) fn cancel_alarm(&mut self, io: &mut Io, alarm: Option<(TimerId, u64)>) {
        if let Some((timer, token)) = alarm {
            io.cancel_timer(timer);
            self.alarms.remove(KeyData::from_ffi(token).into());
        }
    }

    pub(super) fn ring(&mut self, io: &mut Io, token: u64) {
        let Some(alarm) = self.alarms.remove(KeyData::from_ffi(token).into()) else {
            return;
        };
        match alarm {
            Alarm::Link(key) => self.check(io, key),
            Alarm::Peer(peer) => self.wake_peer(io, peer),
            Alarm::Query(query) => self.query_due(io, query),
            Alarm::Settle(uplink) => self.settle(io, *uplink),
            Alarm::Answer { asker, copies } => self.say_yes(io, asker, copies),
            Alarm::Acknowledge { key, asked, code } => self.acknowledge(io, key, asked, code),
            Alarm::Batch(key) => self.write_batch(io, key),
            Alarm::Deliver { from, message } => {
                self.publish_kept(io, &message, from);
            }
            Alarm::Command { from, message } => {
                self.route(io, &message, from);
            }
            Alarm::Unblock(key) => self.resume(io, key, Pause::Capacity),
            Alarm::Will(session) => self.publish_pending_will(io, session),
            Alarm::Expire(session) => self.remove_session(io, session),
            Alarm::Overtaken => self.release_overtaken(io),
            Alarm::Stall(stall) => self.stall(io, stall),
            Alarm::CloseLinks(close) => self.close_links(io, close),
        }
    }

    /// Looks after a link at an instant, and from then on when its keep-alive wants it.
    pub(super) fn watch(&mut self, io: &mut Io, key: Key, at: Micros) {
        let alarm = self.set_alarm(io, at, Alarm::Link(key));
        let before = self.link(key).and_then(|link| link.alarm.replace(alarm));
        self.cancel_alarm(io, before);
    }

    fn check(&mut self, io: &mut Io, key: Key) {
        let now = io.now();
        let Some(link) = self.link(key) else { return };
        link.alarm = None;
        if link.session.is_none() {
            return self.end(io, key, false);
        }
        // What waits in a connection that is not read counts as a sign of life.
        if link.is_paused() {
            return self.watch(io, key, now + super::Link::CONNECT_TIMEOUT);
        }
        let event: Option<ServerEvent<'_>> = link.server.timer(now, &mut link.out);
        if let Some(event) = event {
            return self.handle(io, key, event);
        }
        if let Some(deadline) = self.link(key).and_then(|link| link.server.deadline()) {
            self.watch(io, key, deadline);
        }
    }

    /// The first uplink of all came: what is timed from it begins to run.
    pub(super) fn plan_alarms(&mut self, io: &mut Io, first: Micros) {
        let behaviour = self.shared.config.behaviour;
        if let Some(stall) = behaviour.stall {
            self.set_alarm(io, first + stall.at, Alarm::Stall(stall));
        }
        if let Some(close) = behaviour.close_links {
            self.set_alarm(io, first + close.at, Alarm::CloseLinks(close));
        }
    }

    /// Stands still: the thread sleeps, as all others do, so that nothing is read or said. It
    /// looks up now and then so that the gateway can be stopped meanwhile.
    fn stall(&mut self, io: &mut Io, stall: Stall) {
        const LOOK_UP: Duration = Duration::from_millis(20);
        if self.index == 0 {
            self.counts().stalled.more();
        }
        let until = io.now() + stall.lasts;
        let left = || until - io.clock().now();
        while left() > Micros::ZERO {
            if self.shared.stopping.load(Ordering::Acquire) {
                return;
            }
            std::thread::sleep(Duration::from_micros(left().get()).min(LOOK_UP));
        }
        io.fresh_now();
    }

    fn close_links(&mut self, io: &mut Io, close: CloseLinks) {
        let seed = self.shared.config.seed ^ CLOSE_STREAM;
        let subscribe = !self
            .shared
            .config
            .dialect
            .publishing()
            .subscriptions
            .is_empty();
        let links = self.links.iter().flatten();
        let mut devices: Vec<Key> = links
            .filter(|link| link.is_device(subscribe))
            .map(|link| link.key)
            .collect();
        devices.sort_by_key(|key| mix(seed, key.index() as u64));
        let share = close.share.clamp(0.0, 1.0);
        let count = (devices.len() as f64 * share).round() as usize;
        for key in devices.into_iter().take(count) {
            self.counts().closed_links.more();
            self.end(io, key, true);
        }
        self.close_sessions(io, seed, share);
    }

    /// The same with sessions of DTLS; CoAP alone knows no links.
    fn close_sessions(&mut self, io: &mut Io, seed: u64, share: f64) {
        let mut sessions = self.sessions_of_peers();
        sessions.sort_by_key(|peer| mix(seed, peer.number()));
        let count = (sessions.len() as f64 * share).round() as usize;
        for peer in sessions.into_iter().take(count) {
            self.counts().closed_links.more();
            self.close_session(io, peer);
        }
    }
}
