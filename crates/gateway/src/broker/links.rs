//! The connections of one thread.

use muster_model::{Micros, mix};
use muster_net::Key;
use muster_platform::Dialect;
use muster_protocol::mqtt::{Publish, Refused, ServerLimits, Token, reason};
use muster_transport::Servers;

use super::link::Link;
use crate::alarm::Alarm;
use crate::config::GatewayConfig;
use crate::routes::SessionRef;
use crate::thread::{Context, Pause};
use crate::uplink::PublishRef;

/// Most bytes gathered for one write: more would only wait in the kernel.
const OUT_MAX: usize = 64 * 1024;

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Links {
    limits: ServerLimits,
    layers: Servers,
    /// By the index of the connection's key.
    all: Vec<Option<Box<Link>>>,
    /// Links with something to write at the end of the turn.
    dirty: Vec<Key>,
    /// Links for whose bytes there was no memory.
    exhausted: Vec<Key>,
}

impl Links {
    pub(crate) fn new(config: &GatewayConfig, layers: Servers) -> Self {
        Self {
            limits: ServerLimits {
                receive_maximum: config.receive_maximum.max(1),
                maximum_packet_size: config.max_packet(),
                ..ServerLimits::default()
            },
            layers,
            all: Vec::new(),
            dirty: Vec::new(),
            exhausted: Vec::new(),
        }
    }

    pub(crate) fn accept(&mut self, ctx: &mut Context<'_>, key: Key) {
        if self.all.len() <= key.index() {
            self.all.resize_with(key.index() + 1, || None);
        }
        let link = Link::new(key, &self.limits, self.layers.layer());
        self.all[key.index()] = Some(Box::new(link));
        self.watch(ctx, key, ctx.now() + Link::CONNECT_TIMEOUT);
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Link> {
        let link = self.all.get_mut(key.index())?.as_deref_mut()?;
        (link.key == key).then_some(link)
    }

    pub(super) fn take(&mut self, key: Key) -> Option<Box<Link>> {
        self.get(key)?;
        self.all[key.index()].take()
    }

    pub(crate) fn session_of(&mut self, key: Key) -> Option<SessionRef> {
        self.get(key)?.session
    }

    /// Writes what has been gathered for a link, if the kernel takes it.
    pub(crate) fn send(&mut self, ctx: &mut Context<'_>, key: Key) {
        let Some(link) = self.get(key) else { return };
        if !link.wire.write(ctx.io, key) {
            self.exhausted.push(key);
        }
    }

    pub(crate) fn mark_dirty(&mut self, key: Key) {
        if let Some(link) = self.get(key)
            && !link.wire.is_dirty
        {
            link.wire.is_dirty = true;
            self.dirty.push(key);
        }
    }

    /// Writes what has been gathered for all links; gives those that have to end.
    pub(crate) fn flush(&mut self, ctx: &mut Context<'_>) -> Vec<Key> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            if let Some(link) = self.get(key) {
                link.wire.is_dirty = false;
                self.send(ctx, key);
            }
        }
        self.dirty = dirty;
        std::mem::take(&mut self.exhausted)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Looks after a link at an instant, and from then on when its keep-alive wants it.
    pub(super) fn watch(&mut self, ctx: &mut Context<'_>, key: Key, at: Micros) {
        let alarm = ctx.set_alarm(at, Alarm::Link(key));
        let before = self.get(key).and_then(|link| link.alarm.replace(alarm));
        ctx.cancel_alarm(before);
    }

    /// Stops reading a client that does not read our answers.
    pub(crate) fn throttle(&mut self, ctx: &mut Context<'_>, key: Key) {
        let Some(link) = self.get(key) else { return };
        let is_much = link.wire.is_held && link.wire.out.len() >= OUT_MAX;
        ctx.set_pause(key, Pause::Output, is_much);
    }

    /// Answers an uplink, if it waits for that.
    pub(crate) fn ack(&mut self, ctx: &Context<'_>, publish: PublishRef, reason: u8) {
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
        ctx: &mut Context<'_>,
        key: Key,
        token: Token,
        copy: &Publish<'_>,
    ) -> Copied {
        let Some(link) = self.get(key) else {
            return Copied::MustWait;
        };
        let copied = Copied::from(link.server.deliver(token, copy, &mut link.wire.out));
        if copied == Copied::Written {
            let is_much = link.wire.out.len() >= OUT_MAX;
            ctx.counts().delivered.more();
            if is_much {
                self.send(ctx, key);
            } else {
                self.mark_dirty(key);
            }
        }
        copied
    }

    /// A part of the device links, chosen by the seed.
    pub(super) fn choose(&self, dialect: Dialect, seed: u64, share: f64) -> Vec<Key> {
        let subscribe = !dialect.publishing().subscriptions.is_empty();
        let links = self.all.iter().flatten();
        let mut devices: Vec<Key> = links
            .filter(|link| link.is_device(subscribe))
            .map(|link| link.key)
            .collect();
        devices.sort_by_key(|key| mix(seed, key.index() as u64));
        devices.truncate((devices.len() as f64 * share).round() as usize);
        devices
    }
}

/// What came of writing a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    Written,
    /// The client cannot take it now.
    MustWait,
    /// The client can never take it.
    Impossible,
}

impl From<Result<(), Refused>> for Copied {
    fn from(result: Result<(), Refused>) -> Self {
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
