//! The dialects there are: the one place that names them all.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::downlink::ApplicationId;
use crate::protocol::Protocol;
use crate::spec::{PLAIN_PUBLISHING, PLAIN_REQUESTS, Publishing, Requests, Spec};
use crate::{hono, http, mqtt, sap_edge, thingsboard};

/// The name of a [`Spec`], which says how devices and platform speak to each other and is one folder of this
/// crate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Plain MQTT: topics and payloads are the scenario's, an answer is the transport's.
    #[default]
    Mqtt,
    /// SAP Edge Gateway Service over MQTT: measures acknowledged by the application.
    SapEdge,
    /// ThingsBoard over MQTT: data of devices that are known by their access token.
    Thingsboard,
    /// Eclipse Hono: over CoAP each message is a request, with commands in the answers; over MQTT devices
    /// publish.
    Hono,
    /// Any ingestion API over HTTP: the form of requests is the scenario's.
    Http,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 5] = [
        Dialect::Mqtt,
        Dialect::Hono,
        Dialect::Thingsboard,
        Dialect::SapEdge,
        Dialect::Http,
    ];

    /// All that is known of it.
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::Mqtt => &mqtt::MQTT,
            Self::SapEdge => &sap_edge::SAP_EDGE,
            Self::Thingsboard => &thingsboard::THINGSBOARD,
            Self::Hono => &hono::HONO,
            Self::Http => &http::HTTP,
        }
    }

    /// The dialect of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name == name)
    }

    /// True if its devices speak a protocol.
    pub const fn speaks(self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Mqtt => self.spec().mqtt.is_some(),
            Protocol::Coap | Protocol::Http => self.asked(protocol).is_some(),
        }
    }

    /// Both ends over MQTT; those of a plain broker where devices do
    /// not speak it.
    pub const fn publishing(self) -> &'static Publishing {
        match &self.spec().mqtt {
            Some(publishing) => publishing,
            None => &PLAIN_PUBLISHING,
        }
    }

    /// Both ends of requests over a protocol; plain ones where devices do not ask over it.
    pub const fn requests(self, protocol: Protocol) -> &'static Requests {
        match self.asked(protocol) {
            Some(requests) => requests,
            None => &PLAIN_REQUESTS,
        }
    }

    const fn asked(self, protocol: Protocol) -> Option<&'static Requests> {
        let mut all = self.spec().requests;
        while let [(of, requests), rest @ ..] = all {
            if *of as u8 == protocol as u8 {
                return Some(requests);
            }
            all = rest;
        }
        None
    }

    /// True if a command over a protocol names where its reply goes.
    pub const fn names_replies(self, protocol: Protocol) -> bool {
        protocol.spec().asks || self.publishing().names_replies
    }

    /// True if a link may take the commands of several devices over a protocol.
    pub const fn commands_gateways(self, protocol: Protocol) -> bool {
        protocol.spec().asks || self.publishing().gateway_commands.is_some()
    }

    /// The template of the topics that the stream at `stream_index` of its fleet publishes on, from what the
    /// scenario says: where an answer names its request by number, the number ends the topic.
    pub fn numbered(self, topic: &str, stream_index: u8) -> String {
        match (self.topic)(topic).answers {
            Some(_) => format!("{topic}/{}", ApplicationId::number_template(stream_index)),
            None => topic.to_owned(),
        }
    }

    /// The template of the topics on which a stream's messages surface northbound, from that of the
    /// topics they are published on.
    pub fn surface(self, topic: &str) -> &str {
        (self.topic)(topic).surface.unwrap_or(topic)
    }
}

impl Deref for Dialect {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        self.spec()
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SUBSCRIPTIONS_MAX;

    #[test]
    fn a_dialect_is_found_by_its_name() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name), Some(dialect));
            assert!(dialect.publishing().subscriptions.len() <= SUBSCRIPTIONS_MAX);
        }
        assert_eq!(Dialect::named("nobody"), None);
    }
}
