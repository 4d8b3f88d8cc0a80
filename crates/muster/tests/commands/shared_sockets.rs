//! `sockets: shared` over DTLS against a server that takes no connection ids, and one that does.

use serde_json::Value;

use crate::program::{Gateway, Said, folder_with, json, muster};

const SCENARIO: &str = r#"
name: shared
platform:
  kind: hono
  devices: [ "DEVICES" ]
  backend: { url: "BACKEND", filter: "telemetry/#" }
fleet:
  - name: meters
    count: 20
    tenant: t
    sockets: shared
    credential: { kind: psk, user: "${id}@${tenant}", secret: key }
    client: { coap: { exchange-lifetime: 100s } }
    streams: [ { rate: 100/s, timeout: 2s } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 20s, quiet: 500ms } }
slo: { loss: 0, failure-ratio: 0 }
"#;

/// A fleet whose devices have a socket each.
const OTHERS: &str = r#"
  - name: pumps
    count: 5
    tenant: t
    credential: { kind: psk, user: "${id}@${tenant}", secret: key }
    streams: [ { rate: 5/s, timeout: 2s } ]
phases:"#;

const REMEDY: &str = "use `sockets: per-device`";

const RUN: [&str; 5] = ["run", "scenario.yaml", "--quiet", "--out", "out"];
const CHECK: [&str; 2] = ["check", "scenario.yaml"];
const DECLINES: [&str; 1] = ["--no-connection-id"];

/// Output of a command for devices that share sockets, towards a gateway with these options.
fn said(command: &[&str], options: &[&str]) -> (Said, tempfile::TempDir) {
    said_of(SCENARIO, command, &[options])
}

/// The same of a scenario, towards a gateway for each of these options.
fn said_of(scenario: &str, command: &[&str], each: &[&[&str]]) -> (Said, tempfile::TempDir) {
    let keys = tempfile::tempdir().expect("a folder");
    let file = keys.path().join("key");
    std::fs::write(&file, "key").expect("the key is written");
    let file = file.to_str().expect("a path in UTF-8");
    let all = ["--dialect", "hono", "--coaps", "127.0.0.1:0", "--psk", file];
    let start = |options: &&[&str]| Gateway::start(&[&all[..], *options].concat());
    let mut gateways: Vec<Gateway> = each.iter().map(start).collect();
    let devices: Vec<String> = gateways.iter_mut().map(Gateway::next_url).collect();
    let scenario = scenario.replace("BACKEND", &gateways[0].url);
    let folder = folder_with(&scenario.replace("DEVICES", &devices.join("\", \"")));
    (muster(folder.path(), command), folder)
}

/// A run had no result, and nothing was sent.
fn assert_ended_before_the_load((said, folder): &(Said, tempfile::TempDir)) -> Value {
    assert_eq!(said.code, 4, "{}{}", said.out, said.err);
    assert!(said.unbroken().contains(REMEDY), "{}", said.out);
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(result["ledger"]["uplink"]["sent"], 0);
    result
}

#[test]
fn a_server_that_takes_no_connection_id_ends_the_run_before_the_load() {
    let result = assert_ended_before_the_load(&said(&RUN, &DECLINES));
    let event = &result["events"][0];
    assert_eq!(event["kind"], "handshake-failed");
    let detail = event["detail"].as_str().expect("a text");
    assert!(detail.contains(REMEDY), "{detail}");
    // Whom it was, and how the server knows it.
    let named = detail
        .split_once('`')
        .and_then(|(_, rest)| rest.split_once('`'));
    let (name, _) = named.expect("a device");
    assert!(
        detail.contains(&format!("device `{name}` (identity `{name}@t`): ")),
        "{detail}"
    );
}

/// Devices that do not share come up at such a server, and all do at an address that takes connection ids.
#[test]
fn one_link_that_cannot_share_its_socket_ends_the_run_though_others_are_up() {
    let beside = SCENARIO.replace("phases:", OTHERS);
    assert_ended_before_the_load(&said_of(&beside, &RUN, &[&DECLINES]));
    // So many messages need two sockets, one to each address.
    let two = SCENARIO.replace("rate: 100/s", "rate: 1000/s");
    assert_ended_before_the_load(&said_of(&two, &RUN, &[&[], &DECLINES]));
}

#[test]
fn a_check_finds_whether_the_server_takes_connection_ids() {
    let (refused, _) = said(&CHECK, &DECLINES);
    assert_eq!(refused.code, 4, "{}", refused.out);
    assert!(refused.out.contains(REMEDY), "{}", refused.out);
    let (taken, _) = said(&CHECK, &[]);
    assert_eq!(taken.code, 0, "{}", taken.out);
    let sockets = "sockets of fleet `meters`: 1 for 20 links, 20 at the most on one";
    assert!(taken.out.contains(sockets), "{}", taken.out);
}

#[test]
fn a_server_that_takes_them_is_loaded_and_a_shorter_lifetime_is_told() {
    let (said, folder) = said(&RUN, &[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let shorter = "fleet `meters` uses message ids again after 100 s, not after 247 s";
    assert!(said.out.contains(shorter), "{}", said.out);
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(result["environment"]["coap"][0]["sockets"], 1);
    assert_eq!(result["ledger"]["uplink"]["arrived"], 100);
}
