//! The system under test and the business application behind it.

use std::fmt;

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use muster_protocol::mqtt::Qos;
use serde::{Deserialize, Serialize};

use super::Secret;

/// The system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlatformPlan {
    /// What it is.
    pub kind: PlatformKind,
    /// Where devices connect; several are spread over the links. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// A file that says what the target is: its name and text, copied into the result.
    pub about: Option<(String, String)>,
}

/// What the system under test is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PlatformKind {
    /// The reference gateway, started by the run itself.
    Gateway {
        /// What it speaks.
        dialect: Dialect,
        /// How it misbehaves (DESIGN section 9).
        behaviour: Behaviour,
    },
    /// An MQTT broker.
    Mqtt,
}

/// What the reference gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// Plain MQTT.
    Mqtt,
}

/// The protocol of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// MQTT over TCP.
    Mqtt,
}

/// An address to connect to. The host may still need to be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// The protocol.
    pub scheme: Scheme,
    /// A name or an address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; 0 (kind gateway only) is a free port chosen when the gateway starts.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint {
            scheme: Scheme::Mqtt,
            host,
            port,
        } = self;
        if host.contains(':') {
            write!(f, "mqtt://[{host}]:{port}")
        } else {
            write!(f, "mqtt://{host}:{port}")
        }
    }
}

/// One northbound account: what the business application sees.
///
/// Plain subscribers are accounts of their own, so `consumers` is above one only with `shared`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendPlan {
    /// Its name in the result.
    pub name: String,
    /// Where it connects; the embedded gateway's own address where the port is 0.
    pub endpoint: Endpoint,
    /// Its user name.
    pub user: Option<Secret>,
    /// Its password.
    pub password: Option<Secret>,
    /// The topic filter it subscribes to, without the `$share` prefix.
    pub filter: String,
    /// The quality of service it subscribes with.
    pub qos: Qos,
    /// How many consumer sessions share the account's messages; at least 1.
    pub consumers: u16,
    /// The group of its shared subscription (MQTT 5 section 4.8.2).
    pub shared: Option<String>,
    /// When its consumers stop reading.
    pub pause: Vec<Pause>,
}

impl BackendPlan {
    /// The filter as it goes into SUBSCRIBE.
    #[must_use]
    pub fn subscription(&self) -> String {
        match &self.shared {
            Some(group) => format!("$share/{group}/{}", self.filter),
            None => self.filter.clone(),
        }
    }
}

/// A stretch in which a consumer does not read. `at` counts from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it stops.
    pub at: Micros,
    /// For how long.
    pub lasts: Micros,
}
