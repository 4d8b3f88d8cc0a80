//! Transport between a session and the network: the scheme of an address, and TLS.

use muster_platform::Protocol;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Secret;

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
    /// Kafka's own protocol over TCP; of backends only.
    Kafka,
    /// Kafka's own protocol over TLS; of backends only.
    Kafkas,
    /// AMQP 1.0 over TCP; of backends only.
    Amqp,
    /// AMQP 1.0 over TLS; of backends only.
    Amqps,
    /// CoAP over UDP (RFC 7252).
    Coap,
    /// CoAP over DTLS.
    Coaps,
    /// HTTP/1.1 over TCP (RFC 9112).
    Http,
    /// HTTP/1.1 over TLS.
    Https,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Self; 12] = [
        Self::Mqtt,
        Self::Mqtts,
        Self::Ws,
        Self::Wss,
        Self::Kafka,
        Self::Kafkas,
        Self::Amqp,
        Self::Amqps,
        Self::Coap,
        Self::Coaps,
        Self::Http,
        Self::Https,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqtt => "mqtt",
            Self::Mqtts => "mqtts",
            Self::Ws => "ws",
            Self::Wss => "wss",
            Self::Kafka => "kafka",
            Self::Kafkas => "kafkas",
            Self::Amqp => "amqp",
            Self::Amqps => "amqps",
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is registered for it, or usual.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Mqtt => 1883,
            Self::Mqtts => 8883,
            Self::Ws | Self::Http => 80,
            Self::Wss | Self::Https => 443,
            Self::Kafka | Self::Kafkas => 9092,
            Self::Amqp => 5672,
            Self::Amqps => 5671,
            Self::Coap => 5683,
            Self::Coaps => 5684,
        }
    }

    /// Returns true if TLS carries it.
    pub const fn is_tls(self) -> bool {
        matches!(
            self,
            Self::Mqtts | Self::Wss | Self::Kafkas | Self::Amqps | Self::Https
        )
    }

    /// The scheme that differs by TLS alone.
    pub const fn other_by_tls(self) -> Option<Self> {
        Some(match self {
            Self::Mqtt => Self::Mqtts,
            Self::Mqtts => Self::Mqtt,
            Self::Ws => Self::Wss,
            Self::Wss => Self::Ws,
            Self::Amqp => Self::Amqps,
            Self::Amqps => Self::Amqp,
            Self::Http => Self::Https,
            Self::Https => Self::Http,
            Self::Kafka | Self::Kafkas | Self::Coap | Self::Coaps => return None,
        })
    }

    /// Returns true if DTLS carries it.
    pub const fn is_dtls(self) -> bool {
        matches!(self, Self::Coaps)
    }

    /// Returns true if it is CoAP, which goes in datagrams.
    pub const fn is_coap(self) -> bool {
        matches!(self, Self::Coap | Self::Coaps)
    }

    /// The protocol of devices that use it.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Mqtt
            | Self::Mqtts
            | Self::Ws
            | Self::Wss
            | Self::Kafka
            | Self::Kafkas
            | Self::Amqp
            | Self::Amqps => Protocol::Mqtt,
            Self::Coap | Self::Coaps => Protocol::Coap,
            Self::Http | Self::Https => Protocol::Http,
        }
    }

    /// The name of its protocol.
    pub const fn protocol_name(self) -> &'static str {
        match self {
            Self::Kafka | Self::Kafkas => "Kafka",
            Self::Amqp | Self::Amqps => "AMQP",
            Self::Mqtt
            | Self::Mqtts
            | Self::Ws
            | Self::Wss
            | Self::Coap
            | Self::Coaps
            | Self::Http
            | Self::Https => self.protocol().spec().name,
        }
    }

    /// Returns true if WebSocket carries it.
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// Returns true if it is AMQP's.
    pub const fn is_amqp(self) -> bool {
        matches!(self, Self::Amqp | Self::Amqps)
    }

    /// Returns true if it is Kafka's.
    pub const fn is_kafka(self) -> bool {
        matches!(self, Self::Kafka | Self::Kafkas)
    }
}

/// An address to connect to. The host may still need to be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// The protocol.
    pub scheme: Scheme,
    /// A name or an address; an IPv6 address without its brackets, with its zone behind a `%`.
    pub host: String,
    /// The port; 0 (kind gateway only) is a free port chosen when the gateway starts.
    pub port: u16,
    /// The path and query of a WebSocket address, or the path before those of all requests over HTTP,
    /// beginning with a slash; empty for others.
    pub path: String,
}

impl Endpoint {
    /// Host and port as a URL writes them, with a zone as RFC 6874 has it.
    pub fn authority(&self) -> String {
        self.with_port(&self.host.replace('%', "%25"))
    }

    /// The host without its zone, which means something on this machine only.
    pub fn host_name(&self) -> &str {
        self.host.split('%').next().unwrap_or_default()
    }

    /// Host and port as they are sent to a peer, without a zone (RFC 6874 section 4).
    pub fn authority_without_zone(&self) -> String {
        self.with_port(self.host_name())
    }

    /// Host and port as libraries take them, with a zone as the system writes it.
    pub fn socket_authority(&self) -> String {
        self.with_port(&self.host)
    }

    /// Host and port as a request of HTTP names them: without the scheme's own port, and without a free
    /// one that is not chosen yet.
    pub fn http_host(&self) -> String {
        let is_usual = self.port == self.scheme.default_port() || self.port == 0;
        let authority = self.authority_without_zone();
        let port = authority.rfind(':').filter(|_| is_usual);
        port.map_or(&authority[..], |port| &authority[..port])
            .to_owned()
    }

    fn with_port(&self, host: &str) -> String {
        let port = self.port;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, path) = (self.scheme.name(), &self.path);
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

/// A file of certificates or a key (RFC 7468), as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PemFile {
    /// The file's name, as the scenario has it.
    pub name: String,
    /// Its content.
    pub text: Vec<u8>,
}

/// The versions of TLS that may be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

/// Settings of TLS, among them the checks of the peer's certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsPlan {
    /// Authorities that we trust; none stands for those of this machine.
    pub ca: Option<PemFile>,
    /// The name that the certificate must have; none is the address's host.
    pub server_name: Option<String>,
    /// True if any certificate is accepted.
    pub insecure: bool,
    /// The versions that may be spoken.
    pub versions: TlsVersions,
    /// The protocol that is offered by ALPN (RFC 7301).
    pub alpn: Option<String>,
    /// True if a link that connects again resumes its own session; none leaves it to what carries
    /// the link ([`TlsPlan::resumes`]).
    pub resumption: Option<bool>,
    /// The certificate and the key of a backend's consumers.
    pub own: Option<(PemFile, Secret<PemFile>)>,
    /// Authorities that the embedded gateway trusts when a device shows a certificate.
    pub client_ca: Option<PemFile>,
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self {
            ca: None,
            server_name: None,
            insecure: false,
            versions: TlsVersions::Both,
            alpn: None,
            resumption: None,
            own: None,
            client_ca: None,
        }
    }
}

impl TlsPlan {
    /// Returns true if a link over this scheme that connects again resumes its own session. By
    /// default it does over TLS, and not over DTLS, where a device at rest would need half as
    /// much memory again.
    pub fn resumes(&self, scheme: Scheme) -> bool {
        self.resumption.unwrap_or(!scheme.is_dtls())
    }
}
