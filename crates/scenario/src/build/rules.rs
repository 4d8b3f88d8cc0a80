//! The rules of the verdict, from every `slo`, and from `validity`, `stability` and `stop-if`.

use muster_judge::{
    Latency, Rules, RulesBuilder, Scope, SloBound, StabilityBounds, StopIf, StopTrigger,
    ValidityBounds,
};
use muster_model::Micros;
use muster_platform::Carrier;

mod commands;

use super::expected::due_from;
use crate::plan::{Ack, BackendPlan, FleetPlan, Phases, StreamKind, StreamPlan};
use crate::units;
use crate::view::View;

/// What the rules are about.
pub(super) struct Judged<'a> {
    /// The fleets with their streams.
    pub(super) fleets: &'a [FleetPlan],
    /// The northbound accounts.
    pub(super) backends: &'a [BackendPlan],
    /// How long each phase lasts.
    pub(super) phases: &'a Phases,
}

/// Reads all rules.
pub(super) fn rules(root: &View<'_>, judged: &Judged<'_>) -> Option<Rules> {
    let stability = StabilityBounds {
        min_windows: root.get("stability")?.whole("min-windows")?,
    };
    let all = |_: &FleetPlan, stream: &StreamPlan| stream.carrier != Carrier::None;
    let is_stamped = streams(judged.fleets).all(|(fleet, stream)| all(fleet, stream));
    let mut builder = Rules::builder(!judged.backends.is_empty() && is_stamped)
        .validity(validity(&root.get("validity")?)?)
        .stability(stability);
    for (scope, view) in scopes(root, judged.fleets) {
        builder = slo(builder, &scope, &view, judged, stability);
    }
    if let Some(view) = root.get("stop-if") {
        builder = stop_if(builder, &view);
    }
    Some(builder.build())
}

pub(super) fn streams(fleets: &[FleetPlan]) -> impl Iterator<Item = (&FleetPlan, &StreamPlan)> {
    fleets
        .iter()
        .flat_map(|fleet| fleet.streams.iter().map(move |stream| (fleet, stream)))
}

/// Every `slo` of the scenario with what it is about.
fn scopes<'a>(root: &View<'a>, fleets: &[FleetPlan]) -> Vec<(Scope, View<'a>)> {
    let mut scopes: Vec<_> = root
        .get("slo")
        .map(|view| (Scope::Run, view))
        .into_iter()
        .collect();
    for (view, fleet) in root.list("fleet").iter().zip(fleets) {
        let scope = Scope::Fleet {
            id: fleet.id,
            name: fleet.name.clone(),
        };
        scopes.extend(view.get("slo").map(|view| (scope, view)));
        for (view, stream) in view.list("streams").iter().zip(&fleet.streams) {
            let name = format!("{}/{}", fleet.name, stream.name);
            let scope = Scope::Stream {
                fleet: fleet.id,
                id: stream.id,
                name,
            };
            scopes.extend(view.get("slo").map(|view| (scope, view)));
        }
    }
    scopes
}

fn slo(
    mut builder: RulesBuilder,
    scope: &Scope,
    view: &View<'_>,
    judged: &Judged<'_>,
    stability: StabilityBounds,
) -> RulesBuilder {
    let covered = Covered::of(scope, judged);
    builder = commands::slos(builder, scope, view, judged.fleets);
    if let (Scope::Stream { .. }, []) = (scope, &covered.streams[..]) {
        commands::only(view);
        return builder;
    }
    if let Some(bound) = view.read("loss", units::count_at_most) {
        covered.needs_arrivals(view, "loss");
        builder = builder.slo(scope.clone(), SloBound::Loss(bound));
    }
    if let Some(bound) = view.read("failure-ratio", units::share_at_most) {
        builder = builder.slo(scope.clone(), SloBound::FailureRatio(bound));
    }
    if let Some(bound) = view.read("connected", units::share_at_least) {
        builder = builder.slo(scope.clone(), SloBound::Connected(bound));
    }
    if let Some(bound) = view.read("disconnects", units::count_at_most) {
        builder = builder.slo(scope.clone(), SloBound::Disconnects(bound));
    }
    for latency in [Latency::Response, Latency::Service, Latency::EndToEnd] {
        if let Some(percentiles) = view.get(latency.name()) {
            covered.can_measure(&percentiles, latency);
            builder = latency_slos(builder, scope, latency, &percentiles, covered.messages);
        }
    }
    if view.truth("stable") == Some(true) {
        covered.is_long_enough(view, judged.phases.measure, stability);
        builder = builder.slo(scope.clone(), SloBound::Stable);
    }
    builder
}

/// The bounds on the percentiles of one latency, of so many messages as are due while measuring.
pub(super) fn latency_slos(
    mut builder: RulesBuilder,
    scope: &Scope,
    of: Latency,
    view: &View<'_>,
    messages: u64,
) -> RulesBuilder {
    for (key, bound) in view.entries() {
        let percentile = view.accept(units::percentile(key));
        let at_most = bound.accept(units::time_at_most(bound.text()));
        let (Some(percentile), Some(at_most)) = (percentile, at_most) else {
            continue;
        };
        if messages < percentile.needed() {
            let what = format!(
                "{percentile} needs {} messages, and only {} are due while measuring",
                percentile.needed(),
                messages
            );
            bound.warn(
                what,
                "a named SLO that cannot be evaluated makes the run invalid: measure longer",
            );
        }
        builder = builder.slo(
            scope.clone(),
            SloBound::Latency {
                of,
                percentile,
                at_most,
            },
        );
    }
    builder
}

