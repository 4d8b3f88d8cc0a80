//! One connection of a client.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Key, TimerId};
use muster_protocol::layer::Pipe;
use muster_protocol::mqtt::{Server, ServerLimits, Version};
use muster_transport::{Any, TlsServer};

use super::acknowledging::Batch;
use super::authenticating::Challenge;
use super::opening::Opening;
use super::session::Will;
use super::uplink::Uplink;
use crate::config::Role;
use crate::routes::SessionRef;

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) key: Key,
    pub(crate) server: Server,
    /// What stands between the socket and the session.
    pub(crate) pipe: Pipe<Any<TlsServer>>,
    /// Gathered for the next write.
    pub(crate) out: Vec<u8>,
    /// How many bytes of it, from the first, are as they go over the wire.
    pub(crate) wrapped: usize,
    /// The layer has come to its end: the link ends when all before that has been read.
    pub(crate) has_ended: bool,
    /// The kernel has not taken the last write whole.
    pub(crate) is_held: bool,
    pub(crate) is_dirty: bool,
    /// Why it is not read, as bits of [`Pause`].
    pub(crate) pauses: u8,
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
    pub(crate) alarm: Option<(TimerId, u64)>,
    /// Uplinks that the next one of their topic is to overtake.
    pub(crate) overtaken: Vec<Uplink>,
    /// Acknowledgements that wait for others.
    pub(crate) batch: Option<Box<Batch>>,
}

/// Why a link is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Pause {
    /// A subscriber's queue is full.
    Room = 1,
    /// The one server's queue is full.
    Capacity = 1 << 1,
    /// Another thread is asked for the session.
    Claim = 1 << 2,
    /// The client does not read our answers.
    Output = 1 << 3,
}

impl Link {
    /// How long a connection may stay silent before its CONNECT.
    pub(crate) const CONNECT_TIMEOUT: Micros = Micros::from_secs(10);
    /// Larger buffers are given back after a burst.
    const OUT_KEPT: usize = 256 * 1024;

    pub(crate) fn new(key: Key, limits: &ServerLimits, layer: Any<TlsServer>) -> Self {
        Self {
            key,
            server: Server::new(limits),
            pipe: Pipe::new(layer),
            out: Vec::new(),
            wrapped: 0,
            has_ended: false,
            is_held: false,
            is_dirty: false,
            pauses: 0,
            role: Role::Device,
            name: None,
            has_published: false,
            has_subscribed: false,
            session: None,
            opening: None,
            challenge: None,
            will: None,
            alarm: None,
            overtaken: Vec::new(),
            batch: None,
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pauses != 0
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

    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.wrapped = 0;
        if self.out.capacity() > Self::OUT_KEPT {
            self.out = Vec::new();
        }
    }
}
