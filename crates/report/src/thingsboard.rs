//! The tables of the published performance tests of ThingsBoard: resources of the target, and the counts of the server.

use std::fmt::Write as _;

use crate::{MonitoredSeries, Report, ServerCount};

const MB: f64 = 1e6;

/// The result in the tables of the published tests; none if nothing was watched and nothing counted on the server.
pub fn thingsboard(report: &Report) -> Option<String> {
    let counted = report.target.counted.as_ref();
    let tables = entries(&report.monitor).into_iter().filter_map(|name| {
        let series = report.monitor.iter().filter(|of| of.name == name);
        table(name, &series.collect::<Vec<_>>())
    });
    let tables: Vec<String> = tables.collect();
    if tables.is_empty() && counted.is_none() {
        return None;
    }
    let mut text = format!("# {}\n{}", report.name, tables.concat());
    text += "\n## Counts of the server\n\n";
    text += &counted.map_or_else(
        || "Not counted: add `provision: { count: true }`.\n".to_owned(),
        counts,
    );
    Some(text)
}

/// The lines of the published tool; a node with fewer than two counts has none, as there. The rates by the stored
/// instants follow.
fn counts(of: &ServerCount) -> String {
    let mut text = String::new();
    let mut line = |node: &str, average: Option<f64>, interval_s: Option<f64>| {
        if let Some((average, interval_s)) = average.zip(interval_s) {
            let _ = writeln!(
                text,
                "{node} AVG is {average:.2} per {interval_s:.0} second"
            );
        }
    };
    for node in &of.nodes {
        let name = format!("Node [{}]", node.node);
        line(&name, node.average, node.interval_s);
    }
    let last = of.nodes.iter().rev().find_map(|node| node.interval_s);
    line("Total", of.average, last);
    let rate = of.rate.map_or("-".to_owned(), |rate| format!("{rate:.2}"));
    let (messages, difference) = (of.messages, of.difference);
    let (accepted, unanswered) = (of.accepted, of.unanswered);
    let _ = writeln!(
        text,
        "\nBy the stored instants: {rate} messages per second. Counted {messages}, accepted {accepted}, without an \
         answer {unanswered}, difference {difference}."
    );
    text
}

/// The entries of `monitor`, each once, in their order.
fn entries(all: &[MonitoredSeries]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in all {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    names
}

/// A column of a table: average, least and largest value.
struct Column {
    title: &'static str,
    values: [Option<f64>; 3],
    decimals: usize,
}

impl Column {
    /// The values of a series, each divided.
    fn new(title: &'static str, of: &MonitoredSeries, by: f64, decimals: usize) -> Self {
        Self {
            title,
            values: [of.average, of.min, of.max].map(|value| value.map(|value| value / by)),
            decimals,
        }
    }

    fn cell(&self, row: usize) -> String {
        self.values[row].map_or("-".to_owned(), |value| format!("{value:.*}", self.decimals))
    }
}

/// A table of the published form, and the columns that it lacks; none for an entry without any.
fn table(name: &str, all: &[&MonitoredSeries]) -> Option<String> {
    let (columns, lacks) = columns(all);
    if columns.is_empty() {
        return None;
    }
    let mut text = format!("\n## {name}\n\n");
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let _ = writeln!(text, "| | {} |", titles.join(" | "));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(columns.len()));
    for (row, word) in ["AVG", "MIN", "MAX"].into_iter().enumerate() {
        let cells: Vec<String> = columns.iter().map(|column| column.cell(row)).collect();
        let _ = writeln!(text, "| {word} | {} |", cells.join(" | "));
    }
    if !lacks.is_empty() {
        let _ = writeln!(text, "\nNot measured: {}.", lacks.join("; "));
    }
    Some(text)
}

/// The columns of the published tables in their order; and what is missing, with its remedy.
fn columns(all: &[&MonitoredSeries]) -> (Vec<Column>, Vec<&'static str>) {
    let of = |name: &str| all.iter().copied().find(|of| of.resource == name);
    let (mut columns, mut lacks) = (Vec::new(), Vec::new());
    let is_process = of("cpu").is_some() && of("memory").is_some();
    if let Some(cpu) = of("cpu") {
        match cpu.limit {
            Some(cores) => columns.push(Column::new("CPU, %", cpu, cores / 100.0, 1)),
            None => lacks.push("CPU in %, since the number of cores is not known"),
        }
    }
    if let Some(memory) = of("memory") {
        match memory.limit {
            Some(bytes) => columns.push(Column::new("Memory, %", memory, bytes / 100.0, 1)),
            None => lacks.push("memory in %: add `limit` to the entry"),
        }
        columns.push(Column::new("Memory, MB", memory, MB, 0));
    }
    if let Some(written) = of("written") {
        columns.push(Column::new("Disk writes, MB/s", written, MB, 2));
    }
    match of("write-iops") {
        Some(writes) => columns.push(Column::new("Write, IOPS", writes, 1.0, 0)),
        None if is_process => {
            lacks.push("write IOPS: add a figure `write-iops` of a page, such as `rate(node_disk_writes_completed_total)`");
        }
        None => {}
    }
    (columns, lacks)
}

#[cfg(test)]
mod tests {
    use muster_model::ResourceUnit;

    use super::*;
    use crate::monitor::tests::series;
    use crate::server_count::tests::counted;

    fn with(mut of: MonitoredSeries, limit: Option<f64>, values: [f64; 3]) -> MonitoredSeries {
        [of.average, of.min, of.max] = values.map(Some);
        of.limit = limit;
        of
    }

    #[test]
    fn resources_and_counts_are_in_the_published_tables() {
        let mut report = Report {
            name: "thingsboard-2019".to_owned(),
            ..Report::default()
        };
        let bytes = ResourceUnit::Bytes;
        report.monitor = vec![
            with(
                series("board", "cpu", ResourceUnit::Cores),
                Some(2.0),
                [0.36, 0.178, 1.1],
            ),
            with(
                series("board", "memory", bytes),
                Some(1e9),
                [940e6, 797e6, 958e6],
            ),
            with(
                series("board", "written", ResourceUnit::BytesPerSecond),
                None,
                [5e5, 0.0, 2e6],
            ),
            with(series("database", "memory", bytes), None, [1e8, 1e8, 2e8]),
            with(
                series("database", "write-iops", ResourceUnit::Number),
                None,
                [498.0, 12.0, 611.0],
            ),
        ];
        report.target.counted = Some(counted(477));
        insta::assert_snapshot!(thingsboard(&report).expect("it has figures"));
    }

    #[test]
    fn a_run_without_such_figures_has_no_tables() {
        assert_eq!(thingsboard(&Report::default()), None);
    }
}
