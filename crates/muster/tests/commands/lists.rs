//! Devices, client ids and keys from a list, in runs against a gateway.

use serde_json::Value;

use crate::program::{Gateway, assert_shown_nowhere, folder_with, json, muster};

/// Serial numbers as a spreadsheet writes them, and keys that are no text.
const TABLE: &str =
    "\u{feff}serial; site ;key\r\nSN-\u{c4}7;a;00ff17\r\n0042; b ;81C0aa\r\nx\"y;c;fe\r\nlast;d;80";

const MESSAGES: &str = r#"
name: listed
platform: { kind: mqtt, devices: "DEVICES" }
fleet:
  - name: meters
    count: 4
    data: devices.csv
    id: "${serial}"
    client: { id: "CLIENT", version: VERSION }
    streams:
      - { name: order, rate: 40/s, topic: "plant/${id}/order", carrier: order, payload: { size: 8 } }
      - name: blind
        rate: 40/s
        topic: "plant/${id}/blind"
        carrier: { blind: /n }
        payload: { template: '{"n":"${id}-${seq}","site":"${site}"}' }
      - { kind: command, qos: 1 }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 500ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100%, disconnects: 0 }
"#;

const COMMANDS: &str = "commands: { rate: 20/s, mode: two-way, to: online }";

fn run(scenario: &str, options: &[&str]) -> (i32, Value, tempfile::TempDir) {
    let folder = folder_with(scenario);
    std::fs::write(folder.path().join("devices.csv"), TABLE).expect("it is written");
    let run = ["run", "scenario.yaml", "--out", "result"];
    let said = muster(folder.path(), &[&run, options].concat());
    let path = folder.path().join("result/result.json");
    assert!(path.exists(), "{said:?}");
    (said.code, json(&path), folder)
}

/// Only the topic leads back to the device, by a name that is looked up; also in worker processes, and
/// for commands and their replies.
#[test]
fn devices_of_a_list_are_found_by_their_names() {
    let gateway = Gateway::start::<&str>(&[]);
    let backend = format!(
        "platform: {{ kind: mqtt, devices: \"DEVICES\", backend: {{ url: \"DEVICES\", {COMMANDS} }} }}"
    );
    let scenario = MESSAGES.replace("platform: { kind: mqtt, devices: \"DEVICES\" }", &backend);
    let scenario = scenario
        .replace("CLIENT", "m-${serial}")
        .replace("VERSION", "5");
    let scenario = scenario.replace("DEVICES", &gateway.url);
    let (code, result, _folder) = run(&scenario, &["--workers", "2"]);
    let uplink = &result["ledger"]["uplink"];
    assert_eq!(
        (&uplink["accepted"], &uplink["lost"]),
        (&80.into(), &0.into()),
        "{uplink}"
    );
    assert_eq!(code, 0, "{}", result["verdict"]);
    drop(gateway);
}

/// The server gives each link an id: none ends another's session.
#[test]
fn links_without_a_client_id_keep_their_sessions() {
    let gateway = Gateway::start::<&str>(&[]);
    for version in ["5", "3.1.1"] {
        let scenario = MESSAGES.replace("CLIENT", "").replace("VERSION", version);
        let backend = format!("devices: \"{}\", backend: \"{}\"", gateway.url, gateway.url);
        let scenario = scenario.replace("devices: \"DEVICES\"", &backend);
        let scenario = scenario.replace("      - { kind: command, qos: 1 }\n", "");
        let (code, result, _folder) = run(&scenario, &[]);
        assert_eq!(code, 0, "{}", result["verdict"]);
        assert_eq!(result["links"]["connected"], 4, "{}", result["links"]);
    }
    drop(gateway);
}

const KEYS: &str = r#"
name: keys
platform: { dialect: hono, devices: "COAPS://127.0.0.1:0" }
fleet:
  - name: meters
    count: 4
    tenant: t
    data: devices.csv
    id: "${site}"
    credential: { kind: psk, user: "${id}@${tenant}", secret: { hex: "${key}" } }
    streams: [ { rate: 20/s } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 500ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

#[test]
fn keys_that_are_no_text_open_dtls() {
    let (code, result, folder) = run(KEYS, &[]);
    assert_eq!(code, 0, "{}", result["verdict"]);
    assert_eq!(result["ledger"]["uplink"]["accepted"], 20);
    assert_shown_nowhere("00ff17", &folder.path().join("result"));
}

/// A password is bytes in MQTT, so that a broker compares what its own file could not hold.
#[test]
fn a_password_from_a_file_has_each_of_its_bytes() {
    let users = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(users.path(), "\u{feff}d:pass:word\r\napp:secret").expect("it is written");
    let gateway = Gateway::start(&["--users", users.path().to_str().expect("UTF-8")]);
    let text = |password: &str| {
        format!(
            "name: t\nplatform: {{ kind: mqtt, devices: \"{}\" }}\nfleet: [ {{ name: d, count: 1, id: d, \
             credential: {{ kind: password, secret: {password} }}, \
             streams: [ {{ rate: 5/s, carrier: none }} ] }} ]\nphases: {{ measure: 1s }}\n",
            gateway.url
        )
    };
    // 70617373 is `pass` in hexadecimal digits.
    for (password, code) in [
        ("{ hex: 706173733A776f7264 }", 0),
        ("{ base64: \"cGFzczp3b3Jk\" }", 0),
        ("{ hex: 706173733A776f726400 }", 2),
    ] {
        let folder = folder_with(&text(password));
        let said = muster(folder.path(), &["check", "scenario.yaml"]);
        assert_eq!(said.code, code, "{password}: {said:?}");
    }
    drop(gateway);
}
