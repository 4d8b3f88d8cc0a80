//! The rules of the verdict, from every `slo`, and from `validity`, `stability` and `stop-if`.

use muster_judge::{
    Latency, RuleName, Rules, RulesBuilder, Scope, SloBound, StabilityBounds, StopIf, StopTrigger,
    ValidityBounds,
};
use muster_model::Micros;
use muster_plan::{Ack, BackendPlan, FleetPlan, Phases, Plan, StreamKind, StreamPlan};
use muster_platform::Dialect;

mod commands;
mod covered;

use covered::Covered;

use crate::units::{self, Demand};
use crate::view::View;

pub(super) struct Judged<'a> {
    pub(super) fleets: &'a [FleetPlan],
    pub(super) dialect: Dialect,
    pub(super) is_watched: bool,
    pub(super) backends: &'a [BackendPlan],
    pub(super) reads_back: bool,
    pub(super) phases: &'a Phases,
}

pub(super) fn rules(root: &View<'_>, judged: &Judged<'_>) -> Option<Rules> {
    let stability = StabilityBounds {
        min_windows: root.get("stability")?.whole("min-windows")?,
    };
    let scopes = scopes(root, judged.fleets);
    let mut builder = Rules::builder(!judged.backends.is_empty() || judged.reads_back)
        .validity(validity(&root.get("validity")?)?)
        .stability(stability);
    for (scope, view) in &scopes {
        let place = Place {
            scope,
            view,
            all: &scopes,
            judged,
        };
        builder = place.slos(builder, stability);
    }
    for (name, view) in sets(root)? {
        let place = Place {
            scope: &Scope::Run,
            view: &view,
            all: &scopes,
            judged,
        };
        builder = place.slos(builder.set(name), stability);
    }
    if let Some(view) = root.get("stop-if") {
        builder = stop_if(builder, &view, judged);
    }
    if let Some(soak) = root.get("soak") {
        builder = builder.soak(soak.time("for")?);
    }
    let rules = builder.build();
    warn_of_rules_without_object(&rules, &scopes, judged.fleets);
    Some(rules)
}

/// Warns of conditions that stop no run because it is too short for them.
pub(super) fn warn_of_idle_stops(root: &View<'_>, plan: &Plan) {
    let measure = plan.phases.measure;
    let steps = plan.steps(Micros::ZERO).into_iter();
    let longest = steps.map(|step| step.until - step.from).max();
    for StopIf { trigger, lasting } in &plan.rules.stop_if {
        let (key, step) = match trigger {
            StopTrigger::FailureRatioAbove(_) => ("failure-ratio", None),
            StopTrigger::ConnectedBelow(_) => ("connected", None),
            StopTrigger::LatencyAbove { of, .. } => (of.name(), longest),
        };
        let (span, there_is, help) = match step {
            Some(step) => (
                step,
                "the longest step has",
                "a shorter time, or longer holds",
            ),
            None => (
                measure,
                "the measured phase has",
                "a shorter time, or a longer `phases.measure`",
            ),
        };
        let view = root.get("stop-if").and_then(|view| view.get(key));
        if let Some(view) = view.filter(|_| *lasting > span) {
            let what =
                format!("this condition ends no run: it needs {lasting}, and {there_is} {span}");
            view.warn(what, help);
        }
    }
}

pub(super) fn streams(fleets: &[FleetPlan]) -> impl Iterator<Item = (&FleetPlan, &StreamPlan)> {
    fleets
        .iter()
        .flat_map(|fleet| fleet.streams.iter().map(move |stream| (fleet, stream)))
}

fn of_stream(fleet: &FleetPlan, stream: &StreamPlan) -> Scope {
    Scope::Stream {
        fleet: fleet.id,
        id: stream.id,
        name: format!("{}/{}", fleet.name, stream.name),
    }
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
            scopes.extend(view.get("slo").map(|view| (of_stream(fleet, stream), view)));
        }
    }
    scopes
}

/// Sets of SLOs that a scenario has at the most: each of them takes its share of the time of a search.
const SETS: usize = 8;