/// The streams that an `slo` is about.
struct Covered<'a> {
    streams: Vec<(&'a FleetPlan, &'a StreamPlan)>,
    has_backend: bool,
    /// How many messages are due while measuring.
    messages: u64,
}

impl<'a> Covered<'a> {
    fn of(scope: &Scope, judged: &Judged<'a>) -> Self {
        let streams: Vec<_> = streams(judged.fleets)
            .filter(|(fleet, stream)| scope.contains(fleet.id, stream.id) && stream.is_uplink())
            .filter(|(fleet, _)| match scope {
                Scope::Run | Scope::Stream { .. } => true,
                Scope::Fleet { id, .. } => *id == fleet.id,
            })
            .collect();
        let messages = streams
            .iter()
            .map(|(_, stream)| due_from(stream, stream.schedule.warm_up))
            .sum();
        Self {
            streams,
            has_backend: !judged.backends.is_empty(),
            messages,
        }
    }

    /// Loss and end-to-end are known only where arrivals are, and where these carry an id.
    fn needs_arrivals(&self, view: &View<'_>, key: &str) {
        let Some(view) = view.get(key).or_else(|| Some(view.clone())) else {
            return;
        };
        if !self.has_backend {
            let what = format!("`{key}` cannot be known without a backend");
            view.wrong(what, "add `platform.backend`, or remove the SLO");
        } else if let Some((fleet, stream)) = self
            .streams
            .iter()
            .find(|(_, stream)| stream.carrier == Carrier::None)
        {
            let what = format!(
                "`{key}` cannot be known: the messages of {}/{} carry no id",
                fleet.name, stream.name
            );
            view.wrong(
                what,
                "give the stream a `carrier`, or put the SLO into other streams",
            );
        }
    }

    /// Whether the streams have the latency at all.
    fn can_measure(&self, view: &View<'_>, latency: Latency) {
        match latency {
            Latency::EndToEnd => self.needs_arrivals(view, "end-to-end"),
            Latency::Response | Latency::Service => self.needs_answers(view, latency),
            // Legs of commands are no messages of the devices' own.
            Latency::Lateness
            | Latency::CommandRequest
            | Latency::CommandResponse
            | Latency::CommandLoop => {}
        }
    }

    fn needs_answers(&self, view: &View<'_>, latency: Latency) {
        let silent = self
            .streams
            .iter()
            .find(|(_, stream)| stream.ack == Ack::None);
        let asking = |(_, stream): &&(&FleetPlan, &StreamPlan)| {
            matches!(stream.kind, StreamKind::CommandQuery { .. })
        };
        if let Some((fleet, stream)) = self.streams.iter().find(asking) {
            let what = format!(
                "a `{}` SLO on {}/{}, whose answer is a command",
                latency.name(),
                fleet.name,
                stream.name
            );
            view.wrong(what, "put the SLO into the other streams");
        }
        if let Some((fleet, stream)) = silent {
            let what = format!(
                "a `{}` SLO on {}/{}, whose messages have no answer (QoS 0)",
                latency.name(),
                fleet.name,
                stream.name
            );
            view.wrong(
                what,
                "use qos: 1, or `end-to-end`, or put the SLO into the streams with answers",
            );
        }
    }

    /// A named rule that can never be evaluated makes every run invalid.
    fn is_long_enough(&self, view: &View<'_>, measure: Micros, bounds: StabilityBounds) {
        let windows = measure.get() / 1_000_000;
        if windows < u64::from(bounds.min_windows) {
            let what = format!(
                "`stable` needs {} windows of a second, and only {windows} are measured",
                bounds.min_windows
            );
            let help = "a named SLO that cannot be evaluated makes the run invalid: measure longer";
            view.get("stable")
                .unwrap_or_else(|| view.clone())
                .warn(what, help);
        }
    }
}

fn validity(view: &View<'_>) -> Option<ValidityBounds> {
    Some(ValidityBounds {
        lateness_p99: view.time("lateness-p99"),
        max_lateness: view.time("max-lateness")?,
        cpu: view.share("cpu")?,
        cpu_wait: view.share("cpu-wait")?,
        steal: view.share("steal")?,
    })
}

fn stop_if(mut builder: RulesBuilder, view: &View<'_>) -> RulesBuilder {
    let above = view.read("failure-ratio", |text| units::beyond(text, '>'));
    let below = view.read("connected", |text| units::beyond(text, '<'));
    let triggers = [
        above.map(|(share, lasting)| (StopTrigger::FailureRatioAbove(share), lasting)),
        below.map(|(share, lasting)| (StopTrigger::ConnectedBelow(share), lasting)),
    ];
    for (trigger, lasting) in triggers.into_iter().flatten() {
        builder = builder.stop_if(StopIf { trigger, lasting });
    }
    builder
}
