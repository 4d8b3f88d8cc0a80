//! Receiving over AMQP 1.0: Muster's consumer against `fe2o3-amqp` alone, before a peer that sends as fast as it may.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Bench;
use super::process::figures;
use super::programs::Programs;
use super::table::{at_least, begin, end, medians, row, thousands};

/// Enough for some seconds of CPU a turn.
const MESSAGES: u32 = 500_000;
/// Least share of the rate of the library alone.
const GOAL: f64 = 0.7;

/// Compares both consumers in alternating runs.
pub(super) fn against_fe2o3(bench: &mut Bench<'_>) -> Result<()> {
    let pairs = measured(bench.programs, bench.extent.repetitions)?;
    let columns =
        "deliveries | fe2o3-amqp alone per CPU-s | Muster per CPU-s | ratio | lowest and highest";
    begin(bench.out, "Receiving over AMQP 1.0", columns)?;
    let [bare, muster, ratio] = medians(&pairs);
    let ratios = || pairs.iter().map(|(bare, muster)| muster / bare);
    let (low, high) = (
        ratios().fold(f64::INFINITY, f64::min),
        ratios().fold(0.0, f64::max),
    );
    let cells = [
        MESSAGES.to_string(),
        thousands(bare),
        thousands(muster),
        at_least(ratio, GOAL),
        format!("{low:.2} to {high:.2}"),
    ];
    row(bench.out, &cells)?;
    let note = format!(
        "Ditto messages of 600 bytes with 5 application properties, credit 1000, each accepted; CPU of the whole \
         process, the library's thread included. Goal: {GOAL}."
    );
    end(bench.out, &note)
}

/// Deliveries per CPU-second of the library alone and of Muster, turn by turn.
fn measured(programs: &Programs, repetitions: u32) -> Result<Vec<(f64, f64)>> {
    let amqp_cost = programs.example_of("muster-backend", "amqp_cost")?;
    let output = Command::new("bash")
        .current_dir(&programs.root)
        .arg("bench/amqp.sh")
        .arg(amqp_cost)
        .args([MESSAGES.to_string(), repetitions.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("run bench/amqp.sh")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("bench/amqp.sh failed: {printed}");
    }
    let figures: Result<Vec<f64>> = printed.lines().map(per_cpu).collect();
    Ok(figures?
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}

/// Of one turn, in which the id of every message was read.
fn per_cpu(line: &str) -> Result<f64> {
    let [messages, read, cpu_s] = figures(line, ["messages", "read", "cpu_s"])?;
    if messages.min(read) < f64::from(MESSAGES) {
        bail!("not every message was taken and read: {line}");
    }
    Ok(messages / cpu_s)
}
