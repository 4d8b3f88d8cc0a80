//! HTTP: POST of 100 bytes on kept connections, against the bare loop and against wrk.

use anyhow::Result;

use super::Bench;
use super::matched::{Comparison, interleaved, ratio};
use super::side::{Load, Sample, Side};
use super::table::{at_least, begin, end, median, row, thousands};

/// Connections of the two sizes that are compared.
const LINKS: [u32; 2] = [500, 10_000];
/// Least share of the bare loop's rate.
const GOAL: f64 = 0.75;
/// Least share of the rate of wrk, which accounts for nothing.
const GOAL_OF_WRK: f64 = 0.8;

/// Saturated and paced against the bare loop, and saturated against wrk.
pub(super) fn against_bare(bench: &mut Bench<'_>) -> Result<()> {
    let links = LINKS.iter().take(bench.extent.links.len());
    let seconds = bench.extent.seconds;
    let loads: Vec<Load> = links
        .map(|links| Load::saturated_http(*links, seconds))
        .collect();
    let comparison = Comparison {
        title: "HTTP, POST of 100 bytes, kept connections, one request at a time",
        loads: &loads,
        goal: GOAL,
    };
    comparison.run(bench)?;
    against_wrk(bench, &loads)
}

fn against_wrk(bench: &mut Bench<'_>, loads: &[Load]) -> Result<()> {
    let columns = "links | rate/s, wrk | Muster | wrk per CPU-s | Muster per CPU-s | ratio";
    begin(bench.out, "HTTP against wrk, saturated", columns)?;
    for load in loads {
        let sides = [Side::Wrk, Side::Muster];
        let [wrk, muster] = interleaved(bench.programs, bench.extent.repetitions, load, sides)?;
        let rate = |side: &[Sample]| format!("{:.0}", median(side.iter().map(Sample::rate)));
        let per_cpu = |side: &[Sample]| thousands(median(side.iter().map(Sample::per_cpu)));
        let cells = [
            load.links.to_string(),
            rate(&wrk),
            rate(&muster),
            per_cpu(&wrk),
            per_cpu(&muster),
            at_least(ratio(&muster, &wrk, Sample::per_cpu), GOAL_OF_WRK),
        ];
        row(bench.out, &cells)?;
    }
    let note = format!(
        "wrk (Debian's) with one thread sends the bare loop's request, and accounts for no message. CPU is that \
         of the device shards, and all of wrk. Goal: {GOAL_OF_WRK}."
    );
    end(bench.out, &note)
}
