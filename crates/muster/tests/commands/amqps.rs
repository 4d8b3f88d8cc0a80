//! An application over AMQP 1.0 and TLS, which logs in by its certificate: backend and gateway on one machine.

use serde_json::Value;

use crate::certificates::{Authority, p256, unchanged};
use crate::program::{folder_with, json, muster};

const SCENARIO: &str = r#"
name: amqps
platform:
  kind: gateway
  dialect: hono
  devices: [ 'coap://127.0.0.1:0' ]
  tls: { client-ca: ca.pem }
  backend: { url: 'amqps://127.0.0.1:0', BACKEND }
fleet:
  - name: meters
    count: 10
    tenant: t1
    connect: { timeout: 2s }
    streams: [ { kind: telemetry, rate: 50/s } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 20s, quiet: 500ms } }
"#;
const CERTIFICATE: &str = "tls: { cert: app.pem, key: app.key }";

/// Runs a scenario whose application has the certificate of one authority, and whose gateway trusts another's, or the
/// same. Returns the exit code and the result.
fn run(backend: &str, is_known: bool) -> (i32, Value) {
    let folder = folder_with(&SCENARIO.replace("BACKEND", backend));
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    known.write_ca(folder.path());
    let authority = if is_known { &known } else { &unknown };
    authority.write(&folder.path().join("app"), "app", &p256(), unchanged);
    let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
    let ran = muster(folder.path(), &arguments);
    (ran.code, json(&folder.path().join("out/result.json")))
}

#[test]
fn an_application_logs_in_over_tls_by_its_certificate_or_without_one() {
    for backend in [CERTIFICATE, "sasl: anonymous"] {
        let (code, result) = run(backend, true);
        assert_eq!(code, 0, "{backend}: {}", result["events"]);
        let uplink = &result["ledger"]["uplink"];
        assert_eq!(uplink["accepted"], 50, "{backend}");
        assert_eq!(uplink["arrived"], 50, "{backend}");
        assert_eq!(uplink["residue"], 0, "{backend}");
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused_and_the_keys_are_named() {
    let (code, result) = run(CERTIFICATE, false);
    let events = result["events"].to_string();
    assert_ne!(code, 0, "{events}");
    assert!(events.contains("consumer-refused"), "{events}");
    assert!(events.contains("platform.backend.tls"), "{events}");
}
