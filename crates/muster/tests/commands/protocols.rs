//! Fleets of two protocols in one run.

use crate::program::{folder_with, json, muster};

const SCENARIO: &str = r#"
name: two-protocols
platform: { kind: gateway, dialect: hono, devices: [ "mqtt://127.0.0.1:0", "coap://127.0.0.1:0" ] }
fleet:
  - { name: publishers, count: 20, tenant: t, streams: [ { rate: 100/s } ] }
  - { name: meters, protocol: coap, count: 20, tenant: t, streams: [ { rate: 100/s } ] }
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 30s, quiet: 200ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

#[test]
fn a_run_of_mqtt_and_coap_delivers_the_messages_of_both_and_its_ledger_closes() {
    let folder = folder_with(SCENARIO);
    let arguments = [
        "run",
        "scenario.yaml",
        "--quiet",
        "--shards",
        "2",
        "--out",
        "out",
    ];
    let said = muster(folder.path(), &arguments);
    assert_eq!(said.code, 0, "{said:?}");
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(result["links"]["connected"], 40);
    // The published test's devices speak CoAP.
    let published = &result["published"]["hono"];
    assert_eq!(published["publishedTelemetryCount"], 200);
    assert_eq!(published["numClientSuccessfulConnects"], 20);
    assert_eq!(result["ledger"]["uplink"]["residue"], 0);
    for stream in ["publishers/telemetry", "meters/telemetry"] {
        let ledger = &result["ledger"]["by_stream"][stream]["ledger"];
        for (key, value) in [("accepted", 200), ("arrived", 200), ("residue", 0)] {
            assert_eq!(ledger[key], value, "{stream}: {key}");
        }
    }
}
