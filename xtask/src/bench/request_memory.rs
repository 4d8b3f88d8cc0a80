//! User memory of an idle device that sends requests: over CoAP and DTLS, with a socket per device and with shared
//! ones, and over HTTP, plain and over TLS.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::gateway::{Gateway, credential};
use super::memory::slope_row;
use super::process::Process;
use super::programs::Programs;
use super::run;
use super::table::{begin, end};

/// Messages a second of all devices.
const RATE: u32 = 1_000;
/// Traffic before memory is read.
const TRAFFIC: Duration = Duration::from_secs(40);
/// Beyond that, since a run is ended while it measures.
const MEASURE_SECONDS: u64 = 60;
/// Longest time of all handshakes.
const PATIENCE: Duration = Duration::from_secs(180);

/// A kind of links, and the bytes that an idle one may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    name: &'static str,
    scheme: &'static str,
    /// The key of a fleet for its sockets, if the protocol has one.
    sockets: &'static str,
    goal: f64,
}

/// A socket a device, plain.
pub(super) const PLAIN: Links = Links {
    name: "CoAP, one a link",
    scheme: "coap",
    sockets: "sockets: per-device",
    goal: 512.0,
};
const HTTP: Links = Links {
    name: "HTTP",
    scheme: "http",
    sockets: "",
    ..PLAIN
};
const ALL: [Links; 6] = [
    PLAIN,
    Links {
        name: "CoAP, shared",
        sockets: "sockets: shared",
        ..PLAIN
    },
    Links {
        name: "DTLS, one a link",
        scheme: "coaps",
        goal: 1_024.0,
        ..PLAIN
    },
    Links {
        name: "DTLS, shared",
        scheme: "coaps",
        sockets: "sockets: shared",
        goal: 1_024.0,
    },
    HTTP,
    Links {
        name: "HTTP over TLS",
        scheme: "https",
        goal: 6_144.0,
        ..HTTP
    },
];

/// The slope of anonymous memory between two numbers of links, of each kind.
pub(super) fn idle(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let columns = "sockets | 1,000 links | 19,000 links | bytes a link";
    begin(
        out,
        "User memory over CoAP and HTTP after 40 s of 1,000 messages/s, with a consumer",
        columns,
    )?;
    for links in ALL {
        slope_row(out, links.name, links.goal, |count| {
            anonymous(programs, links, count)
        })?;
    }
    end(
        out,
        "Anonymous resident memory (`RssAnon`); the gateway is another process. Goals: 512 bytes, over DTLS 1,024, over \
         TLS 6,144.",
    )
}

/// Anonymous memory of a run with `count` links, in the midst of its traffic.
pub(super) fn anonymous(programs: &Programs, links: Links, count: u32) -> Result<f64> {
    // To the embedded gateway a run would pass the keys of all devices, which its own memory would show.
    let has_keys = links.scheme.starts_with("coap");
    let gateway = has_keys.then(|| Gateway::start(programs)).transpose()?;
    let platform = match &gateway {
        Some(gateway) => gateway.platform(links.scheme),
        None => embedded(links.scheme),
    };
    let scenario = scenario(&platform, links, count);
    let mut process = run::start(programs, &scenario, "memory.out", &[])?;
    let measures = |process: &mut Process| Ok(last_measure(&process.printed()?).map(drop));
    process.until(PATIENCE, measures)?;
    std::thread::sleep(TRAFFIC);
    let bytes = process.memory("RssAnon")? as f64;
    let printed = process.printed()?;
    let line = last_measure(&printed).context("a run prints its state")?;
    if !are_all_up(line) {
        bail!("not all of {count} links were up: {line}");
    }
    Ok(bytes)
}

/// The last line of the measured phase.
fn last_measure(printed: &str) -> Option<&str> {
    printed
        .lines()
        .rev()
        .find(|line| line.contains(" measure "))
}

/// Returns true if a line reports all wanted links as up.
fn are_all_up(line: &str) -> bool {
    let words = line.split("links ").nth(1);
    let counts = words.and_then(|words| words.split(' ').next());
    let halves = counts.and_then(|counts| counts.split_once('/'));
    halves.is_some_and(|(up, wanted)| up == wanted)
}

/// The head of a scenario against the embedded gateway, which is another process too.
fn embedded(scheme: &str) -> String {
    format!(r#"{{ kind: gateway, dialect: hono, devices: [ "{scheme}://127.0.0.1:0" ] }}"#)
}

fn scenario(platform: &str, links: Links, count: u32) -> String {
    format!(
        r#"name: memory
platform: {platform}
fleet:
  - count: {count}
    tenant: t
    {sockets}
    {credential}
    connect: {{ rate: 1000000/s, pending: 128, timeout: 60s }}
    streams: [ {{ rate: {RATE}/s, payload: {{ size: 100 }} }} ]
phases: {{ warm-up: 0s, measure: {seconds}s, settle: {{ at-most: 250s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#,
        sockets = links.sockets,
        credential = credential(links.scheme),
        seconds = TRAFFIC.as_secs() + MEASURE_SECONDS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_all_links_are_up() {
        let all = "  12 s measure  links 19,000/19,000 | offered 1,000";
        assert!(are_all_up(all));
        assert!(!are_all_up(&all.replace("19,000/", "18,999/")));
        assert!(!are_all_up("  1 s connect  connecting 3 of 4"));
        assert_eq!(last_measure(&format!("x\n{all}\ny")), Some(all));
    }
}
