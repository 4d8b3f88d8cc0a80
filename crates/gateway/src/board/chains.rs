//! Rule chains: their nodes, and which of them is the root.

use std::collections::BTreeMap;

use muster_platform::board_rest::{
    EntityId, EntityType, NodeConnection, RuleChain, RuleChainData, RuleChainImported,
    RuleChainMetadata, RuleNode,
};
use redb::WriteTransaction;
use serde_json::{Map, json};

use super::flow::{SAVE_ATTRIBUTES, SAVE_SERIES, TYPE_SWITCH};
use super::records;
use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::Tables;

/// The reason for which a chain is not imported that has another version than the one it replaces.
const STALE: &str = "StaleObjectStateException: Row was updated or deleted by another transaction";

/// Makes the root chain of a new tenant, which stores telemetry and attributes and counts nothing.
pub(super) fn create_root(tables: &WriteTransaction, now_ms: i64) -> Answer<()> {
    let chain = RuleChain {
        name: "Root Rule Chain".to_owned(),
        ..RuleChain::default()
    };
    let chain = save(tables, chain, now_ms)?;
    let Some(id) = chain.id else { return Ok(()) };
    let node = |class: &str, name: &str| RuleNode {
        id: None,
        class: class.to_owned(),
        name: name.to_owned(),
        configuration_version: None,
        configuration: json!({}),
        others: Map::new(),
    };
    let connection = |to_index, kind: &str| NodeConnection {
        from_index: 0,
        to_index,
        kind: kind.to_owned(),
    };
    let metadata = RuleChainMetadata {
        nodes: vec![
            node(TYPE_SWITCH, "Message Type Switch"),
            node(SAVE_SERIES, "Save Timeseries"),
            node(SAVE_ATTRIBUTES, "Save Client Attributes"),
        ],
        first_node_index: Some(0),
        connections: Some(vec![
            connection(1, "Post telemetry"),
            connection(2, "Post attributes"),
        ]),
        ..empty(&id)
    };
    set_nodes(tables, metadata)?;
    make_root(tables, &id.id).map(drop)
}

/// Creates a chain without nodes, or changes the one whose id it has. Several may have the same name.
pub(super) fn save(tables: &WriteTransaction, chain: RuleChain, now_ms: i64) -> Answer<RuleChain> {
    if chain.name.trim().is_empty() {
        return Err(Refusal::bad_request("Rule chain name should be specified!"));
    }
    let kind = chain.kind.clone().or_else(|| Some("CORE".to_owned()));
    if let Some(id) = &chain.id {
        let id = Serial::parse(&id.id)?;
        let before = records::get::<RuleChain>(tables, id)?;
        let version = next_version(&before, chain.version)?;
        let changed = RuleChain {
            id: before.id,
            created_time: before.created_time,
            root: before.root,
            version,
            kind,
            ..chain
        };
        records::put(tables, id, &changed)?;
        return Ok(changed);
    }
    let id = records::next_serial(tables)?;
    let made = RuleChain {
        id: Some(entity_id(id)),
        created_time: Some(now_ms),
        root: false,
        version: Some(1),
        kind,
        ..chain
    };
    records::put(tables, id, &made)?;
    records::put(tables, id, &empty(&entity_id(id)))?;
    Ok(made)
}

/// Reads a chain.
pub(super) fn read(tables: &impl Tables, id: &str) -> Answer<RuleChain> {
    records::get(tables, Serial::parse(id)?)
}

/// Reads the nodes of a chain.
pub(super) fn nodes(tables: &impl Tables, id: &str) -> Answer<RuleChainMetadata> {
    nodes_of(tables, Serial::parse(id)?)
}

fn nodes_of(tables: &impl Tables, id: Serial) -> Answer<RuleChainMetadata> {
    let chain = records::get::<RuleChain>(tables, id)?;
    Ok(RuleChainMetadata {
        version: chain.version,
        ..records::get(tables, id)?
    })
}

/// Reads the nodes of the root.
pub(super) fn root_nodes(tables: &impl Tables) -> Answer<RuleChainMetadata> {
    let root = records::root_chain(tables)?.ok_or_else(Refusal::not_found)?;
    nodes_of(tables, root)
}

