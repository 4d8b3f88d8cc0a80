//! CPU time of the generator itself, as the result reports it.

use crate::program::{folder_with, json, muster};

/// The load comes between two of the samples that are taken once a second, and the run is over
/// before the next one.
const SCENARIO: &str = r#"
name: short
platform: { kind: gateway }
fleet:
  - name: meters
    count: 10
    streams:
      - { kind: telemetry, rate: 10/s, qos: 1, shape: { spike: { to: 6000/s, at: 1200ms, for: 300ms } } }
phases: { warm-up: 0s, measure: 1500ms, settle: { at-most: 10s, quiet: 200ms } }
"#;

#[test]
fn cpu_time_is_counted_to_the_last_message() {
    let folder = folder_with(SCENARIO);
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    let result = json(&folder.path().join("out/result.json"));
    let sent = result["ledger"]["uplink"]["sent"]
        .as_f64()
        .expect("a count");
    assert!(sent > 1_700.0, "{said:?}");
    for thread in ["shards_cpu_s", "consumers_cpu_s"] {
        let us = result["generator"][thread].as_f64().expect("a time") * 1e6 / sent;
        // A call of the kernel for each message takes longer, however fast the machine.
        assert!(us > 0.5, "{thread}: {us} us a message");
    }
    let of = |name: &str| result["generator"][name].as_f64().expect("a time");
    assert!(of("shards_cpu_s") + of("consumers_cpu_s") <= of("cpu_s"));
}
