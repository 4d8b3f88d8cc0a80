//! The connections of one thread over MQTT.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use muster_model::Micros;
use muster_net::Key;
use muster_platform::{Dialect, Protocol};
use muster_protocol::mqtt::{Publish, Refused, Server, ServerLimits, Token, Version, reason};
use muster_transport::{Any, TlsServer};

use super::session::{Opening, Will};
use crate::config::Role;
use crate::connections::{Connection, Connections, OUT_MAX};
use crate::end::choose;
use crate::mqtt::request::PublishRef;
use crate::routes::SessionRef;
use crate::thread::Ctx;
use crate::uplink::{Alarm, AlarmId, Timer};
use crate::wire::Wire;

/// The connections over MQTT.
#[derive(Debug, Default)]
pub(crate) struct Links(Connections<Link>);

impl Deref for Links {
    type Target = Connections<Link>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Links {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Links {
    pub(crate) fn add(&mut self, ctx: &mut Ctx<'_>, link: Link) {
        let key = link.key;
        self.insert(link);
        self.watch(ctx, key, ctx.now() + Link::CONNECT_TIMEOUT);
    }

    pub(crate) fn session_of(&mut self, key: Key) -> Option<SessionRef> {
        self.get(key)?.session
    }

    /// Has the session of a link write, to be sent at the end of the turn; none if the link is gone.
    pub(super) fn write<T>(
        &mut self,
        key: Key,
        act: impl FnOnce(&mut Server, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let link = self.get(key)?;
        let written = act(&mut link.server, &mut link.wire.out);
        self.mark_dirty(key);
        Some(written)
    }

    /// Looks after a link at an instant, and from then on when its keep-alive wants it.
    pub(super) fn watch(&mut self, ctx: &mut Ctx<'_>, key: Key, at: Micros) {
        let alarm = ctx.set_alarm(at, Alarm::End(Protocol::Mqtt, Timer::Link(key)));
        let before = self.get(key).and_then(|link| link.alarm.replace(alarm));
        ctx.cancel_alarm(before);
    }

    /// Answers an uplink, if it waits for that.
    pub(crate) fn ack(&mut self, ctx: &Ctx<'_>, publish: PublishRef, reason: u8) {
        if publish.pending.is_none() {
            return;
        }
        let Some(link) = self.get(publish.key) else {
            return ctx.counts().unanswerable.more();
        };
        link.ack(publish, reason);
        if reason == reason::NO_MATCHING_SUBSCRIBERS && link.is_v5() {
            ctx.counts().no_subscriber.more();
        }
        ctx.counts().accepted.more();
        self.mark_dirty(publish.key);
    }

    /// Answers a PUBLISH that is no uplink, or a second time; whether it waits for that.
    pub(crate) fn ack_uncounted(&mut self, publish: PublishRef, reason: u8) -> bool {
        let link = self.get(publish.key);
        let is_answered = link.is_some_and(|link| link.ack(publish, reason));
        if is_answered {
            self.mark_dirty(publish.key);
        }
        is_answered
    }

    /// Writes a copy to a client under a name of its session's.
    pub(super) fn deliver(
        &mut self,
        ctx: &mut Ctx<'_>,
        key: Key,
        token: Token,
        copy: &Publish<'_>,
    ) -> Result<(), Refused> {
        let Some(link) = self.get(key) else {
            return Err(Refused::NotConnected);
        };
        link.server.deliver(token, copy, &mut link.wire.out)?;
        ctx.counts().delivered.more();
        if link.wire.out.len() >= OUT_MAX {
            self.send(ctx, key);
        } else {
            self.mark_dirty(key);
        }
        Ok(())
    }

    /// A part of the device links, chosen by the seed.
    pub(super) fn choose(&self, dialect: Dialect, seed: u64, share: f64) -> Vec<Key> {
        let subscribe = !dialect.publishing().subscriptions.is_empty();
        let devices = self.iter().filter(|link| link.is_device(subscribe));
        let devices = devices.map(|link| link.key).collect();
        choose(devices, seed, share, |key| key.index() as u64)
    }
}

/// Returns whether a client that refuses a copy may take it later.
pub(super) fn must_wait(refused: Refused) -> bool {
    matches!(
        refused,
        Refused::Window | Refused::PacketIds | Refused::NotConnected
    )
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) key: Key,
    pub(crate) server: Server,
    pub(crate) wire: Wire,
    pub(crate) role: Role,
    /// The name it logged in with, if the dialect knows devices by that.
    pub(crate) name: Option<Arc<str>>,
    /// True if it may speak for other devices.
    pub(crate) is_gateway: bool,
    /// True if it has published: then it is a device, whatever it subscribes to.
    pub(crate) has_published: bool,
    pub(crate) has_subscribed: bool,
    /// None until CONNECT was answered.
    pub(crate) session: Option<SessionRef>,
    /// The fields of CONNECT, while another thread is asked for the session.
    pub(crate) opening: Option<Box<Opening>>,
    /// An authentication under way.
    pub(crate) challenge: Option<Box<Challenge>>,
    pub(crate) will: Option<Box<Will>>,
    pub(crate) alarm: Option<AlarmId>,
    /// Acknowledgements that wait for others.
    pub(crate) batch: Option<Box<Batch>>,
}

/// A challenge that waits for its answer.
#[derive(Debug)]
pub(crate) struct Challenge {
    pub(crate) bytes: [u8; Challenge::BYTES],
    /// The fields of the CONNECT; none on an open connection.
    pub(crate) opening: Option<Box<Opening>>,
}

impl Challenge {
    pub(crate) const BYTES: usize = 16;
}

/// One acknowledgement by the application that is to be written.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
    pub(crate) id: Option<Arc<[u8]>>,
    pub(crate) code: u16,
    /// True if it is the answer to an uplink, and not a second or a wrong one.
    pub(crate) is_counted: bool,
}

/// Acknowledgements of one device that are written together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) device: Arc<str>,
    pub(crate) answers: Vec<Acknowledgement>,
}

impl Connection for Link {
    fn key(&self) -> Key {
        self.key
    }

    fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
}

impl Link {
    /// Longest silence of a connection before its CONNECT.
    pub(crate) const CONNECT_TIMEOUT: Micros = Micros::from_secs(10);

    pub(crate) fn new(key: Key, limits: &ServerLimits, layer: Any<TlsServer>) -> Self {
        Self {
            key,
            server: Server::new(limits),
            wire: Wire::new(layer),
            role: Role::Device,
            name: None,
            is_gateway: false,
            has_published: false,
            has_subscribed: false,
            session: None,
            opening: None,
            challenge: None,
            will: None,
            alarm: None,
            batch: None,
        }
    }

    pub(crate) fn is_v5(&self) -> bool {
        self.server.version() == Version::V5
    }

    /// True if it seems to be a device's: not logged in as a consumer, and not one that only ever
    /// subscribed, unless the dialect's devices do so at first.
    pub(crate) fn is_device(&self, devices_subscribe: bool) -> bool {
        let only_listens = self.has_subscribed && !self.has_published && !devices_subscribe;
        self.session.is_some() && self.role == Role::Device && !only_listens
    }

    /// Acknowledges a PUBLISH; whether it waits for that.
    pub(crate) fn ack(&mut self, publish: PublishRef, reason: u8) -> bool {
        if let Some(pending) = publish.pending {
            self.server.ack(pending, reason, &mut self.wire.out);
        }
        publish.pending.is_some()
    }
}
