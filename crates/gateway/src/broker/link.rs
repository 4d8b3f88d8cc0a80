//! One connection of a client.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, Key, Written};
use muster_protocol::layer::{Fed, Layer, Pipe};
use muster_protocol::mqtt::{Server, ServerLimits, Version};
use muster_transport::{Any, TlsServer};

use super::session::{Opening, Will};
use crate::alarm::AlarmId;
use crate::config::Role;
use crate::routes::SessionRef;
use crate::uplink::PublishRef;

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) key: Key,
    pub(crate) server: Server,
    pub(crate) wire: Wire,
    pub(crate) role: Role,
    /// What it logged in as, where the dialect knows devices by that.
    pub(crate) name: Option<Arc<str>>,
    /// Whether it has published: then it is a device, whatever it subscribes to.
    pub(crate) has_published: bool,
    pub(crate) has_subscribed: bool,
    /// None until CONNECT was answered.
    pub(crate) session: Option<SessionRef>,
    /// What CONNECT asked for, while another thread is asked for the session.
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
    /// What the CONNECT asked for; none on an open connection.
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
    /// Whether it is the answer to an uplink, and not a second or a wrong one.
    pub(crate) is_counted: bool,
}

/// Acknowledgements of one device that are written together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) device: Arc<str>,
    pub(crate) answers: Vec<Acknowledgement>,
}

impl Link {
    /// How long a connection may stay silent before its CONNECT.
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

    /// Whether it is a device's as far as can be told: not logged in as a consumer, and not one
    /// that only ever subscribed, unless the dialect's devices do so at first.
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
    /// How many bytes of it, from the first, are as they go over the wire.
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

    /// Writes a last word; who does not hear it sees the connection end all the same.
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
