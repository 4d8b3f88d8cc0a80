//! A pass says what no rule looked at.

use crate::program::{folder_with, json, muster};

const SCENARIO: &str = r#"
name: unlooked
platform: { kind: gateway, behaviour: { close-links: { at: 1s, share: 100% } } }
fleet:
  - name: meters
    count: 10
    reconnect: { min: 60s, max: 60s, jitter: 0 }
    streams: [ { name: readings, kind: telemetry, rate: 100/s, qos: 1 } ]
phases: { warm-up: 0s, measure: 5s, settle: { at-most: 1s, quiet: 200ms } }
slo: { failure-ratio: any, disconnects: any }
"#;

#[test]
fn a_target_that_died_in_the_midst_passes_with_a_warning() {
    let folder = folder_with(SCENARIO);
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "result"]);
    assert_eq!(said.code, 0, "{said:?}");
    for warning in [
        "warning: no link was open from ",
        "of what was due was never sent (shed: back-off ",
    ] {
        assert!(said.out.contains(warning), "{}", said.out);
    }
    let result = json(&folder.path().join("result/result.json"));
    let warnings = result["verdict"]["warnings"].as_array().expect("a list");
    let kinds: Vec<&str> = warnings
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    let expected = ["no-link", "links-ended", "scenario", "unsent"];
    assert_eq!(kinds[..4], expected, "{warnings:?}");
    // What was shed stands in the windows by cause, and adds up to the ledger.
    let windows = result["windows"].as_array().expect("a list");
    let of = |window: &serde_json::Value| window["shed_by_cause"]["back-off"].as_u64();
    let shed: u64 = windows.iter().filter_map(of).sum();
    assert_eq!(
        result["ledger"]["uplink"]["shed_by_cause"]["back-off"],
        shed
    );
    let said = muster(folder.path(), &["report", "result", "--format", "sap"]);
    let why = "failed to show this run as `sap`: it has no figures of SAP Edge, which come with";
    assert!(said.code == 2 && said.err.contains(why), "{said:?}");
}
