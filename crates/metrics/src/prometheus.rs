//! Text exposition format 0.0.4 of Prometheus.

use std::fmt::Write as _;

use crate::snapshot::{Point, Snapshot, Value};
use crate::table::{Kind, Metric, TABLE};

/// Media type of the page.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page of a snapshot: each metric with its values, in the order of the table.
pub(crate) fn page(snapshot: &Snapshot) -> String {
    let mut page = String::new();
    for metric in TABLE {
        let mut points = snapshot
            .points
            .iter()
            .filter(|point| point.metric == *metric)
            .peekable();
        if points.peek().is_some() {
            head(metric, &mut page);
            points.for_each(|point| sample(point, &mut page));
        }
    }
    page
}

fn head(metric: &Metric, page: &mut String) {
    let name = metric.prometheus();
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::Quantiles => "gauge",
        Kind::Summary => "summary",
    };
    let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(point: &Point, page: &mut String) {
    let name = point.metric.prometheus();
    match &point.value {
        Value::Count(count) => line(&name, point, None, &count.to_string(), page),
        Value::Number(number) => line(&name, point, None, &number.to_string(), page),
        Value::Quantiles(quantiles) => at(&name, point, quantiles, page),
        Value::Summary {
            quantiles,
            sum,
            count,
        } => {
            at(&name, point, quantiles, page);
            line(&format!("{name}_sum"), point, None, &sum.to_string(), page);
            line(
                &format!("{name}_count"),
                point,
                None,
                &count.to_string(),
                page,
            );
        }
    }
}

fn at(name: &str, point: &Point, quantiles: &[(f64, f64)], page: &mut String) {
    for (quantile, value) in quantiles {
        line(name, point, Some(*quantile), &value.to_string(), page);
    }
}

fn line(name: &str, point: &Point, quantile: Option<f64>, value: &str, page: &mut String) {
    let labels = point
        .labelled()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    let quantile = quantile.map(|quantile| format!("quantile=\"{quantile}\""));
    let labels: Vec<String> = labels.chain(quantile).collect();
    page.push_str(name);
    if !labels.is_empty() {
        let _ = write!(page, "{{{}}}", labels.join(","));
    }
    let _ = writeln!(page, " {value}");
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn a_page_has_each_metric_once_with_all_its_values() {
        let summary = Value::Summary {
            quantiles: vec![(0.5, 0.002), (0.999, 1.5)],
            sum: 7.25,
            count: 40,
        };
        let points = vec![
            Point::count(&table::SENT, &["a\\b", "say \"hi\"\n"], 5),
            Point::new(&table::RESPONSE, &["a", "b"], summary),
            Point::count(&table::SENT, &["c", ""], 6),
            Point::number(&table::OFFERED, &[], 100.5),
            Point::new(
                &table::RECENT_RESPONSE,
                &[],
                Value::Quantiles(vec![(0.99, 0.01)]),
            ),
        ];
        let page = page(&Snapshot {
            points,
            ..Snapshot::default()
        });
        let samples: Vec<&str> = page
            .lines()
            .filter(|line| !line.starts_with("# HELP"))
            .collect();
        assert_eq!(
            samples,
            [
                "# TYPE muster_messages_sent_total counter",
                r#"muster_messages_sent_total{fleet="a\\b",stream="say \"hi\"\n"} 5"#,
                r#"muster_messages_sent_total{fleet="c"} 6"#,
                "# TYPE muster_latency_response_seconds summary",
                r#"muster_latency_response_seconds{fleet="a",stream="b",quantile="0.5"} 0.002"#,
                r#"muster_latency_response_seconds{fleet="a",stream="b",quantile="0.999"} 1.5"#,
                r#"muster_latency_response_seconds_sum{fleet="a",stream="b"} 7.25"#,
                r#"muster_latency_response_seconds_count{fleet="a",stream="b"} 40"#,
                "# TYPE muster_rates_offered_per_second gauge",
                "muster_rates_offered_per_second 100.5",
                "# TYPE muster_recent_response_seconds gauge",
                r#"muster_recent_response_seconds{quantile="0.99"} 0.01"#,
            ]
        );
    }
}
