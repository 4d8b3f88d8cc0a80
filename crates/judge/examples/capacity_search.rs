//! Prints the tables of `docs/capacity-search.md`: how often a search of a simulated target is right, and what
//! published rules answer on the same targets. Without searches it prints the capacities by long simulations.
//!
//! `cargo run --release -p muster-judge --example capacity_search [-- SEED [SEARCHES [TARGET]]]`

use std::io::{self, Write};

#[path = "../tests/capacity/published.rs"]
mod published;
#[path = "../tests/simulated/random.rs"]
mod random;
#[path = "../tests/capacity/searching.rs"]
mod searching;
#[path = "../tests/capacity/targets.rs"]
mod targets;

use muster_judge::capacity::SearchSpec;
use muster_model::Micros;
use published::{RULES, answers};
use searching::{Figures, slow_spec, spec};
use targets::{TARGETS, Target, highest};

/// Length of a long simulation at one rate, in seconds.
const SIMULATED: f64 = 20_000.0;
/// Budgets of a search, in minutes: the one of `muster capacity`, and twice that.
const BUDGETS: [u64; 2] = [10, 20];
/// Slow targets take this many times as long, and their searches these budgets.
const SLOWER: [f64; 4] = [4.5, 9.0, 18.0, 45.0];
const SLOW_BUDGETS: [u64; 3] = [20, 40, 80];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        let given = arguments.next().and_then(|given| given.parse().ok());
        given.unwrap_or(default)
    };
    let (seed, searches) = (number(1), number(1_000) as u32);
    let only = arguments.next().unwrap_or_default();
    let mut out = io::stdout().lock();
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| target.name.contains(&only))
        .collect();
    if searches == 0 {
        for target in &chosen {
            let most = 1.2 * target.servers as f64 / target.mean;
            let simulated = highest(most, |rate| target.passes(rate, SIMULATED));
            writeln!(out, "| {} | {simulated:.1} |", target.name)?;
        }
        return Ok(());
    }
    for minutes in BUDGETS {
        heading(
            &mut out,
            &format!("Seed {seed}, {searches} searches a target, {minutes} minutes a search"),
        )?;
        let spec = SearchSpec {
            budget: Micros::from_secs(minutes * 60),
            ..spec()
        };
        for target in &chosen {
            let figures = Figures::collect(**target, &spec, seed, searches);
            writeln!(out, "{}", row(target, &figures))?;
            out.flush()?;
        }
        writeln!(out)?;
    }
    for minutes in SLOW_BUDGETS {
        heading(
            &mut out,
            &format!("Slow targets with an SLO for p99, {minutes} minutes a search"),
        )?;
        for target in &chosen {
            for times in SLOWER {
                let slow = target.slowed(times);
                let spec = slow_spec(&slow, Micros::from_secs(minutes * 60));
                let figures = Figures::collect(slow, &spec, seed, searches);
                writeln!(out, "{}", row(&slow, &figures))?;
                out.flush()?;
            }
        }
        writeln!(out)?;
    }
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    writeln!(out, "| target | {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(RULES.len()))?;
    for target in &chosen {
        write!(out, "| {} |", target.name)?;
        for answers in answers(**target, seed, (searches / 10).max(1)) {
            let at = |part: f64| answers[((answers.len() - 1) as f64 * part).round() as usize];
            let percent = |value: f64| (value - 1.0) * 100.0;
            let [low, middle, high] = [0.05, 0.5, 0.95].map(|part| percent(at(part)));
            write!(out, " {middle:+.0} % ({low:+.0} to {high:+.0}) |")?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, of: &str) -> io::Result<()> {
    writeln!(out, "{of}:\n")?;
    writeln!(
        out,
        "| target | truth | found | middle within 3 % | lower end above | covered | mean width | mean error | not found, covered | mean time |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
}

fn row(target: &Target, figures: &Figures) -> String {
    let percent = |part: u32, of: u32| match of {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", f64::from(part) * 100.0 / f64::from(of)),
    };
    let found = f64::from(figures.found.max(1));
    format!(
        "| {} | {:.1} | {} | {} | {} | {} | {:.1} % | {:+.1} % | {}, {} | {:.0} s |",
        target.name,
        target.truth(0.0),
        percent(figures.found, figures.searches),
        percent(figures.close, figures.found),
        percent(figures.above, figures.found),
        percent(figures.covered, figures.found),
        figures.width * 100.0 / found,
        figures.error * 100.0 / found,
        figures.open,
        percent(figures.open_covered, figures.open),
        figures.spent_s / f64::from(figures.searches),
    )
}
