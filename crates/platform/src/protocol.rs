//! Protocols of devices, each with the facts that distinguish it.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A protocol of devices, whatever it is secured by and carried in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// MQTT 3.1.1 or 5.
    Mqtt,
    /// CoAP (RFC 7252).
    Coap,
    /// HTTP/1.1 (RFC 9112).
    Http,
}

/// Facts about a protocol.
#[derive(Debug)]
pub struct ProtocolSpec {
    /// The name in messages.
    pub name: &'static str,
    /// The name in a scenario.
    pub word: &'static str,
    /// The mark of a peer that speaks another one.
    pub absent: &'static str,
    /// True if devices send requests and receive an answer to each; false if they publish and subscribe.
    pub asks: bool,
    /// True if messages travel in datagrams; false for a stream of bytes.
    pub is_in_datagrams: bool,
    /// True if the business application connects where devices do.
    pub is_applications: bool,
    /// True if messages are sent with a quality of service.
    pub has_qos: bool,
    /// True if a message says how surely it travels on: by its quality of service, or a header.
    pub has_levels: bool,
    /// True if links log in with a user name and a password, or with a token.
    pub has_logins: bool,
    /// True if messages have user properties.
    pub has_user_properties: bool,
}

static MQTT: ProtocolSpec = ProtocolSpec {
    name: "MQTT",
    word: "mqtt",
    absent: "no MQTT",
    asks: false,
    is_in_datagrams: false,
    is_applications: true,
    has_qos: true,
    has_levels: true,
    has_logins: true,
    has_user_properties: true,
};

static COAP: ProtocolSpec = ProtocolSpec {
    name: "CoAP",
    word: "coap",
    absent: "no CoAP",
    asks: true,
    is_in_datagrams: true,
    is_applications: false,
    has_qos: false,
    has_levels: false,
    has_logins: false,
    has_user_properties: false,
};

static HTTP: ProtocolSpec = ProtocolSpec {
    name: "HTTP",
    word: "http",
    absent: "no HTTP",
    asks: true,
    is_in_datagrams: false,
    is_applications: false,
    has_qos: false,
    has_levels: true,
    has_logins: true,
    has_user_properties: false,
};

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 3] = [Self::Mqtt, Self::Coap, Self::Http];

    /// The facts about it.
    pub const fn spec(self) -> &'static ProtocolSpec {
        match self {
            Self::Mqtt => &MQTT,
            Self::Coap => &COAP,
            Self::Http => &HTTP,
        }
    }

    /// The protocol of that name in a scenario.
    pub fn named(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|protocol| protocol.word.eq_ignore_ascii_case(word))
    }
}

impl Deref for Protocol {
    type Target = ProtocolSpec;

    fn deref(&self) -> &ProtocolSpec {
        self.spec()
    }
}
