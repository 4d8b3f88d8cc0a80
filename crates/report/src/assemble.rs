//! From what was measured and judged to a [`Report`]: every figure is copied, none is made.

use std::collections::BTreeMap;

use muster_judge::{GeneratorHealth, IncidentKind, strains};
use muster_measure::{LatencyTable, LatencyView, ScopeSummary, Summary, WindowDelta};
use muster_model::{DeviceId, Micros, RunId};
use serde_json::Value;

use crate::{
    Event, GeneratorUse, HealthFigure, Latencies, Ledgers, Phase, Report, StreamAccount, TargetUse,
    Unfinished, Verdict,
};

mod accounts;
mod bursts;
mod downlink;
mod recovery;
mod rules;
mod windows;

/// All that a report is made of.
pub struct Assembly<'a> {
    /// Facts that only the caller knows.
    pub run: RunFacts,
    /// Names of streams, backends and devices.
    pub names: &'a Names<'a>,
    /// Ledgers, rates, latencies and series.
    pub summary: &'a Summary,
    /// The merged windows of the whole run.
    pub windows: &'a WindowDelta,
    /// The verdict.
    pub verdict: &'a muster_judge::Verdict,
    /// The generator's own health.
    pub health: &'a GeneratorHealth,
}

/// Facts about a run that were not measured.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Version of the program.
    pub muster: String,
    /// The scenario's name.
    pub name: String,
    /// The run's id.
    pub run: RunId,
    /// The seed.
    pub seed: u64,
    /// SHA-256 of the scenario's text, in hexadecimal.
    pub scenario_sha256: Option<String>,
    /// SHA-256 of the plan and its rules as resolved, in hexadecimal.
    pub resolved_sha256: Option<String>,
    /// Labels of the scenario and the command line.
    pub labels: BTreeMap<String, String>,
    /// Wall-clock twin of T0, RFC 3339 in UTC.
    pub started: Option<String>,
    /// The scenario as resolved, secrets masked.
    pub scenario: Value,
    /// Machine, kernel, limits; under `target` the address that the load went to.
    pub environment: Value,
    /// True if the target ran on the generator's machine.
    pub co_located: Option<bool>,
    /// Reason why the run missed its planned end.
    pub unfinished: Option<Unfinished>,
    /// Resources that the generator used; where its lateness is not set, it is taken from the
    /// summary.
    pub generator: GeneratorUse,
    /// Resources that the target used.
    pub target: TargetUse,
    /// Events without the incidents of the generator's health.
    pub events: Vec<Event>,
    /// Figures by the formulas of the published load tests, by name.
    pub published: BTreeMap<String, Value>,
}

/// Names of the parts of a plan.
pub struct Names<'a> {
    /// `<fleet>/<stream>` of every stream, at the index of its `StreamId`.
    pub streams: Vec<String>,
    /// Every backend, at the index of its `BackendId`.
    pub backends: Vec<String>,
    /// The name of a device.
    pub device: &'a dyn Fn(DeviceId) -> String,
}

impl Assembly<'_> {
    /// The report.
    pub fn report(self) -> Report {
        let Self {
            run,
            names,
            summary,
            windows,
            verdict,
            health,
        } = self;
        let scope = &summary.run;
        let latency = Latencies::from(&scope.latency);
        let latency = downlink::with_commands(latency, scope.command.as_ref());
        let lateness_p99_us = latency
            .lateness
            .as_ref()
            .and_then(|leg| leg.percentiles.p99_us);
        let windows = windows::coarsened(summary, windows, health);
        let mut events = events(run.events, health);
        recovery::add(&mut events, &windows);
        let mut ledger = ledgers(summary, names);
        bursts::measure(&mut ledger, &run.scenario);
        Report {
            muster: run.muster,
            name: run.name,
            run: format!("{:08x}", run.run.0),
            seed: run.seed,
            scenario_sha256: run.scenario_sha256,
            resolved_sha256: run.resolved_sha256,
            labels: run.labels,
            started: run.started,
            unfinished: run.unfinished,
            measured_s: (summary.measured_s > 0.0).then_some(summary.measured_s),
            phases: phases(summary),
            scenario: run.scenario,
            environment: run.environment,
            co_located: run.co_located,
            verdict: Verdict::from(verdict),
            ledger,
            links: scope.links.clone(),
            rates: scope.rates,
            latency,
            latency_cold: cold(scope),
            latency_warm: warm(scope),
            generator: GeneratorUse {
                lateness_p99_us: run.generator.lateness_p99_us.or(lateness_p99_us),
                health: health_figures(summary, health),
                ..run.generator
            },
            target: run.target,
            events,
            windows,
            published: run.published,
            ..Report::default()
        }
    }
}

