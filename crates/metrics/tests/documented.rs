//! The page of the metrics, and what the dashboards ask for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use muster_metrics::{Kind, Metric, Place, TABLE};

/// Lines around the generated part of the page.
const MARKS: [&str; 2] = [
    "<!-- generated: the metrics, from the table in crates/metrics -->",
    "<!-- end of generated -->",
];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn place(metric: &Metric) -> String {
    match metric.place {
        Place::Result(path) => format!("`{}`", path.replace('|', "\\|")),
        Place::AtEnd(path) => format!("`{path}`, once the run has ended"),
        Place::Window(key) => format!("`windows[].{key}`"),
        Place::Nowhere => "none".to_owned(),
    }
}

fn kind(metric: &Metric) -> &'static str {
    match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Summary => "summary",
        Kind::Quantiles => "quantiles",
    }
}

fn rows() -> String {
    let mut page = String::new();
    let mut group = "";
    for metric in TABLE {
        if metric.group() != group {
            group = metric.group();
            page.push_str(&format!(
                "\n## {group}\n\nMeasurement `{}` in InfluxDB.\n\n| metric | form, unit | labels | meaning | in `result.json` |\n\
                 |---|---|---|---|---|\n",
                metric.measurement()
            ));
        }
        let labels: Vec<String> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        page.push_str(&format!(
            "| `{}`<br>`{}`<br>field `{}` | {}, {} | {} | {} | {} |\n",
            metric.prometheus(),
            metric.otlp(),
            metric.field(),
            kind(metric),
            metric.ucum(),
            labels.join(" "),
            metric.help.trim_end_matches('.'),
            place(metric)
        ));
    }
    page
}

#[test]
fn the_page_lists_the_table() {
    let path = root().join("docs/metrics.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(MARKS[0]).expect("the first mark");
    let (_, after) = rest.split_once(MARKS[1]).expect("the last mark");
    let expected = format!("{before}{}\n{}\n{}{after}", MARKS[0], rows(), MARKS[1]);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &expected).expect("the page can be written");
    }
    let is_listed = page == expected || std::env::var_os("MUSTER_BLESS").is_some();
    assert!(
        is_listed,
        "docs/metrics.md is not of the table: MUSTER_BLESS=1 writes it anew"
    );
}

/// Words of a text that begin with `muster_`.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("muster_")).collect()
}

fn dashboard(name: &str) -> serde_json::Value {
    let path = root().join("deploy/grafana").join(name);
    let text = std::fs::read_to_string(&path).expect("the dashboard");
    serde_json::from_str(&text).expect("JSON")
}

/// Values of a key at any depth.
fn values<'a>(json: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    for (name, inner) in json.as_object().into_iter().flatten() {
        found.extend(inner.as_str().filter(|_| name == key));
        values(inner, key, found);
    }
    for inner in json.as_array().into_iter().flatten() {
        values(inner, key, found);
    }
}

#[test]
fn the_dashboard_for_prometheus_asks_for_metrics_that_exist() {
    let mut known = BTreeSet::new();
    for metric in TABLE {
        let name = metric.prometheus();
        if metric.kind == Kind::Summary {
            known.extend([format!("{name}_sum"), format!("{name}_count")]);
        }
        known.insert(name);
    }
    let dashboard = dashboard("muster-prometheus.json");
    let mut queries = Vec::new();
    for key in ["expr", "query", "definition"] {
        values(&dashboard, key, &mut queries);
    }
    let asked: BTreeSet<&str> = queries.iter().flat_map(|query| names(query)).collect();
    let unknown: Vec<_> = asked
        .iter()
        .filter(|name| !known.contains(**name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(asked.len() >= 15, "{asked:?}");
}

#[test]
fn the_dashboard_for_influxdb_asks_for_fields_that_exist() {
    let mut known = BTreeSet::new();
    for metric in TABLE {
        let (measurement, field) = (metric.measurement(), metric.field());
        match metric.kind {
            Kind::Counter | Kind::Gauge => {
                known.insert((measurement, field));
            }
            Kind::Summary | Kind::Quantiles => {
                let ends = ["p50", "p90", "p95", "p99", "p99_9", "sum", "count"];
                known.extend(ends.map(|end| (measurement.clone(), format!("{field}_{end}"))));
            }
        }
    }
    known.extend(
        ["title", "text", "time_end"].map(|field| ("muster_events".to_owned(), field.to_owned())),
    );
    let dashboard = dashboard("muster-influxdb.json");
    let mut queries = Vec::new();
    values(&dashboard, "query", &mut queries);
    let mut asked = 0;
    for query in queries.iter().filter(|query| query.starts_with("SELECT")) {
        // Names of fields and measurements stand in double quotes; tags are the other ones.
        let (select, rest) = query.split_once(" FROM \"").expect("a measurement");
        let measurement = rest.split('"').next().expect("its name");
        for field in select.split('"').skip(1).step_by(2) {
            let key = (measurement.to_owned(), field.to_owned());
            assert!(known.contains(&key), "{key:?} in {query}");
            asked += 1;
        }
    }
    assert!(asked >= 15, "{asked}");
}
