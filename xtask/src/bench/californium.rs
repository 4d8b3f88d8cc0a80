//! Californium's client core and Muster: requests on the same sink, and memory of an idle client.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::coap::LINKS;
use super::memory::slope;
use super::process::{Process, per_cpu_second};
use super::programs::Programs;
use super::request_memory::{PLAIN, anonymous};
use super::run::figure;
use super::scenario;
use super::side::Load;
use super::sink::Sink;
use super::table::{begin, end, medians, row, thousands};
use super::transports::result;

/// Time for Java's compiler before the mark.
const WARM_SECONDS: u32 = 10;
/// Longest start and end of a virtual machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers of clients for the slope of memory; each client has two threads.
const FEW: u32 = 200;
const MANY: u32 = 1_200;
/// The collector and the bounds that leave the least of a heap that is not used.
const SMALL_HEAP: [&str; 3] = [
    "-XX:+UseSerialGC",
    "-XX:MinHeapFreeRatio=5",
    "-XX:MaxHeapFreeRatio=10",
];

/// Compares the CPU of both in alternating runs, then the memory.
pub(super) fn against_muster(bench: &mut Bench<'_>) -> Result<()> {
    let peer = Californium::build(bench.programs)?;
    let mut turns = Vec::new();
    for _ in 0..bench.extent.repetitions {
        let theirs = with_sink(bench.programs, |sink| {
            peer.per_cpu(sink, bench.extent.seconds)
        })?;
        let ours = with_sink(bench.programs, |sink| {
            let load = Load::saturated_coap(LINKS, bench.extent.seconds);
            let text = scenario::text(&load, sink, false);
            let result = result(bench.programs, &text, load.seconds)?;
            Ok(figure(&result, "/ledger/uplink/accepted")? / figure(&result, "/generator/cpu_s")?)
        })?;
        turns.push((theirs, ours));
    }
    let columns = "clients | Californium per CPU-s | Muster per CPU-s | ratio";
    begin(bench.out, "CoAP against Californium's client core", columns)?;
    let [theirs, ours, ratio] = medians(&turns);
    let (theirs, ours) = (thousands(theirs), thousands(ours));
    row(
        bench.out,
        &[LINKS.to_string(), theirs, ours, format!("{ratio:.1}")],
    )?;
    end(
        bench.out,
        "Confirmable, 100 bytes, closed loop, a socket a client, the same sink; CPU of whole processes, Java's \
         after ten seconds.",
    )?;
    peer.memory(bench.out)
}

struct Californium<'a> {
    programs: &'a Programs,
    class_path: String,
}

impl<'a> Californium<'a> {
    fn build(programs: &'a Programs) -> Result<Self> {
        let folder = programs.scripted_peer("californium")?;
        let libraries = std::fs::read_to_string(folder.join("classpath"))
            .context("read the class path that Maven wrote")?;
        let classes = folder.join("target/classes");
        Ok(Self {
            programs,
            class_path: format!("{}:{libraries}", classes.display()),
        })
    }

    fn start(&self, options: &[&str], words: &[&str]) -> Result<Process> {
        let all = [options, &["-cp", &self.class_path, "Load"], words].concat();
        let all: Vec<_> = all.iter().map(Into::into).collect();
        Process::start(
            Path::new("java"),
            &all,
            self.programs.scratch("californium.out"),
        )
    }

    fn per_cpu(&self, sink: &str, seconds: u32) -> Result<f64> {
        let (links, warm) = (LINKS.to_string(), WARM_SECONDS.to_string());
        let process = self.start(&[], &["cpu", sink, &links, &warm, &seconds.to_string()])?;
        let limit = PATIENCE + Duration::from_secs((WARM_SECONDS + seconds).into());
        let (_, printed) = process.finish(limit)?;
        if !printed.contains(r#""failed":0,"#) {
            bail!("Californium's client did not succeed: {printed}");
        }
        per_cpu_second(&printed, "messages")
    }

    /// The slope between two numbers of clients that have asked once, and of Muster's links.
    fn memory(&self, out: &mut dyn Write) -> Result<()> {
        let (_, theirs) = slope([FEW, MANY], |clients| self.anonymous(clients))?;
        let (_, ours) = slope([FEW, MANY], |links| anonymous(self.programs, PLAIN, links))?;
        let columns = "Californium, bytes a client | Muster, bytes a link";
        begin(out, "Memory against Californium's client core", columns)?;
        row(out, &[format!("{theirs:.0}"), format!("{ours:.0}")])?;
        end(
            out,
            "The slope of anonymous memory between 200 and 1,200; Java's after a collection with bounds that keep \
             its heap small.",
        )
    }

    fn anonymous(&self, clients: u32) -> Result<f64> {
        with_sink(self.programs, |sink| {
            let mut process = self.start(&SMALL_HEAP, &["idle", sink, &clients.to_string()])?;
            process.until(PATIENCE, |process| {
                Ok(process.printed()?.contains("ready").then_some(()))
            })?;
            Ok(process.memory("RssAnon")? as f64)
        })
    }
}

/// Runs something against a fresh sink, which ends after it.
fn with_sink(programs: &Programs, run: impl FnOnce(&str) -> Result<f64>) -> Result<f64> {
    let sink = Sink::run(&programs.coap.sink, programs)?;
    run(&sink.address)
}