fn health_figures(summary: &Summary, health: &GeneratorHealth) -> Vec<HealthFigure> {
    let timeline = &summary.timeline;
    let all = strains(health, (timeline.measure, timeline.settle));
    all.iter().map(HealthFigure::from).collect()
}

fn cold(scope: &ScopeSummary) -> Option<Latencies> {
    let command = scope.command.as_ref();
    downlink::apart(scope.cold.as_ref(), command, |of| of.cold.as_ref())
}

fn warm(scope: &ScopeSummary) -> Option<Latencies> {
    let command = scope.command.as_ref();
    downlink::apart(scope.warm.as_ref(), command, |of| of.warm.as_ref())
}

fn phases(summary: &Summary) -> Vec<Phase> {
    let timeline = &summary.timeline;
    let borders = [
        ("connect", Micros::ZERO, timeline.origin),
        ("warm-up", timeline.origin, timeline.measure),
        ("measure", timeline.measure, timeline.settle),
        ("settle", timeline.settle, Micros::MAX),
    ];
    borders
        .into_iter()
        .map(|(phase, from, until)| (phase, from, until.min(summary.end)))
        .filter(|(_, from, until)| from < until)
        .map(|(phase, from, until)| Phase {
            phase: phase.to_owned(),
            from_s: from.as_secs_f64(),
            until_s: until.as_secs_f64(),
        })
        .collect()
}

fn ledgers(summary: &Summary, names: &Names<'_>) -> Ledgers {
    let commands = |scope: &ScopeSummary| {
        let command = scope.command.as_ref();
        command.map(|of| downlink::commands(of, names))
    };
    let receptions = |scope: &ScopeSummary| {
        let reception = scope.reception.as_ref();
        reception.map(|of| downlink::receptions(of, names))
    };
    let streams = names.streams.iter().zip(&summary.streams);
    let by_stream = streams.map(|(name, scope)| {
        let account = StreamAccount {
            ledger: scope.uplink.clone(),
            rates: scope.rates,
            latency: downlink::with_commands(
                Latencies::from(&scope.latency),
                scope.command.as_ref(),
            ),
            latency_cold: cold(scope),
            latency_warm: warm(scope),
            command: commands(scope),
            receive: receptions(scope),
            burst_us: None,
        };
        (name.clone(), account)
    });
    let backends = names.backends.iter().zip(&summary.backends);
    let by_backend = backends.zip(0..).map(|((name, backend), number)| {
        let account = accounts::backend((number, backend), summary, names);
        (name.clone(), account)
    });
    Ledgers {
        uplink: summary.run.uplink.clone(),
        measured: summary.run.measured.clone(),
        command: commands(&summary.run),
        receive: receptions(&summary.run),
        by_stream: by_stream.collect(),
        by_backend: by_backend.collect(),
    }
}

fn events(mut events: Vec<Event>, health: &GeneratorHealth) -> Vec<Event> {
    // That a consumer lost its session is among the events already.
    let incidents = health.incidents.iter();
    let incidents = incidents.filter(|incident| incident.kind != IncidentKind::ConsumerLost);
    events.extend(incidents.map(|incident| {
        let (kind, detail, count) = (incident.kind, &incident.detail, incident.count);
        let detail = format!("{kind}: {detail} ({count})");
        let event = Event::new(incident.from.as_secs_f64(), kind.rule(), detail);
        match incident.until > incident.from {
            true => event.until(incident.until.as_secs_f64()),
            false => event,
        }
    }));
    events.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    events
}

impl From<&LatencyTable> for Latencies {
    fn from(table: &LatencyTable) -> Self {
        let leg = |view: &Option<LatencyView>| view.as_ref().map(|view| view.figures.clone());
        Self {
            response: table
                .response
                .as_ref()
                .map(|view| view.with_lower(table.response_lower.as_ref())),
            service: leg(&table.service),
            lateness: leg(&table.lateness),
            held: leg(&table.held),
            end_to_end: leg(&table.end_to_end),
            connect: leg(&table.connect),
            command_request: None,
            command_response: None,
            command_loop: None,
        }
    }
}
