//! The CoAP of a fleet's links.

use std::sync::Arc;

use muster_protocol::coap::{ClientSettings, Transmission};
use serde::{Deserialize, Serialize};

/// The CoAP of a fleet's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoapSettings {
    /// One value for all sessions.
    pub client: Arc<ClientSettings>,
    /// The use of UDP sockets.
    pub sockets: SocketUse,
    /// True if a link with its own socket is up only once the server has answered a ping.
    pub pings: bool,
}

/// The number of links on a UDP socket, and what distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketUse {
    /// One link's own.
    Own,
    /// Several links that are one endpoint to the peer: message ids and tokens belong to the socket
    /// and distinguish the links.
    SharedEndpoint {
        /// Largest number of links, at least 1, dealt round.
        links: u32,
    },
    /// Several links, each an endpoint by the connection id of its DTLS session (RFC 9146).
    SharedPort {
        /// Largest number of links, at least 1, dealt round.
        links: u32,
    },
}

/// Bytes of the receive buffer that a socket of this number of links requests: two datagrams for each, with the
/// kernel's records of them, up to 4 MiB.
pub fn shared_receive_buffer(links: u32) -> usize {
    const EACH: usize = 2 * 1_280;
    const LEAST: usize = 208 * 1024;
    const MOST: usize = 4 << 20;
    (links as usize * EACH).clamp(LEAST, MOST)
}

impl SocketUse {
    /// The number of sockets of this number of links.
    pub fn sockets(self, links: u32) -> u32 {
        match self {
            Self::Own => links,
            Self::SharedEndpoint { links: each } | Self::SharedPort { links: each } => {
                links.div_ceil(each.max(1))
            }
        }
    }
}

/// Requests that a device may have open, those among them that were acknowledged and wait for their
/// answer: as many as come due in some minutes of a platform's silence. What is due beyond is shed as
/// `generator-limit`.
const EXCHANGES_MAX: u16 = 256;

impl CoapSettings {
    /// Settings of links that may have `nstart` requests open at once (RFC 7252 section 4.7), with a
    /// socket each.
    pub fn new(transmission: Transmission, nstart: u16, obeys_max_age: bool) -> Self {
        let client = ClientSettings {
            transmission,
            nstart,
            exchanges_max: EXCHANGES_MAX.max(nstart.saturating_mul(2)),
            obeys_max_age,
            ..ClientSettings::default()
        };
        Self {
            client: Arc::new(client),
            sockets: SocketUse::Own,
            pings: false,
        }
    }

    /// The same links on shared sockets. Message ids bound the requests that an endpoint may have open.
    #[must_use]
    pub fn sharing(self, sockets: SocketUse) -> Self {
        let mut client = *self.client;
        if let SocketUse::SharedEndpoint { .. } = sockets {
            (client.exchanges_max, client.remembered_max) = (u16::MAX - 1, u16::MAX);
        }
        Self {
            client: Arc::new(client),
            sockets,
            ..self
        }
    }
}
