//! Muster and the bare loop under the same load, saturated and paced.

use anyhow::Result;

use super::programs::Programs;
use super::side::{Load, Sample, Side};
use super::table::{at_least, begin, end, median, row, thousands};
use super::{Bench, Extent};

/// Paced rates are whole thousands.
const STEP: f64 = 1_000.0;
const COLUMNS: &str = "regime | message | links | rate/s | bare per CPU-s | Muster per CPU-s | ratio | \
     with a consumer: ratio | with its CPU | lateness p99, bare | Muster";

/// Loads on both sides, and what is asked of Muster.
pub(super) struct Comparison<'a> {
    pub(super) title: &'a str,
    /// Saturated; each is also paced, at half of what the slowest side reached.
    pub(super) loads: &'a [Load],
    /// Of the bare loop's messages per CPU-second.
    pub(super) goal: f64,
}

impl Comparison<'_> {
    /// Measures and prints the table.
    pub(super) fn run(&self, bench: &mut Bench<'_>) -> Result<()> {
        begin(bench.out, self.title, COLUMNS)?;
        for saturated in self.loads {
            let reached = Matched::measure(bench.programs, bench.extent, saturated)?;
            row(bench.out, &reached.cells("saturated", saturated, self.goal))?;
            let half = (reached.rate() / 2.0 / STEP).floor().max(1.0) * STEP;
            let paced = saturated.at(half as u64);
            let kept = Matched::measure(bench.programs, bench.extent, &paced)?;
            row(bench.out, &kept.cells("paced", &paced, self.goal))?;
        }
        let note = format!(
            "Medians of {} interleaved repetitions of {} s; a ratio is the median of the pairs' \
             ratios. CPU is that of the device shards (all of the bare loop). Paced is half of \
             what the slower side reached saturated. Goals: ratios of {}; paced, a lateness p99 \
             below 1 ms and at most 1.5 times the bare loop's.",
            bench.extent.repetitions, bench.extent.seconds, self.goal
        );
        end(bench.out, &note)
    }
}

/// The same load on the bare loop, on Muster, and on Muster with a consumer.
struct Matched {
    bare: Vec<Sample>,
    muster: Vec<Sample>,
    consuming: Vec<Sample>,
}

impl Matched {
    fn measure(programs: &Programs, extent: &Extent, load: &Load) -> Result<Self> {
        let sides = [Side::Bare, Side::Muster, Side::MusterWithConsumer];
        let [bare, muster, consuming] = interleaved(programs, extent.repetitions, load, sides)?;
        Ok(Self {
            bare,
            muster,
            consuming,
        })
    }

    /// Messages a second that the slowest side reached.
    fn rate(&self) -> f64 {
        let rate = |side: &[Sample]| median(side.iter().map(Sample::rate));
        rate(&self.bare)
            .min(rate(&self.muster))
            .min(rate(&self.consuming))
    }

    fn cells(&self, regime: &str, load: &Load, goal: f64) -> Vec<String> {
        let per_cpu = |side: &[Sample]| thousands(median(side.iter().map(Sample::per_cpu)));
        let late = |side: &[Sample]| match load.rate {
            Some(_) => lateness(side),
            None => "-".to_owned(),
        };
        vec![
            regime.to_owned(),
            load.protocol.name(),
            load.links.to_string(),
            format!("{:.0}", median(self.muster.iter().map(Sample::rate))),
            per_cpu(&self.bare),
            per_cpu(&self.muster),
            at_least(ratio(&self.muster, &self.bare, Sample::per_cpu), goal),
            format!("{:.2}", ratio(&self.consuming, &self.bare, Sample::per_cpu)),
            format!(
                "{:.2}",
                ratio(&self.consuming, &self.bare, Sample::per_all_cpu)
            ),
            late(&self.bare),
            late(&self.muster),
        ]
    }
}

fn lateness(side: &[Sample]) -> String {
    let p99_us = median(side.iter().map(|sample| sample.lateness_p99_us));
    format!("{:.2} ms", p99_us / 1e3)
}

/// Runs every side in turn, so often, each time in the other order.
pub(super) fn interleaved<const N: usize>(
    programs: &Programs,
    repetitions: u32,
    load: &Load,
    sides: [Side; N],
) -> Result<[Vec<Sample>; N]> {
    let mut samples = [const { Vec::new() }; N];
    for repetition in 0..repetitions {
        let mut order: Vec<usize> = (0..N).collect();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for place in order {
            samples[place].push(sides[place].publish(programs, load)?);
        }
    }
    Ok(samples)
}

/// The median of the ratios of pairs that ran next to each other, a figure of one to the messages
/// per CPU-second of the other.
pub(super) fn ratio(upper: &[Sample], lower: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(
        upper
            .iter()
            .zip(lower)
            .map(|(upper, lower)| figure(upper) / lower.per_cpu()),
    )
}
