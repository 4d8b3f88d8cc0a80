//! Devices that have to prove more than name and password.

use crate::program::{Gateway, assert_shown_nowhere, folder_with, muster};

const SCENARIO: &str = r#"
name: proof
platform: { kind: mqtt, devices: [ "DEVICES" ] }
fleet:
  - name: meters
    count: 20
    client:
      authentication: { method: echo, data: "${id}", answer: "${file:secret}", echo: true, again: 500ms }
    streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ]
phases: { measure: 2s, settle: { at-most: 2s, quiet: 200ms } }
"#;

const SECRET: &str = "open sesame";

#[test]
fn a_run_authenticates_by_a_method_again_and_again_and_shows_its_secret_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let demand = folder.path().join("demand");
    std::fs::write(&demand, format!("echo:{SECRET}\n")).expect("it is written");
    let gateway = Gateway::start(&["--authentication", demand.to_str().expect("UTF-8")]);
    let scenario = folder_with(&SCENARIO.replace("DEVICES", &gateway.url));
    std::fs::write(scenario.path().join("secret"), SECRET).expect("it is written");
    let checked = muster(scenario.path(), &["check", "scenario.yaml"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.out.contains("connected within"), "{}", checked.out);
    let said = muster(
        scenario.path(),
        &["run", "scenario.yaml", "--out", "result"],
    );
    assert_eq!(said.code, 0, "{said:?}");
    let account = gateway.stop();
    let count = |name: &str| account[name].as_u64().expect("a count");
    assert_eq!(count("connected"), 1 + 20);
    // Each of the links several times within two seconds.
    assert!(count("authenticated") >= 3 * 20, "{account}");
    assert_shown_nowhere(SECRET, &scenario.path().join("result"));
    assert!(!format!("{said:?}{checked:?}").contains(SECRET));
}

#[test]
fn a_wrong_secret_is_a_refusal_with_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let demand = folder.path().join("demand");
    std::fs::write(&demand, "echo:another\n").expect("it is written");
    let gateway = Gateway::start(&["--authentication", demand.to_str().expect("UTF-8")]);
    let scenario = folder_with(&SCENARIO.replace("DEVICES", &gateway.url));
    std::fs::write(scenario.path().join("secret"), SECRET).expect("it is written");
    let checked = muster(scenario.path(), &["check", "scenario.yaml"]);
    assert!(checked.out.contains("CONNACK 0x87"), "{checked:?}");
}
