//! Muster and published MQTT load tools, as whole processes, on the same sink.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::Process;
use super::programs::Programs;
use super::side::{Load, Sample, Side, steady};
use super::sink::Sink;
use super::table::{at_least, begin, end, median, row, thousands};
use super::{Bench, Extent};

/// Devices of the paced comparison, and messages a second of each.
const DEVICES: u32 = 4_000;
const RATE_OF_ONE: u32 = 5;
/// Fewer devices, for the slope of memory.
const FEW: u32 = 500;
/// Connections of the comparison flat out: with many more, mqtt-benchmark's thousand threads keep
/// its own connects waiting beyond its time-out.
const FLAT_OUT: u32 = 100;
/// Time for a tool's threads and buffers to grow before the marks.
const RUN_IN: Duration = Duration::from_secs(3);
/// Longest time until the first message.
const PATIENCE: Duration = Duration::from_secs(60);
/// More messages a client than it sends while it runs.
const NO_END: &str = "100000000";
/// Bytes of a PUBLISH of Muster's around its payload at QoS 0.
const HEADER: u64 = 15;
/// Least ratio to the better tool's rate by QoS, and most of its memory.
const GOALS: [f64; 2] = [1.5, 1.25];
const GOAL_OF_MEMORY: f64 = 0.01;

/// Paced and flat out.
pub(super) fn side_by_side(bench: &mut Bench<'_>) -> Result<()> {
    let peers = Peers {
        programs: bench.programs,
        extent: bench.extent,
        mqttwrk: bench.programs.published("mqttwrk", "0.2.0")?,
        mqtt_benchmark: bench.programs.published("mqtt-benchmark", "0.2.4")?,
    };
    peers.paced(bench.out)?;
    peers.flat_out(bench.out)
}

struct Peers<'a> {
    programs: &'a Programs,
    extent: &'a Extent,
    mqttwrk: PathBuf,
    mqtt_benchmark: PathBuf,
}

/// A sample, and the anonymous memory at its end.
struct Watched {
    sample: Sample,
    bytes: f64,
}

#[derive(Clone, Copy)]
enum Tool {
    Mqttwrk,
    MqttBenchmark,
}

