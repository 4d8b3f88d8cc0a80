//! Speed and memory, side by side: Muster, the bare loop, its twin in C, and published tools, on
//! the same sink, interleaved, as messages per CPU-second of what does the devices' work.
//!
//! CPU and memory are read from procfs and messages from the sink, for all sides alike; what a
//! side says of itself is only compared with that. Load stays on loopback, every run is bounded in
//! time, and every process is ended with the run that started it.

mod board;
mod californium;
mod coap;
mod connect;
mod consumers;
mod devices;
mod example;
mod gateway;
mod handshakes;
mod http;
mod matched;
mod memory;
mod peers;
mod process;
mod programs;
mod publish;
mod request_memory;
mod run;
mod scenario;
mod side;
mod sink;
mod table;
mod transports;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use programs::Programs;

/// Selection and length of benchmarks.
#[derive(Debug, Args)]
pub struct Options {
    /// Benchmarks to run; by default all but `quick`, `soak`, `devices`, `board` and those that need Java.
    #[arg(value_enum)]
    pub names: Vec<Name>,
    /// Interleaved repetitions; the tables show their medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub repetitions: u32,
    /// Seconds of steady traffic that a repetition measures.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: u32,
    /// Leave out the larger number of links.
    #[arg(long)]
    pub small: bool,
    /// Measure the programs as they were built last.
    #[arg(long)]
    pub as_built: bool,
}

/// One benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// The first figures in about three minutes: one repetition, 5,000 links.
    Quick,
    /// Publishing against the bare loop, saturated and paced, with lateness.
    Publish,
    /// Connecting against the bare loop.
    Connect,
    /// The bare loops against their twins in C.
    Loops,
    /// Cost of ledger and histograms.
    Ledger,
    /// Cost of TLS and WebSocket.
    Tls,
    /// CoAP against a bare socket loop, saturated and paced, with lateness.
    Coap,
    /// HTTP against a bare loop, wrk (Debian's) and Locust (by pip).
    Http,
    /// CoAP over DTLS against plain, and handshakes against a published library's.
    Dtls,
    /// CoAP against Californium's client core; needs JDK 17 and Maven.
    CoapPeers,
    /// 15,000 devices over DTLS.
    Devices,
    /// ThingsBoard's REST API: 10,000 devices created, a million stored points read back.
    Board,
    /// Cost of watching the target once a second.
    Monitor,
    /// Receiving over AMQP 1.0 against `fe2o3-amqp` alone.
    Amqp,
    /// Consuming from Kafka against `rdkafka` alone; needs JDK 17, Maven and kcat.
    Kafka,
    /// User memory of an idle device, over MQTT, CoAP, DTLS, HTTP and TLS.
    Memory,
    /// The same without MQTT.
    MemoryRequests,
    /// Two published tools on the same sink.
    Peers,
    /// Resident memory at minute 1 and minute 10.
    Soak,
}

const ALL: [Name; 11] = [
    Name::Publish,
    Name::Connect,
    Name::Loops,
    Name::Ledger,
    Name::Tls,
    Name::Coap,
    Name::Http,
    Name::Dtls,
    Name::Memory,
    Name::Monitor,
    Name::Peers,
];
const QUICK: [Name; 3] = [Name::Publish, Name::Connect, Name::Loops];
/// Links of the two sizes that are compared: the larger is what one process can hold.
const LINKS: [u32; 2] = [5_000, 19_000];

/// Repetitions and length, equal for every benchmark.
#[derive(Debug, Clone)]
struct Extent {
    repetitions: u32,
    seconds: u32,
    links: Vec<u32>,
}

/// Programs to measure with, extent and output of a benchmark.
struct Bench<'a> {
    programs: &'a Programs,
    extent: &'a Extent,
    out: &'a mut dyn Write,
}

/// Measures and prints Markdown, table by table.
///
/// # Errors
/// If a program cannot be built or run, or its figures make no sense.
pub fn run(root: &Path, options: &Options, out: &mut dyn Write) -> Result<()> {
    let quick = options.names.contains(&Name::Quick);
    let names = match &options.names[..] {
        [] => &ALL[..],
        _ if quick => &QUICK,
        names => names,
    };
    let extent = Extent {
        repetitions: if quick { 1 } else { options.repetitions },
        seconds: if quick { 3 } else { options.seconds },
        links: LINKS[..if quick || options.small { 1 } else { 2 }].to_vec(),
    };
    let programs = Programs::at(root)?;
    if !options.as_built {
        programs.build()?;
    }
    writeln!(out, "{}\n", machine()?)?;
    let mut bench = Bench {
        programs: &programs,
        extent: &extent,
        out,
    };
    for name in names {
        measure(*name, &mut bench)?;
        bench.out.flush()?;
    }
    writeln!(bench.out, "Load average afterwards: {}.", load_average()?)?;
    Ok(())
}

fn measure(name: Name, bench: &mut Bench<'_>) -> Result<()> {
    match name {
        Name::Quick => Ok(()),
        Name::Publish => publish::against_bare(bench),
        Name::Connect => connect::against_bare(bench),
        Name::Loops => publish::rust_against_c(bench),
        Name::Ledger => example::LEDGER.run(bench.programs, bench.out),
        Name::Tls => {
            example::TLS.run(bench.programs, bench.out)?;
            transports::against_plain(bench)
        }
        Name::Coap => coap::against_bare(bench),
        Name::Http => http::against_bare(bench),
        Name::Dtls => coap::dtls(bench),
        Name::Board => board::over_rest(bench.programs, bench.out),
        Name::Monitor => example::MONITOR.run(bench.programs, bench.out),
        Name::Amqp => consumers::AMQP.compare(bench),
        Name::Kafka => consumers::KAFKA.compare(bench),
        Name::CoapPeers => californium::against_muster(bench),
        Name::Devices => devices::over_dtls(bench.programs, bench.out),
        Name::Memory => {
            memory::idle(bench.programs, bench.out)?;
            request_memory::idle(bench.programs, bench.out)
        }
        Name::MemoryRequests => request_memory::idle(bench.programs, bench.out),
        Name::Peers => peers::side_by_side(bench),
        Name::Soak => memory::soak(bench.programs, bench.out),
    }
}

/// The machine and how busy it is.
fn machine() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("read {path}"));
    let info = read("/proc/cpuinfo")?;
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |model| {
        model.trim_start_matches(['\t', ' ', ':'])
    });
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let load = load_average()?;
    Ok(format!(
        "{cores} cores, {model}, Linux {}. Load average before: {load}.",
        kernel.trim()
    ))
}

/// Of the last minute, five and fifteen minutes.
fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("read the load average")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(", "))
}
