//! Cost of TLS, WebSocket and DTLS for a message over sockets, against the plain protocol.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Bench;
use super::programs::Programs;
use super::run::{self, figure};
use super::table::{begin, end, median, row, thousands};

/// Plain first: the others are shown as ratios to it.
const SCHEMES: [&str; 4] = ["mqtt", "ws", "mqtts", "wss"];
const LINKS: u32 = 1_000;
/// Longest connecting and settling beyond the schedule.
const PATIENCE: Duration = Duration::from_secs(60);

/// QoS 1 in a closed loop over each transport, to the embedded gateway in its own process.
pub(super) fn against_plain(bench: &mut Bench<'_>) -> Result<()> {
    let columns = "transport | messages per CPU-s | of plain";
    begin(
        bench.out,
        "Transports, QoS 1, 100 bytes, closed loop",
        columns,
    )?;
    let mut rounds = Vec::new();
    for _ in 0..bench.extent.repetitions {
        let round = SCHEMES.map(|scheme| {
            per_cpu(
                bench.programs,
                &scenario(scheme, bench.extent.seconds),
                bench.extent.seconds,
            )
        });
        let [plain, ws, tls, wss] = round;
        rounds.push([plain?, ws?, tls?, wss?]);
    }
    for (at, scheme) in SCHEMES.iter().enumerate() {
        let ratio = median(rounds.iter().map(|round| round[at] / round[0]));
        let rate = thousands(median(rounds.iter().map(|round| round[at])));
        row(
            bench.out,
            &[(*scheme).to_owned(), rate, format!("{ratio:.2}")],
        )?;
    }
    let note = format!("{LINKS} links, TLS 1.3; CPU of the device shards, handshakes included.");
    end(bench.out, &note)
}

/// Accepted messages per CPU-second of the device shards, in a run of a scenario.
pub(super) fn per_cpu(programs: &Programs, scenario: &str, seconds: u32) -> Result<f64> {
    let result = result(programs, scenario, seconds)?;
    Ok(figure(&result, "/ledger/uplink/accepted")? / figure(&result, "/generator/shards_cpu_s")?)
}

/// The result of a run of a scenario that takes so long.
pub(super) fn result(programs: &Programs, scenario: &str, seconds: u32) -> Result<Value> {
    let process = run::start(programs, scenario, "transports.out", &["--quiet"])?;
    let (_, printed) = process.finish(PATIENCE + Duration::from_secs(seconds.into()))?;
    run::result(programs).with_context(|| format!("a run that said: {printed}"))
}

/// No message carries an id, so that the run has no consumer.
fn scenario(scheme: &str, seconds: u32) -> String {
    let tls = if scheme.ends_with('s') && scheme != "ws" {
        r#", tls: { version: "1.3" }"#
    } else {
        ""
    };
    format!(
        r#"name: transports
platform: {{ kind: gateway, devices: [ "{scheme}://127.0.0.1:0" ]{tls} }}
fleet:
  - count: {LINKS}
    connect: {{ rate: 1000000/s, pending: 128, timeout: 60s }}
    streams: [ {{ rate: 1000000/s, loop: closed, qos: 1, payload: {{ size: 100 }}, carrier: none }} ]
phases: {{ warm-up: 1s, measure: {seconds}s, settle: {{ at-most: 30s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#
    )
}
