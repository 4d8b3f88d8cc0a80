//! The count of messages in ThingsBoard's rule engine: a copy of the root rule chain with a count node in it is root
//! for the time of a run.
//!
//! The record has the copy before it is created, and the old root before the swap. A killed run is put right by
//! [`ServerCounter::restore`].

use muster_model::Micros;
use muster_plan::{Plan, ProvisionPlan, WebAddress};
use muster_platform::ManagementApi;
use muster_platform::board_rest::{
    COUNT_NODE, CREATE_RULE_CHAIN, CountConfiguration, DELETE_RULE_CHAIN, EntityId, EntityType,
    LIST_RULE_CHAINS, MAKE_ROOT, NodeConnection, PageQuery, READ_NODES, RuleChain,
    RuleChainMetadata, RuleNode, SERIES, SERIES_KEYS, SeriesQuery, SortOrder, WRITE_NODES,
};
use serde_json::{Map, json};

use super::counts::NodeCounts;
use super::failures::refused;
use super::groups::created_id;
use super::session::{Asked, Session};
use super::{id_of, marker};
use crate::journal::Standing;
use crate::rest::{Begun, NOT_FOUND};
use crate::{Journal, ProvisionError, Summary, Watch};

const CHAIN: &str = "rule chain";
const ROOT: &str = "root rule chain";
/// Beginning of the names of our chains.
const NAME: &str = "Muster count ";
/// Beginning of the keys of the counts.
const PREFIX: &str = "musterCount";
/// Seconds between two counts.
const INTERVAL: u32 = 1;
/// The class of the node that stores time series.
const SAVE_NODE: &str = "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode";
/// Chains on a page of a list.
const PAGE: u32 = 100;
/// Time between two reads of the counts, longer than their interval.
const BETWEEN_READS: Micros = Micros::from_millis(2_500);
/// The most reads: a platform that goes on counting is loaded by others.
const READS: u32 = 8;
const YEAR_MS: i64 = 365 * 24 * 3_600 * 1_000;
/// Points of one answer: an hour of one node.
const POINTS: u32 = 3_600;

/// Counts messages in the rule engine.
#[derive(Debug)]
pub struct ServerCounter {
    session: Session,
}

/// A root that was swapped: its id, the copy's, and the chains that are there now.
struct Swapped<'a> {
    old: &'a str,
    copy: Option<&'a str>,
    chains: &'a [RuleChain],
}

impl ServerCounter {
    /// The counter of a plan; none if the scenario wants none, or names no ThingsBoard.
    ///
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub fn of_plan(plan: &Plan) -> Result<Option<Self>, ProvisionError> {
        let is_board = plan.platform.dialect().management == Some(ManagementApi::ThingsBoard);
        match &plan.provision {
            Some(provision) if is_board && provision.board.count => match &provision.api {
                Some(api) => Self::new(provision, api).map(Some),
                None => Ok(None),
            },
            Some(_) | None => Ok(None),
        }
    }

    fn new(plan: &ProvisionPlan, api: &WebAddress) -> Result<Self, ProvisionError> {
        Ok(Self {
            session: Session::new(plan, api)?,
        })
    }

    /// The address of the platform, as a journal names it.
    pub fn target(&self) -> &str {
        self.session.base()
    }

