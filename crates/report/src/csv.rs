//! The windows as a table: RFC 4180 with line feeds, one row a window, an empty cell where a
//! figure is not known.

use muster_model::ShedCause;

use crate::{Report, Window};

/// The percentiles of each latency.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99_9"];

/// A window's cells in order, each with the name of its column. A new column comes last, so that a
/// place stays what it was.
fn cells(window: &Window) -> Vec<(String, String)> {
    let health = window.generator.unwrap_or_default();
    let legs = [
        ("response", &window.response, window.response_over),
        ("end_to_end", &window.end_to_end, window.end_to_end_over),
        ("lateness", &window.lateness, window.lateness_over),
    ];
    let counters = [
        ("t_s", window.t_s.to_string()),
        ("for_s", window.for_s.to_string()),
        ("phase", window.phase.clone()),
        ("offered", known(window.offered)),
        ("issued", window.issued.to_string()),
        ("completed", window.completed.to_string()),
        ("accepted", window.accepted.to_string()),
        ("arrived", known(window.arrived)),
        ("shed", window.shed.to_string()),
        ("rejected", window.rejected.to_string()),
        ("timed_out", window.timed_out.to_string()),
        ("broken", window.broken.to_string()),
        ("links_up", known(window.links_up)),
        ("disconnects", window.disconnects.to_string()),
    ];
    let percentiles = legs.iter().flat_map(|(leg, of, _)| {
        let percentile = |name| {
            (
                format!("{leg}_{name}_us"),
                known(of.us(&format!("{name}_us"))),
            )
        };
        PERCENTILES.map(percentile)
    });
    let health = [
        ("shard_cpu", known(health.shard_cpu)),
        ("consumer_cpu", known(health.consumer_cpu)),
        ("cpu_wait", known(health.cpu_wait)),
        ("steal", known(health.steal)),
        ("unacknowledged", window.unacknowledged.to_string()),
    ];
    let shed = ShedCause::ALL.iter().map(|cause| {
        let count = window.shed_by_cause.get(cause.name());
        let name = format!("shed_{}", cause.name().replace('-', "_"));
        (name, count.copied().unwrap_or_default().to_string())
    });
    let spans = legs.iter().flat_map(|(leg, _, over)| {
        let lengths = [over.p50_s, over.p90_s, over.p95_s, over.p99_s, over.p99_9_s];
        let span = move |(name, length)| (format!("{leg}_{name}_over_s"), known(length));
        PERCENTILES.into_iter().zip(lengths).map(span)
    });
    let at_least: Vec<&str> = window.response.at_least.names().collect();
    let own = |(name, cell): (&str, String)| (name.to_owned(), cell);
    let first = counters.into_iter().map(own).chain(percentiles);
    let all = first
        .chain(health.into_iter().map(own))
        .chain(shed)
        .chain(spans);
    all.chain([("response_at_least".to_owned(), at_least.join(" "))])
        .collect()
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The windows of a report as comma-separated values, with a heading.
pub fn csv(report: &Report) -> String {
    let columns = cells(&Window::default()).into_iter();
    let heading: Vec<String> = columns.map(|(name, _)| name).collect();
    let mut table = heading.join(",") + "\n";
    for window in &report.windows {
        let row: Vec<String> = cells(window).into_iter().map(|(_, cell)| cell).collect();
        table += &(row.join(",") + "\n");
    }
    table
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
        let columns: Vec<&str> = lines[0].split(',').collect();
        assert_eq!(lines[1].split(',').count(), columns.len());
        let unknown = ",".repeat(19);
        assert_eq!(
            lines[1],
            format!(
                "0,0,settle,,0,0,0,,0,0,0,0,,0{unknown},0,0,0,7,0,0,0,0,0,0,0,0,0{}",
                ",".repeat(16)
            )
        );
        let at = columns.iter().position(|name| *name == "shed_offline");
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
        let first = heading.split(',').position(|name| name == "offered");
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
