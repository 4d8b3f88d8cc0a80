//! One connection, and the request on it that waits for its answer.

use std::fmt;
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
    /// The credentials that were admitted last.
    pub(super) login: Option<Login>,
    /// The request that is to be answered; no other is read before.
    pub(super) open: Option<Open>,
    /// Alarm for the rest of a handshake or a request.
    pub(super) alarm: Option<AlarmId>,
}

/// A field `Authorization` that was admitted.
pub(super) struct Login {
    /// The value of the field.
    pub(super) shown: Box<[u8]>,
    /// The name in it.
    pub(super) name: Arc<str>,
}

/// Hides the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_shown_without_its_password() {
        let login = Login {
            shown: b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".as_slice().into(),
            name: "Aladdin".into(),
        };
        assert_eq!(format!("{login:?}"), "Login { name: \"Aladdin\", .. }");
    }
}