    /// Makes a copy of the root rule chain with a count node the root. What a killed run has left is put right
    /// first.
    ///
    /// # Errors
    /// [`ProvisionError`]; [`ServerCounter::restore`] then puts back what was changed.
    pub fn install(&self, journal: &Journal, watch: &dyn Watch) -> Result<(), ProvisionError> {
        self.session.user(watch)?;
        self.restore(journal, watch)?;
        let chains = self.chains(watch)?;
        if let Some(other) = chains.iter().find(|chain| chain.name.starts_with(NAME)) {
            return Err(self.unfit(format!(
                "the rule chain `{}` of another run is there; end that run, or call `muster provision \
                 SCENARIO restore` with its scenario",
                other.name
            )));
        }
        let Some(root) = chains.iter().find(|chain| chain.root) else {
            return Err(self.unfit("the tenant has no root rule chain; make one root".to_owned()));
        };
        let old = id_of(root.id.as_ref(), LIST_RULE_CHAINS.route())?;
        let nodes = self.session.call(&READ_NODES, &Asked::at([&old]), watch)?;
        let Some(nodes) = counting(nodes) else {
            return Err(self.unfit(format!(
                "the root rule chain `{}` has no node that saves time series, so that nothing can be \
                 counted behind one; remove `provision.count`, or add such a node",
                root.name
            )));
        };
        let ours = self.create(&old, journal, watch)?;
        let nodes = RuleChainMetadata {
            rule_chain_id: EntityId::new(EntityType::RuleChain, &ours),
            ..nodes
        };
        self.session
            .call(&WRITE_NODES, &Asked::body(nodes), watch)?;
        journal.creating(ROOT, &old, Some(&ours))?;
        self.session.call(&MAKE_ROOT, &Asked::at([&ours]), watch)?;
        Ok(())
    }

