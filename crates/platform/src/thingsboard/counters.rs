//! ThingsBoard's own counters of its rule engine and its store (its `StatsFactory`, as Prometheus names them). They count
//! the messages of all tenants.

use crate::counters::{
    CounterFamily, CounterFigure, CounterKind, CounterMeans, CounterPlace, Counters,
};

const PRODUCER: &str = "ruleEngine_producer";
const QUEUES: &str = "ruleEngine queues";
const SERIES: &str = "ts_queue";

const SUCCESSFUL: &str = "successfulMsgs";
const FAILED: &str = "failedMsgs";
const TIMED_OUT: &str = "timeoutMsgs";
const TOTAL: &str = "totalMsgs";

const IS_EXPORTED: &str =
    "does ThingsBoard run with METRICS_ENABLED=true, and is it the page of its rule engine?";

const fn place(kind: &'static str, status: &'static str) -> CounterPlace {
    CounterPlace { kind, status }
}

/// Messages that left the queues of the rule engine for good.
const DONE: [CounterPlace; 3] = [
    place(QUEUES, SUCCESSFUL),
    place(QUEUES, FAILED),
    place(QUEUES, TIMED_OUT),
];

/// A figure that is a rate.
const RATE: CounterFigure = CounterFigure {
    name: "",
    plus: &[],
    minus: &[],
    is_rate: true,
    has_limit: false,
};

pub(super) const COUNTERS: Counters = Counters {
    families: &[
        CounterFamily {
            metrics: &["ruleEngine_producer_total"],
            kind: CounterKind::All(PRODUCER),
            statuses: &[
                (SUCCESSFUL, CounterMeans::AcceptedAndOthers),
                (FAILED, CounterMeans::Other),
            ],
            remedy: "does ThingsBoard run with METRICS_ENABLED=true, and is it the page of its transports?",
        },
        // A counter for each queue: `Main`, `HighPriority` and others.
        CounterFamily {
            metrics: &["ruleEngine_*_total"],
            kind: CounterKind::All(QUEUES),
            statuses: &[
                (SUCCESSFUL, CounterMeans::AcceptedAndOthers),
                (FAILED, CounterMeans::Failed),
                (TIMED_OUT, CounterMeans::Failed),
                // They are tried again.
                ("tmpFailed", CounterMeans::Other),
                ("tmpTimeout", CounterMeans::Other),
            ],
            remedy: IS_EXPORTED,
        },
        // A counter for each thread that writes; of values, not of messages.
        CounterFamily {
            metrics: &["ts_queue_*_total", "ts_timescale_queue_*_total"],
            kind: CounterKind::All(SERIES),
            statuses: &[
                (TOTAL, CounterMeans::Other),
                (SUCCESSFUL, CounterMeans::Other),
                (FAILED, CounterMeans::Failed),
            ],
            remedy: "does ThingsBoard keep time series in PostgreSQL?",
        },
    ],
    tenant: None,
    status: "statsName",
    figures: &[
        CounterFigure {
            name: "accepted",
            plus: &[place(PRODUCER, SUCCESSFUL)],
            ..RATE
        },
        CounterFigure {
            name: "processed",
            plus: &[place(QUEUES, SUCCESSFUL)],
            ..RATE
        },
        CounterFigure {
            name: "failed",
            plus: &[place(QUEUES, FAILED), place(QUEUES, TIMED_OUT)],
            ..RATE
        },
        CounterFigure {
            name: "values-saved",
            plus: &[place(SERIES, SUCCESSFUL)],
            ..RATE
        },
        CounterFigure {
            name: "queue-lag",
            plus: &[place(PRODUCER, SUCCESSFUL)],
            minus: &DONE,
            is_rate: false,
            has_limit: true,
        },
        CounterFigure {
            name: "store-lag",
            plus: &[place(SERIES, TOTAL)],
            minus: &[place(SERIES, SUCCESSFUL), place(SERIES, FAILED)],
            is_rate: false,
            has_limit: false,
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(metric: &str) -> Option<String> {
        let label = |name: &str| (name == "statsName").then(|| SUCCESSFUL.to_owned());
        COUNTERS.key(metric, label).map(|key| key.kind)
    }

    #[test]
    fn each_metric_belongs_to_what_it_counts() {
        for (metric, of) in [
            ("ruleEngine_producer_total", Some(PRODUCER)),
            ("ruleEngine_Main_total", Some(QUEUES)),
            ("ruleEngine_SequentialByOriginator_total", Some(QUEUES)),
            ("ts_queue_2_total", Some(SERIES)),
            ("ts_latest_queue_0_total", None),
            ("attributes_queue_0_total", None),
            ("ruleEngine_Main_seconds_count", None),
            ("core_producer_total", None),
        ] {
            assert_eq!(kind(metric).as_deref(), of, "{metric}");
        }
    }

    #[test]
    fn a_figure_is_made_of_counters_that_are_read() {
        let has = |of: &CounterPlace| {
            let of_kind = COUNTERS.families.iter().filter(|it| it.has_kind(of.kind));
            let mut statuses = of_kind.flat_map(|it| it.statuses);
            statuses.any(|(status, _)| *status == of.status)
        };
        for figure in COUNTERS.figures {
            assert!(
                figure.plus.iter().chain(figure.minus).all(has),
                "{figure:?}"
            );
        }
    }
}
