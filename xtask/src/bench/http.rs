//! HTTP: POST of 100 bytes on kept connections, against the bare loop and against published tools.

use anyhow::Result;

use super::Bench;
use super::matched::{Comparison, interleaved, ratio};
use super::programs::Programs;
use super::side::{Load, Sample, Side};
use super::table::{at_least, begin, end, median, row, thousands};

/// Connections of the two sizes that are compared.
const LINKS: [u32; 2] = [500, 10_000];
/// Least share of the bare loop's rate.
const GOAL: f64 = 0.75;
/// Least share of the rate of a tool.
const GOAL_OF_TOOLS: f64 = 0.8;

/// A published tool that sends the bare loop's request.
struct Tool {
    name: &'static str,
    side: Side,
    /// The most connections that it is compared with.
    links_max: u32,
    /// Puts it in place, if it can.
    install: fn(&Programs) -> bool,
    /// A sentence for who misses it.
    remedy: &'static str,
}

const TOOLS: [Tool; 2] = [
    Tool {
        name: "wrk",
        side: Side::Wrk,
        links_max: LINKS[1],
        install: |_| Programs::has("wrk"),
        remedy: "wrk is left out, since it is not installed: apt-get install wrk.",
    },
    Tool {
        name: "Locust",
        side: Side::Locust,
        links_max: LINKS[0],
        install: |programs| programs.scripted_peer("locust").is_ok(),
        remedy: "Locust is left out, since e2e/peers/locust/build.sh cannot install it: that needs python3-venv and pip.",
    },
];

/// Saturated and paced against the bare loop, and saturated against the tools.
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
    against_tools(bench, &loads)
}

fn against_tools(bench: &mut Bench<'_>, loads: &[Load]) -> Result<()> {
    let (there, missing): (Vec<Tool>, Vec<Tool>) = TOOLS
        .into_iter()
        .partition(|tool| (tool.install)(bench.programs));
    let columns =
        "tool | links | rate/s of the tool | Muster | tool per CPU-s | Muster per CPU-s | ratio";
    begin(
        bench.out,
        "HTTP against published tools, saturated",
        columns,
    )?;
    for tool in there {
        for load in loads.iter().filter(|load| load.links <= tool.links_max) {
            tool.compare(bench, load)?;
        }
    }
    let mut note = format!(
        "Both send the bare loop's request: wrk (Debian's) with one thread, Locust in one process. Neither can pace. wrk \
         accounts for no message. CPU is that of the device shards, and all of a tool. Goal: {GOAL_OF_TOOLS}."
    );
    for tool in missing {
        note.extend([" ", tool.remedy]);
    }
    end(bench.out, &note)
}

impl Tool {
    fn compare(&self, bench: &mut Bench<'_>, load: &Load) -> Result<()> {
        let sides = [self.side, Side::Muster];
        let [theirs, muster] = interleaved(bench.programs, bench.extent.repetitions, load, sides)?;
        let rate = |side: &[Sample]| format!("{:.0}", median(side.iter().map(Sample::rate)));
        let per_cpu = |side: &[Sample]| thousands(median(side.iter().map(Sample::per_cpu)));
        let cells = [
            self.name.to_owned(),
            load.links.to_string(),
            rate(&theirs),
            rate(&muster),
            per_cpu(&theirs),
            per_cpu(&muster),
            at_least(ratio(&muster, &theirs, Sample::per_cpu), GOAL_OF_TOOLS),
        ];
        row(bench.out, &cells)
    }
}
