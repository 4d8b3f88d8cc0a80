//! Addresses that links connect to, and those that they connect from.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use muster_device::{Fleets, Session, Transport};
use muster_measure::TargetCounts;
use muster_net::limits;
use muster_plan::{FleetPlan, Plan};
use muster_platform::Protocol;

use crate::classes::{ShardError, ShardSpec};
use crate::renewed_targets::RenewedTargets;

/// The addresses of a shard.
#[derive(Debug)]
pub(super) struct Targets {
    protocol: Protocol,
    /// Link n has the one at n modulo their number; never empty.
    targets: Vec<SocketAddr>,
    /// Addresses in the order in which their counts are kept: those of the start, and those that came later.
    known: Vec<SocketAddr>,
    /// Messages that were reported of each of them.
    reported: Vec<u64>,
    /// Addresses as they are looked up again, and the number of changes that were read.
    renewed: Option<(Arc<RenewedTargets>, u32)>,
    /// The source addresses that the scenario names, by fleet.
    sources: Vec<Vec<IpAddr>>,
    plan: Arc<Plan>,
}

impl Targets {
    /// The targets of the fleets that speak `P`.
    ///
    /// # Errors
    /// [`ShardError::NoTarget`] if there is none.
    pub(super) fn new<P: Session>(spec: &ShardSpec) -> Result<Self, ShardError> {
        let targets = spec.targets.iter();
        let targets = targets.filter(|(protocol, _)| *protocol == P::PROTOCOL);
        let targets: Vec<SocketAddr> = targets.map(|(_, target)| *target).collect();
        if targets.is_empty() {
            return Err(ShardError::NoTarget(P::PROTOCOL.name));
        }
        let fleets = spec.plan.fleets.iter();
        let fleets = fleets.filter(|fleet| P::settings(&fleet.client).is_some());
        let renewed = spec.renewed.clone();
        let renewed = renewed.filter(|_| P::TRANSPORT == Transport::Stream);
        Ok(Self {
            protocol: P::PROTOCOL,
            known: targets.clone(),
            reported: Vec::new(),
            targets,
            renewed: renewed.map(|renewed| (renewed, 0)),
            sources: fleets.map(sources).collect(),
            plan: Arc::clone(&spec.plan),
        })
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Reads what was looked up since the last call. An empty answer changes nothing.
    pub(super) fn renew(&mut self) {
        let Some((renewed, seen)) = &mut self.renewed else {
            return;
        };
        if let Some((version, targets)) = renewed.after(*seen, self.protocol) {
            *seen = version;
            if !targets.is_empty() {
                self.targets = targets;
            }
        }
    }

    /// Returns whether links may come to another address than the one that the start gave them.
    pub(super) const fn may_change(&self) -> bool {
        self.renewed.is_some()
    }

    /// Number of addresses whose counts are kept; none if there is one, and stays one.
    pub(super) fn counted(&self) -> usize {
        match self.may_change() || self.differ() {
            true => self.known.len(),
            false => 0,
        }
    }

    fn differ(&self) -> bool {
        let mut pairs = self.known.windows(2);
        pairs.any(|pair| pair[0] != pair[1])
    }

    /// The place of an address among those whose counts are kept.
    pub(super) fn place_of(&mut self, address: SocketAddr) -> usize {
        let place = self.known.iter().position(|known| *known == address);
        place.unwrap_or_else(|| {
            self.known.push(address);
            self.known.len() - 1
        })
    }

    /// The address at a place, if there are others.
    pub(super) fn address_at(&self, place: usize) -> Option<SocketAddr> {
        let address = self.known.get(place).copied();
        address.filter(|_| self.differ())
    }

    /// Names the counts of each address, if there are several; those of an address that stands several times
    /// are one.
    pub(super) fn name(&self, counts: &[TargetCounts], named: &mut BTreeMap<String, TargetCounts>) {
        if !self.differ() {
            return;
        }
        for (address, counts) in self.known.iter().zip(counts) {
            named.entry(address.to_string()).or_default().merge(counts);
        }
    }

    /// Adds the messages that came to an end since the last call, by address, if there are several.
    pub(super) fn report_sent(
        &mut self,
        counts: &[TargetCounts],
        sent_to: &mut BTreeMap<String, u64>,
    ) {
        if !self.differ() {
            return;
        }
        let named = self.reported.len();
        self.reported.resize(counts.len(), 0);
        let of_each = self.known.iter().zip(counts).zip(&mut self.reported);
        for (place, ((address, counts), reported)) in of_each.enumerate() {
            let sent = counts.sent();
            let more = sent - std::mem::replace(reported, sent);
            // An address without messages is named once.
            if more > 0 || place >= named {
                *sent_to.entry(address.to_string()).or_default() += more;
            }
        }
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
