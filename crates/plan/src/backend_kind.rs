//! Kinds of backends, each with the facts that distinguish it.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// The source of the messages that the business application receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BackendKind {
    /// Subscribers of an MQTT broker.
    Mqtt,
    /// Consumers of a Kafka cluster.
    Kafka,
    /// Receivers of AMQP 1.0.
    Amqp,
    /// An HTTP endpoint of ours, to which the platform pushes.
    Webhook,
    /// Commands by calls of the platform's REST API.
    Rpc,
}

/// Facts about a kind of backend.
#[derive(Debug)]
pub struct BackendSpec {
    /// The name of its protocol in messages.
    pub name: &'static str,
    /// The mark of a peer that speaks another one.
    pub absent: &'static str,
    /// True if the platform connects to it; false if its consumers connect.
    pub listens: bool,
    /// True if its consumers can form a group that shares messages.
    pub has_groups: bool,
    /// True if its consumers share messages without a group too.
    pub competes: bool,
    /// True if its consumers log in by a mechanism of SASL.
    pub has_sasl: bool,
    /// True if its TLS is ours; false if it is a library's.
    pub has_own_tls: bool,
    /// True if its consumers share one thread of a process; false if each has one, and a library's.
    pub shares_a_thread: bool,
    /// Hono's name of the messaging network that it receives from; none where Hono has no such network.
    pub hono_network: Option<&'static str>,
    /// True if its address may name several servers.
    pub has_servers: bool,
    /// True if the embedded gateway has a listener for it alone, with the name of the scheme.
    pub has_gateway_listener: bool,
    /// True if the outcome of a command is final; false if the platform may still send a notice about it.
    pub outcome_is_final: bool,
    /// True if it only issues commands, by calls of the platform's REST API.
    pub only_commands: bool,
}

static MQTT: BackendSpec = BackendSpec {
    name: "MQTT",
    absent: "no MQTT",
    listens: false,
    has_groups: true,
    competes: false,
    has_sasl: false,
    has_own_tls: true,
    shares_a_thread: true,
    hono_network: None,
    has_servers: false,
    has_gateway_listener: false,
    outcome_is_final: false,
    only_commands: false,
};

static KAFKA: BackendSpec = BackendSpec {
    name: "Kafka",
    absent: "no Kafka",
    listens: false,
    has_groups: true,
    competes: false,
    has_sasl: true,
    has_own_tls: false,
    shares_a_thread: false,
    hono_network: Some("kafka"),
    has_servers: true,
    has_gateway_listener: false,
    outcome_is_final: false,
    only_commands: false,
};

static AMQP: BackendSpec = BackendSpec {
    name: "AMQP",
    absent: "no AMQP",
    listens: false,
    has_groups: false,
    competes: true,
    has_sasl: true,
    has_own_tls: true,
    shares_a_thread: false,
    hono_network: Some("amqp"),
    has_servers: false,
    has_gateway_listener: true,
    outcome_is_final: true,
    only_commands: false,
};

static WEBHOOK: BackendSpec = BackendSpec {
    name: "HTTP",
    absent: "no HTTP",
    listens: true,
    has_groups: false,
    competes: false,
    has_sasl: false,
    has_own_tls: false,
    shares_a_thread: true,
    hono_network: None,
    has_servers: false,
    has_gateway_listener: false,
    outcome_is_final: false,
    only_commands: false,
};

static RPC: BackendSpec = BackendSpec {
    name: "RPC",
    absent: "no REST",
    listens: false,
    has_groups: false,
    competes: false,
    has_sasl: false,
    has_own_tls: true,
    shares_a_thread: false,
    hono_network: None,
    has_servers: false,
    has_gateway_listener: false,
    outcome_is_final: true,
    only_commands: true,
};

impl BackendKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Mqtt,
        Self::Kafka,
        Self::Amqp,
        Self::Webhook,
        Self::Rpc,
    ];

    /// The facts about it.
    pub const fn spec(self) -> &'static BackendSpec {
        match self {
            Self::Mqtt => &MQTT,
            Self::Kafka => &KAFKA,
            Self::Amqp => &AMQP,
            Self::Webhook => &WEBHOOK,
            Self::Rpc => &RPC,
        }
    }
}

impl Deref for BackendKind {
    type Target = BackendSpec;

    fn deref(&self) -> &BackendSpec {
        self.spec()
    }
}
