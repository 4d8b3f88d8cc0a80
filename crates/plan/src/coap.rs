//! How CoAP's devices are opened and what they keep to.

use muster_protocol::coap::{ClientSettings, Transmission};
use serde::{Deserialize, Serialize};

/// How devices speak CoAP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoapPlan {
    /// The times of the message layer (RFC 7252 section 4.8).
    pub transmission: Transmission,
    /// `NSTART`: requests that a device may have open at once (RFC 7252 section 4.7).
    pub nstart: u16,
    /// Whether Max-Age of a 5.03 keeps a device silent (RFC 7252 section 5.9.3.4).
    pub obeys_max_age: bool,
    /// Which of the fleet's links share a socket.
    pub sockets: Sockets,
}

/// Which links of a fleet share a UDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sockets {
    /// None: each link has its own.
    PerDevice,
    /// So many links at the most share one, dealt round, and are one endpoint to the server: message
    /// ids and tokens are the socket's.
    OneEndpoint {
        /// At least 1.
        links: u32,
    },
    /// So many links at the most share one, dealt round, each an endpoint of its own by the
    /// connection id of its DTLS session (RFC 9146).
    ByConnectionId {
        /// At least 1.
        links: u32,
    },
}

/// Bytes of the receive buffer that a socket of so many links asks for: two datagrams for each, with the
/// kernel's records of them, up to 4 MiB.
pub fn shared_receive_buffer(links: u32) -> usize {
    const EACH: usize = 2 * 1_280;
    const LEAST: usize = 208 * 1024;
    const MOST: usize = 4 << 20;
    (links as usize * EACH).clamp(LEAST, MOST)
}

impl Sockets {
    /// How many sockets so many links need.
    pub fn of(self, links: u32) -> u32 {
        match self {
            Self::PerDevice => links,
            Self::OneEndpoint { links: each } | Self::ByConnectionId { links: each } => {
                links.div_ceil(each.max(1))
            }
        }
    }
}

/// Requests that a device may have open, those among them that were acknowledged and wait for their
/// answer: as many as come due in some minutes of a platform's silence. What is due beyond is shed as
/// `generator-limit`.
const EXCHANGES_MAX: u16 = 256;

impl CoapPlan {
    /// The usual sizes with what the plan says; one value serves all sockets of a fleet.
    pub fn settings(&self) -> ClientSettings {
        let usual = ClientSettings::default();
        let own = EXCHANGES_MAX.max(self.nstart.saturating_mul(2));
        // Message ids bound what is open on a socket at once.
        let (exchanges_max, remembered_max) = match self.sockets {
            Sockets::PerDevice | Sockets::ByConnectionId { .. } => (own, usual.remembered_max),
            Sockets::OneEndpoint { .. } => (u16::MAX - 1, u16::MAX),
        };
        ClientSettings {
            transmission: self.transmission,
            nstart: self.nstart,
            exchanges_max,
            remembered_max,
            obeys_max_age: self.obeys_max_age,
            ..usual
        }
    }
}
