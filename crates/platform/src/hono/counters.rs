//! Counters of Hono's protocol adapters (its `Metrics` of Micrometer, as Prometheus names them).

use crate::counters::{CounterFamily, CounterKind, CounterMeans, Counters};

pub(super) const COUNTERS: Counters = Counters {
    families: &[CounterFamily {
        // Names of timers end in their unit where the registry's naming adds it.
        metrics: &[
            "hono_telemetry_processing_duration_seconds_count",
            "hono_telemetry_processing_duration_count",
        ],
        kind: CounterKind::Label("type"),
        statuses: &[
            ("forwarded", CounterMeans::Accepted),
            ("unprocessable", CounterMeans::RefusedAsWrong),
            ("undeliverable", CounterMeans::RefusedAsUnable),
        ],
        remedy: "are they pages of the protocol adapters that the devices talk to?",
    }],
    tenant: Some("tenant"),
    status: "status",
    figures: &[],
};
