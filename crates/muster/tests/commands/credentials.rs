//! Devices whose names and passwords stand in a file.

use std::path::Path;

use crate::program::{Gateway, assert_shown_nowhere, folder_with, json, muster};

const SCENARIO: &str = r#"
name: table
platform:
  kind: mqtt
  devices: [ "DEVICES" ]
  backend: { user: app, password: "${file:app}" }
fleet:
  - name: meters
    count: 10
    data: devices.csv
    credential: { kind: password, user: "${login}", secret: "${word}" }
    streams: [ { kind: telemetry, rate: 50/s, qos: 1 } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 2s, quiet: 200ms } }
slo: { loss: 0, connected: 100% }
"#;

/// A comma, as only a quoted cell can hold one (RFC 4180 section 2).
const WORD: &str = "open, sesame";

/// A gateway that knows ten devices and the application, and a folder with a scenario for it whose
/// table of devices has this row in place of the last one.
fn world(last_row: &str) -> (Gateway, tempfile::TempDir) {
    let users = tempfile::NamedTempFile::new().expect("a file");
    let known = (0..10).map(|n| format!("device-{n}:{WORD} {n}\n"));
    let known: String = known.chain(["app:secret\n".to_owned()]).collect();
    std::fs::write(users.path(), known).expect("it is written");
    let gateway = Gateway::start(&["--users", users.path().to_str().expect("UTF-8")]);
    let folder = folder_with(&SCENARIO.replace("DEVICES", &gateway.url));
    let rows = (0..9).map(|n| format!("device-{n},\"{WORD} {n}\"\n"));
    let rows: String = rows.chain([format!("{last_row}\n")]).collect();
    let table = format!("login,word\n{rows}");
    std::fs::write(folder.path().join("devices.csv"), table).expect("it is written");
    std::fs::write(folder.path().join("app"), "secret").expect("it is written");
    (gateway, folder)
}

fn run(folder: &Path) -> i32 {
    muster(folder, &["run", "scenario.yaml", "--out", "result"]).code
}

#[test]
fn each_device_has_the_name_and_password_of_its_row() {
    let (gateway, folder) = world(&format!("device-9,\"{WORD} 9\""));
    assert_eq!(run(folder.path()), 0);
    let result = json(&folder.path().join("result/result.json"));
    assert_eq!(result["links"]["connected"], 10);
    assert_eq!(result["ledger"]["uplink"]["lost"], 0);
    assert_shown_nowhere(WORD, &folder.path().join("result"));
    drop(gateway);
}

#[test]
fn a_wrong_row_is_one_refused_device() {
    let (gateway, folder) = world("device-9,guessed");
    assert_eq!(run(folder.path()), 1);
    let result = json(&folder.path().join("result/result.json"));
    assert_eq!(result["links"]["open_at_end"], 9);
    let cause = result["verdict"]["causes"][0]["text"].as_str();
    let cause = cause.expect("it is the first to be read");
    assert!(cause.starts_with("1 of 10 links refused: "), "{cause}");
    let place = ".csv:11); see fleet.";
    assert!(
        cause.contains(", first device `") && cause.contains(place),
        "{cause}"
    );
    let failures = &result["links"]["connect_failures"];
    assert!(failures["rejected-0x86"].as_u64() >= Some(1), "{failures}");
    drop(gateway);
}

#[test]
fn a_broken_row_is_named_by_its_line() {
    let (gateway, folder) = world("device-9");
    let said = muster(folder.path(), &["run", "scenario.yaml"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("devices.csv: line 11 has 1 cells"),
        "{}",
        said.err
    );
    drop(gateway);
}
