//! A run as tests of what is drawn see it.

use muster_conduct::Phase;
use muster_model::Micros;
use muster_result::{Health, Live, LiveClock, LiveLinks, LiveMessages, LiveRates, Quantiles};

/// A run in its measured phase, for tests of what is drawn.
pub(crate) fn sample() -> Live {
    Live {
        name: "meters".to_owned(),
        target: "mqtt://127.0.0.1:1883".to_owned(),
        clock: LiveClock {
            phase: Phase::Measure,
            elapsed: Micros::from_secs(47),
            phase_from: Micros::from_secs(17),
            phase_until: Some(Micros::from_secs(77)),
            run_until: Some(Micros::from_secs(107)),
        },
        links: LiveLinks {
            wanted: 10_000,
            up: 9_990,
            failures: Vec::new(),
        },
        rates: LiveRates {
            offered: Some(2_000.0),
            issued: Some(1_998.0),
            completed: Some(1_940.0),
            arrived: Some(1_937.0),
        },
        response: Quantiles {
            p50: Some(Micros(2_310)),
            p99: Some(Micros(41_700)),
            ..Quantiles::default()
        },
        end_to_end: Quantiles {
            p50: Some(Micros(3_020)),
            p99: Some(Micros(58_000)),
            ..Quantiles::default()
        },
        backlog_s: Some(0.031),
        delivery_backlog_s: Some(0.002),
        messages: LiveMessages {
            sent: 71_234,
            accepted: 70_112,
            arrived: Some(70_080),
            not_arrived: Some(32),
            lost: None,
            shed: 12,
        },
        slos: Some(vec!["failure-ratio 1.2 % (at most 0.1 %)".to_owned()]),
        errors: vec![("0x97".to_owned(), 840), ("timed-out".to_owned(), 31)],
        health: Health {
            shard_cpu: Some(0.42),
            consumer_cpu: Some(0.31),
            cpu_wait: Some(0.013),
            lateness_p99: Some(Micros(310)),
            rss_bytes: Some(48_300_000),
            faults: vec!["shape 131 ms (max 100 ms)".to_owned()],
            warnings: vec!["cpu-wait 28 % (ok below 10 %)".to_owned()],
        },
        usage: Vec::new(),
    }
}
