//! The sides of a comparison, and how each is put under the same load and measured.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::process::{Cpu, Process, now};
use super::programs::{Cheapest, Programs};
use super::run;
use super::sink::Sink;

/// Longest connecting, and longest end beyond the schedule.
const PATIENCE: Duration = Duration::from_secs(90);
/// From the first message to the first mark: queues have filled and branches are warm.
const RUN_IN: Duration = Duration::from_millis(1_500);
/// Seconds of traffic besides those between the marks.
const AROUND: u32 = 3;

/// The publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The bare loop.
    Bare,
    /// Its twin in C.
    BareInC,
    /// wrk, over HTTP and saturated.
    Wrk,
    /// Locust, the same.
    Locust,
    /// Muster without a backend.
    Muster,
    /// Muster with a consumer, to which the sink forwards every message at QoS 0.
    MusterWithConsumer,
}

/// Transport of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// At this QoS: 0 or 1.
    Mqtt(u8),
    /// Confirmable, one unanswered a link.
    Coap,
    /// POST, one unanswered a link.
    Http,
}

/// Load of a side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Connections.
    pub(super) links: u32,
    /// Of the messages.
    pub(super) protocol: Protocol,
    /// Messages a second over all links; none is saturated.
    pub(super) rate: Option<u64>,
    /// True if all devices send at the same instant, instead of evenly one after the other.
    pub(super) together: bool,
    /// Bytes of payload; the bare loop always sends 100.
    pub(super) payload: u64,
    /// No message at all.
    pub(super) idle: bool,
    /// Seconds of traffic, run-in included.
    pub(super) seconds: u32,
}

/// One measurement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Messages, bytes and reads of the sink between the marks.
    pub(super) messages: f64,
    pub(super) bytes: f64,
    pub(super) reads: f64,
    /// Between the marks, in seconds.
    pub(super) wall: f64,
    /// CPU seconds between the marks.
    pub(super) cpu: Cpu,
    /// As the side reports it, over its whole run, in microseconds; 0 if nothing was paced.
    pub(super) lateness_p99_us: f64,
}

impl Load {
    /// Always a message due; `seconds` lie between the marks.
    pub(super) fn saturated(links: u32, qos: u8, seconds: u32) -> Self {
        Self {
            links,
            protocol: Protocol::Mqtt(qos),
            rate: None,
            together: false,
            payload: 100,
            idle: false,
            seconds: seconds + AROUND,
        }
    }

    /// The same over CoAP.
    pub(super) fn saturated_coap(links: u32, seconds: u32) -> Self {
        Self {
            protocol: Protocol::Coap,
            ..Self::saturated(links, 1, seconds)
        }
    }

    /// The same over HTTP.
    pub(super) fn saturated_http(links: u32, seconds: u32) -> Self {
        Self {
            protocol: Protocol::Http,
            ..Self::saturated(links, 1, seconds)
        }
    }

    /// An even schedule.
    pub(super) fn paced(links: u32, qos: u8, seconds: u32, rate: u64) -> Self {
        Self::saturated(links, qos, seconds).at(rate)
    }

    /// The same on an even schedule.
    pub(super) fn at(self, rate: u64) -> Self {
        Self {
            rate: Some(rate),
            ..self
        }
    }

    /// Links that only exist.
    pub(super) fn idle(links: u32, seconds: u32) -> Self {
        Self {
            idle: true,
            ..Self::paced(links, 0, seconds, 1)
        }
    }
}

impl Protocol {
    /// As a table calls it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Mqtt(qos) => format!("QoS {qos}"),
            Self::Coap => "CON".to_owned(),
            Self::Http => "POST".to_owned(),
        }
    }

    fn cheapest(self, programs: &Programs) -> &Cheapest {
        match self {
            Self::Mqtt(_) => &programs.mqtt,
            Self::Coap => &programs.coap,
            Self::Http => &programs.http,
        }
    }
}

impl Sample {
    /// Messages per CPU-second of what does the devices' work.
    pub(super) fn per_cpu(&self) -> f64 {
        self.messages / self.cpu.devices
    }

    /// The same with the consumers' CPU.
    pub(super) fn per_all_cpu(&self) -> f64 {
        self.messages / (self.cpu.devices + self.cpu.consumers)
    }

    /// Messages a second of the wall clock.
    pub(super) fn rate(&self) -> f64 {
        self.messages / self.wall
    }
}

impl Side {
    /// Runs once and measures the steady part.
    pub(super) fn publish(self, programs: &Programs, load: &Load) -> Result<Sample> {
        let mut sink = Sink::run(&load.protocol.cheapest(programs).sink, programs)?;
        let mut process = self.start(programs, load, &sink)?;
        let mut sample = steady(&mut process, &mut sink, load.seconds - AROUND)?;
        let limit = PATIENCE + Duration::from_secs(load.seconds.into());
        let (status, printed) = process.finish(limit)?;
        let reported = match self {
            Self::Bare | Self::BareInC => own_account(&printed)?,
            Self::Wrk => account_of_wrk(&printed),
            Self::Locust => account_of_locust(status),
            Self::Muster | Self::MusterWithConsumer => result(programs, &mut sink)?,
        };
        if !reported.complete {
            bail!("{self:?} is not sound ({status}): {printed}");
        }
        sample.lateness_p99_us = reported.lateness_p99_us;
        Ok(sample)
    }

