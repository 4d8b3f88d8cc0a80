//! Counters of Hono's protocol adapters (its `Metrics` of Micrometer, as Prometheus names them).

use crate::counters::{CounterMeans, Counters};

pub(super) const COUNTERS: Counters = Counters {
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
