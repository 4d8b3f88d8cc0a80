//! Northbound over AMQP 1.0.

use serde::{Deserialize, Serialize};

/// Addresses of a peer that speaks AMQP 1.0, and how its consumers receive from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmqpNorthbound {
    /// The addresses, one receiver each; never empty.
    pub addresses: Vec<AmqpAddress>,
    /// Deliveries of one address that the peer may send before the consumer has accepted earlier ones. 0 attaches
    /// without receiving, as a check does.
    pub credit: u32,
    /// The mechanism of SASL that logs in.
    pub login: AmqpLogin,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmqpAddress {
    /// Its name at the peer.
    pub name: String,
    /// Prefix that turns the device of a delivery into a topic of the dialect. Empty where the dialect says
    /// nothing of AMQP: then the topic is the delivery's own address.
    pub surface: String,
}

/// A mechanism of SASL (AMQP 1.0 section 5.3) that logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AmqpLogin {
    /// Nobody in particular (RFC 4505).
    #[default]
    Anonymous,
    /// User name and password as they are (RFC 4616).
    Plain,
    /// The certificate that was shown in the TLS handshake (RFC 4422 appendix A).
    External,
}

impl AmqpLogin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anonymous, Self::Plain, Self::External];

    /// Its name at IANA.
    pub const fn mechanism(self) -> &'static str {
        match self {
            Self::Anonymous => "ANONYMOUS",
            Self::Plain => "PLAIN",
            Self::External => "EXTERNAL",
        }
    }
}
