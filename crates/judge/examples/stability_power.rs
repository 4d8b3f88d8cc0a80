//! Prints the table of `docs/stability.md`: how often rules (a) and (b) are wrong, by simulation.
//!
//! `cargo run --release -p muster-judge --example stability_power [-- SEED]`

use std::io::{self, Write};

#[path = "../tests/simulated/random.rs"]
mod random;
#[path = "../tests/stability_power/simulation.rs"]
mod simulation;

use muster_model::figure::count;
use simulation::{Case, Process};

const SEED: u64 = 1;

/// Holds simulated for each row of noise, and of a queue, whose every message is simulated.
const NOISE_HOLDS: u32 = 4_000;
const QUEUE_HOLDS: u32 = 1_000;

fn main() -> io::Result<()> {
    let seed = std::env::args()
        .nth(1)
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(SEED);
    let mut out = io::stdout().lock();
    writeln!(out, "Seed {seed}.\n")?;
    writeln!(
        out,
        "| process | rate | hold | holds | unstable | unclear | stable |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
    for case in cases() {
        let holds = match case.process {
            Process::Noise { .. } => NOISE_HOLDS,
            Process::Queue { .. } => QUEUE_HOLDS,
        };
        let found = case.judged(seed, holds);
        let percent = |count: u32| f64::from(count) * 100.0 / f64::from(holds);
        writeln!(
            out,
            "| {} | {}/s | {} s | {} | {:.2} % | {:.2} % | {:.2} % |",
            name(&case.process),
            count(case.rate as u64),
            case.windows,
            count(u64::from(holds)),
            percent(found.unstable),
            percent(found.unclear),
            percent(holds - found.unstable - found.unclear),
        )?;
        out.flush()?;
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for correlation in [0.0, 0.8] {
        for windows in [30, 60, 180] {
            for deviation_s in [0.05, 0.25, 1.0, 100.0] {
                let process = Process::Noise {
                    correlation,
                    deviation_s,
                };
                cases.push(Case {
                    process,
                    rate: 1_000.0,
                    windows,
                });
            }
        }
    }
    let queues = [
        (0.95, 1_000.0, 30),
        (0.95, 1_000.0, 60),
        (0.95, 1_000.0, 180),
        (0.95, 100.0, 60),
        (1.05, 1_000.0, 60),
        (1.05, 4_000.0, 60),
        (1.02, 1_000.0, 180),
        (1.02, 4_000.0, 180),
        (1.05, 300.0, 60),
        (1.02, 1_000.0, 60),
    ];
    cases.extend(queues.map(|(load, rate, windows)| {
        let process = Process::Queue { load };
        Case {
            process,
            rate,
            windows,
        }
    }));
    cases
}

fn name(process: &Process) -> String {
    match process {
        Process::Noise {
            correlation: 0.0,
            deviation_s,
        } => {
            format!("white noise, {deviation_s} s of traffic")
        }
        Process::Noise {
            correlation,
            deviation_s,
        } => {
            format!("AR(1) {correlation}, {deviation_s} s of traffic")
        }
        Process::Queue { load } => format!("M/M/1 at {load}"),
    }
}
