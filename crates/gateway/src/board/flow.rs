//! The way of a message through the root rule chain: whether it is stored, and which nodes count it.
//!
//! A type switch parts telemetry from attributes. Every other node passes a message on as a success, except a
//! count node, which keeps it.

use muster_platform::board_rest::{COUNT_NODE, CountConfiguration, RuleChainMetadata};

use super::queue::Content;

/// The class of the node that parts messages by their type.
pub(super) const TYPE_SWITCH: &str = "org.thingsboard.rule.engine.filter.TbMsgTypeSwitchNode";
/// The class of the node that stores telemetry.
pub(super) const SAVE_SERIES: &str = "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode";
/// The class of the node that stores attributes.
pub(super) const SAVE_ATTRIBUTES: &str =
    "org.thingsboard.rule.engine.telemetry.TbMsgAttributesNode";

/// The root rule chain as messages see it.
#[derive(Debug, Default)]
pub(super) struct Flow {
    telemetry: Way,
    attributes: Way,
    /// The count nodes that messages reach.
    pub(super) count_nodes: Vec<CountNode>,
}

/// The way of messages of one type.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) is_stored: bool,
    /// Places among [`Flow::count_nodes`].
    pub(super) counted_by: Vec<usize>,
}

/// A node that counts messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountNode {
    pub(super) id: String,
    pub(super) configuration: CountConfiguration,
    /// True if a node behind it stores its counts.
    pub(super) is_stored: bool,
}

/// The class of the node that answers calls of devices.
const REPLY: &str = "org.thingsboard.rule.engine.rpc.TbSendRPCReplyNode";
/// The connection that a type switch has for calls of devices.
const CALLS: &str = "RPC Request from Device";

/// Returns true if a node answers calls of devices.
pub(super) fn answers_calls(chain: &RuleChainMetadata) -> bool {
    let reached = reached(chain, chain.first_node_index, CALLS);
    reached
        .into_iter()
        .any(|node| chain.nodes[node].class == REPLY)
}

impl Flow {
    pub(super) fn new(chain: &RuleChainMetadata) -> Self {
        let mut flow = Self::default();
        flow.telemetry = flow.way(chain, Content::Telemetry);
        flow.attributes = flow.way(chain, Content::Attributes);
        flow
    }

    pub(super) fn way_of(&self, content: Content) -> &Way {
        match content {
            Content::Telemetry => &self.telemetry,
            Content::Attributes => &self.attributes,
        }
    }

    fn way(&mut self, chain: &RuleChainMetadata, content: Content) -> Way {
        let mut way = Way::default();
        for node in reached(chain, chain.first_node_index, content.message_type()) {
            let class = chain.nodes[node].class.as_str();
            way.is_stored |= class == saving(content);
            if class == COUNT_NODE
                && let Some(count_node) = count_node(chain, node)
            {
                let known = self
                    .count_nodes
                    .iter()
                    .position(|known| *known == count_node);
                way.counted_by.push(known.unwrap_or(self.count_nodes.len()));
                if known.is_none() {
                    self.count_nodes.push(count_node);
                }
            }
        }
        way
    }
}

const fn saving(content: Content) -> &'static str {
    match content {
        Content::Telemetry => SAVE_SERIES,
        Content::Attributes => SAVE_ATTRIBUTES,
    }
}

/// A node that counts; none if its configuration cannot be read, so that it does not start.
fn count_node(chain: &RuleChainMetadata, at: usize) -> Option<CountNode> {
    let node = &chain.nodes[at];
    let configuration: CountConfiguration =
        serde_json::from_value(node.configuration.clone()).ok()?;
    let behind = next(chain, at, "Success")
        .flat_map(|first| reached(chain, Some(first), Content::Telemetry.message_type()));
    let is_stored = behind
        .into_iter()
        .any(|node| chain.nodes[node].class == SAVE_SERIES);
    (configuration.interval > 0).then(|| CountNode {
        id: node
            .id
            .as_ref()
            .map_or_else(String::new, |id| id.id.clone()),
        configuration,
        is_stored,
    })
}

/// The nodes that a message of a type reaches from one on, each once.
fn reached(chain: &RuleChainMetadata, from: Option<u32>, message_type: &str) -> Vec<usize> {
    let mut reached = Vec::from_iter(from.map(|from| from as usize));
    let mut at = 0;
    while let Some(node) = reached.get(at).copied() {
        at += 1;
        let kind = match chain.nodes[node].class.as_str() {
            TYPE_SWITCH => message_type,
            COUNT_NODE => continue,
            _ => "Success",
        };
        for next in next(chain, node, kind) {
            let next = next as usize;
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
    }
    reached
}

fn next<'a>(
    chain: &'a RuleChainMetadata,
    from: usize,
    kind: &'a str,
) -> impl Iterator<Item = u32> + 'a {
    let connections = chain.connections.iter().flatten();
    let taken = connections.filter(move |of| of.from_index as usize == from && of.kind == kind);
    taken.map(|of| of.to_index)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn chain(first: Option<u32>, nodes: &[&str], connections: &[(u32, u32, &str)]) -> Flow {
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|class| {
                let configuration = json!({ "telemetryPrefix": "p", "interval": 1 });
                json!({ "type": class, "name": "n", "configuration": configuration })
            })
            .collect();
        let connections: Vec<Value> = connections
            .iter()
            .map(|(from, to, kind)| json!({ "fromIndex": from, "toIndex": to, "type": kind }))
            .collect();
        let metadata = json!({
            "ruleChainId": { "entityType": "RULE_CHAIN", "id": "c" },
            "firstNodeIndex": first, "nodes": nodes, "connections": connections,
        });
        Flow::new(&serde_json::from_value(metadata).expect("a chain"))
    }

    fn ways(flow: &Flow) -> [(bool, usize); 2] {
        [Content::Telemetry, Content::Attributes].map(|content| {
            let way = flow.way_of(content);
            (way.is_stored, way.counted_by.len())
        })
    }

    #[test]
    fn a_message_is_stored_and_counted_only_by_nodes_that_it_reaches() {
        let empty = chain(None, &[], &[]);
        assert_eq!(ways(&empty), [(false, 0), (false, 0)]);
        let nodes = [TYPE_SWITCH, SAVE_SERIES, COUNT_NODE, SAVE_SERIES];
        let ways_in = [(0, 1, "Post telemetry"), (1, 2, "Success")];
        let behind = [ways_in.as_slice(), &[(2, 3, "Success")]].concat();
        let published = chain(Some(0), &nodes, &behind);
        assert_eq!(ways(&published), [(true, 1), (false, 0)]);
        assert!(published.count_nodes[0].is_stored);
        let unsaved = chain(Some(0), &nodes, &ways_in);
        assert!(!unsaved.count_nodes[0].is_stored);
        let uncounted = chain(
            Some(0),
            &nodes,
            &[(0, 1, "Post telemetry"), (1, 2, "Failure")],
        );
        assert_eq!(ways(&uncounted), [(true, 0), (false, 0)]);
        assert!(uncounted.count_nodes.is_empty());
    }

    #[test]
    fn a_circle_ends() {
        let circle = chain(
            Some(0),
            &["x", SAVE_ATTRIBUTES],
            &[(0, 1, "Success"), (1, 0, "Success")],
        );
        assert_eq!(ways(&circle), [(false, 0), (true, 0)]);
    }
}
