//! The connections of one thread.

use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::{Io, Key, Written};
use muster_platform::{Dialect, Protocol};
use muster_protocol::layer::{Fed, Layer, Pipe};
use muster_protocol::mqtt::{Publish, Refused, Server, ServerLimits, Token, Version, reason};
use muster_transport::{Any, TlsServer};

use super::session::{Opening, Will};
use crate::config::Role;
use crate::mqtt::request::PublishRef;
use crate::routes::SessionRef;
use crate::thread::{Ctx, Pause};
use crate::uplink::{Alarm, AlarmId, Timer};

/// Most bytes gathered for one write: more would only wait in the kernel.
const OUT_MAX: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Links {
    /// By the index of the connection's key.
    all: Vec<Option<Box<Link>>>,
    /// Links with something to write at the end of the turn.
    dirty: Vec<Key>,
    /// Links for whose bytes there was no memory.
    exhausted: Vec<Key>,
}

impl Links {
    pub(crate) fn add(&mut self, ctx: &mut Ctx<'_>, link: Link) {
        let key = link.key;
        if self.all.len() <= key.index() {
            self.all.resize_with(key.index() + 1, || None);
        }
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
    pub(crate) fn send(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(link) = self.get(key) else { return };
        if !link.wire.write(ctx.io, key) {
            self.exhausted.push(key);
        }
    }

    pub(crate) fn mark_dirty(&mut self, key: Key) {
        self.write(key, |_, _| ());
    }

    /// Has the session of a link write, to be sent at the end of the turn; none if the link is gone.
    pub(super) fn write<T>(
        &mut self,
        key: Key,
        act: impl FnOnce(&mut Server, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let link = self.get(key)?;
        let written = act(&mut link.server, &mut link.wire.out);
        if !std::mem::replace(&mut link.wire.is_dirty, true) {
            self.dirty.push(key);
        }
        Some(written)
    }

    /// Writes what has been gathered for all links; gives those that have to end.
    pub(crate) fn flush(&mut self, ctx: &mut Ctx<'_>) -> Vec<Key> {
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
        self.dirty.is_empty() && self.exhausted.is_empty()
    }

    /// Looks after a link at an instant, and from then on when its keep-alive wants it.
    pub(super) fn watch(&mut self, ctx: &mut Ctx<'_>, key: Key, at: Micros) {
        let alarm = ctx.set_alarm(at, Alarm::End(Protocol::Mqtt, Timer::Link(key)));
        let before = self.get(key).and_then(|link| link.alarm.replace(alarm));
        ctx.cancel_alarm(before);
    }

    /// Stops reading a client that does not read our answers.
    pub(crate) fn throttle(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(link) = self.get(key) else { return };
        let is_much = link.wire.is_held && link.wire.out.len() >= OUT_MAX;
        ctx.set_pause(key, Pause::Output, is_much);
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

/// The bytes between the socket of a link and its session.
#[derive(Debug)]
pub(crate) struct Wire {
    pipe: Pipe<Any<TlsServer>>,
    /// Gathered for the next write.
    pub(crate) out: Vec<u8>,
    /// Number of bytes at the start of `out` that are as they go over the wire.
    wrapped: usize,
    /// The layer has come to its end: the link ends when all before that has been read.
    pub(crate) has_ended: bool,
    /// The kernel has not taken the last write whole.
    pub(crate) is_held: bool,
    pub(crate) is_dirty: bool,
}

impl Wire {
    /// Larger buffers are given back after a burst.
    const OUT_KEPT: usize = 256 * 1024;

    fn new(layer: Any<TlsServer>) -> Self {
        let (mut pipe, mut out) = (Pipe::new(layer), Vec::new());
        pipe.layer.open(&mut out);
        Self {
            pipe,
            out,
            wrapped: 0,
            has_ended: false,
            is_held: false,
            is_dirty: false,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pipe.layer.is_open()
    }

    pub(crate) fn tls(&self) -> Option<&TlsServer> {
        self.pipe.layer.tls()
    }

    /// Takes bytes through the layer.
    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> Fed {
        self.wrap();
        let fed = self.pipe.receive(bytes, &mut self.out);
        self.wrapped = self.out.len();
        self.has_ended |= fed.end.is_some();
        fed
    }

    /// Leaves what the session did not take: how many bytes are used up.
    pub(crate) fn keep(&mut self, bytes: &mut [u8], fed: &Fed, taken: usize) -> usize {
        self.pipe.keep(bytes, fed, taken)
    }

    /// Turns what was gathered into what goes over the wire.
    fn wrap(&mut self) {
        self.pipe.layer.wrap(&mut self.out, self.wrapped);
        self.wrapped = self.out.len();
    }

    /// Writes what has been gathered, if the kernel takes it; false if the link cannot go on.
    pub(super) fn write(&mut self, io: &mut Io, key: Key) -> bool {
        if self.is_held || self.out.is_empty() {
            return true;
        }
        self.wrap();
        let written = io.write(key, &self.out);
        match written {
            Written::Busy | Written::Exhausted => {}
            // Of one that is lost, `closed` follows. The last is only of datagrams.
            Written::Whole | Written::Held | Written::Lost | Written::Refused => self.clear(),
        }
        self.is_held |= written == Written::Held;
        written != Written::Exhausted
    }

    /// Writes the last bytes; a client that does not get them sees the connection end all the same.
    pub(super) fn close(&mut self, io: &mut Io, key: Key) {
        if !self.is_held {
            self.wrap();
            self.pipe.layer.close(&mut self.out);
            if !self.out.is_empty() {
                let _ = io.write(key, &self.out);
            }
        }
        io.finish(key);
    }

    fn clear(&mut self) {
        self.out.clear();
        self.wrapped = 0;
        if self.out.capacity() > Self::OUT_KEPT {
            self.out = Vec::new();
        }
    }
}
