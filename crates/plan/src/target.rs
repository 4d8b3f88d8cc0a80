//! The system under test and the business application behind it.

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use muster_platform::{Dialect, KafkaRecords, Protocol};
use muster_protocol::mqtt::{Qos, Version};
use serde::{Deserialize, Serialize};

use crate::{
    AmqpNorthbound, BackendKind, Endpoint, HookPlan, RpcNorthbound, ScalePlan, Scheme, Secret,
    TlsPlan, WebhookNorthbound,
};

/// The system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlatformPlan {
    /// Its kind.
    pub kind: PlatformKind,
    /// Addresses that devices connect to; several of a protocol are spread over its links. Never empty.
    /// Those of a protocol have one scheme.
    pub endpoints: Vec<Endpoint>,
    /// True if links are spread over all addresses of a name, and not only over the names.
    pub uses_all_addresses: bool,
    /// Time after which names are looked up again, for links that connect later; none: once. Streams of
    /// bytes only.
    pub renews_addresses: Option<Micros>,
    /// Checks of its certificate, where the scheme has TLS.
    pub tls: TlsPlan,
    /// A file that says what the target is: its name and text, copied into the result.
    pub about: Option<(String, String)>,
    /// Growth of the target; none where the scenario has no `scale`. Only `muster scale` has a use for it.
    #[serde(skip)]
    pub scale: Option<ScalePlan>,
    /// Commands that change it before, while and after the load; only whoever starts the run has a use for them.
    #[serde(skip)]
    pub hooks: Vec<HookPlan>,
}

/// Kind of the system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PlatformKind {
    /// The reference gateway, started by the run itself.
    Gateway {
        /// Its dialect.
        dialect: Dialect,
        /// Its misbehaviour.
        behaviour: Box<Behaviour>,
        /// Bytes of the longest payload that it takes over CoAP; none is its dialect's own limit.
        max_payload: Option<u32>,
    },
    /// A platform that runs elsewhere.
    Deployed {
        /// Its dialect.
        dialect: Dialect,
    },
}

impl PlatformPlan {
    /// Dialect that its devices and it speak to each other.
    pub const fn dialect(&self) -> Dialect {
        match self.kind {
            PlatformKind::Gateway { dialect, .. } | PlatformKind::Deployed { dialect } => dialect,
        }
    }
}

impl PlatformPlan {
    /// The addresses of devices that speak a protocol.
    pub fn endpoints_of(&self, protocol: Protocol) -> impl Iterator<Item = &Endpoint> {
        let endpoints = self.endpoints.iter();
        endpoints.filter(move |endpoint| endpoint.scheme.protocol() == protocol)
    }

    /// The scheme of these addresses; none if there are none.
    pub fn scheme_of(&self, protocol: Protocol) -> Option<Scheme> {
        let first = self.endpoints_of(protocol).next();
        first.map(|endpoint| endpoint.scheme)
    }
}

/// One northbound account: what the business application sees.
///
/// Each plain subscriber has its own account, so `consumers` is above one only where they share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendPlan {
    /// Its name in the result.
    pub name: String,
    /// Address that it connects to: the embedded gateway's own where the port is 0, and of several
    /// servers the first. A webhook listens there.
    pub endpoint: Endpoint,
    /// Checks of the certificate there, where the scheme has TLS.
    pub tls: TlsPlan,
    /// Subscription or topics of its consumers, by their protocol.
    pub northbound: Northbound,
    /// Its user name.
    pub user: Option<Secret>,
    /// Its password.
    pub password: Option<Secret<Vec<u8>>>,
    /// Number of consumer sessions that share the account's messages; at least 1.
    pub consumers: u16,
    /// The group of its shared subscription (MQTT 5 section 4.8.2), or Kafka's consumer group.
    pub shared: Option<String>,
    /// Pauses in which its consumers do not read.
    pub pause: Vec<Pause>,
    /// True if its consumer issues the commands of the run.
    pub issues_commands: bool,
}

/// Subscription or topics of a backend's consumers, by their protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Northbound {
    /// MQTT.
    Mqtt(MqttNorthbound),
    /// Kafka.
    Kafka(KafkaNorthbound),
    /// AMQP 1.0.
    Amqp(AmqpNorthbound),
    /// An HTTP endpoint of ours, to which the platform pushes.
    Webhook(WebhookNorthbound),
    /// Calls of the platform's REST API.
    Rpc(RpcNorthbound),
}

