//! The figures of one instant.

use crate::table::{Kind, Metric};

/// Quantiles of every latency, as the result has them, with the keys of the result.
pub(crate) const QUANTILES: [(&str, f64); 5] = [
    ("p50_us", 0.5),
    ("p90_us", 0.9),
    ("p95_us", 0.95),
    ("p99_us", 0.99),
    ("p99_9_us", 0.999),
];

/// The figures of one instant, in any system's terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Snapshot {
    /// Wall clock of the instant, in milliseconds since the Unix epoch.
    pub(crate) wall_ms: u64,
    /// Begin of the second that the figures of a second belong to, likewise.
    pub(crate) second_ms: u64,
    /// True if the values are those of the result.
    pub(crate) is_final: bool,
    /// The values.
    pub(crate) points: Vec<Point>,
    /// Counts by class of traffic, for the names of a published test.
    pub(crate) classes: Vec<ClassCounts>,
    /// Links that are up.
    pub(crate) links_up: u64,
    /// Remarks that came since the last snapshot.
    pub(crate) annotations: Vec<Annotation>,
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    /// The metric.
    pub(crate) metric: &'static Metric,
    /// Values of its labels, in their order.
    pub(crate) labels: Vec<String>,
    /// The value.
    pub(crate) value: Value,
}

/// A value in base units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// Values at quantiles.
    Quantiles(Vec<(f64, f64)>),
    /// Values at quantiles, with all values.
    Summary {
        /// Quantile and value, rising.
        quantiles: Vec<(f64, f64)>,
        /// Sum of all values.
        sum: f64,
        /// Number of values.
        count: u64,
    },
}

/// A remark on the time axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Annotation {
    /// Its begin, in milliseconds since the Unix epoch.
    pub(crate) wall_ms: u64,
    /// Its end likewise; none of an instant.
    pub(crate) until_ms: Option<u64>,
    /// The kind of event, in one word.
    pub(crate) kind: String,
    /// The words.
    pub(crate) text: String,
}

/// Counts since T0 of all streams that a published test counts as one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClassCounts {
    /// The protocol in lower case.
    pub(crate) protocol: String,
    /// `telemetry` or `event`.
    pub(crate) class: &'static str,
    /// Sent.
    pub(crate) sent: u64,
    /// Accepted.
    pub(crate) success: u64,
    /// Refused by code, in the protocol's words.
    pub(crate) refused: Vec<(String, u64)>,
    /// Without an answer: time-outs and broken links.
    pub(crate) unanswered: u64,
    /// Due and not final.
    pub(crate) open: u64,
    /// Sum of the times from sent to answered, in microseconds.
    pub(crate) took_us: u64,
    /// First copies at the first backend.
    pub(crate) arrived: u64,
}

impl Point {
    /// A whole or other number, as the metric wants it.
    pub(crate) fn number(metric: &'static Metric, labels: &[&str], number: f64) -> Self {
        let value = if metric.is_whole() {
            Value::Count(number.max(0.0).round() as u64)
        } else {
            Value::Number(number)
        };
        Self::new(metric, labels, value)
    }

    /// A count.
    pub(crate) fn count(metric: &'static Metric, labels: &[&str], count: u64) -> Self {
        debug_assert!(metric.is_whole(), "{}", metric.name);
        Self::new(metric, labels, Value::Count(count))
    }

    pub(crate) fn new(metric: &'static Metric, labels: &[&str], value: Value) -> Self {
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
        let is_fitting = match &value {
            Value::Count(_) | Value::Number(_) => {
                matches!(metric.kind, Kind::Counter | Kind::Gauge)
            }
            Value::Quantiles(_) => metric.kind == Kind::Quantiles,
            Value::Summary { .. } => metric.kind == Kind::Summary,
        };
        debug_assert!(is_fitting, "{}", metric.name);
        Self {
            metric,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            value,
        }
    }

    /// Names and values of the labels that have one.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let labels = self.metric.labels.iter().copied().zip(&self.labels);
        labels
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, value.as_str()))
    }
}
