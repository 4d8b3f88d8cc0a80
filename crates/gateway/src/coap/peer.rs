//! One peer of CoAP: an address that was heard.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::Key;
use muster_protocol::coap::{Server, ServerSettings};

use super::guard::Guard;
use crate::alarm::AlarmId;

/// One peer of CoAP: an address that was heard.
#[derive(Debug)]
pub(super) struct Peer {
    /// The socket that it is heard by.
    pub(super) socket: Key,
    pub(super) address: SocketAddr,
    pub(super) coap: Server,
    /// Its session of DTLS, where it has one.
    pub(super) guard: Option<Box<Guard>>,
    /// When it was heard last by that.
    pub(super) last_received: Micros,
    /// What its credentials call it; none without any.
    pub(super) name: Option<Arc<str>>,
    /// Bytes that its session kept for duplicates when that was last looked at.
    pub(super) kept: usize,
    /// When something is due of it.
    pub(super) alarm: Option<(Micros, AlarmId)>,
}

impl Peer {
    /// How long a session of DTLS has to be silent before it is forgotten for another's sake: longer
    /// than duplicates of its requests can come.
    const STALE: Micros = Micros::from_secs(300);

    pub(super) fn new(
        socket: Key,
        address: SocketAddr,
        settings: Arc<ServerSettings>,
        seed: u64,
    ) -> Self {
        let seed = mix(seed, u64::from(address.port()));
        Self {
            socket,
            address,
            coap: Server::new(settings, seed),
            guard: None,
            last_received: Micros::ZERO,
            name: None,
            kept: 0,
            alarm: None,
        }
    }

    /// Whether nothing is lost if it is forgotten. A session of DTLS is lost with it, and so it has to
    /// be silent for long.
    pub(super) fn is_idle(&self, now: Micros) -> bool {
        let is_guarded = self.guard.is_some() && self.last_received + Self::STALE > now;
        !is_guarded && self.coap.is_idle(now)
    }

    /// Whether its records name it.
    pub(super) fn has_connection_id(&self) -> bool {
        let guard = self.guard.as_ref();
        guard.is_some_and(|guard| !guard.dtls.own_id().is_empty())
    }
}
