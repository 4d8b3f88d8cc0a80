//! The scenario that makes Muster do what the bare loop does.

use super::side::{Load, Protocol};

/// Nominal rates that one shard does not reach, so that a message is always due: in a closed
/// loop; at QoS 0, where nothing closes one, on a schedule that falls ever further behind.
const ALWAYS_DUE: &str = "rate: 1000000/s, loop: closed";
const EVER_LATE: &str = "rate: 500000/s";
/// As the bare loop's: handshakes under way, and no other bound on connecting.
const CONNECT: &str = "{ rate: 1000000/s, pending: 128, timeout: 60s }";

/// Of a client over CoAP. Within the 247 s of an exchange (RFC 7252 section 4.8.2) 200 sockets have message ids for
/// 53,000/s; the bare loop heeds no such bound, and fewer copies and a shorter lifetime lift it.
pub(super) const COAP_CLIENT: &str = "{ coap: { max-retransmit: 1, exchange-lifetime: 10s } }";

/// The text of a scenario against the sink at `address`: same packets as the bare loop's, same
/// bound on unanswered messages when saturated (one a device), same even schedule when paced.
pub(super) fn text(load: &Load, address: &str, consumer: bool) -> String {
    let Load { links, seconds, .. } = load;
    let (kind, scheme, filter, client) = match load.protocol {
        Protocol::Mqtt(_) => (
            "mqtt",
            "mqtt",
            "m/#",
            "{ version: 3.1.1, keep-alive: 600s }",
        ),
        Protocol::Coap => ("hono", "coap", "telemetry/#", COAP_CLIENT),
        Protocol::Http => ("hono", "http", "telemetry/#", "{}"),
    };
    let backend = if consumer {
        format!("\n  backend: {{ url: \"mqtt://{address}\", filter: \"{filter}\", qos: 0 }}")
    } else {
        String::new()
    };
    let streams = streams(load);
    format!(
        r#"name: bench
platform:
  kind: {kind}
  devices: [ "{scheme}://{address}" ]{backend}
fleet:
  - name: b
    count: {links}
    id: "d-${{index:05}}"
    client: {client}
    connect: {CONNECT}
    streams: {streams}
phases: {{ warm-up: 0s, measure: {seconds}s, settle: {{ at-most: 30s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#
    )
}

fn streams(load: &Load) -> String {
    if load.idle {
        return "[]".to_owned();
    }
    let pace = match (load.rate, load.protocol) {
        (Some(rate), _) if load.together => format!("rate: {rate}/s, phase: together"),
        (Some(rate), _) => format!("rate: {rate}/s, phase: even"),
        (None, Protocol::Mqtt(0)) => EVER_LATE.to_owned(),
        (None, _) => ALWAYS_DUE.to_owned(),
    };
    let to = match load.protocol {
        Protocol::Mqtt(qos) => format!(r#"qos: {qos}, topic: "m/${{id}}/t", "#),
        Protocol::Coap | Protocol::Http => String::new(),
    };
    let payload = load.payload;
    format!("[ {{ name: t, {pace}, {to}payload: {{ size: {payload} }} }} ]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturated_always_has_a_message_due_and_paced_an_even_schedule() {
        let saturated = text(&Load::saturated(5_000, 1, 3), "127.0.0.1:1", false);
        assert!(saturated.contains("rate: 1000000/s, loop: closed, qos: 1"));
        assert!(!saturated.contains("backend"));
        let saturated = text(&Load::saturated(5_000, 0, 3), "127.0.0.1:1", false);
        assert!(saturated.contains("rate: 500000/s, qos: 0"));
        let paced = text(&Load::paced(5_000, 0, 3, 20_000), "127.0.0.1:1", true);
        assert!(paced.contains("rate: 20000/s, phase: even, qos: 0"));
        assert!(paced.contains("filter: \"m/#\""));
        let coap = text(&Load::saturated_coap(200, 3).at(9_000), "127.0.0.1:1", true);
        assert!(coap.contains("rate: 9000/s, phase: even, payload: { size: 100 }"));
        assert!(coap.contains("coap://127.0.0.1:1") && coap.contains("filter: \"telemetry/#\""));
        let idle = text(&Load::idle(1_000, 3), "127.0.0.1:1", false);
        assert!(idle.contains("streams: []"));
    }
}
