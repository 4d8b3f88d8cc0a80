//! Addresses that links connect to, and those that they connect from.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use muster_device::{Fleets, Session};
use muster_net::limits;
use muster_plan::{FleetPlan, Plan};

use crate::classes::ShardSpec;

/// The addresses of a shard.
#[derive(Debug)]
pub(super) struct Targets {
    targets: Vec<SocketAddr>,
    /// The source addresses that the scenario names, by fleet.
    sources: Vec<Vec<IpAddr>>,
    plan: Arc<Plan>,
}

impl Targets {
    /// The targets of the fleets that speak `P`.
    pub(super) fn new<P: Session>(spec: &ShardSpec) -> Self {
        let targets = spec.targets.iter();
        let targets = targets.filter(|(protocol, _)| *protocol == P::PROTOCOL);
        let fleets = spec.plan.fleets.iter();
        let fleets = fleets.filter(|fleet| P::settings(&fleet.client).is_some());
        Self {
            targets: targets.map(|(_, target)| *target).collect(),
            sources: fleets.map(sources).collect(),
            plan: Arc::clone(&spec.plan),
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The target of a link, or of the first link of one of `sockets` sockets; and the source address,
    /// where none leaves it to the kernel. Links of a fleet take those that the scenario names in turn,
    /// to each target alike.
    pub(super) fn of<C>(
        &self,
        fleets: &Fleets<C>,
        link: u32,
        sockets: u32,
    ) -> (SocketAddr, Option<IpAddr>) {
        let id = fleets.link_id(link).0;
        let target = self.targets[id as usize % self.targets.len()];
        let named = &self.sources[fleets.ramp_of(link)];
        let fits = |source: &&IpAddr| source.is_ipv4() == target.is_ipv4();
        let source = match named.iter().filter(fits).count() {
            0 => limits::source_for(id, sockets, target),
            count => {
                let turn = id as usize / self.targets.len();
                named.iter().filter(fits).nth(turn % count).copied()
            }
        };
        (target, source)
    }

    /// All targets, as a list.
    pub(super) fn addresses(&self) -> String {
        let mut targets = self.targets.clone();
        targets.sort_unstable();
        targets.dedup();
        let all: Vec<String> = targets.iter().map(ToString::to_string).collect();
        all.join(", ")
    }
}

/// The source addresses of a fleet; the caller has refused what is none of this machine's.
fn sources(fleet: &FleetPlan) -> Vec<IpAddr> {
    let named = fleet.connect.from.iter();
    named.filter_map(|source| source.parse().ok()).collect()
}
