//! Publishes that a caller hands to a session, and reasons for a refusal.

use thiserror::Error;

use super::packet::{self, Unwritable};
use super::property::present;
use super::{Properties, Property, Qos, Version};

/// Topic alias slots a session keeps track of; a bit each, so that a client stays small.
pub const ALIAS_SLOTS: u16 = 64;

/// A message to be published.
///
/// The topic must be a name without wildcards ([`super::topic::is_name`]); a session does not
/// look again at what the plan has checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// The caller's small number of a repeated topic, below [`ALIAS_SLOTS`]. It must stand for the
    /// same topic as long as the session lives. Where the other side takes topic aliases the
    /// session then sends the topic only once a connection.
    pub alias_slot: Option<u16>,
    /// Its payload.
    pub payload: &'a [u8],
    /// Quality of service of its delivery.
    pub qos: Qos,
    /// True if the server keeps it, or kept it.
    pub retain: bool,
    /// True if the payload is declared to be UTF-8; MQTT 5 only, as all below.
    pub is_text: bool,
    /// Seconds until it is void.
    pub message_expiry: Option<u32>,
    /// Type of the payload.
    pub content_type: Option<&'a str>,
    /// Topic of an answer.
    pub response_topic: Option<&'a str>,
    /// Request of an answer.
    pub correlation: Option<&'a [u8]>,
    /// The subscription that matched; from server to client only.
    pub subscription_id: Option<u32>,
    /// Names and values.
    pub user_properties: &'a [(&'a str, &'a str)],
}

impl<'a> Publish<'a> {
    /// A message at QoS 0 without properties.
    pub const fn new(topic: &'a str, payload: &'a [u8]) -> Self {
        Self {
            topic,
            alias_slot: None,
            payload,
            qos: Qos::AtMostOnce,
            retain: false,
            is_text: false,
            message_expiry: None,
            content_type: None,
            response_topic: None,
            correlation: None,
            subscription_id: None,
            user_properties: &[],
        }
    }

    /// Returns true if it brings no property but user properties and perhaps a topic alias.
    #[inline]
    const fn is_plain(&self) -> bool {
        !self.is_text
            && self.message_expiry.is_none()
            && self.content_type.is_none()
            && self.response_topic.is_none()
            && self.correlation.is_none()
            && self.subscription_id.is_none()
    }

    /// Calls `write` with the packet, whose properties live on the stack meanwhile.
    #[inline]
    pub(super) fn packet<T>(
        &self,
        version: Version,
        head: Head,
        write: impl FnOnce(&packet::Publish<'_>) -> T,
    ) -> T {
        let topic = if head.topic_is_known { "" } else { self.topic };
        let whole = |properties| packet::Publish {
            dup: head.dup,
            qos: self.qos,
            retain: self.retain,
            topic,
            packet_id: head.packet_id,
            properties,
            payload: self.payload,
        };
        if version == Version::V311 {
            return write(&whole(Properties::NONE));
        }
        if self.is_plain() {
            let alias = head.alias.map(Property::TopicAlias);
            let properties = Properties::with_user(alias.as_slice(), self.user_properties);
            return write(&whole(properties));
        }
        let (fixed, count) = present([
            head.alias.map(Property::TopicAlias),
            self.is_text.then_some(Property::PayloadFormat(true)),
            self.message_expiry.map(Property::MessageExpiry),
            self.content_type.map(Property::ContentType),
            self.response_topic.map(Property::ResponseTopic),
            self.correlation.map(Property::CorrelationData),
            self.subscription_id.map(Property::SubscriptionId),
        ]);
        write(&whole(Properties::with_user(
            &fixed[..count],
            self.user_properties,
        )))
    }
}

/// A session's additions to a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    pub(super) dup: bool,
    pub(super) packet_id: Option<u16>,
    pub(super) alias: Option<u16>,
    pub(super) topic_is_known: bool,
}

/// Reason that a session sent nothing; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Refused {
    /// The connection is not open for this.
    #[error("not connected")]
    NotConnected,
    /// The other side's receive maximum is reached, or publishes of a resumed session still wait
    /// to be sent again.
    #[error("the receive maximum is reached")]
    Window,
    /// All 65,535 packet ids wait for an answer.
    #[error("all packet ids are in use")]
    PacketIds,
    /// The packet is larger than the other side, or the standard, allows.
    #[error("a packet of {size} bytes where the peer takes at most {maximum}")]
    TooLarge {
        /// Bytes of the whole packet.
        size: u64,
        /// Bytes the other side takes.
        maximum: u32,
    },
    /// A text or datum longer than its two-byte length can say.
    #[error("a text or datum is longer than 65,535 bytes")]
    TextTooLong,
    /// The server does not retain.
    #[error("the server does not retain")]
    RetainUnavailable,
    /// The server does not serve this QoS.
    #[error("the server does not serve this quality of service")]
    QosUnavailable,
    /// No authentication is under way, or the CONNECT named no method for one.
    #[error("no authentication was begun with the CONNECT")]
    Authentication,
    /// No publish with this token waits for an answer.
    #[error("no publish with this token is in flight")]
    Unknown,
}

impl From<Unwritable> for Refused {
    fn from(unwritable: Unwritable) -> Self {
        match unwritable {
            Unwritable::TextTooLong => Self::TextTooLong,
            Unwritable::TooLarge(size) => Self::TooLarge {
                size: size as u64,
                maximum: super::wire::VARINT_MAXIMUM as u32,
            },
        }
    }
}
