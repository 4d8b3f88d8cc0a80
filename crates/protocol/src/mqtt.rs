//! MQTT 3.1.1 (OASIS, 29 October 2014) and MQTT 5.0 (OASIS, 7 March 2019), both ends.
//!
//! [`packet`] is the codec: all fifteen packets, decoded without copying. [`Client`] and
//! [`Server`] are the two ends of a session. [`topic`] holds the rules for names and filters.
//! Sections are those of MQTT 5 unless 3.1.1 is named.

mod answer;
mod authentication;
mod client;
mod inbound;
mod inflight;
mod input;
mod malformed;
mod outbound;
pub mod packet;
mod property;
mod publish;
pub mod reason;
mod server;
mod session;
pub mod topic;
mod wire;

use serde::{Deserialize, Serialize};

pub use client::{
    Client, ClientCounts, ClientEvent, ClientLimits, Connect, Connected, Message, Stage, Subscribe,
};
pub use input::Input;
pub use malformed::Malformed;
pub use packet::{Filter, RetainHandling, Will};
pub use property::{Properties, Property};
pub use publish::{ALIAS_SLOTS, Publish, Refused};
pub use server::{Accept, Incoming, Pending, Server, ServerCounts, ServerEvent, ServerLimits};
pub use session::SessionState;
pub use topic::Topic;

/// Version of the standard on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}

/// Bytes of the largest packet of MQTT, with its fixed header (section 2.1.4).
pub const MAXIMUM_PACKET_SIZE: u32 = 5 + 268_435_455;

/// The promise a publish is sent with (section 4.3).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum Qos {
    /// QoS 0: sent once, never answered.
    #[default]
    AtMostOnce,
    /// QoS 1: PUBACK.
    AtLeastOnce,
    /// QoS 2: PUBREC, PUBREL, PUBCOMP.
    ExactlyOnce,
}

impl Qos {
    /// The level of a number from 0 to 2.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// The number on the wire.
    pub const fn bits(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }
}

/// The caller's name for a publish with an answer; unique among those of a session that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u32);
