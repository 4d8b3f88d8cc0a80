//! Publishing: Muster against the bare loop, and the bare loop against its twin in C.

use std::io::Write;

use anyhow::Result;

use super::Extent;
use super::programs::Programs;
use super::side::{Load, Sample, Side};
use super::table::{at_least, begin, end, median, row, thousands};

/// What Muster keeps of the bare loop at least.
const GOAL: f64 = 0.8;
/// What the bare loop in Rust keeps of the one in C at least.
const GOAL_OF_C: f64 = 0.9;
/// Paced rates are whole thousands.
const STEP: f64 = 1_000.0;

/// Saturated and paced at half of that, at QoS 0 and 1.
pub(super) fn against_bare(
    programs: &Programs,
    extent: &Extent,
    out: &mut dyn Write,
) -> Result<()> {
    let columns = [
        "regime",
        "QoS",
        "links",
        "rate/s",
        "bare per CPU-s",
        "Muster per CPU-s",
        "ratio",
        "with a consumer: ratio",
        "with its CPU",
        "lateness p99, bare",
        "Muster",
    ];
    begin(out, "Publishing, 100 bytes, one write a message", &columns)?;
    for qos in [0, 1] {
        for &links in &extent.links {
            let saturated = Load::saturated(links, qos, extent.seconds);
            let reached = Matched::measure(programs, extent, &saturated)?;
            row(out, &reached.cells("saturated", &saturated))?;
            let half = (reached.rate() / 2.0 / STEP).floor().max(1.0) * STEP;
            let paced = Load::paced(links, qos, extent.seconds, half as u64);
            let kept = Matched::measure(programs, extent, &paced)?;
            row(out, &kept.cells("paced", &paced))?;
        }
    }
    let note = format!(
        "Medians of {} interleaved repetitions of {} s; a ratio is the median of the pairs' \
         ratios. CPU is that of the device shards (all of the bare loop). Paced is half of what \
         the slower side reached saturated. Goals: ratios of {GOAL}; paced, a lateness p99 below \
         1 ms and at most 1.5 times the bare loop's.",
        extent.repetitions, extent.seconds
    );
    end(out, &note)
}

/// The bare loop in both languages.
pub(super) fn rust_against_c(
    programs: &Programs,
    extent: &Extent,
    out: &mut dyn Write,
) -> Result<()> {
    let columns = [
        "regime",
        "QoS",
        "links",
        "C per CPU-s",
        "Rust per CPU-s",
        "ratio",
    ];
    begin(out, "The bare loop in Rust against C", &columns)?;
    let links = extent.links[0];
    for qos in [0, 1] {
        for rate in [None, Some(10_000)] {
            let load = Load {
                rate,
                ..Load::saturated(links, qos, extent.seconds)
            };
            let sides = [Side::BareInC, Side::Bare];
            let [c, rust] = interleaved(programs, extent.repetitions, &load, sides)?;
            let regime = rate.map_or("saturated".to_owned(), |rate| format!("paced {rate}/s"));
            row(
                out,
                &[
                    regime,
                    qos.to_string(),
                    links.to_string(),
                    thousands(median(c.iter().map(Sample::per_cpu))),
                    thousands(median(rust.iter().map(Sample::per_cpu))),
                    at_least(ratio(&rust, &c, Sample::per_cpu), GOAL_OF_C),
                ],
            )?;
        }
    }
    end(out, &format!("Goal: {GOAL_OF_C}."))
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

    fn cells(&self, regime: &str, load: &Load) -> Vec<String> {
        let per_cpu = |side: &[Sample]| thousands(median(side.iter().map(Sample::per_cpu)));
        let late = |side: &[Sample]| match load.rate {
            Some(_) => lateness(side),
            None => "-".to_owned(),
        };
        vec![
            regime.to_owned(),
            load.qos.to_string(),
            load.links.to_string(),
            format!("{:.0}", median(self.muster.iter().map(Sample::rate))),
            per_cpu(&self.bare),
            per_cpu(&self.muster),
            at_least(ratio(&self.muster, &self.bare, Sample::per_cpu), GOAL),
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
fn interleaved<const N: usize>(
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
fn ratio(upper: &[Sample], lower: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(
        upper
            .iter()
            .zip(lower)
            .map(|(upper, lower)| figure(upper) / lower.per_cpu()),
    )
}
