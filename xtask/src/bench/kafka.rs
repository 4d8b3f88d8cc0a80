//! Consuming from Kafka: Muster's consumer against `rdkafka` alone, on a full topic of a real broker.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Extent;
use super::programs::Programs;
use super::table::{at_least, begin, end, median, row, thousands};

/// Enough for some seconds of CPU a turn.
const MESSAGES: u32 = 2_000_000;
/// Least share of the rate of the crate alone.
const GOAL: f64 = 0.7;

/// Both consumers by turns.
pub(super) fn against_rdkafka(
    programs: &Programs,
    extent: &Extent,
    out: &mut dyn Write,
) -> Result<()> {
    let pairs = measured(programs, extent.repetitions)?;
    let columns = [
        "messages",
        "rdkafka alone per CPU-s",
        "Muster per CPU-s",
        "ratio",
        "lowest and highest",
    ];
    begin(out, "Consuming from Kafka", &columns)?;
    let ratios = || pairs.iter().map(|(bare, muster)| muster / bare);
    let (low, high) = (
        ratios().fold(f64::INFINITY, f64::min),
        ratios().fold(0.0, f64::max),
    );
    let cells = [
        MESSAGES.to_string(),
        thousands(median(pairs.iter().map(|(bare, _)| *bare))),
        thousands(median(pairs.iter().map(|(_, muster)| *muster))),
        at_least(median(ratios()), GOAL),
        format!("{low:.2} to {high:.2}"),
    ];
    row(out, &cells)?;
    let note = format!(
        "Ditto messages of 600 bytes with 8 headers, 10 partitions, a group; CPU of the whole process, \
         librdkafka's threads included. Goal: {GOAL}."
    );
    end(out, &note)
}

/// Messages per CPU-second of the crate alone and of Muster, turn by turn.
fn measured(programs: &Programs, repetitions: u32) -> Result<Vec<(f64, f64)>> {
    let kafka_cost = programs.example_of("muster-backend", "kafka_cost")?;
    let output = Command::new("bash")
        .current_dir(&programs.root)
        .arg("bench/kafka.sh")
        .arg(kafka_cost)
        .args([MESSAGES.to_string(), repetitions.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("run bench/kafka.sh")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("bench/kafka.sh failed: {printed}");
    }
    let figures: Result<Vec<f64>> = printed.lines().map(per_cpu).collect();
    Ok(figures?
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}

/// Of one turn, in which the id of every message was read.
fn per_cpu(line: &str) -> Result<f64> {
    let told: Value = serde_json::from_str(line).with_context(|| format!("read {line}"))?;
    let figure = |name: &str| {
        told[name]
            .as_f64()
            .with_context(|| format!("{name} in {line}"))
    };
    let all = f64::from(MESSAGES);
    if figure("messages")? < all || figure("read")? < all {
        bail!("not every message was taken and read: {line}");
    }
    Ok(figure("messages")? / figure("cpu_s")?)
}
