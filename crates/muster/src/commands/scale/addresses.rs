//! The load that each address of the target received.

use std::collections::BTreeSet;

use muster_judge::capacity::idle_address;
use muster_measure::TargetCounts;
use muster_plan::{Endpoint, Plan};
use muster_report::Report;

use super::log::Load;

/// The load that each address received, also those that received none. Over datagrams, it is counted for all
/// of them together.
pub(super) fn loads(report: &Report, plan: &Plan) -> Vec<Load> {
    let endpoints = plan.platform.endpoints.iter();
    let names: BTreeSet<String> = endpoints.map(Endpoint::authority).collect();
    let counted = &report.links.targets;
    let mut loads: Vec<Load> = counted
        .iter()
        .map(|(address, counts)| load_of(address, counts))
        .collect();
    if counted.is_empty() {
        let uplink = &report.ledger.uplink;
        let all = names.first().filter(|_| names.len() == 1);
        loads.extend(all.map(|address| Load {
            address: address.clone(),
            connected: report.links.connected,
            sent: uplink.sent,
            accepted: uplink.accepted,
        }));
    } else if names.len() > counted.len() {
        let without = names.iter().filter(|name| !counted.contains_key(*name));
        loads.extend(without.map(|name| load_of(name, &TargetCounts::default())));
    }
    loads
}

fn load_of(address: &str, counts: &TargetCounts) -> Load {
    Load {
        address: address.to_owned(),
        connected: counts.connected,
        sent: counts.sent(),
        accepted: counts.accepted,
    }
}

/// The first address that was sent next to nothing of its fair share.
pub(super) fn idle(load: &[Load]) -> Option<&str> {
    idle_address(load.iter().map(|of| (&of.address[..], of.sent)))
}
