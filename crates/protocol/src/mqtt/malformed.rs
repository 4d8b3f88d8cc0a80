//! Protocol errors in a connection's bytes.

use thiserror::Error;

use super::reason;

/// A fault of the peer that ends the connection (section 4.13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Malformed {
    /// The remaining length has more than four bytes (section 1.5.5).
    #[error("the remaining length has more than four bytes")]
    Length,
    /// A variable byte integer is not in its shortest form (MQTT-1.5.5-1).
    #[error("a variable byte integer is longer than its value needs")]
    Integer,
    /// The packet is larger than the receiver announced (MQTT-3.1.2-24, MQTT-3.2.2-15).
    #[error("a packet of {size} bytes, where at most {maximum} were announced")]
    TooLarge {
        /// Bytes of the whole packet.
        size: u64,
        /// The maximum packet size that the receiver announced.
        maximum: u32,
    },
    /// The packet is larger than this side receives, which was not announced: no fault of the
    /// sender.
    #[error("a packet of {size} bytes, and this side receives at most {maximum}, unannounced")]
    BeyondOwnLimit {
        /// Bytes of the whole packet.
        size: u64,
        /// The limit of this side.
        maximum: u32,
    },
    /// A packet type that does not exist, or not in this version (section 2.1.2).
    #[error("packet type {0} does not exist here")]
    PacketType(u8),
    /// Reserved flags, of the fixed header, of CONNECT or of a subscription (MQTT-2.1.3-1,
    /// MQTT-3.1.2-3, MQTT-3.8.3-5).
    #[error("reserved flags are set")]
    Flags,
    /// The packet ends inside a field.
    #[error("the packet ends inside a field")]
    Truncated,
    /// The packet goes on after its last field.
    #[error("bytes follow the packet's last field")]
    Trailing,
    /// Text that is not UTF-8 or holds U+0000 (MQTT-1.5.4-1, MQTT-1.5.4-2).
    #[error("a text is not UTF-8 or holds a null character")]
    Text,
    /// Both QoS bits are set (MQTT-3.3.1-4).
    #[error("quality of service 3 does not exist")]
    Qos,
    /// A packet id of zero (MQTT-2.2.1-3).
    #[error("a packet id is zero")]
    PacketId,
    /// A protocol name or level other than MQTT 3.1.1 and 5 (section 3.1.2.2).
    #[error("the protocol's name or level is neither MQTT 3.1.1 nor MQTT 5")]
    ProtocolVersion,
    /// A property that does not exist or does not belong in this packet (section 2.2.2.2).
    #[error("property {0} does not belong in this packet")]
    PropertyPlace(u8),
    /// A property given twice (section 2.2.2.2).
    #[error("property {0} is given twice")]
    PropertyTwice(u8),
    /// A property with a value the standard forbids.
    #[error("property {0} has a forbidden value")]
    PropertyValue(u8),
    /// A topic name that is empty or holds a wildcard (MQTT-3.3.2-2, section 4.7).
    #[error("a topic name is empty or holds a wildcard")]
    TopicName,
    /// A topic alias of zero, above the maximum, or never given a topic (section 3.3.2.3.4).
    #[error("topic alias {0} is unknown or above the maximum")]
    TopicAlias(u16),
    /// A subscription without filters, or with options that do not exist (section 3.8.3).
    #[error("a subscription has no filter or options that do not exist")]
    Subscription,
    /// More unanswered publishes than the receive maximum (section 3.3.4).
    #[error("more unanswered publishes than the receive maximum")]
    ReceiveMaximum,
    /// A publish with a packet id that another exchange uses (section 2.2.1).
    #[error("packet id {0} is in use")]
    PacketIdInUse(u16),
    /// A publish at a QoS above the maximum that was announced (MQTT-3.2.2-11).
    #[error("a publish at a quality of service that is not served")]
    QosNotServed,
    /// A retained publish where retaining was announced not to be served (MQTT-3.2.2-14).
    #[error("a retained publish where nothing is retained")]
    RetainNotServed,
    /// A packet that this side or this state does not expect (section 4.13.1).
    #[error("packet type {0} is not expected now")]
    Unexpected(u8),
    /// A step of authentication that does not belong here (section 4.12).
    #[error("the authentication step {0:#04x} does not belong here")]
    Authentication(u8),
    /// An answer to a packet id that waits for another kind of answer.
    #[error("an answer of the wrong kind for packet id {0}")]
    WrongAnswer(u16),
    /// The connection is refused yet says that a session is present (MQTT-3.2.2-6), or a session
    /// is present although a clean start was asked for (MQTT-3.2.2-2).
    #[error("a session is present that cannot be")]
    SessionPresent,
}

impl Malformed {
    /// The same fault on a connection where no maximum packet size was announced.
    pub(super) const fn unless_announced(self, is_announced: bool) -> Self {
        if let (Self::TooLarge { size, maximum }, false) = (self, is_announced) {
            Self::BeyondOwnLimit { size, maximum }
        } else {
            self
        }
    }

    /// Returns true if a limit of this side alone ends the connection.
    pub const fn is_own_limit(self) -> bool {
        matches!(self, Self::BeyondOwnLimit { .. })
    }

    /// The code of the DISCONNECT or CONNACK that answers it (section 2.4).
    pub const fn code(self) -> u8 {
        match self {
            Self::Length
            | Self::Integer
            | Self::PacketType(_)
            | Self::Flags
            | Self::Truncated
            | Self::Trailing
            | Self::Text
            | Self::Qos => reason::MALFORMED_PACKET,
            // 0x91, packet id in use, is a code of answers, none of DISCONNECT (MQTT-3.14.2-1).
            Self::PacketId
            | Self::PacketIdInUse(_)
            | Self::PropertyPlace(_)
            | Self::PropertyTwice(_)
            | Self::PropertyValue(_)
            | Self::Subscription
            | Self::Unexpected(_)
            | Self::Authentication(_)
            | Self::WrongAnswer(_)
            | Self::SessionPresent => reason::PROTOCOL_ERROR,
            Self::TooLarge { .. } | Self::BeyondOwnLimit { .. } => reason::PACKET_TOO_LARGE,
            Self::ProtocolVersion => reason::UNSUPPORTED_PROTOCOL_VERSION,
            Self::TopicName => reason::TOPIC_NAME_INVALID,
            Self::TopicAlias(_) => reason::TOPIC_ALIAS_INVALID,
            Self::ReceiveMaximum => reason::RECEIVE_MAXIMUM_EXCEEDED,
            Self::QosNotServed => reason::QOS_NOT_SUPPORTED,
            Self::RetainNotServed => reason::RETAIN_NOT_SUPPORTED,
        }
    }
}
