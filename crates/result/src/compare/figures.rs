//! The figures of one run that are compared.

use muster_judge::capacity::{Interval, SearchEnd};
use muster_judge::compare::{Direction, Observed, Scale};
use muster_measure::{Ledger, Rates};
use muster_model::Dimension;
use muster_report::{CapacityReport, Latencies, LatencyFigures, Report, Unit, Window};

use super::RUN;

/// The smallest rate that differs from none, per second.
const RATE_RESOLUTION: f64 = 0.001;

/// Percentiles of a latency, by the field's name and in words, and those that decide.
const PERCENTILES: [(&str, &str, bool); 5] = [
    ("p50_us", "p50", true),
    ("p90_us", "p90", false),
    ("p95_us", "p95", false),
    ("p99_us", "p99", true),
    ("p99_9_us", "p99.9", false),
];

/// A figure of one run.
#[derive(Debug, Clone)]
pub(super) struct Picked {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) direction: Direction,
    pub(super) scale: Scale,
    /// True if it decides where nobody says what decides.
    pub(super) decides: bool,
    pub(super) observed: Observed,
}

impl Picked {
    /// Its name with the scope.
    pub(super) fn title(&self, scope: &str) -> String {
        format!("{} [{scope}]", self.name)
    }
}

/// The figures of a run, each with its scope: of all streams first, then of each stream.
pub(super) fn figures_of(report: &Report) -> Vec<(String, Picked)> {
    let mut all = Vec::new();
    let mut add = |scope: &str, figures: Vec<Picked>| {
        all.extend(figures.into_iter().map(|picked| (scope.to_owned(), picked)));
    };
    let windows = &report.windows;
    add(RUN, rates(&report.rates, windows));
    add(RUN, latencies(&report.latency, "", windows));
    for (latency, suffix) in [
        (&report.latency_cold, ", cold"),
        (&report.latency_warm, ", warm"),
    ] {
        add(
            RUN,
            latency
                .as_ref()
                .map_or(Vec::new(), |of| latencies(of, suffix, &[])),
        );
    }
    add(RUN, shares(&report.ledger.uplink, &report.ledger.measured));
    add(RUN, resources(report));
    for (name, stream) in &report.ledger.by_stream {
        add(name, rates(&stream.rates, &[]));
        add(name, latencies(&stream.latency, "", &[]));
        add(name, shares(&stream.ledger, &stream.ledger));
    }
    all
}

/// The capacities that a search found, one for each set of SLOs.
pub(super) fn capacities_of(answer: &CapacityReport) -> Vec<(String, Picked)> {
    answer.by_set().iter().filter_map(capacity_of).collect()
}

/// The capacity that a search found; none if it found none.
fn capacity_of(answer: &CapacityReport) -> Option<(String, Picked)> {
    let Some(SearchEnd::Found(found)) = &answer.own.end else {
        return None;
    };
    let Interval {
        lower,
        middle,
        upper,
    } = found.interval;
    let (unit, resolution) = match answer.find {
        Dimension::Rate | Dimension::Commands | Dimension::Connects => {
            (Unit::PerSecond, RATE_RESOLUTION)
        }
        Dimension::Devices => (Unit::Devices, 1.0),
        Dimension::Payload => (Unit::Bytes, 1.0),
    };
    let by = answer.own.set.as_ref();
    let by = by.map_or(String::new(), |set| format!(" by {set}"));
    let picked = Picked {
        name: format!("capacity ({}){by}", answer.find.name()),
        unit,
        direction: Direction::Higher,
        scale: Scale::Ratio { resolution },
        decides: true,
        observed: Observed {
            value: middle,
            interval: Some([lower, upper]),
            ..Observed::default()
        },
    };
    answer.own.certified.map(|_| (RUN.to_owned(), picked))
}

/// Values of windows of the measured phase.
fn measured(windows: &[Window]) -> impl Iterator<Item = &Window> {
    windows.iter().filter(|window| window.phase == "measure")
}

fn rates(rates: &Rates, windows: &[Window]) -> Vec<Picked> {
    type Count = fn(&Window) -> Option<u64>;
    let figures: [(&str, Option<f64>, Count); 4] = [
        ("issued", rates.issued, |of| Some(of.issued)),
        ("completed", rates.completed, |of| Some(of.completed)),
        ("accepted", rates.accepted, |of| Some(of.accepted)),
        ("arrived", rates.arrived, |of| of.arrived),
    ];
    let picked = figures.into_iter().filter_map(|(name, rate, count)| {
        let per_second = |window: &Window| Some(count(window)? as f64 / window.for_s);
        Some(Picked {
            name: name.to_owned(),
            unit: Unit::PerSecond,
            direction: Direction::Higher,
            scale: Scale::Ratio {
                resolution: RATE_RESOLUTION,
            },
            decides: ["accepted", "arrived"].contains(&name),
            observed: Observed {
                value: rate?,
                windows: measured(windows).filter_map(per_second).collect(),
                ..Observed::default()
            },
        })
    });
    picked.collect()
}

