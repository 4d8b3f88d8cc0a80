//! Runs in which the devices send nothing of their own.

use crate::program::{folder_with, json, muster};

const SCENARIO: &str = r#"
name: downlink
platform: { backend: { commands: { rate: 50/s, mode: two-way } } }
fleet: [ { name: pumps, count: 10, streams: [ { kind: command } ] } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 5s, quiet: 500ms } }
"#;

#[test]
fn a_run_of_commands_alone_is_judged_and_hears_nothing_else() {
    let folder = folder_with(SCENARIO);
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "result"]);
    assert_eq!(said.code, 0, "{said:?}");
    let result = json(&folder.path().join("result/result.json"));
    assert_eq!(result["ledger"]["command"]["replies_arrived"], 100);
    assert_eq!(result["ledger"]["uplink"]["scheduled"], 0);
    assert_eq!(result["ledger"]["uplink"]["unstamped"], 0);
}
