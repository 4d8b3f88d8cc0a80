//! Rule chains and their nodes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EntityId;

/// The class of the node that counts messages.
pub const COUNT_NODE: &str = "org.thingsboard.rule.engine.action.TbMsgCountNode";

/// A rule chain without its nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleChain {
    /// Its id; none before it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntityId>,
    /// Instant of its creation in milliseconds of the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// Its name, which several chains may have.
    pub name: String,
    /// `CORE`, or `EDGE`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// True for the chain that each message enters first.
    #[serde(default)]
    pub root: bool,
    /// True if all its nodes keep their messages.
    #[serde(default)]
    pub debug_mode: bool,
    /// Further facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_info: Option<Value>,
    /// Counts its changes; a change with an old one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The nodes of a rule chain and what connects them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleChainMetadata {
    /// The chain.
    pub rule_chain_id: EntityId,
    /// Counts the changes of the chain; a change with an old one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The node that each message enters first; none in an empty chain.
    pub first_node_index: Option<u32>,
    /// The nodes.
    pub nodes: Vec<RuleNode>,
    /// The connections; none is an empty list.
    pub connections: Option<Vec<NodeConnection>>,
    /// Connections to other chains, as older versions had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_chain_connections: Option<Value>,
}

/// Rule chains with their nodes, as they are exported and imported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleChainData {
    /// The chains.
    pub rule_chains: Vec<RuleChain>,
    /// The nodes of each.
    pub metadata: Vec<RuleChainMetadata>,
}

/// Result of importing a rule chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleChainImported {
    /// The chain; none if it could not be imported.
    pub rule_chain_id: Option<EntityId>,
    /// Its name.
    pub rule_chain_name: String,
    /// True if a chain of that name was replaced.
    pub updated: bool,
    /// The reason if it could not be imported.
    pub error: Option<String>,
}

/// Query for a number of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitQuery {
    /// Things at the most.
    pub limit: u32,
}

/// Query of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverwriteQuery {
    /// True if what has the same name is replaced.
    #[serde(
        default,
        deserialize_with = "super::flag",
        skip_serializing_if = "Option::is_none"
    )]
    pub overwrite: Option<bool>,
}

/// A node of a rule chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleNode {
    /// Its id; none before it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntityId>,
    /// Its class.
    #[serde(rename = "type")]
    pub class: String,
    /// A name for people.
    pub name: String,
    /// Version of the form of its configuration; the server takes it over without checking it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_version: Option<u32>,
    /// Its configuration, which depends on its class.
    pub configuration: Value,
    /// All other members, such as its place on the screen.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A connection from one node to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeConnection {
    /// Index of the node that it leaves.
    pub from_index: u32,
    /// Index of the node that it enters.
    pub to_index: u32,
    /// The messages that take it, such as `Success` or `Post telemetry`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Configuration of a [`COUNT_NODE`]. It stores counts as series of the tenant, `<prefix>_<service>`, and zeros
/// too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountConfiguration {
    /// Beginning of the key of the series.
    pub telemetry_prefix: String,
    /// Seconds between two counts.
    pub interval: u32,
}
