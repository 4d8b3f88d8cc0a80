//! CoAP: requests and their responses against a bare socket loop, and over DTLS against plain.

use anyhow::Result;

use super::Bench;
use super::example;
use super::handshakes;
use super::matched::Comparison;
use super::scenario::COAP_CLIENT;
use super::side::Load;
use super::table::{at_least, begin, end, medians, row, thousands};
use super::transports::per_cpu;

/// Sockets, each with one request under way: their answers fit into every socket's buffer.
pub(super) const LINKS: u32 = 200;
/// Least share of the bare loop's rate, and over DTLS of the plain rate.
const GOAL: f64 = 0.6;

/// Muster and the bare loop against the same sink.
pub(super) fn against_bare(bench: &mut Bench<'_>) -> Result<()> {
    let comparison = Comparison {
        title: "CoAP, confirmable, 100 bytes, a socket a link",
        loads: &[Load::saturated_coap(LINKS, bench.extent.seconds)],
        goal: GOAL,
    };
    comparison.run(bench)
}

/// Over DTLS and plain against the embedded gateway, and what handshakes cost.
pub(super) fn dtls(bench: &mut Bench<'_>) -> Result<()> {
    let mut pairs = Vec::new();
    for _ in 0..bench.extent.repetitions {
        let of = |scheme| {
            let text = scenario(scheme, bench.extent.seconds);
            per_cpu(bench.programs, &text, bench.extent.seconds)
        };
        pairs.push((of("coap")?, of("coaps")?));
    }
    let columns = "links | plain per CPU-s | DTLS per CPU-s | ratio";
    begin(
        bench.out,
        "CoAP over DTLS, confirmable, 100 bytes, closed loop",
        columns,
    )?;
    let [plain, dtls, ratio] = medians(&pairs);
    let (plain, dtls) = (thousands(plain), thousands(dtls));
    let cells = [LINKS.to_string(), plain, dtls, at_least(ratio, GOAL)];
    row(bench.out, &cells)?;
    let note = format!(
        "Embedded gateway in its own process, pre-shared keys, CCM_8; CPU of the device shards, handshakes \
         included. Goal: {GOAL}."
    );
    end(bench.out, &note)?;
    handshakes::against_library(bench)?;
    example::DTLS.run(bench.programs, bench.out)
}

/// No message carries an id, so that the run has no consumer.
fn scenario(scheme: &str, seconds: u32) -> String {
    let credential = match scheme {
        "coaps" => {
            r#"
    credential: { kind: psk, user: "${id}@${tenant}", secret: "hono-secret" }"#
        }
        _ => "",
    };
    format!(
        r#"name: coap
platform: {{ kind: gateway, dialect: hono, devices: [ "{scheme}://127.0.0.1:0" ] }}
fleet:
  - count: {LINKS}{credential}
    connect: {{ rate: 1000000/s, pending: 128, timeout: 60s }}
    client: {COAP_CLIENT}
    streams: [ {{ rate: 1000000/s, loop: closed, payload: {{ size: 100 }}, carrier: none }} ]
phases: {{ warm-up: 1s, measure: {seconds}s, settle: {{ at-most: 30s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#
    )
}
