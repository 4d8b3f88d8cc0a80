//! What Hono's protocol adapters count (its `Metrics` of Micrometer, as Prometheus names them).

use super::Endpoint;
use crate::{CounterMeans, Counters};

pub(crate) const COUNTERS: Counters = Counters {
    // Names of timers end in their unit where the registry's naming adds it.
    metrics: &[
        "hono_telemetry_processing_duration_seconds_count",
        "hono_telemetry_processing_duration_count",
    ],
    tenant: "tenant",
    kind: "type",
    status: "status",
    statuses: &[
        ("forwarded", CounterMeans::Accepted),
        ("unprocessable", CounterMeans::RefusedAsWrong),
        ("undeliverable", CounterMeans::RefusedAsUnable),
    ],
};

/// The type under which messages on a path are counted.
pub(crate) fn counted_as(path: &str) -> Option<&'static str> {
    let word = path.split('/').next().unwrap_or_default();
    let (endpoint, _) = Endpoint::named(word)?;
    Some(endpoint.word(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_of_a_path_are_one_type() {
        for (path, counted) in [
            ("telemetry", Some("telemetry")),
            ("t//${id}", Some("telemetry")),
            ("event/${tenant}/${id}", Some("event")),
            ("e", Some("event")),
            ("command_response/x", None),
            ("", None),
        ] {
            assert_eq!(counted_as(path), counted, "{path}");
        }
    }
}
