//! From what was measured and judged to a [`Report`]: every figure is copied, none is made.

use muster_judge::{GeneratorHealth, IncidentKind, strains};
use muster_measure::{LatencyTable, LatencyView, ScopeSummary, Summary, WindowDelta};
use muster_model::{DeviceId, Micros};

use crate::{
    Event, GeneratorUse, HealthFigure, Latencies, Ledgers, Phase, Report, StreamAccount, Verdict,
};

mod accounts;
mod bursts;
mod downlink;
mod recovery;
mod rules;
mod steps;
mod windows;

pub use steps::JudgedStep;

/// All that a report is made of.
pub struct Assembly<'a> {
    /// Facts that were not measured, such as name and environment; of `generator` all but its health, and
    /// events without the incidents of that health. The other keys are filled in.
    pub facts: Report,
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
            facts,
            names,
            summary,
            windows,
            verdict,
            health,
        } = self;
        let scope = &summary.run;
        let latency = Latencies::from(&scope.latency);
        let latency = with_commands(latency, scope);
        let lateness = latency.lateness.as_ref();
        let lateness_p99_us = lateness.and_then(|leg| leg.percentiles.p99_us);
        let windows = windows::coarsened(summary, windows, health);
        let mut events = events(facts.events, health);
        recovery::add(&mut events, &windows);
        let mut ledger = ledgers(summary, names);
        bursts::measure(&mut ledger, &facts.scenario);
        Report {
            measured_s: (summary.measured_s > 0.0).then_some(summary.measured_s),
            phases: phases(summary),
            verdict: Verdict::from(verdict),
            ledger,
            links: scope.links.clone(),
            rates: scope.rates,
            latency,
            latency_cold: cold(scope),
            latency_warm: warm(scope),
            generator: GeneratorUse {
                lateness_p99_us,
                health: health_figures(summary, health),
                ..facts.generator
            },
            events,
            windows,
            ..facts
        }
    }
}

fn health_figures(summary: &Summary, health: &GeneratorHealth) -> Vec<HealthFigure> {
    let timeline = &summary.timeline;
    let all = strains(health, (timeline.measure, timeline.settle));
    all.iter().map(HealthFigure::from).collect()
}

fn with_commands(latencies: Latencies, scope: &ScopeSummary) -> Latencies {
    downlink::with_commands(latencies, scope.command.as_ref(), |of| Some(&of.measured))
}

fn cold(scope: &ScopeSummary) -> Option<Latencies> {
    let latencies = scope.cold.as_ref()?.into();
    let command = scope.command.as_ref();
    Some(downlink::with_commands(latencies, command, |of| {
        of.cold.as_ref()
    }))
}

fn warm(scope: &ScopeSummary) -> Option<Latencies> {
    let latencies = scope.warm.as_ref()?.into();
    let command = scope.command.as_ref();
    Some(downlink::with_commands(latencies, command, |of| {
        of.warm.as_ref()
    }))
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
            latency: with_commands(Latencies::from(&scope.latency), scope),
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
