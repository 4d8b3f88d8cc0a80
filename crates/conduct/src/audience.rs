//! Subscribers of each message, if devices subscribe to other devices' messages.

use std::collections::BTreeMap;

use muster_load::Template;
use muster_model::{DeviceId, StreamId};
use muster_plan::{FleetPlan, Plan, StreamKind, StreamPlan};
use muster_platform::Directory;
use muster_protocol::mqtt::topic;

use crate::directory;

/// Every pair of a subscriber and a sender's stream, worked out from filters and topics.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    /// By stream of kind `receive`: subscriber, sending stream, sender.
    pairs: BTreeMap<StreamId, Vec<(DeviceId, StreamId, DeviceId)>>,
}

/// One device's text for a template: a filter, or a topic.
struct Texts {
    directory: Directory,
    name: String,
    text: String,
}

impl Audience {
    /// The audience of a plan; nothing where no device subscribes.
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut pairs = BTreeMap::new();
        for (fleet, stream) in plan.streams() {
            if let (StreamKind::Receive, Some(filter)) = (stream.kind, &stream.filter) {
                pairs.insert(stream.id, pairs_of(plan, fleet, filter));
            }
        }
        Self { pairs }
    }

    /// Calls `each` for every pair of a stream of kind `receive`.
    pub(crate) fn pairs(
        &self,
        stream: StreamId,
        each: &mut dyn FnMut(DeviceId, StreamId, DeviceId),
    ) {
        for (subscriber, of, sender) in self.pairs.get(&stream).into_iter().flatten() {
            each(*subscriber, *of, *sender);
        }
    }
}

/// The pairs of one subscribing stream. Filters without wildcards are looked up as topics; others
/// are matched, once if all devices have the same.
fn pairs_of(
    plan: &Plan,
    fleet: &FleetPlan,
    filter: &Template,
) -> Vec<(DeviceId, StreamId, DeviceId)> {
    let mut by_filter: BTreeMap<String, Vec<DeviceId>> = BTreeMap::new();
    let mut texts = Texts::of(plan, fleet);
    for device in devices(fleet) {
        let filter = texts.of_device(filter, device).to_owned();
        by_filter.entry(filter).or_default().push(device);
    }
    let mut pairs = Vec::new();
    for (fleet, stream) in plan.uplinks() {
        add_senders(plan, (fleet, stream), &by_filter, &mut pairs);
    }
    pairs
}

fn add_senders(
    plan: &Plan,
    (fleet, stream): (&FleetPlan, &StreamPlan),
    by_filter: &BTreeMap<String, Vec<DeviceId>>,
    pairs: &mut Vec<(DeviceId, StreamId, DeviceId)>,
) {
    let is_wild = |filter: &&String| filter.contains(['+', '#']);
    let wild: Vec<&String> = by_filter.keys().filter(is_wild).collect();
    let mut texts = Texts::of(plan, fleet);
    for sender in devices(fleet) {
        let said = texts.of_device(&stream.surface, sender);
        let plain = by_filter.get_key_value(said).map(|(filter, _)| filter);
        let matching = wild
            .iter()
            .copied()
            .filter(|filter| topic::matches(filter, said));
        let mut subscribers: Vec<DeviceId> = plain
            .into_iter()
            .chain(matching)
            .flat_map(|filter| by_filter[filter].iter().copied())
            .collect();
        subscribers.sort_unstable();
        let own = subscribers
            .into_iter()
            .map(|subscriber| (subscriber, stream.id, sender));
        pairs.extend(own);
    }
}

fn devices(fleet: &FleetPlan) -> impl Iterator<Item = DeviceId> {
    let first = fleet.first_device.0;
    (first..first + fleet.devices).map(DeviceId)
}

impl Texts {
    fn of(plan: &Plan, fleet: &FleetPlan) -> Self {
        Self {
            directory: directory(plan, fleet, 0),
            name: String::new(),
            text: String::new(),
        }
    }

    fn of_device(&mut self, template: &Template, device: DeviceId) -> &str {
        self.directory.render_name(device, &mut self.name);
        self.directory
            .render_text(template, device, &self.name, &mut self.text);
        &self.text
    }
}