fn latencies(of: &Latencies, suffix: &str, windows: &[Window]) -> Vec<Picked> {
    let legs = [
        ("response", &of.response),
        ("service", &of.service),
        ("end-to-end", &of.end_to_end),
        ("connect", &of.connect),
        ("command-request", &of.command_request),
        ("command-response", &of.command_response),
        ("command-loop", &of.command_loop),
    ];
    let mut all = Vec::new();
    for (name, leg) in legs {
        let Some(leg) = leg else { continue };
        let is_judged = ["response", "end-to-end", "command-loop"].contains(&name);
        for (field, percentile, is_headline) in PERCENTILES {
            let Some(observed) = percentile_of(leg, field) else {
                continue;
            };
            all.push(Picked {
                decides: is_judged && is_headline && suffix.is_empty(),
                observed: Observed {
                    windows: in_windows(windows, name, field),
                    ..observed
                },
                ..time(format!("{name} {percentile}{suffix}"))
            });
        }
    }
    all
}

/// A time that does not decide.
fn time(name: String) -> Picked {
    Picked {
        name,
        unit: Unit::Us,
        direction: Direction::Lower,
        scale: Scale::Ratio { resolution: 1.0 },
        decides: false,
        observed: Observed::default(),
    }
}

/// A percentile: of all due if some messages have no end.
fn percentile_of(leg: &LatencyFigures, field: &str) -> Option<Observed> {
    let table = leg
        .all_due
        .filter(|_| leg.censored > 0)
        .unwrap_or(leg.percentiles);
    Some(Observed {
        value: table.us(field)? as f64,
        at_least: table.at_least.holds(field),
        ..Observed::default()
    })
}

/// A percentile in each window of the measured phase. Windows that share one count as one.
fn in_windows(windows: &[Window], leg: &str, field: &str) -> Vec<f64> {
    let mut values = Vec::new();
    let mut free_from = f64::NEG_INFINITY;
    for window in measured(windows) {
        let (table, over) = match leg {
            "response" => (&window.response, &window.response_over),
            "end-to-end" => (&window.end_to_end, &window.end_to_end_over),
            _ => return Vec::new(),
        };
        let over = match field {
            "p50_us" => over.p50_s,
            "p90_us" => over.p90_s,
            "p95_us" => over.p95_s,
            "p99_us" => over.p99_s,
            _ => over.p99_9_s,
        };
        if let Some((value, over)) = table.us(field).zip(over)
            && window.t_s >= free_from
        {
            values.push(value as f64);
            free_from = window.t_s + over;
        }
    }
    values
}

/// Shares of messages: `whole` is warm-up and measured phase.
fn shares(whole: &Ledger, measured: &Ledger) -> Vec<Picked> {
    let arrivals = &whole.arrivals;
    let figures = [
        (
            "failure-ratio",
            Some(measured.failed),
            measured.scheduled,
            true,
        ),
        ("lost", arrivals.lost, whole.scheduled, true),
        ("duplicates", arrivals.duplicates, arrivals.consumed, true),
        (
            "lost unacknowledged",
            arrivals.lost_unacknowledged,
            whole.scheduled,
            false,
        ),
        ("reordered", arrivals.reordered, arrivals.consumed, false),
    ];
    let picked = figures
        .into_iter()
        .filter_map(|(name, count, of, decides)| {
            let of = of.filter(|of| *of > 0)? as f64;
            Some(Picked {
                name: name.to_owned(),
                unit: Unit::Share,
                direction: Direction::Lower,
                scale: Scale::Share { of },
                decides,
                observed: Observed {
                    value: count? as f64 / of,
                    ..Observed::default()
                },
            })
        });
    picked.collect()
}

/// CPU for each message sent, and memory: of the watched target, and of the generator.
fn resources(report: &Report) -> Vec<Picked> {
    let sent = report.ledger.uplink.sent as f64;
    let target = report
        .target
        .cpu
        .as_ref()
        .map(|cpu| cpu.values().sum::<f64>());
    let cpu = [
        ("target CPU per message", target),
        ("generator CPU per message", report.generator.cpu_s),
    ];
    let cpu = cpu.into_iter().filter_map(|(name, cpu_s)| {
        let value = cpu_s.filter(|_| sent > 0.0)? * 1e6 / sent;
        Some(Picked {
            observed: Observed {
                value,
                ..Observed::default()
            },
            ..time(name.to_owned())
        })
    });
    let memory = report.target.memory.as_ref();
    let memory = memory.map(|memory| memory.values().sum::<u64>() as f64);
    let memory = [
        ("target memory", memory),
        (
            "generator memory",
            report.generator.peak_rss_bytes.map(|bytes| bytes as f64),
        ),
    ];
    let memory = memory.into_iter().filter_map(|(name, bytes)| {
        Some(Picked {
            unit: Unit::Bytes,
            observed: Observed {
                value: bytes?,
                ..Observed::default()
            },
            ..time(name.to_owned())
        })
    });
    cpu.chain(memory).collect()
}
