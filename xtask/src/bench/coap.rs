//! CoAP: requests and their responses against a bare socket loop, and over DTLS against plain.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::Extent;
use super::example;
use super::handshakes;
use super::process::{Process, per_cpu_second};
use super::programs::Programs;
use super::table::{at_least, begin, end, median, row, thousands};
use super::transports::per_cpu;

/// Sockets, each with one request under way: their answers fit into every socket's buffer.
pub(super) const LINKS: u32 = 200;
/// More than a core can send, so that what is measured is never a wait for the next due message.
const RATE: u32 = 1_000_000;
/// Copies and lifetime of an exchange (RFC 7252 section 4.8.2) that leave so many sockets message ids for that
/// rate; the bare loop heeds no lifetime at all.
const COPIES: u32 = 1;
const LIFETIME_S: u32 = 10;
/// What Muster keeps of the bare loop, and over DTLS of plain.
const GOAL: f64 = 0.6;
/// How long the bare loop may take to end after its time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Muster and the bare loop against the same sink.
pub(super) fn against_bare(
    programs: &Programs,
    extent: &Extent,
    out: &mut dyn Write,
) -> Result<()> {
    let mut pairs = Vec::new();
    for _ in 0..extent.repetitions {
        let bare = with_sink(programs, |sink| bare(programs, sink, extent.seconds))?;
        let muster = with_sink(programs, |sink| {
            let target = Target::Sink(sink);
            per_cpu(programs, &scenario(target, extent.seconds), extent.seconds)
        })?;
        pairs.push((bare, muster));
    }
    let columns = ["links", "bare per CPU-s", "Muster per CPU-s", "ratio"];
    begin(out, "CoAP, confirmable, 100 bytes, closed loop", &columns)?;
    told(LINKS, &pairs, out)?;
    let note = format!("A socket a link, full accounts; CPU of the device shards. Goal: {GOAL}.");
    end(out, &note)
}

/// Over DTLS and plain against the embedded gateway, and what handshakes cost.
pub(super) fn dtls(programs: &Programs, extent: &Extent, out: &mut dyn Write) -> Result<()> {
    let mut pairs = Vec::new();
    for _ in 0..extent.repetitions {
        let of = |scheme| {
            let text = scenario(Target::Gateway(scheme), extent.seconds);
            per_cpu(programs, &text, extent.seconds)
        };
        pairs.push((of("coap")?, of("coaps")?));
    }
    let columns = ["links", "plain per CPU-s", "DTLS per CPU-s", "ratio"];
    begin(
        out,
        "CoAP over DTLS, confirmable, 100 bytes, closed loop",
        &columns,
    )?;
    told(LINKS, &pairs, out)?;
    let note = format!(
        "Embedded gateway in its own process, pre-shared keys, CCM_8; CPU of the device shards, handshakes \
         included. Goal: {GOAL}."
    );
    end(out, &note)?;
    handshakes::against_library(programs, extent, out)?;
    example::dtls(programs, out)
}

fn told(links: u32, pairs: &[(f64, f64)], out: &mut dyn Write) -> Result<()> {
    let ratio = median(pairs.iter().map(|(first, second)| second / first));
    let cells = [
        links.to_string(),
        thousands(median(pairs.iter().map(|(first, _)| *first))),
        thousands(median(pairs.iter().map(|(_, second)| *second))),
        at_least(ratio, GOAL),
    ];
    row(out, &cells)
}

/// Runs something against a sink of its own, which ends after it.
pub(super) fn with_sink(programs: &Programs, run: impl FnOnce(&str) -> Result<f64>) -> Result<f64> {
    let output = programs.scratch("coap-sink.out");
    let mut sink = Process::start(
        &programs.beside("coap-sink"),
        &["127.0.0.1:0".into()],
        output,
    )?;
    let address = sink.first_line()?;
    run(&address)
}

fn bare(programs: &Programs, sink: &str, seconds: u32) -> Result<f64> {
    let words = [
        sink.into(),
        LINKS.to_string().into(),
        seconds.to_string().into(),
    ];
    let output = programs.scratch("bare-coap.out");
    let process = Process::start(&programs.beside("bare-coap"), &words, output)?;
    let (_, printed) = process.finish(PATIENCE + Duration::from_secs(seconds.into()))?;
    per_cpu_second(&printed, "messages")
}

/// Whom the devices talk to.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Sink(&'a str),
    /// By the scheme of its address.
    Gateway(&'a str),
}

/// No message carries an id, so that no consumer runs beside the devices.
pub(super) fn scenario(target: Target<'_>, seconds: u32) -> String {
    let (platform, credential) = match target {
        Target::Sink(at) => (
            format!(r#"{{ kind: hono, devices: [ "coap://{at}" ] }}"#),
            "",
        ),
        Target::Gateway(scheme) => (
            format!(r#"{{ kind: gateway, dialect: hono, devices: [ "{scheme}://127.0.0.1:0" ] }}"#),
            match scheme {
                "coaps" => {
                    r#"
    credential: { kind: psk, user: "${id}@${tenant}", secret: "hono-secret" }"#
                }
                _ => "",
            },
        ),
    };
    format!(
        r#"name: coap
platform: {platform}
fleet:
  - count: {LINKS}{credential}
    connect: {{ rate: 1000000/s, pending: 128, timeout: 60s }}
    client: {{ coap: {{ max-retransmit: {COPIES}, exchange-lifetime: {LIFETIME_S}s }} }}
    streams: [ {{ rate: {RATE}/s, loop: closed, payload: {{ size: 100 }}, carrier: none }} ]
phases: {{ warm-up: 1s, measure: {seconds}s, settle: {{ at-most: 30s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#
    )
}
