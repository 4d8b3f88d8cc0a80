//! A second witness of the presence of devices: derived from the facts of their links alone.

use std::collections::BTreeMap;

use muster_model::{
    CommandTarget, DeviceId, LinkEvent, LinkFact, LinkId, Met, Micros, Presence, StreamId,
};
use muster_plan::{FleetPlan, Plan, StreamKind};

/// So long after it came up again a link has just done so (glossary, *presence*).
const RECENT: Micros = Micros::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    fleets: Vec<FleetPlan>,
    targets: BTreeMap<StreamId, CommandTarget>,
    links: BTreeMap<LinkId, Ups>,
}

/// Number of times that a link came up, and the instant since which it is up.
#[derive(Debug, Default)]
struct Ups {
    count: u32,
    since: Option<Micros>,
}

impl Whereabouts {
    pub(crate) fn of(plan: &Plan) -> Self {
        let targets = plan.streams().filter_map(|(_, stream)| match stream.kind {
            StreamKind::Command { to, .. } => Some((stream.id, to)),
            StreamKind::Telemetry
            | StreamKind::Event
            | StreamKind::CommandQuery { .. }
            | StreamKind::Receive
            | StreamKind::Connect => None,
        });
        Self {
            fleets: plan.fleets.clone(),
            targets: targets.collect(),
            links: BTreeMap::new(),
        }
    }

    pub(crate) fn link(&mut self, fact: &LinkFact) {
        let ups = self.links.entry(fact.link).or_default();
        match fact.event {
            LinkEvent::Connected { .. } => {
                ups.count += 1;
                ups.since = Some(fact.at);
            }
            LinkEvent::Returned { .. } | LinkEvent::LastSent { .. } => {}
            LinkEvent::Failed(_) | LinkEvent::Disconnected(_) => ups.since = None,
        }
    }

    /// Presence of the device of a command, which came due just now.
    pub(crate) fn presence(&self, met: &Met) -> Presence {
        let target = self.targets.get(&met.id.stream);
        let is_absent = target.is_some_and(|target| target.is_absent(met.id.device, met.id.seq));
        let ups = self
            .link_of(met.id.device)
            .and_then(|link| self.links.get(&link));
        match ups.and_then(|ups| Some((ups.count, ups.since?))) {
            _ if is_absent => Presence::Offline,
            None => Presence::Offline,
            Some((count, since)) if count > 1 && met.due - since < RECENT => Presence::Reconnected,
            Some(_) => Presence::Online,
        }
    }

    fn link_of(&self, device: DeviceId) -> Option<LinkId> {
        self.fleets.iter().find_map(|fleet| {
            let place = device.0.checked_sub(fleet.first_device.0)?;
            let link = fleet.first_link.0 + place / fleet.devices_per_link;
            (place < fleet.devices).then_some(LinkId(link))
        })
    }
}