    /// Starts against a sink of the caller's.
    pub(super) fn start(self, programs: &Programs, load: &Load, sink: &Sink) -> Result<Process> {
        let output = format!("client-{}.out", load.links);
        let path = programs.scratch(&output);
        let cheapest = load.protocol.cheapest(programs);
        match self {
            Self::Bare => Process::start(&cheapest.bare, &bare_words(load, sink), path),
            Self::BareInC => {
                let bare = cheapest.bare_in_c.as_ref();
                let bare = bare.context("there is no such loop in C")?;
                Process::start(bare, &bare_words(load, sink), path)
            }
            Self::Wrk => Process::start(Path::new("wrk"), &wrk_words(programs, load, sink), path),
            Self::Locust => {
                let locust = programs.peer("locust").join("bin/locust");
                Process::start(&locust, &locust_words(programs, load, sink), path)
            }
            Self::Muster | Self::MusterWithConsumer => {
                let consumer = self == Self::MusterWithConsumer;
                let text = super::scenario::text(load, &sink.address, consumer);
                run::start(programs, &text, &output, &["--quiet"])
            }
        }
    }
}

fn bare_words(load: &Load, sink: &Sink) -> Vec<OsString> {
    let qos = match load.protocol {
        Protocol::Mqtt(qos) => Some(qos.to_string()),
        Protocol::Coap | Protocol::Http => None,
    };
    let pace = [load.rate.unwrap_or(0), load.seconds.into()];
    let words = [sink.address.clone(), load.links.to_string()].into_iter();
    let words = words
        .chain(qos)
        .chain(pace.map(|number| number.to_string()));
    words.map(OsString::from).collect()
}

/// Marks a stretch of traffic: messages at the sink, CPU in procfs.
pub(super) fn steady(process: &mut Process, sink: &mut Sink, seconds: u32) -> Result<Sample> {
    process.until(
        PATIENCE,
        |_| Ok((sink.counts()?.messages > 0).then_some(())),
    )?;
    std::thread::sleep(RUN_IN);
    let mut mark = || -> Result<_> { Ok((sink.counts()?, now(), process.cpu()?)) };
    let (before, begun, cpu) = mark()?;
    std::thread::sleep(Duration::from_secs(seconds.into()));
    let (after, ended, cpu_then) = mark()?;
    Ok(Sample {
        messages: (after.messages - before.messages) as f64,
        bytes: (after.bytes - before.bytes) as f64,
        reads: (after.reads - before.reads) as f64,
        wall: (ended - begun).as_secs_f64(),
        cpu: cpu_then.since(cpu),
        lateness_p99_us: 0.0,
    })
}

/// Waits until the sink has accepted all clients.
pub(super) fn connected(process: &mut Process, sink: &mut Sink, links: u32) -> Result<()> {
    process.until(PATIENCE, |_| {
        Ok((sink.counts()?.connects >= u64::from(links)).then_some(()))
    })
}

struct Reported {
    complete: bool,
    lateness_p99_us: f64,
}

/// One thread, as the other sides have.
fn wrk_words(programs: &Programs, load: &Load, sink: &Sink) -> Vec<OsString> {
    let mut words: Vec<OsString> = [
        "--threads=1".to_owned(),
        format!("--connections={}", load.links),
        format!("--duration={}", load.seconds),
        "--script".to_owned(),
    ]
    .map(Into::into)
    .into();
    words.push(programs.root.join("bench/wrk.lua").into());
    words.push(format!("http://{}", sink.address).into());
    words
}

/// Soundness of a run of wrk, whose output has further lines if answers are no success or sockets fail.
fn account_of_wrk(printed: &str) -> Reported {
    let is_sound = !["Non-2xx", "Socket errors"]
        .iter()
        .any(|it| printed.contains(it));
    Reported {
        complete: is_sound && printed.contains("requests in"),
        lateness_p99_us: 0.0,
    }
}

/// A user a connection, all begun within a second, and one process, as the other sides have.
fn locust_words(programs: &Programs, load: &Load, sink: &Sink) -> Vec<OsString> {
    let users = load.links.to_string();
    let script = programs.root.join("e2e/peers/locust/locustfile.py");
    let mut words: Vec<OsString> = [
        "--headless",
        "--only-summary",
        "--users",
        &users,
        "--spawn-rate",
        &users,
        "--run-time",
        &format!("{}s", load.seconds),
        "--host",
        &format!("http://{}", sink.address),
        "--locustfile",
    ]
    .map(Into::into)
    .into();
    words.push(script.into());
    words
}

/// Soundness of a run of Locust, which fails if a request failed.
fn account_of_locust(status: ExitStatus) -> Reported {
    Reported {
        complete: status.success(),
        lateness_p99_us: 0.0,
    }
}

fn own_account(printed: &str) -> Result<Reported> {
    let account: Value = serde_json::from_str(printed.trim())
        .with_context(|| format!("read the bare loop's account: {printed}"))?;
    let lateness_ns = account["lateness_p99_ns"].as_f64();
    Ok(Reported {
        complete: true,
        lateness_p99_us: lateness_ns.context("the bare loop reports its lateness")? / 1e3,
    })
}

/// Reads Muster's result: its ledger has to close, and to agree with the sink's own count.
fn result(programs: &Programs, sink: &mut Sink) -> Result<Reported> {
    let result = run::result(programs)?;
    let uplink = &result["ledger"]["uplink"];
    let sent = uplink["sent"]
        .as_u64()
        .context("the result counts what was sent")?;
    let again = uplink["retransmitted"]
        .as_u64()
        .context("the result counts retransmissions")?;
    let complete = uplink["residue"] == 0 && sent + again == sink.counts()?.messages;
    let lateness = result["latency"]["lateness"]["p99_us"].as_f64();
    Ok(Reported {
        complete,
        lateness_p99_us: lateness.unwrap_or(0.0),
    })
}
