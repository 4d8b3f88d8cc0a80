//! A run that is only drawn: what the live screen looks like. Ends by itself, or with q.

use std::thread::sleep;
use std::time::Duration;

use muster_conduct::Phase;
use muster_dashboard::Dashboard;
use muster_model::Micros;
use muster_result::{Health, Live, LiveClock, LiveLinks, LiveMessages, LiveRates, Quantiles};

/// Four pictures a second.
const TICK: u64 = 250;

fn main() -> std::io::Result<()> {
    let mut dashboard = Dashboard::open()?;
    for tick in 0..240 {
        dashboard.show(&at(Micros::from_millis(tick * TICK)))?;
        if dashboard.request()?.is_some() {
            break;
        }
        sleep(Duration::from_millis(TICK));
    }
    Ok(())
}

fn at(elapsed: Micros) -> Live {
    let second = u64::from(elapsed.second());
    let wave = (elapsed.as_secs_f64() / 4.0).sin();
    let is_peak = second % 17 == 9;
    Live {
        name: "drawn".to_owned(),
        target: "mqtt://127.0.0.1:1883".to_owned(),
        clock: LiveClock {
            phase: Phase::Measure,
            elapsed,
            phase_from: Micros::ZERO,
            phase_until: Some(Micros::from_secs(60)),
            run_until: Some(Micros::from_secs(90)),
        },
        links: LiveLinks {
            wanted: 1_000,
            up: (second * 200).min(1_000),
            failures: Vec::new(),
        },
        rates: LiveRates {
            offered: Some(2_000.0),
            issued: Some(2_000.0),
            completed: Some(1_900.0 + 90.0 * wave),
            arrived: Some(1_890.0 + 80.0 * wave),
        },
        response: Quantiles {
            p50: Some(Micros(1_900)),
            p99: Some(Micros(if is_peak { 90_000 } else { 12_000 })),
            ..Quantiles::default()
        },
        end_to_end: Quantiles {
            p50: Some(Micros(2_600)),
            p99: Some(Micros(15_000)),
            ..Quantiles::default()
        },
        backlog_s: Some(if is_peak { 0.4 } else { 0.02 }),
        delivery_backlog_s: Some(0.01),
        messages: LiveMessages {
            sent: elapsed.get() / 500,
            accepted: elapsed.get() / 510,
            arrived: Some(elapsed.get() / 512),
            ..LiveMessages::default()
        },
        errors: vec![("0x97".to_owned(), second)],
        health: Health {
            shard_cpu: Some(0.4 + 0.05 * wave),
            lateness_p99: Some(Micros(210)),
            ..Health::default()
        },
        ..Live::default()
    }
}
