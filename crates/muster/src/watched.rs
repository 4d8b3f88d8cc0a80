//! Servers that watch a run: Prometheus, InfluxDB and OTLP. Whatever fails there is a warning.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_cluster::Spread;
use muster_conduct::Part;
use muster_metrics::{Exporter, Identity, Names, Outlets, Settings};
use muster_model::Micros;
use muster_monitor::Environment;
use muster_plan::Plan;
use muster_report::Event;
use muster_result::METRICS_LOST;

use crate::args::{InfluxNames, MetricsArgs, RunArgs};
use crate::{outcome, wall_clock};

/// Opens the ways out that the arguments name, and reports the servers that do not take anything.
pub(crate) fn open(args: &RunArgs) -> Result<Outlets> {
    let MetricsArgs {
        metrics,
        metrics_wait: _,
        influx,
        influx_names,
        otlp,
    } = args.metrics.clone();
    let settings = Settings {
        listen: metrics,
        influx,
        names: match influx_names {
            InfluxNames::Muster => Names::Muster,
            InfluxNames::HonoSimulator => Names::HonoSimulator,
        },
        otlp,
    };
    let env = |name: &str| std::env::var(name).ok();
    let outlets = Outlets::open(&settings, &env).context("export metrics")?;
    if let Some(url) = outlets.url().filter(|_| !args.quiet) {
        outcome::say(&format!("metrics: {url}"));
    }
    for failure in outlets.probe(wall_clock::now_s() * 1_000) {
        outcome::remark(&format!(
            "warning: {failure}; the run goes on and keeps some minutes of figures for it"
        ));
    }
    Ok(outlets)
}

/// Starts exporting; none if no one watches. `target` names the destination of the load.
pub(crate) fn start(
    outlets: Outlets,
    plan: &Plan,
    spread: &Spread,
    target: String,
) -> Option<Exporter> {
    let part = match spread.part {
        Part::WHOLE => String::new(),
        part => part.to_string(),
    };
    let identity = Identity {
        run: format!("{:08x}", spread.run.0),
        scenario: plan.name.clone(),
        target,
        part,
        host: Environment::read().host,
        began_ms: spread.clock.wall_ms_at_t0(),
    };
    outlets.start(identity, plan)
}

/// The events of figures that servers lack at the end of a run.
pub(crate) fn lacks(exporter: Option<&mut Exporter>, end: Micros) -> Vec<Event> {
    let lacks = exporter
        .map(Exporter::lacks)
        .unwrap_or_default()
        .into_iter();
    lacks
        .map(|lack| Event::new(end.as_secs_f64(), METRICS_LOST, lack))
        .collect()
}

/// Ends exporting once the user has seen the result. A run that the user has ended is not waited for.
pub(crate) fn end(exporter: Option<Exporter>, args: &RunArgs, interrupted: &AtomicBool) {
    let Some(exporter) = exporter else { return };
    let most = Duration::from_micros(args.metrics.metrics_wait.get());
    let is_unwanted = || interrupted.load(Ordering::Relaxed);
    for lack in exporter.end(most, &is_unwanted) {
        outcome::remark(&format!("warning: {lack}"));
    }
}