/// Replaces the nodes of a chain. A class that nobody knows is taken as it is.
pub(super) fn set_nodes(
    tables: &WriteTransaction,
    mut metadata: RuleChainMetadata,
) -> Answer<RuleChainMetadata> {
    let id = Serial::parse(&metadata.rule_chain_id.id)?;
    let chain = records::get::<RuleChain>(tables, id)?;
    let version = next_version(&chain, metadata.version)?;
    let count = metadata.nodes.len();
    let is_node = |index: u32| (index as usize) < count;
    let connections = metadata.connections.iter().flatten();
    let mut ends = connections.flat_map(|of| [of.from_index, of.to_index]);
    if !metadata.first_node_index.is_none_or(is_node) || !ends.all(is_node) {
        let what = "Rule chain metadata names a node that is not there!";
        return Err(Refusal::bad_request(what));
    }
    for node in &mut metadata.nodes {
        if node.id.is_none() {
            let id = records::next_serial(tables)?;
            node.id = Some(EntityId::new(EntityType::RuleNode, &id.uuid()));
        }
    }
    metadata.version = version;
    // Version 4.4 of the clients reads a list alone.
    metadata
        .rule_chain_connections
        .get_or_insert_with(|| json!([]));
    records::put(tables, id, &RuleChain { version, ..chain })?;
    records::put(tables, id, &metadata)?;
    Ok(metadata)
}

/// Reads the oldest chains with their nodes.
pub(super) fn export(tables: &impl Tables, limit: u32) -> Answer<RuleChainData> {
    let mut data = RuleChainData::default();
    let chains = records::all::<RuleChain>(tables)?;
    for (id, chain) in chains.into_iter().take(limit as usize) {
        data.rule_chains.push(chain);
        data.metadata.push(nodes_of(tables, id)?);
    }
    Ok(data)
}

/// Creates chains with their nodes, under new ids. If `overwrites`, each replaces the first one of its name.
pub(super) fn import(
    tables: &WriteTransaction,
    data: RuleChainData,
    overwrites: bool,
    now_ms: i64,
) -> Answer<Vec<RuleChainImported>> {
    let (mut imported, mut ids) = (Vec::new(), BTreeMap::new());
    for chain in data.rule_chains {
        let mut known = records::all::<RuleChain>(tables)?.into_iter();
        let same_name = known.find(|(_, known)| overwrites && known.name == chain.name);
        let given = chain.id.clone();
        let mut result = RuleChainImported {
            rule_chain_id: None,
            rule_chain_name: chain.name.clone(),
            updated: same_name.is_some(),
            error: None,
        };
        let version = same_name.as_ref().and_then(|(_, known)| known.version);
        if chain.version.is_some() && chain.version != version {
            result.error = Some(STALE.to_owned());
        } else {
            let id = same_name.map(|(id, _)| entity_id(id));
            result.rule_chain_id = save(tables, RuleChain { id, ..chain }, now_ms)?.id;
            ids.extend(given.zip(result.rule_chain_id.clone()));
        }
        imported.push(result);
    }
    for mut metadata in data.metadata {
        // What was refused has no nodes either.
        let Some(id) = ids.get(&metadata.rule_chain_id) else {
            continue;
        };
        metadata.rule_chain_id = id.clone();
        metadata.version = None;
        metadata.nodes.iter_mut().for_each(|node| node.id = None);
        set_nodes(tables, metadata)?;
    }
    Ok(imported)
}

/// Makes a chain the root, also an empty one.
pub(super) fn make_root(tables: &WriteTransaction, id: &str) -> Answer<RuleChain> {
    let id = Serial::parse(id)?;
    let chain = records::get::<RuleChain>(tables, id)?;
    if let Some(before) = records::root_chain(tables)? {
        let old = records::get::<RuleChain>(tables, before)?;
        records::put(tables, before, &RuleChain { root: false, ..old })?;
    }
    let chain = RuleChain {
        root: true,
        ..chain
    };
    records::put(tables, id, &chain)?;
    records::set_root_chain(tables, id)?;
    Ok(chain)
}

/// Forgets a chain that is not the root.
pub(super) fn delete(tables: &WriteTransaction, id: &str) -> Answer<()> {
    let id = Serial::parse(id)?;
    if records::get::<RuleChain>(tables, id)?.root {
        let what = "Deletion of Root Tenant Rule Chain is prohibited!";
        return Err(Refusal::bad_request(what));
    }
    records::remove::<RuleChainMetadata>(tables, id)?;
    records::remove::<RuleChain>(tables, id).map(drop)
}

/// The version after a change that knows the one before, or none.
fn next_version(chain: &RuleChain, known: Option<u64>) -> Answer<Option<u64>> {
    if known.is_some() && known != chain.version {
        return Err(Refusal::version_conflict());
    }
    Ok(chain.version.map(|version| version + 1))
}

fn empty(id: &EntityId) -> RuleChainMetadata {
    RuleChainMetadata {
        rule_chain_id: id.clone(),
        version: None,
        first_node_index: None,
        nodes: Vec::new(),
        connections: Some(Vec::new()),
        rule_chain_connections: Some(json!([])),
    }
}

fn entity_id(id: Serial) -> EntityId {
    EntityId::new(EntityType::RuleChain, &id.uuid())
}
