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
    /// So many in a row; the last socket may carry fewer.
    Shared {
        /// At least 1.
        links: u32,
    },
}

impl CoapPlan {
    /// The usual sizes with what the plan says; one value serves all sockets of a fleet.
    #[must_use]
    pub fn settings(&self) -> ClientSettings {
        let usual = ClientSettings::default();
        ClientSettings {
            transmission: self.transmission,
            nstart: self.nstart,
            exchanges_max: usual.exchanges_max.max(self.nstart.saturating_mul(2)),
            obeys_max_age: self.obeys_max_age,
            ..usual
        }
    }
}
