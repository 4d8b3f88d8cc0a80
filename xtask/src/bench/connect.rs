//! Connecting: TCP, CONNECT and CONNACK, with nothing after it.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::programs::Programs;
use super::side::{Load, Side, connected};
use super::sink::Sink;
use super::table::{at_least, begin, end, medians, row, thousands};

/// Least share of the bare loop's rate.
const GOAL: f64 = 0.65;
/// From the sink's last CONNACK until the client has read it and its account is up to date.
const REST: Duration = Duration::from_millis(300);
/// Longest time that a side stays connected.
const SECONDS: u32 = 5;

/// Muster against the bare loop with the same bound on handshakes and the same spreading.
pub(super) fn against_bare(bench: &mut Bench<'_>) -> Result<()> {
    let columns = "links | bare per CPU-s | Muster per CPU-s | ratio";
    begin(bench.out, "Connecting", columns)?;
    for &links in &bench.extent.links {
        let mut pairs = Vec::new();
        for _ in 0..bench.extent.repetitions {
            let bare = per_cpu(Side::Bare, bench.programs, links)?;
            pairs.push((bare, per_cpu(Side::Muster, bench.programs, links)?));
        }
        let [bare, muster, ratio] = medians(&pairs);
        let (bare, muster) = (thousands(bare), thousands(muster));
        let cells = [links.to_string(), bare, muster, at_least(ratio, GOAL)];
        row(bench.out, &cells)?;
    }
    let note = format!(
        "TCP + CONNECT + CONNACK, 128 handshakes under way, source addresses spread beyond 12,000 \
         links; CPU from the start of the thread. Goal: {GOAL}."
    );
    end(bench.out, &note)
}

fn per_cpu(side: Side, programs: &Programs, links: u32) -> Result<f64> {
    let mut sink = Sink::start(programs)?;
    let mut process = side.start(programs, &Load::idle(links, SECONDS), &sink)?;
    connected(&mut process, &mut sink, links)?;
    std::thread::sleep(REST);
    Ok(f64::from(links) / process.cpu()?.devices)
}
