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

/// The gateway knows the keys of the one, and so has to know the passwords of the others.
#[test]
fn devices_with_keys_stand_beside_devices_with_passwords() {
    let folder = folder_with(
        r#"
name: two-credentials
platform: { kind: gateway, dialect: hono, devices: [ "mqtt://127.0.0.1:0", "coaps://127.0.0.1:0", "http://127.0.0.1:0" ] }
fleet:
  - name: publishers
    count: 5
    tenant: t
    credential: { kind: password, secret: "of-${index}" }
    streams: [ { rate: 50/s } ]
  - name: meters
    protocol: coap
    count: 5
    tenant: t
    credential: { kind: psk, secret: "key-${index}" }
    streams: [ { rate: 50/s } ]
  - name: pumps
    protocol: http
    count: 5
    tenant: t
    credential: { kind: password, secret: "of-${index}" }
    streams: [ { rate: 50/s } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 30s, quiet: 200ms } }
"#,
    );
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(result["links"]["connected"], 15, "{said:?}");
    for stream in ["publishers", "meters", "pumps"] {
        let ledger = &result["ledger"]["by_stream"][format!("{stream}/telemetry")]["ledger"];
        assert_eq!(ledger["arrived"], 50, "{stream}: {said:?}");
    }
}

/// Messages that wait go once the silence is over that `Retry-After` asked for, although nothing else is due by then.
#[test]
fn messages_that_wait_for_the_end_of_a_silence_go_by_themselves() {
    let folder = folder_with(
        r#"
name: silence
platform: { kind: gateway, dialect: hono, devices: [ "http://127.0.0.1:0" ], behaviour: { reject: { count: 2 } } }
fleet: [ { count: 2, tenant: t, streams: [ { rate: 20/s } ] } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 20s, quiet: 200ms } }
"#,
    );
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    let uplink = &json(&folder.path().join("out/result.json"))["ledger"]["uplink"];
    for (key, value) in [
        ("scheduled", 20),
        ("rejected", 2),
        ("shed", 0),
        ("arrived", 18),
    ] {
        assert_eq!(uplink[key], value, "{key}: {said:?}");
    }
}
