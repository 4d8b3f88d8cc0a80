//! The windows as a table: RFC 4180 with line feeds, one row a window, an empty cell where a
//! figure is not known.

use std::fmt::{Display, Write as _};

use muster_model::ShedCause;

use crate::{PercentileSpans, Percentiles, Report, Window};

/// The first columns.
const COUNTERS: [&str; 14] = [
    "t_s",
    "for_s",
    "phase",
    "offered",
    "issued",
    "completed",
    "accepted",
    "arrived",
    "shed",
    "rejected",
    "timed_out",
    "broken",
    "links_up",
    "disconnects",
];

/// The latencies, each with all of [`PERCENTILES`].
const LATENCIES: [&str; 3] = ["response", "end_to_end", "lateness"];
const PERCENTILES: [&str; 5] = ["p50_us", "p90_us", "p95_us", "p99_us", "p99_9_us"];

/// Percentiles of the response that are lower bounds, by their names with blanks between them.
const AT_LEAST: &str = "response_at_least";

/// The health of the generator.
const HEALTH: [&str; 4] = ["shard_cpu", "consumer_cpu", "cpu_wait", "steal"];

/// The columns, in order. One that is new comes last, so that a place stays what it was.
fn columns() -> Vec<String> {
    let latencies = LATENCIES.iter().flat_map(|latency| {
        PERCENTILES
            .iter()
            .map(move |percentile| format!("{latency}_{percentile}"))
    });
    let shed = ShedCause::ALL
        .iter()
        .map(|cause| format!("shed_{}", cause.name().replace('-', "_")));
    let counters = COUNTERS.iter().map(ToString::to_string);
    let health = HEALTH.iter().map(ToString::to_string);
    let further = std::iter::once("unacknowledged".to_owned());
    let spans = LATENCIES.iter().flat_map(|latency| {
        let names = PERCENTILES.iter();
        names.map(move |name| format!("{latency}_{}_over_s", name.trim_end_matches("_us")))
    });
    let all = counters.chain(latencies).chain(health);
    let last = std::iter::once(AT_LEAST.to_owned());
    let all = all.chain(further).chain(shed).chain(spans);
    all.chain(last).collect()
}

/// The windows of a report as comma-separated values, with a heading.
pub fn csv(report: &Report) -> String {
    let mut table = columns().join(",");
    table.push('\n');
    for window in &report.windows {
        let mut row = Row(String::new());
        row.counters(window);
        for percentiles in [&window.response, &window.end_to_end, &window.lateness] {
            row.percentiles(percentiles);
        }
        row.health(window);
        row.further(window);
        table.push_str(&row.0);
        table.push('\n');
    }
    table
}

struct Row(String);

impl Row {
    fn cell(&mut self, value: impl Display) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let _ = write!(self.0, "{value}");
    }

    fn known(&mut self, value: Option<impl Display>) {
        match value {
            Some(value) => self.cell(value),
            None => self.cell(""),
        }
    }

    fn counters(&mut self, window: &Window) {
        self.cell(window.t_s);
        self.cell(window.for_s);
        self.cell(&window.phase);
        self.known(window.offered);
        for count in [window.issued, window.completed, window.accepted] {
            self.cell(count);
        }
        self.known(window.arrived);
        for count in [
            window.shed,
            window.rejected,
            window.timed_out,
            window.broken,
        ] {
            self.cell(count);
        }
        self.known(window.links_up);
        self.cell(window.disconnects);
    }

    fn percentiles(&mut self, percentiles: &Percentiles) {
        let Percentiles {
            p50_us,
            p90_us,
            p95_us,
            p99_us,
            p99_9_us,
            at_least: _,
        } = *percentiles;
        for percentile in [p50_us, p90_us, p95_us, p99_us, p99_9_us] {
            self.known(percentile);
        }
    }

    fn health(&mut self, window: &Window) {
        let health = window.generator.unwrap_or_default();
        for share in [
            health.shard_cpu,
            health.consumer_cpu,
            health.cpu_wait,
            health.steal,
        ] {
            self.known(share);
        }
    }

    fn further(&mut self, window: &Window) {
        self.cell(window.unacknowledged);
        for cause in ShedCause::ALL {
            let count = window.shed_by_cause.get(cause.name());
            self.cell(count.copied().unwrap_or_default());
        }
        for spans in [
            window.response_over,
            window.end_to_end_over,
            window.lateness_over,
        ] {
            self.spans(spans);
        }
        let least: Vec<&str> = window.response.at_least.names().collect();
        self.cell(least.join(" "));
    }

    fn spans(&mut self, spans: PercentileSpans) {
        let PercentileSpans {
            p50_s,
            p90_s,
            p95_s,
            p99_s,
            p99_9_s,
        } = spans;
        for span in [p50_s, p90_s, p95_s, p99_s, p99_9_s] {
            self.known(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let report = Report {
            windows: vec![Window {
                phase: "settle".to_owned(),
                shed_by_cause: [("offline".to_owned(), 7)].into(),
                ..Window::default()
            }],
            ..Report::default()
        };
        let table = csv(&report);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].split(',').count(), columns().len());
        let unknown = ",".repeat(19);
        assert_eq!(
            lines[1],
            format!(
                "0,0,settle,,0,0,0,,0,0,0,0,,0{unknown},0,0,0,7,0,0,0,0,0,0,0,0{}",
                ",".repeat(16)
            )
        );
        let at = columns().iter().position(|name| name == "shed_offline");
        assert_eq!(lines[1].split(',').nth(at.expect("a column")), Some("7"));
    }

    #[test]
    fn each_count_stands_under_its_heading() {
        let report = Report {
            windows: vec![Window {
                offered: Some(1),
                issued: 2,
                completed: 3,
                accepted: 4,
                arrived: Some(5),
                shed: 6,
                rejected: 7,
                timed_out: 8,
                broken: 9,
                links_up: Some(10),
                disconnects: 11,
                ..Window::default()
            }],
            ..Report::default()
        };
        let table = csv(&report);
        let (heading, row) = table.split_once('\n').expect("two lines");
        let first = COUNTERS.iter().position(|name| *name == "offered");
        let of = |line: &str| -> Vec<String> {
            let cells = line.split(',').skip(first.expect("a column"));
            cells.take(11).map(str::to_owned).collect()
        };
        let counted = [
            "offered",
            "issued",
            "completed",
            "accepted",
            "arrived",
            "shed",
            "rejected",
            "timed_out",
            "broken",
            "links_up",
            "disconnects",
        ];
        assert_eq!(of(heading), counted);
        assert_eq!(of(row), (1..=11).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}