/// The named sets of SLOs.
fn sets<'a>(root: &View<'a>) -> Option<Vec<(&'a str, View<'a>)>> {
    let Some(view) = root.get("slo-sets") else {
        return Some(Vec::new());
    };
    let sets: Vec<_> = view.entries().collect();
    if sets.len() > SETS {
        return view.refuse(
            format!("there are {} sets of SLOs", sets.len()),
            "at most 8",
        );
    }
    let is_plain = |name: &str| {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        name.chars().all(is_plain) && !name.is_empty()
    };
    for (name, set) in &sets {
        if !is_plain(name) {
            set.wrong(
                format!("`{name}` cannot name a set of SLOs"),
                "letters, digits, `-` and `_`",
            );
        }
    }
    Some(sets)
}

/// Warns of a rule whose streams all have narrower rules.
fn warn_of_rules_without_object(rules: &Rules, scopes: &[(Scope, View<'_>)], fleets: &[FleetPlan]) {
    let named = rules
        .slos
        .iter()
        .filter(|slo| slo.named && !slo.except.is_empty());
    for slo in named {
        let rule = slo.bound.name();
        let has_object = match rule.is_about_links() {
            true => fleets.iter().any(|fleet| slo.covers_links(fleet.id)),
            false => streams(fleets).any(|(fleet, of)| slo.covers(fleet.id, of.id)),
        };
        let view = scopes.iter().find(|(scope, _)| *scope == slo.scope);
        if let (false, Some((_, view))) = (has_object, view) {
            let what = format!(
                "every stream here has its own rule `{rule}`, so that this one judges nothing"
            );
            view.warn(what, "remove it, or one of the others");
        }
    }
}

struct Place<'a, 'v> {
    scope: &'a Scope,
    view: &'a View<'v>,
    all: &'a [(Scope, View<'v>)],
    judged: &'a Judged<'a>,
}

impl Place<'_, '_> {
    fn slos(&self, mut builder: RulesBuilder, stability: StabilityBounds) -> RulesBuilder {
        builder = commands::slos(builder, self);
        let has_messages = !Covered::all(self).streams.is_empty();
        if let (Scope::Stream { .. }, false) = (self.scope, has_messages) {
            commands::only(self.view);
            return builder;
        }
        builder = self.arrival_slos(builder);
        let ratio = self.view.demand("failure-ratio", units::share_at_most);
        builder = self.add(
            builder,
            RuleName::FailureRatio,
            ratio,
            SloBound::FailureRatio,
        );
        let connected = self.view.demand("connected", units::share_at_least);
        builder = self.add(builder, RuleName::Connected, connected, SloBound::Connected);
        let lost = self.view.demand("disconnects", units::count_at_most);
        builder = self.add(builder, RuleName::Disconnects, lost, SloBound::Disconnects);
        for latency in [Latency::Response, Latency::Service, Latency::EndToEnd] {
            if let Some(percentiles) = self.view.get(latency.name()) {
                let covered = Covered::by(self, latency.name());
                if has_bound(&percentiles) {
                    covered.can_measure(&percentiles, latency);
                }
                builder = self.latency_slos(builder, latency, (&percentiles, covered.messages));
            }
        }
        self.stable(builder, stability)
    }

    fn arrival_slos(&self, mut builder: RulesBuilder) -> RulesBuilder {
        let rules = [
            (RuleName::Loss, SloBound::Loss as commands::Counted),
            (RuleName::Duplicates, SloBound::Duplicates),
        ];
        for (rule, bound) in rules {
            let key = rule.to_string();
            let demand = self.view.demand(&key, units::count_at_most);
            if matches!(demand, Some(Demand::Bound(_))) {
                Covered::by(self, &key).needs_arrivals(self.view, &key);
            }
            builder = self.add(builder, rule, demand, bound);
        }
        builder
    }

