//! The server end of each dialect, for the reference gateway and the model platform.

use super::Dialect;
use crate::server::{Heard, Reply};
use crate::{hono, sap_edge, thingsboard};

impl Dialect {
    /// Whether the platform itself is a broker, so that a backend finds there what devices publish.
    #[must_use]
    pub const fn is_broker(self) -> bool {
        match self {
            Self::Mqtt => true,
            Self::SapEdge | Self::Thingsboard | Self::Hono => false,
        }
    }

    /// Whether a device is known by what its link logged in as, and not by its topics.
    #[must_use]
    pub const fn knows_links(self) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge => false,
            Self::Thingsboard | Self::Hono => true,
        }
    }

    /// How long the server end takes for a message where a scenario does not say.
    #[must_use]
    pub const fn service_time(self) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => None,
            Self::SapEdge => Some(sap_edge::SERVICE_TIME),
        }
    }

    /// The highest quality of service that the platform takes.
    #[must_use]
    pub const fn qos_maximum(self) -> u8 {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => 2,
            Self::Thingsboard => thingsboard::QOS_MAXIMUM,
        }
    }

    /// Reads what a device published, at the server end. `link` is what its link logged in as.
    #[must_use]
    pub fn hear<'a>(self, link: &'a str, topic: &'a str, payload: &'a [u8]) -> Heard<'a> {
        match self {
            Self::Mqtt | Self::Hono => Heard::Other,
            Self::SapEdge => sap_edge::hear(topic, payload),
            Self::Thingsboard => thingsboard::hear(link, topic, payload),
        }
    }

    /// The topic on which the server end acknowledges a device's message of that id.
    pub fn write_acknowledgement_topic(self, device: &str, id: Option<&[u8]>, out: &mut String) {
        match self {
            Self::Mqtt | Self::Hono => {}
            Self::SapEdge => sap_edge::write_acknowledgement_topic(device, out),
            Self::Thingsboard => thingsboard::write_acknowledgement_topic(id, out),
        }
    }

    /// One message of the server end that acknowledges several of a device's messages, where the
    /// dialect [batches](Self::batches), else the first.
    pub fn write_acknowledgement<'a>(
        self,
        mut replies: impl Iterator<Item = Reply<'a>>,
        out: &mut Vec<u8>,
    ) {
        match (self, replies.next()) {
            (Self::Mqtt | Self::Hono, _) | (_, None) => {}
            (Self::SapEdge, first) => {
                sap_edge::write_acknowledgement(first.into_iter().chain(replies), out);
            }
            (Self::Thingsboard, Some(reply)) => thingsboard::write_acknowledgement(&reply, out),
        }
    }

    /// The id that no message has, for an answer in place of that to the message of an id.
    #[must_use]
    pub fn nobodys(self, id: Option<&[u8]>) -> Vec<u8> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => b"\"nobody\"".to_vec(),
            Self::Thingsboard => thingsboard::nobodys(id),
        }
    }

    /// The code of the server end's yes.
    #[must_use]
    pub const fn acceptance(self) -> u16 {
        match self {
            Self::Mqtt | Self::Thingsboard => 0,
            Self::Hono => hono::ACCEPTED,
            Self::SapEdge => sap_edge::ACCEPTED,
        }
    }

    /// The code of the server end's no, where the scenario names none.
    #[must_use]
    pub const fn refusal(self) -> u16 {
        match self {
            Self::Mqtt | Self::Thingsboard => muster_model::behaviour::Reject::DEFAULT_CODE,
            Self::SapEdge => sap_edge::OVERLOADED,
            Self::Hono => hono::UNAVAILABLE,
        }
    }

    /// Whether a code can be the server end's no.
    #[must_use]
    pub const fn is_refusal(self, code: u16) -> bool {
        match self {
            Self::Mqtt | Self::Thingsboard => code >= 0x80 && code <= 0xff,
            Self::SapEdge => !sap_edge::accepts(code),
            Self::Hono => hono::is_refusal(code),
        }
    }

    /// Appends the topic, or the filter, as the server end routes it; false if it means the same on
    /// every link, and nothing is appended.
    pub fn route(self, link: &str, topic: &str, out: &mut String) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard if thingsboard::is_scoped(topic) => {
                thingsboard::scoped(link, topic, out);
                true
            }
            Self::Thingsboard => false,
        }
    }

    /// A topic that was routed, as its link knows it.
    #[must_use]
    pub fn unrouted(self, topic: &str) -> &str {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => topic,
            Self::Thingsboard => thingsboard::unscoped(topic),
        }
    }

    /// What the server end calls a link that logged in as `user`.
    #[must_use]
    pub fn link_name(self, user: Option<&str>, client_id: &str) -> String {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => user.unwrap_or(client_id).to_owned(),
            Self::Thingsboard => thingsboard::link_name(user, client_id),
        }
    }

    /// Whether the server end answers a link that never subscribed.
    #[must_use]
    pub fn answers_unasked(self, link: &str) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => thingsboard::answers_unasked(link),
        }
    }
}