impl Peers<'_> {
    fn paced(&self, out: &mut dyn Write) -> Result<()> {
        let columns = "QoS | phase | mqttwrk per CPU-s | Muster per CPU-s | ratio | \
                       mqttwrk, bytes a link | Muster | ratio";
        begin(
            out,
            "Published tools, paced: 4,000 devices of 5 messages/s",
            columns,
        )?;
        for qos in [0, 1] {
            let tool = self.repeat(|| self.mqttwrk_paced(DEVICES, qos))?;
            let tool_slope = slope(&self.repeat(|| self.mqttwrk_paced(FEW, qos))?, &tool);
            for together in [true, false] {
                let muster = self.repeat(|| self.muster_paced(DEVICES, qos, together))?;
                let few = self.repeat(|| self.muster_paced(FEW, qos, together))?;
                let muster_slope = slope(&few, &muster);
                let share = muster_slope / tool_slope;
                let missed = if share > GOAL_OF_MEMORY {
                    " (goal 0.01)"
                } else {
                    ""
                };
                let cells = [
                    qos.to_string(),
                    if together { "together" } else { "even" }.to_owned(),
                    thousands(per_cpu(&tool)),
                    thousands(per_cpu(&muster)),
                    at_least(per_cpu(&muster) / per_cpu(&tool), GOALS[usize::from(qos)]),
                    format!("{tool_slope:.0}"),
                    format!("{muster_slope:.0}"),
                    format!("{share:.4}{missed}"),
                ];
                row(out, &cells)?;
            }
        }
        let note = "CPU of whole processes. mqttwrk's devices all send at the same instant, as \
            Muster's in phase `together`; `even` wakes up for each message. mqtt-benchmark cannot \
            pace. A link's bytes are the slope of anonymous memory between 500 and 4,000.";
        end(out, note)
    }

    fn flat_out(&self, out: &mut dyn Write) -> Result<()> {
        let columns = "QoS | tool | messages per CPU-s | bytes a read | MB per CPU-s | \
                       Muster, one message of that size a write: MB per CPU-s | ratio";
        begin(out, "Published tools, flat out: 100 connections", columns)?;
        for qos in [0, 1] {
            for tool in [Tool::Mqttwrk, Tool::MqttBenchmark] {
                let theirs = self.repeat(|| self.tool_flat_out(tool, qos))?;
                let read = median(theirs.iter().map(|one| one.sample.bytes / one.sample.reads));
                let ours = self.repeat(|| self.muster_with_bytes(read as u64, qos))?;
                let cells = [
                    qos.to_string(),
                    tool.name().to_owned(),
                    thousands(per_cpu(&theirs)),
                    format!("{read:.0}"),
                    format!("{:.1}", megabytes_per_cpu(&theirs)),
                    format!("{:.1}", megabytes_per_cpu(&ours)),
                    format!(
                        "{:.2}",
                        megabytes_per_cpu(&ours) / megabytes_per_cpu(&theirs)
                    ),
                ];
                row(out, &cells)?;
            }
        }
        let note = "Flat out these tools put many messages into one write, which devices do not \
            do; Muster writes each message alone, so it is given messages as large as what the \
            sink got from the tool in one read (at least one write), and bytes are compared.";
        end(out, note)
    }

    fn repeat(&self, once: impl Fn() -> Result<Watched>) -> Result<Vec<Watched>> {
        (0..self.extent.repetitions).map(|_| once()).collect()
    }

    fn muster_paced(&self, links: u32, qos: u8, together: bool) -> Result<Watched> {
        let seconds = self.extent.seconds + RUN_IN.as_secs() as u32;
        let load = Load {
            together,
            ..Load::paced(links, qos, seconds, (links * RATE_OF_ONE).into())
        };
        self.muster(&load)
    }

    /// Saturated, with messages of `bytes` bytes on the wire.
    fn muster_with_bytes(&self, bytes: u64, qos: u8) -> Result<Watched> {
        let seconds = self.extent.seconds + RUN_IN.as_secs() as u32;
        self.muster(&Load {
            payload: bytes.saturating_sub(HEADER).max(100),
            ..Load::saturated(FLAT_OUT, qos, seconds)
        })
    }

    fn muster(&self, load: &Load) -> Result<Watched> {
        let sink = Sink::start(self.programs)?;
        let process = Side::Muster.start(self.programs, load, &sink)?;
        self.watch(process, sink)
    }

    fn mqttwrk_paced(&self, links: u32, qos: u8) -> Result<Watched> {
        let rate = RATE_OF_ONE.to_string();
        self.tool(Tool::Mqttwrk, qos, links, &["-r", &rate])
    }

    fn tool_flat_out(&self, tool: Tool, qos: u8) -> Result<Watched> {
        self.tool(tool, qos, FLAT_OUT, &[])
    }

    fn tool(&self, tool: Tool, qos: u8, links: u32, more: &[&str]) -> Result<Watched> {
        let sink = Sink::start(self.programs)?;
        let (program, clients) = match tool {
            Tool::Mqttwrk => (&self.mqttwrk, "-p"),
            Tool::MqttBenchmark => (&self.mqtt_benchmark, "-C"),
        };
        let mut words = tool.words(&sink.address, qos)?;
        words.extend([clients.into(), links.to_string().into()]);
        words.extend(more.iter().map(OsString::from));
        let process = Process::start(program, &words, self.programs.scratch("tool.out"))?;
        self.watch(process, sink)
    }

    /// Measures a stretch of a program that would go on; it ends when this returns.
    fn watch(&self, mut process: Process, mut sink: Sink) -> Result<Watched> {
        process.until(
            PATIENCE,
            |_| Ok((sink.counts()?.messages > 0).then_some(())),
        )?;
        std::thread::sleep(RUN_IN);
        let sample = steady(&mut process, &mut sink, self.extent.seconds)?;
        let bytes = process.memory("RssAnon")? as f64;
        Ok(Watched { sample, bytes })
    }
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Mqttwrk => "mqttwrk",
            Self::MqttBenchmark => "mqtt-benchmark",
        }
    }

    /// Everything but the number of clients and their pace.
    fn words(self, address: &str, qos: u8) -> Result<Vec<OsString>> {
        let (host, port) = address
            .split_once(':')
            .context("the sink's address has a port")?;
        // mqtt-benchmark takes no address, only a name.
        let broker = format!("localhost:{port}");
        let (qos, payload) = (qos.to_string(), "x".repeat(100));
        let words: &[&str] = match self {
            Self::Mqttwrk => &[
                "bench",
                "-S",
                host,
                "-P",
                port,
                "-n",
                NO_END,
                "-m",
                "100",
                "-k",
                "600",
                "--publish-qos",
                &qos,
            ],
            Self::MqttBenchmark => &["-b", &broker, "-s", NO_END, "-q", &qos, "-P", &payload],
        };
        Ok(words.iter().map(OsString::from).collect())
    }
}

fn per_cpu(side: &[Watched]) -> f64 {
    median(
        side.iter()
            .map(|one| one.sample.messages / one.sample.cpu.process),
    )
}

fn megabytes_per_cpu(side: &[Watched]) -> f64 {
    median(
        side.iter()
            .map(|one| one.sample.bytes / one.sample.cpu.process / 1e6),
    )
}

fn slope(few: &[Watched], many: &[Watched]) -> f64 {
    let bytes = |side: &[Watched]| median(side.iter().map(|one| one.bytes));
    (bytes(many) - bytes(few)) / f64::from(DEVICES - FEW)
}