/// A subscription to a broker of MQTT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MqttNorthbound {
    /// The version its consumers speak.
    pub version: Version,
    /// The topic filter they subscribe to, without the `$share` prefix.
    pub filter: String,
    /// The quality of service they subscribe with.
    pub qos: Qos,
}

/// Topics of a Kafka cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KafkaNorthbound {
    /// The servers that are asked first for the others; never empty.
    pub servers: Vec<Endpoint>,
    /// The topics that are there before the load begins.
    pub topics: Vec<KafkaTopic>,
    /// Mechanism that proves a password there, where the backend has one.
    pub sasl: Sasl,
}

/// A mechanism of SASL (RFC 4422) that proves a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Sasl {
    /// Sends it as it is (RFC 4616).
    #[default]
    Plain,
    /// Neither side sends it (RFC 7677).
    ScramSha256,
    /// The same with SHA-512.
    ScramSha512,
}

impl Sasl {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::ScramSha256, Self::ScramSha512];

    /// Its name at IANA.
    pub const fn mechanism(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KafkaTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions that it is created with where it is missing.
    pub partitions: u32,
    /// Topic of the dialect for its records: this, and behind it the record's key. Empty where the
    /// dialect says nothing of Kafka: then the key alone, or this topic's name.
    pub surface: String,
    /// The tenant that it belongs to; none where it belongs to all tenants or the platform has none.
    pub tenant: Option<String>,
    /// Kind of its records.
    pub records: KafkaRecords,
}

impl BackendPlan {
    /// Its kind.
    pub const fn kind(&self) -> BackendKind {
        match self.northbound {
            Northbound::Mqtt(_) => BackendKind::Mqtt,
            Northbound::Kafka(_) => BackendKind::Kafka,
            Northbound::Amqp(_) => BackendKind::Amqp,
            Northbound::Webhook(_) => BackendKind::Webhook,
            Northbound::Rpc(_) => BackendKind::Rpc,
        }
    }

    /// Subscription of its consumers, if they speak MQTT.
    pub const fn mqtt(&self) -> Option<&MqttNorthbound> {
        if let Northbound::Mqtt(mqtt) = &self.northbound {
            return Some(mqtt);
        }
        None
    }

    /// Its topics, if they are Kafka's.
    pub const fn kafka(&self) -> Option<&KafkaNorthbound> {
        if let Northbound::Kafka(kafka) = &self.northbound {
            return Some(kafka);
        }
        None
    }

    /// Its endpoint, if the platform pushes to one.
    pub const fn webhook(&self) -> Option<&WebhookNorthbound> {
        if let Northbound::Webhook(webhook) = &self.northbound {
            return Some(webhook);
        }
        None
    }

    /// Its calls, if it issues commands by a REST API.
    pub const fn rpc(&self) -> Option<&RpcNorthbound> {
        if let Northbound::Rpc(rpc) = &self.northbound {
            return Some(rpc);
        }
        None
    }

    /// Its addresses, if they are of AMQP 1.0.
    pub const fn amqp(&self) -> Option<&AmqpNorthbound> {
        if let Northbound::Amqp(amqp) = &self.northbound {
            return Some(amqp);
        }
        None
    }

    /// Returns true if its consumers share the messages of one account: a group, or consumers among which a
    /// queue distributes its messages.
    pub fn shares(&self) -> bool {
        self.shared.is_some() || self.kind().competes
    }
}

impl MqttNorthbound {
    /// The filter as it goes into SUBSCRIBE, with the group that shares it.
    pub fn subscription(&self, shared: Option<&str>) -> String {
        match shared {
            Some(group) => format!("$share/{group}/{}", self.filter),
            None => self.filter.clone(),
        }
    }
}

impl KafkaNorthbound {
    /// The servers as Kafka's clients take them.
    pub fn bootstrap(&self) -> String {
        let servers = self.servers.iter().map(Endpoint::socket_authority);
        servers.collect::<Vec<_>>().join(",")
    }
}

/// A stretch in which a consumer does not read. `at` counts from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Instant at which it stops.
    pub at: Micros,
    /// For how long.
    pub lasts: Micros,
}
