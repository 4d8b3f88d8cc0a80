//! Schemes of addresses, each with the facts that distinguish it.

use muster_platform::Protocol;
use serde::{Deserialize, Serialize};

use crate::BackendKind;

/// The protocol of an endpoint, and what carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// MQTT over TCP.
    Mqtt,
    /// MQTT over TLS.
    Mqtts,
    /// MQTT over WebSocket (RFC 6455).
    Ws,
    /// MQTT over WebSocket over TLS.
    Wss,
    /// HTTP/1.1 over TCP (RFC 9112).
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// CoAP over UDP (RFC 7252).
    Coap,
    /// CoAP over DTLS.
    Coaps,
    /// Kafka's own protocol over TCP; of backends only.
    Kafka,
    /// Kafka's own protocol over TLS; of backends only.
    Kafkas,
    /// AMQP 1.0 over TCP; of backends only.
    Amqp,
    /// AMQP 1.0 over TLS; of backends only.
    Amqps,
}

/// Facts about a scheme.
#[derive(Debug)]
pub struct SchemeSpec {
    name: &'static str,
    port: u16,
    is_tls: bool,
    is_dtls: bool,
    is_websocket: bool,
    other_by_tls: Option<Scheme>,
    /// The protocol of devices that connect there; none where none do.
    pub devices: Option<Protocol>,
    /// The kind of backend that has such an address; none where none has.
    pub backend: Option<BackendKind>,
    /// The path behind its host.
    pub path: PathUse,
    /// Name of its protocol in TLS (RFC 7301), which a server of several protocols requires.
    pub alpn: Option<&'static str>,
}

/// The use of the path of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// No path; the text is what to write instead.
    None(&'static str),
    /// The resource of a WebSocket, with a query.
    Resource,
    /// The path before those of all requests.
    Prefix,
}

const MQTT: SchemeSpec = SchemeSpec {
    name: "mqtt",
    port: 1883,
    is_tls: false,
    is_dtls: false,
    is_websocket: false,
    other_by_tls: Some(Scheme::Mqtts),
    devices: Some(Protocol::Mqtt),
    backend: Some(BackendKind::Mqtt),
    path: PathUse::None("such as mqtt://broker.example:1883"),
    alpn: None,
};

const MQTTS: SchemeSpec = SchemeSpec {
    name: "mqtts",
    port: 8883,
    is_tls: true,
    other_by_tls: Some(Scheme::Mqtt),
    ..MQTT
};

const WS: SchemeSpec = SchemeSpec {
    name: "ws",
    port: 80,
    is_websocket: true,
    other_by_tls: Some(Scheme::Wss),
    path: PathUse::Resource,
    ..MQTT
};

const WSS: SchemeSpec = SchemeSpec {
    name: "wss",
    port: 443,
    is_tls: true,
    other_by_tls: Some(Scheme::Ws),
    alpn: HTTPS.alpn,
    ..WS
};

const HTTP: SchemeSpec = SchemeSpec {
    name: "http",
    port: 80,
    other_by_tls: Some(Scheme::Https),
    devices: Some(Protocol::Http),
    backend: Some(BackendKind::Webhook),
    path: PathUse::Prefix,
    ..MQTT
};

const HTTPS: SchemeSpec = SchemeSpec {
    name: "https",
    port: 443,
    is_tls: true,
    other_by_tls: Some(Scheme::Http),
    alpn: Some("http/1.1"),
    ..HTTP
};

// A port of DTLS is silent to who speaks none, and so is one without.
const COAP: SchemeSpec = SchemeSpec {
    name: "coap",
    port: 5683,
    other_by_tls: None,
    devices: Some(Protocol::Coap),
    backend: None,
    ..MQTT
};

const COAPS: SchemeSpec = SchemeSpec {
    name: "coaps",
    port: 5684,
    is_dtls: true,
    ..COAP
};

const KAFKA: SchemeSpec = SchemeSpec {
    name: "kafka",
    port: 9092,
    other_by_tls: None,
    devices: None,
    backend: Some(BackendKind::Kafka),
    ..MQTT
};

const KAFKAS: SchemeSpec = SchemeSpec {
    name: "kafkas",
    is_tls: true,
    ..KAFKA
};

const AMQP: SchemeSpec = SchemeSpec {
    name: "amqp",
    port: 5672,
    other_by_tls: Some(Scheme::Amqps),
    devices: None,
    backend: Some(BackendKind::Amqp),
    path: PathUse::None("name the queue or topic under `addresses`"),
    ..MQTT
};

const AMQPS: SchemeSpec = SchemeSpec {
    name: "amqps",
    port: 5671,
    is_tls: true,
    other_by_tls: Some(Scheme::Amqp),
    ..AMQP
};

impl Scheme {
    /// Every scheme.
    pub const ALL: [Self; 12] = [
        Self::Mqtt,
        Self::Mqtts,
        Self::Ws,
        Self::Wss,
        Self::Http,
        Self::Https,
        Self::Coap,
        Self::Coaps,
        Self::Kafka,
        Self::Kafkas,
        Self::Amqp,
        Self::Amqps,
    ];

    /// The facts about it.
    pub const fn spec(self) -> &'static SchemeSpec {
        match self {
            Self::Mqtt => &MQTT,
            Self::Mqtts => &MQTTS,
            Self::Ws => &WS,
            Self::Wss => &WSS,
            Self::Http => &HTTP,
            Self::Https => &HTTPS,
            Self::Coap => &COAP,
            Self::Coaps => &COAPS,
            Self::Kafka => &KAFKA,
            Self::Kafkas => &KAFKAS,
            Self::Amqp => &AMQP,
            Self::Amqps => &AMQPS,
        }
    }

    /// The scheme of that name, in letters of any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// The port that is registered for it, or usual.
    pub const fn default_port(self) -> u16 {
        self.spec().port
    }

    /// Returns true if TLS carries it.
    pub const fn is_tls(self) -> bool {
        self.spec().is_tls
    }

    /// Returns true if DTLS carries it.
    pub const fn is_dtls(self) -> bool {
        self.spec().is_dtls
    }

    /// Returns true if TLS or DTLS carries it.
    pub const fn is_secured(self) -> bool {
        self.is_tls() || self.is_dtls()
    }

    /// Returns true if WebSocket carries it.
    pub const fn is_websocket(self) -> bool {
        self.spec().is_websocket
    }

    /// The scheme that differs by TLS alone.
    pub const fn other_by_tls(self) -> Option<Self> {
        self.spec().other_by_tls
    }

    /// The protocol of devices that use it; MQTT for a scheme of backends.
    pub const fn protocol(self) -> Protocol {
        match self.spec().devices {
            Some(protocol) => protocol,
            None => Protocol::Mqtt,
        }
    }
}
