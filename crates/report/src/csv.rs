//! The windows as a table: RFC 4180 with line feeds, one row a window, an empty cell where a
//! figure is not known.

use std::fmt::{Display, Write as _};

use crate::{Percentiles, Report, Window};

/// The columns, in order.
const COLUMNS: [&str; 33] = [
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
    "response_p50_us",
    "response_p90_us",
    "response_p95_us",
    "response_p99_us",
    "response_p99_9_us",
    "end_to_end_p50_us",
    "end_to_end_p90_us",
    "end_to_end_p95_us",
    "end_to_end_p99_us",
    "end_to_end_p99_9_us",
    "lateness_p50_us",
    "lateness_p90_us",
    "lateness_p95_us",
    "lateness_p99_us",
    "lateness_p99_9_us",
    "shard_cpu",
    "consumer_cpu",
    "cpu_wait",
    "steal",
];

/// The windows of a report as comma-separated values, with a heading.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut table = COLUMNS.join(",");
    table.push('\n');
    for window in &report.windows {
        let mut row = Row(String::new());
        row.counters(window);
        for percentiles in [&window.response, &window.end_to_end, &window.lateness] {
            row.percentiles(percentiles);
        }
        row.health(window);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let report = Report {
            windows: vec![Window {
                phase: "settle".to_owned(),
                ..Window::default()
            }],
            ..Report::default()
        };
        let table = csv(&report);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].split(',').count(), COLUMNS.len());
        assert_eq!(
            lines[1],
            format!("0,0,settle,,0,0,0,,0,0,0,0,,0{}", ",".repeat(19))
        );
    }
}
