//! Publishing: Muster against the bare loop, and the bare loop against its twin in C.

use anyhow::Result;

use super::Bench;
use super::coap::LINKS as COAP_LINKS;
use super::matched::{Comparison, interleaved, ratio};
use super::side::{Load, Sample, Side};
use super::table::{at_least, begin, end, median, row, thousands};

/// Least share of the bare loop's rate.
const GOAL: f64 = 0.8;
/// Least share of the rate of the bare loop in C that the one in Rust reaches.
const GOAL_OF_C: f64 = 0.9;

/// Saturated and paced at half of that, at QoS 0 and 1.
pub(super) fn against_bare(bench: &mut Bench<'_>) -> Result<()> {
    let (links, seconds) = (&bench.extent.links, bench.extent.seconds);
    let loads = [0, 1].into_iter().flat_map(|qos| {
        let of = move |&links| Load::saturated(links, qos, seconds);
        links.iter().map(of)
    });
    let loads: Vec<Load> = loads.collect();
    let comparison = Comparison {
        title: "Publishing, 100 bytes, one write a message",
        loads: &loads,
        goal: GOAL,
    };
    comparison.run(bench)
}

/// The bare loop in both languages.
pub(super) fn rust_against_c(bench: &mut Bench<'_>) -> Result<()> {
    let columns = "regime | message | links | C per CPU-s | Rust per CPU-s | ratio";
    begin(bench.out, "The bare loop in Rust against C", columns)?;
    let (links, seconds) = (bench.extent.links[0], bench.extent.seconds);
    for saturated in [
        Load::saturated(links, 0, seconds),
        Load::saturated(links, 1, seconds),
        Load::saturated_coap(COAP_LINKS, seconds),
    ] {
        for (regime, load) in [
            ("saturated", saturated),
            ("paced 10,000/s", saturated.at(10_000)),
        ] {
            let sides = [Side::BareInC, Side::Bare];
            let [c, rust] = interleaved(bench.programs, bench.extent.repetitions, &load, sides)?;
            row(
                bench.out,
                &[
                    regime.to_owned(),
                    load.protocol.name(),
                    load.links.to_string(),
                    thousands(median(c.iter().map(Sample::per_cpu))),
                    thousands(median(rust.iter().map(Sample::per_cpu))),
                    at_least(ratio(&rust, &c, Sample::per_cpu), GOAL_OF_C),
                ],
            )?;
        }
    }
    end(bench.out, &format!("Goal: {GOAL_OF_C}."))
}
