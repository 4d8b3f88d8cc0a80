//! Subscriptions of a fleet's links: within the bound, and each filter apart from the others.

use muster_load::Template;
use muster_measure::PAIRS_MAX;
use muster_model::figure;
use muster_plan::{Ack, FleetPlan, StreamKind, StreamPlan};
use muster_platform::{Carrier, SUBSCRIPTIONS_MAX, Subscription};
use muster_protocol::mqtt::topic;

use super::stream::Class;
use crate::view::View;

struct Wanted<'a> {
    whose: String,
    filter: Filter<'a>,
    /// Its place; none where the dialect has it.
    stands: Option<View<'a>>,
}

enum Filter<'a> {
    OfDialect(&'static str),
    OfStream(&'a Template),
}

/// A link subscribes to no more than it can hold, and no message comes by two of its filters: a broker
/// may send one copy of it or two (MQTT 5 section 3.3.4), and does not name the filter.
pub(super) fn are_distinct(
    class: &Class<'_>,
    streams: &[StreamPlan],
    views: &[View<'_>],
) -> Option<()> {
    let all = wanted(class, streams, views);
    if all.len() > SUBSCRIPTIONS_MAX {
        let what = format!(
            "a device subscribes to {SUBSCRIPTIONS_MAX} filters at the most, and here to {}",
            all.len()
        );
        let help = "one filter with wildcards in place of several, or another fleet for some";
        return class.view.refuse_at("streams", what, help);
    }
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, later)| all[..at].iter().map(move |earlier| (earlier, later)));
    for (earlier, later) in pairs {
        let Some(view) = &later.stands else { continue };
        if let Some((one, other)) = overlap(class, earlier, later) {
            let whose = &earlier.whose;
            let what = format!("`{other}` takes topics that `{one}` of {whose} takes as well");
            let help = "filters without a common topic: a message that two of them take \
                        does not name its filter";
            return view.refuse(what, help);
        }
    }
    Some(())
}

fn wanted<'a>(class: &Class<'_>, streams: &'a [StreamPlan], views: &[View<'a>]) -> Vec<Wanted<'a>> {
    let dialect = class.context.dialect;
    let mut filters: Vec<&'static str> = dialect
        .publishing()
        .subscriptions
        .iter()
        .map(|subscription| subscription.filter)
        .collect();
    if streams.iter().any(StreamPlan::is_command) {
        filters.extend(dialect.publishing().filter_of_commands(class.role()));
    }
    if class.view.truth("error-topic") == Some(true) {
        filters.extend(dialect.publishing().filter_of_refusals(class.role()));
    }
    let asking = streams
        .iter()
        .filter(|stream| stream.ack == Ack::Application);
    filters.extend(asking.filter_map(|stream| (dialect.topic)(stream.topic.source()).answers));
    let of_dialect = filters.into_iter().map(|filter| Wanted {
        whose: dialect.to_string(),
        filter: Filter::OfDialect(filter),
        stands: None,
    });
    let receiving = streams.iter().zip(views);
    let receiving = receiving.filter(|(stream, _)| stream.kind == StreamKind::Receive);
    let of_streams = receiving.filter_map(|(stream, view)| {
        Some(Wanted {
            whose: format!("`{}`", stream.name),
            filter: Filter::OfStream(stream.filter.as_ref()?),
            stands: view.get("filter"),
        })
    });
    of_dialect.chain(of_streams).collect()
}

/// The filters of the first device that has a topic which both take.
fn overlap(class: &Class<'_>, one: &Wanted<'_>, other: &Wanted<'_>) -> Option<(String, String)> {
    let devices = if one.is_fixed() && other.is_fixed() {
        1
    } else {
        class.devices
    };
    let rendered = (0..devices).map(|device| (one.of(class, device), other.of(class, device)));
    let mut common = rendered.filter(|(one, other)| topic::overlap(one, other));
    common.next()
}

impl Wanted<'_> {
    fn is_fixed(&self) -> bool {
        match &self.filter {
            Filter::OfDialect(filter) => !filter.contains("${"),
            Filter::OfStream(template) => template.names().next().is_none(),
        }
    }

    fn of(&self, class: &Class<'_>, device: u32) -> String {
        match self.filter {
            Filter::OfStream(template) => class.variables.render(template, device),
            Filter::OfDialect(filter) => {
                let (mut name, mut text) = (String::new(), String::new());
                let index = class.variables.index.0.saturating_add(device);
                class.variables.names.render(index, &mut name);
                let tenant = class.variables.tenant;
                Subscription { filter, qos: 0 }.render(tenant, &name, &mut text);
                text
            }
        }
    }
}

/// Checks that subscribers can match messages to senders by their ids: every pair of a subscriber and a
/// sender has a set in the ledger.
pub(super) fn subscribers_can_distinguish(root: &View<'_>, fleets: &[FleetPlan]) -> Option<()> {
    let streams = || fleets.iter().flat_map(|fleet| &fleet.streams);
    let receiving = |stream: &&StreamPlan| stream.kind == StreamKind::Receive;
    if streams().find(receiving).is_none() {
        return Some(());
    }
    let fleet_views = root.list("fleet");
    let views = fleet_views.iter().flat_map(|fleet| fleet.list("streams"));
    for (stream, view) in streams().zip(views) {
        if stream.is_uplink()
            && matches!(
                stream.carrier,
                Carrier::Blind(_) | Carrier::Order | Carrier::None
            )
        {
            let what = format!(
                "devices subscribe, and with `carrier: {}` they cannot distinguish messages",
                stream.carrier
            );
            return view.refuse_at("carrier", what, "use `carrier: payload`");
        }
    }
    let of = |is_it: &dyn Fn(&StreamPlan) -> bool| -> u64 {
        let all = fleets.iter().map(|fleet| {
            let streams = fleet.streams.iter().filter(|stream| is_it(stream)).count() as u64;
            streams * u64::from(fleet.devices)
        });
        all.sum()
    };
    let subscribers = of(&|stream| stream.kind == StreamKind::Receive);
    let senders = of(&StreamPlan::is_uplink);
    // A filter of its own for each device makes few pairs of many, but never more than these.
    if subscribers.saturating_mul(senders) > PAIRS_MAX as u64 && has_common_filter(fleets) {
        let what = format!("{subscribers} subscriptions to {senders} senders are too many pairs");
        return root.refuse_at(
            "fleet",
            what,
            &format!(
                "at most {} together, or a filter with ${{index}} for each device",
                figure::count(PAIRS_MAX as u64)
            ),
        );
    }
    Some(())
}

/// Returns true if several devices may have one filter in common, or one with wildcards: only a
/// name or a number is a device's own.
fn has_common_filter(fleets: &[FleetPlan]) -> bool {
    let mut filters = fleets
        .iter()
        .flat_map(|fleet| &fleet.streams)
        .filter_map(|stream| stream.filter.as_ref());
    filters.any(|filter| {
        let is_own = filter
            .names()
            .any(|(name, _)| matches!(name, "id" | "index"));
        !is_own || filter.source().contains(['+', '#'])
    })
}