    fn create(
        &self,
        old: &str,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<String, ProvisionError> {
        let name = format!("{NAME}{}", marker()?);
        let chain = RuleChain {
            name: name.clone(),
            kind: Some("CORE".to_owned()),
            additional_info: Some(json!({
                "description": format!("Counts messages for a run of Muster; the root before was {old}"),
            })),
            ..RuleChain::default()
        };
        let begun = Begun {
            journal,
            kind: CHAIN,
            key: &name,
            id: None,
        };
        let session = &self.session;
        let answer =
            begun.record(|| session.answer(&CREATE_RULE_CHAIN, &Asked::body(chain), watch))?;
        let id = created_id(&answer)?;
        journal.created(CHAIN, &name, &id)?;
        Ok(id)
    }

    /// Makes the old chain root again and deletes the copy. A root that somebody else has set meanwhile is left.
    ///
    /// # Errors
    /// [`ProvisionError`]; what is left stays in the journal.
    pub fn restore(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let mut summary = Summary::default();
        let ours = journal.all(CHAIN);
        if ours.is_empty() {
            return Ok(summary);
        }
        let mut chains = self.chains(watch)?;
        for (old, standing) in journal.all(ROOT) {
            let copy = match standing {
                Standing::Creating(id) => id,
                Standing::Created(id) => Some(id),
            };
            let swapped = Swapped {
                old: &old,
                copy: copy.as_deref(),
                chains: &chains,
            };
            self.put_back(&swapped, &mut summary, watch)?;
            journal.removed(ROOT, &old)?;
            chains = self.chains(watch)?;
        }
        for (name, _) in ours {
            let found = chains.iter().find(|chain| chain.name == name);
            let removed = match found.and_then(|chain| chain.id.as_ref()) {
                Some(id) => self.delete(&id.id, watch)?,
                None => false,
            };
            journal.removed(CHAIN, &name)?;
            summary.cleared(CHAIN, 1, u64::from(removed));
        }
        Ok(summary)
    }

    fn put_back(
        &self,
        swapped: &Swapped<'_>,
        summary: &mut Summary,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let Swapped { old, copy, chains } = *swapped;
        let is = |chain: &RuleChain, id: &str| chain.id.as_ref().is_some_and(|it| it.id == id);
        match chains.iter().find(|chain| chain.root) {
            Some(root) if is(root, old) => {
                summary.ensured(ROOT, 1, 0);
                return Ok(());
            }
            Some(root) if !copy.is_some_and(|copy| is(root, copy)) => {
                let why = "somebody else made it root during the run";
                summary.left(ROOT, &root.name, why);
                return Ok(());
            }
            // Ours is root, or none is.
            Some(_) | None => {}
        }
        if !chains.iter().any(|chain| is(chain, old)) {
            return Err(self.unfit(format!(
                "the rule chain {old}, which was root before, is gone; make another chain root, and try again"
            )));
        }
        self.session.call(&MAKE_ROOT, &Asked::at([old]), watch)?;
        summary.of(ROOT).restored += 1;
        Ok(())
    }

    fn delete(&self, id: &str, watch: &dyn Watch) -> Result<bool, ProvisionError> {
        let answer = self
            .session
            .answer(&DELETE_RULE_CHAIN, &Asked::at([id]), watch)?;
        match answer.status {
            NOT_FOUND => Ok(false),
            _ if answer.is_yes() => Ok(true),
            _ => Err(refused(&answer)),
        }
    }

    fn chains(&self, watch: &dyn Watch) -> Result<Vec<RuleChain>, ProvisionError> {
        let mut chains = Vec::new();
        for page in 0.. {
            let query = PageQuery {
                page_size: PAGE,
                page,
                text_search: None,
            };
            let page = self
                .session
                .call(&LIST_RULE_CHAINS, &Asked::query(query), watch)?;
            chains.extend(page.data);
            if !page.has_next {
                break;
            }
        }
        Ok(chains)
    }

    /// Reads the counts that were stored since an instant, in milliseconds of the wall clock, per node of the platform,
    /// once they no longer grow: a count is stored at the end of its interval.
    ///
    /// # Errors
    /// [`ProvisionError`].
    pub fn last_counts(
        &self,
        from_ms: i64,
        watch: &dyn Watch,
    ) -> Result<Vec<NodeCounts>, ProvisionError> {
        let mut before = None;
        let mut reads = 0;
        loop {
            let counts = self.counts(from_ms, from_ms + YEAR_MS, watch)?;
            let total: u64 = counts.iter().map(NodeCounts::total).sum();
            reads += 1;
            if before == Some(total) || reads == READS {
                return Ok(counts);
            }
            before = Some(total);
            self.session.rest(BETWEEN_READS);
        }
    }

    /// Reads the counts that were stored from one instant to another, in milliseconds of the wall clock, per node of
    /// the platform.
    ///
    /// # Errors
    /// [`ProvisionError`].
    fn counts(
        &self,
        from_ms: i64,
        to_ms: i64,
        watch: &dyn Watch,
    ) -> Result<Vec<NodeCounts>, ProvisionError> {
        let tenant = self.session.user(watch)?.tenant_id.id;
        let entity = [EntityType::Tenant.name(), tenant.as_str()];
        let mut keys = self.session.call(&SERIES_KEYS, &Asked::at(entity), watch)?;
        keys.retain(|key| key.starts_with(PREFIX));
        keys.sort();
        let mut nodes = Vec::new();
        for key in keys {
            let node = key.trim_start_matches(PREFIX).trim_start_matches('_');
            let mut counts = NodeCounts::new(node);
            let mut from = from_ms;
            loop {
                let asked = Asked {
                    path: entity,
                    query: SeriesQuery {
                        keys: key.clone(),
                        start_ts: Some(from),
                        end_ts: Some(to_ms),
                        limit: Some(POINTS),
                        order_by: Some(SortOrder::Ascending),
                        ..SeriesQuery::default()
                    },
                    body: (),
                };
                let mut series = self.session.call(&SERIES, &asked, watch)?;
                let points = series.remove(&key).unwrap_or_default();
                let Some(last) = points.last() else { break };
                from = last.ts + 1;
                points.iter().for_each(|point| counts.push(point));
            }
            counts.trim();
            nodes.push(counts);
        }
        Ok(nodes)
    }

    fn unfit(&self, why: String) -> ProvisionError {
        ProvisionError::RuleChain {
            target: self.target().to_owned(),
            why,
        }
    }
}

/// The nodes of a chain with a count node behind each node that saves time series, and one more of these for the
/// counts themselves; none if there is no such node.
fn counting(chain: RuleChainMetadata) -> Option<RuleChainMetadata> {
    let RuleChainMetadata {
        rule_chain_id,
        first_node_index,
        nodes,
        connections,
        rule_chain_connections,
        ..
    } = chain;
    let saving =
        |(index, node): (usize, &RuleNode)| (node.class == SAVE_NODE).then_some(index as u32);
    let savers: Vec<u32> = nodes.iter().enumerate().filter_map(saving).collect();
    let mut saver = nodes.get(*savers.first()? as usize)?.clone();
    saver.name = "Save counts".to_owned();
    let mut nodes: Vec<RuleNode> = nodes.into_iter().map(fresh).collect();
    let counter = nodes.len() as u32;
    let configuration = CountConfiguration {
        telemetry_prefix: PREFIX.to_owned(),
        interval: INTERVAL,
    };
    nodes.push(RuleNode {
        id: None,
        class: COUNT_NODE.to_owned(),
        name: "Count".to_owned(),
        configuration_version: None,
        configuration: serde_json::to_value(configuration).ok()?,
        others: Map::new(),
    });
    nodes.push(fresh(saver));
    let link = |from_index, to_index| NodeConnection {
        from_index,
        to_index,
        kind: "Success".to_owned(),
    };
    let mut connections = connections.unwrap_or_default();
    connections.extend(savers.into_iter().map(|saver| link(saver, counter)));
    connections.push(link(counter, counter + 1));
    Some(RuleChainMetadata {
        rule_chain_id,
        version: None,
        first_node_index,
        nodes,
        connections: Some(connections),
        rule_chain_connections,
    })
}

/// A node as it is before it is created.
fn fresh(mut node: RuleNode) -> RuleNode {
    node.id = None;
    for own in ["createdTime", "ruleChainId", "externalId"] {
        node.others.remove(own);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_behind_each_node_that_saves_them() {
        let chain = json!({
            "ruleChainId": { "entityType": "RULE_CHAIN", "id": "1" }, "version": 4, "firstNodeIndex": 0,
            "nodes": [
                { "id": { "entityType": "RULE_NODE", "id": "8" }, "ruleChainId": {}, "createdTime": 1,
                  "type": "x.Switch", "name": "Switch", "singletonMode": true, "configuration": {} },
                { "type": SAVE_NODE, "name": "Save", "configurationVersion": 1, "configuration": { "defaultTTL": 0 } },
            ],
            "connections": [{ "fromIndex": 0, "toIndex": 1, "type": "Post telemetry" }],
        });
        let chain: RuleChainMetadata = serde_json::from_value(chain).expect("a chain");
        let counting = counting(chain).expect("it saves time series");
        let read = serde_json::to_value(counting).expect("it is written");
        assert_eq!(read["version"], serde_json::Value::Null);
        let switch = json!({ "type": "x.Switch", "name": "Switch", "configuration": {}, "singletonMode": true });
        assert_eq!(read["nodes"][0], switch);
        let configuration = json!({ "telemetryPrefix": "musterCount", "interval": 1 });
        assert_eq!(read["nodes"][2]["configuration"], configuration);
        assert_eq!(read["nodes"][3]["configuration"]["defaultTTL"], 0);
        let wanted = json!([
            { "fromIndex": 0, "toIndex": 1, "type": "Post telemetry" },
            { "fromIndex": 1, "toIndex": 2, "type": "Success" },
            { "fromIndex": 2, "toIndex": 3, "type": "Success" },
        ]);
        assert_eq!(read["connections"], wanted);
    }

    #[test]
    fn a_chain_that_saves_nothing_cannot_count() {
        let chain = RuleChainMetadata {
            rule_chain_id: EntityId::new(EntityType::RuleChain, "1"),
            version: None,
            first_node_index: None,
            nodes: Vec::new(),
            connections: None,
            rule_chain_connections: None,
        };
        assert!(counting(chain).is_none());
    }
}
