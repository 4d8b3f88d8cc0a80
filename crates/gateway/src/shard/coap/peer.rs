//! One peer of CoAP: an address that was heard.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::{Key, TimerId};
use muster_protocol::coap::{Server, ServerSettings};

use crate::shard::uplink::Uplink;

/// One peer of CoAP: an address that was heard.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The socket that it is heard by.
    pub(super) socket: Key,
    pub(super) address: SocketAddr,
    pub(super) coap: Server,
    /// What its credentials call it; none without any.
    pub(super) name: Option<Arc<str>>,
    /// When something is due of it.
    pub(super) alarm: Option<(Micros, (TimerId, u64))>,
    /// Uplinks that the next one of their topic is to overtake.
    pub(in crate::shard) overtaken: Vec<Uplink>,
}

impl Peer {
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
            name: None,
            alarm: None,
            overtaken: Vec::new(),
        }
    }

    /// Whether nothing is lost if it is forgotten.
    pub(super) fn is_idle(&self, now: Micros) -> bool {
        self.overtaken.is_empty() && self.coap.is_idle(now)
    }
}
