//! The windows of a simulated run, second by second.

use muster_report::{Heat, LatencyFigures, Percentiles, Window, WindowHealth};

use crate::sample::Run;
use crate::simulation::{Setting, State};

/// One window a second.
pub(crate) fn windows(run: &Run, seconds: u64) -> Vec<Window> {
    let mut cells: Vec<Cell> = (0..seconds).map(|_| Cell::default()).collect();
    for message in &run.messages {
        let last = cells.len() - 1;
        let at = |us: u64| ((us / 1_000_000) as usize).min(last);
        *cells[at(message.due)].window.offered.get_or_insert(0) += 1;
        cells[at(message.sent)].window.issued += 1;
        let ended = &mut cells[at(message.ended)].window;
        ended.completed += u64::from(message.state != State::Broken);
        ended.accepted += u64::from(message.state == State::Accepted);
        ended.rejected += u64::from(message.state == State::Rejected);
        ended.broken += u64::from(message.state == State::Broken);
        let due = &mut cells[at(message.due)];
        due.lateness.push(message.taken - message.due);
        if message.state != State::Broken {
            due.response.push(message.ended - message.due);
        }
        if let Some(seen) = message.seen {
            due.end_to_end.push(seen - message.due);
            *cells[at(seen)].window.arrived.get_or_insert(0) += 1;
        }
    }
    cells
        .into_iter()
        .enumerate()
        .map(|(t, cell)| window(run, t as u64, cell))
        .collect()
}

fn window(run: &Run, t: u64, mut cell: Cell) -> Window {
    let Setting {
        devices,
        connect_s,
        close_links,
        ..
    } = run.setting;
    let lost = close_links.map_or(0, |at| match t.checked_sub(at) {
        Some(since @ 0..=5) => devices / 10 * (5 - since) / 5,
        Some(_) | None => 0,
    });
    let busy = cell.window.issued as f64 / 52_000.0;
    let wobble = ((t * 2_654_435_761) >> 7 & 1_023) as f64 / 1_023.0;
    let is_starved = run.setting.starved_us > 0 && t >= 39 && t % 7 < 3 && t < 69;
    Window {
        t_s: t as f64,
        for_s: 1.0,
        phase: run.phase(t).to_owned(),
        offered: Some(cell.window.offered.unwrap_or(0)),
        arrived: Some(cell.window.arrived.unwrap_or(0)),
        links_up: Some((devices * (t + 1) / connect_s).min(devices) - lost),
        disconnects: if close_links == Some(t) {
            devices / 10
        } else {
            0
        },
        response: percentiles(&mut cell.response),
        end_to_end: percentiles(&mut cell.end_to_end),
        lateness: percentiles(&mut cell.lateness),
        response_heat: Heat::of(cell.response.iter().map(|us| (*us, 1))),
        end_to_end_heat: Heat::of(cell.end_to_end.iter().map(|us| (*us, 1))),
        generator: Some(WindowHealth {
            shard_cpu: Some(round(busy * 9.0 + 0.05 + wobble * 0.05)),
            consumer_cpu: Some(round(busy * 5.0 + 0.02 + wobble * 0.03)),
            cpu_wait: Some(round(
                if is_starved { 0.38 } else { 0.004 } + wobble * 0.008,
            )),
            steal: Some(round(wobble * 0.003)),
        }),
        ..cell.window
    }
}

#[derive(Default)]
struct Cell {
    window: Window,
    response: Vec<u64>,
    end_to_end: Vec<u64>,
    lateness: Vec<u64>,
}

fn round(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// The distribution of the values; so many were not answered.
pub(crate) fn latency(mut values: Vec<u64>, censored: u64) -> LatencyFigures {
    let of_answered = percentiles(&mut values);
    let count = values.len() as u64;
    let mean_us = values.iter().sum::<u64>().checked_div(count);
    let max_us = values.last().copied();
    LatencyFigures {
        count,
        censored,
        mean_us,
        percentiles: of_answered,
        max_us,
        above_top: 0,
        all_due: Some(of_answered),
        lower: None,
    }
}

/// Sorts the values. A percentile is known from 10 / (1 - X) values on (docs/semantics.md#when-a-percentile-is-printed).
fn percentiles(values: &mut [u64]) -> Percentiles {
    values.sort_unstable();
    let at = |per_mille: usize| {
        let enough = 10_000 / (1_000 - per_mille);
        let place = (values.len() * per_mille).div_ceil(1_000).max(1) - 1;
        (values.len() >= enough).then(|| values[place])
    };
    Percentiles {
        p50_us: at(500),
        p90_us: at(900),
        p95_us: at(950),
        p99_us: at(990),
        p99_9_us: at(999),
        ..Percentiles::default()
    }
}