    fn stable(&self, builder: RulesBuilder, stability: StabilityBounds) -> RulesBuilder {
        let scope = self.scope.clone();
        match self.view.demand("stable", units::truth) {
            Some(Demand::Bound(true)) => {
                let measure = self.judged.phases.measure;
                let covered = Covered::by(self, "stable");
                covered.is_long_enough(self.view, measure, stability);
                covered.needs_delivery(self.view, self.judged);
                builder.slo(scope, SloBound::Stable)
            }
            Some(Demand::Bound(false)) => builder.leave_out(scope, RuleName::Stable),
            Some(Demand::Any) => builder.any(scope, RuleName::Stable),
            None => builder,
        }
    }

    fn add<T>(
        &self,
        builder: RulesBuilder,
        rule: RuleName,
        demand: Option<Demand<T>>,
        bound: impl FnOnce(T) -> SloBound,
    ) -> RulesBuilder {
        match demand {
            Some(Demand::Any) => builder.any(self.scope.clone(), rule),
            Some(Demand::Bound(value)) => builder.slo(self.scope.clone(), bound(value)),
            None => builder,
        }
    }

    /// The bounds on the percentiles of one latency, with the number of messages due while measuring.
    fn latency_slos(
        &self,
        mut builder: RulesBuilder,
        of: Latency,
        (view, messages): (&View<'_>, u64),
    ) -> RulesBuilder {
        if view.text() == units::ANY {
            let percentile = None;
            return builder.any(self.scope.clone(), RuleName::Latency { of, percentile });
        }
        for (key, bound) in view.entries() {
            let percentile = view.accept(units::percentile(key));
            let demand = bound.accept(units::or_any(bound.text(), units::time_at_most));
            let (Some(percentile), Some(demand)) = (percentile, demand) else {
                continue;
            };
            if messages < percentile.needed() && demand != Demand::Any {
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
            let rule = RuleName::Latency {
                of,
                percentile: Some(percentile),
            };
            builder = self.add(builder, rule, Some(demand), |at_most| SloBound::Latency {
                of,
                percentile,
                at_most,
            });
        }
        builder
    }
}

/// Returns true if a percentile has a bound that is not `any`.
fn has_bound(percentiles: &View<'_>) -> bool {
    percentiles
        .entries()
        .any(|(_, bound)| bound.text() != units::ANY)
}

fn validity(view: &View<'_>) -> Option<ValidityBounds> {
    Some(ValidityBounds {
        lateness_p99: view.time("lateness-p99")?,
        max_lateness: view.time("max-lateness")?,
    })
}

fn stop_if(mut builder: RulesBuilder, view: &View<'_>, judged: &Judged<'_>) -> RulesBuilder {
    let above = view.read("failure-ratio", |text| units::beyond(text, '>'));
    let below = view.read("connected", |text| units::beyond(text, '<'));
    let triggers = [
        above.map(|(share, lasting)| (StopTrigger::FailureRatioAbove(share), lasting)),
        below.map(|(share, lasting)| (StopTrigger::ConnectedBelow(share), lasting)),
    ];
    let has_answers = streams(judged.fleets).any(|(_, stream)| {
        let is_message = matches!(stream.kind, StreamKind::Telemetry | StreamKind::Event);
        is_message && stream.ack != Ack::None
    });
    let latencies = [
        (
            Latency::Response,
            has_answers,
            "no stream has answers, so that no response is measured",
        ),
        (
            Latency::EndToEnd,
            !judged.backends.is_empty(),
            "there is no backend, so that no arrival is seen",
        ),
    ];
    let latencies = latencies.map(|(of, is_there, lack)| {
        let key = of.name();
        let (percentile, bound, lasting) = view.read(key, units::percentile_above)?;
        if !is_there {
            return view.refuse_at(key, lack, "remove the condition");
        }
        let trigger = StopTrigger::LatencyAbove {
            of,
            percentile,
            bound,
        };
        Some((trigger, lasting))
    });
    for (trigger, lasting) in triggers.into_iter().chain(latencies).flatten() {
        builder = builder.stop_if(StopIf { trigger, lasting });
    }
    builder
}
