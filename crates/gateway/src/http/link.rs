//! One connection, and the request on it that waits for its answer.

use std::sync::Arc;

use muster_net::Key;
use muster_protocol::http::Server;
use muster_transport::{Any, TlsServer};

use crate::connections::Connection;
use crate::uplink::AlarmId;
use crate::wire::Wire;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) server: Server,
    pub(super) wire: Wire,
    /// True once its layer was found open.
    pub(super) has_opened: bool,
    /// The device in the certificate that its client showed.
    pub(super) certified: Option<Arc<str>>,
    /// The field `Authorization` that was admitted last, and the name in it.
    pub(super) login: Option<(Box<[u8]>, Arc<str>)>,
    /// The request that is to be answered; no other is read before.
    pub(super) open: Option<Open>,
    /// Alarm for the rest of a handshake or a request.
    pub(super) alarm: Option<AlarmId>,
}

/// Facts about a request that its answer depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// True if the connection ends behind the answer.
    pub(super) is_last: bool,
    /// True if the answer has no body.
    pub(super) is_head: bool,
}

impl Link {
    pub(super) fn new(key: Key, body_max: u32, layer: Any<TlsServer>) -> Self {
        Self {
            key,
            server: Server::new(body_max),
            wire: Wire::new(layer),
            has_opened: false,
            certified: None,
            login: None,
            open: None,
            alarm: None,
        }
    }

    /// True if a handshake or a request has begun and is not complete; `left` bytes of it are still unread.
    pub(super) fn is_begun(&self, left: usize) -> bool {
        !self.wire.is_open() || left > 0 || self.server.is_inside()
    }
}

impl Connection for Link {
    fn key(&self) -> Key {
        self.key
    }

    fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
}
