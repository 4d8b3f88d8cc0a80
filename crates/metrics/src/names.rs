//! Names of a metric in each system, by that system's conventions.

use crate::table::{Kind, Metric, Unit};

/// Begin of every name.
const PREFIX: &str = "muster";

impl Metric {
    /// The name in Prometheus: words joined by `_`, then the base unit, then `_total` of a counter.
    pub fn prometheus(&self) -> String {
        let total = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Summary | Kind::Quantiles => "",
        };
        let words = self.name.replace('.', "_");
        format!("{PREFIX}_{words}{}{total}", self.unit.suffix())
    }

    /// The name in OpenTelemetry: words joined by dots; the unit stands apart ([`Metric::ucum`]).
    pub fn otlp(&self) -> String {
        format!("{PREFIX}.{}", self.name)
    }

    /// The unit in OpenTelemetry, by UCUM.
    pub fn ucum(&self) -> String {
        match self.unit {
            Unit::Things(thing) => format!("{{{thing}}}"),
            Unit::PerSecond(thing) => format!("{{{thing}}}/s"),
            Unit::Seconds => "s".to_owned(),
            Unit::Bytes => "By".to_owned(),
            Unit::Ratio | Unit::One | Unit::Named => "1".to_owned(),
        }
    }

    /// The measurement in InfluxDB: one a group.
    pub fn measurement(&self) -> String {
        format!("{PREFIX}_{}", self.group())
    }

    /// The field in InfluxDB; quantiles append theirs, as in `response_seconds_p99`.
    pub fn field(&self) -> String {
        let name = self
            .name
            .split_once('.')
            .map_or(self.name, |(_, name)| name);
        format!("{name}{}", self.unit.suffix())
    }
}

impl Unit {
    /// End of a name, by its unit.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Things(_) | Self::One | Self::Named => "",
            Self::PerSecond(_) => "_per_second",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
            Self::Ratio => "_ratio",
        }
    }
}

/// A quantile as the end of a field's name: `p99`, `p99_9`.
pub(crate) fn percentile(quantile: f64) -> String {
    // Three digits are more than any quantile of ours has.
    let percent = (quantile * 100_000.0).round() / 1_000.0;
    format!("p{}", percent.to_string().replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{ISSUED, PAYLOAD, RESPONSE, RUN_INFO, SENT, SHARD_CPU};

    #[test]
    fn names_follow_the_conventions_of_each_system() {
        let names = |metric: &Metric| (metric.prometheus(), metric.otlp(), metric.ucum());
        let expect = |prometheus: &str, otlp: &str, ucum: &str| {
            (prometheus.to_owned(), otlp.to_owned(), ucum.to_owned())
        };
        for (metric, expected) in [
            (
                &SENT,
                expect(
                    "muster_messages_sent_total",
                    "muster.messages.sent",
                    "{message}",
                ),
            ),
            (
                &PAYLOAD,
                expect(
                    "muster_messages_payload_bytes_total",
                    "muster.messages.payload",
                    "By",
                ),
            ),
            (
                &RESPONSE,
                expect(
                    "muster_latency_response_seconds",
                    "muster.latency.response",
                    "s",
                ),
            ),
            (
                &SHARD_CPU,
                expect(
                    "muster_generator_shard_cpu_ratio",
                    "muster.generator.shard_cpu",
                    "1",
                ),
            ),
            (
                &ISSUED,
                expect(
                    "muster_rates_issued_per_second",
                    "muster.rates.issued",
                    "{message}/s",
                ),
            ),
            (&RUN_INFO, expect("muster_run_info", "muster.run.info", "1")),
        ] {
            assert_eq!(names(metric), expected);
        }
        assert_eq!(
            (SENT.measurement(), SENT.field()),
            ("muster_messages".to_owned(), "sent".to_owned())
        );
        assert_eq!(RESPONSE.field(), "response_seconds");
    }

    #[test]
    fn a_quantile_is_named_as_in_the_result() {
        let named = [0.5, 0.9, 0.95, 0.99, 0.999].map(percentile);
        assert_eq!(named, ["p50", "p90", "p95", "p99", "p99_9"]);
    }
}
