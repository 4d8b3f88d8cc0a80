//! Devices and backend as processes of their own, and what is made of their results.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::free_port::free_port;
use crate::program::{Gateway, folder_with, json, muster, program};

/// Both parts connect within 2 s, so that the load begins 3 s after `--start-at`.
const SCENARIO: &str = r#"
name: apart
platform: { kind: mqtt, devices: [ "DEVICES" ], backend: { url: "DEVICES", filter: "muster/#" } }
fleet:
  - name: meters
    count: 20
    connect: { rate: 1000/s, timeout: 1s }
    streams: [ { name: readings, rate: 100/s, qos: 1, payload: { size: 64 } } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 6s, quiet: 500ms } }
slo: { loss: 0, end-to-end: { p50: "<= 2s" } }
"#;

/// The same with commands and their replies. Quiet takes longer than settling may: only who knows
/// what all parts sent and got can end before.
fn with_commands() -> String {
    let text = SCENARIO.replace(
        "muster/#\" }",
        "muster/#\", commands: { rate: 50/s, mode: two-way } }",
    );
    let text = text.replace("streams: [ ", "streams: [ { kind: command }, ");
    text.replace("at-most: 6s, quiet: 500ms", "at-most: 60s, quiet: 30s")
}

/// Devices that ask for commands, and the application that answers each of their queries. So long does
/// quiet take that only who knows what all parts sent and got can end before.
const HONO: &str = r#"
name: apart
platform:
  kind: hono
  devices: [ "DEVICES" ]
  backend: { url: "BACKEND", commands: { to: waiting, mode: two-way } }
fleet:
  - name: meters
    count: 20
    tenant: t1
    connect: { rate: 1000/s, timeout: 1s }
    CREDENTIAL
    streams:
      - { name: readings, rate: 40/s }
      - { name: alarms, kind: event, rate: 20/s }
      - { name: asks, kind: command-query, every: 1500ms, ttd: 2s }
      - { kind: command }
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 60s, quiet: 30s } }
slo: { loss: 0, failure-ratio: 0, queries-with-command: 100% }
"#;
const CREDENTIAL: &str = "credential: { kind: psk, user: \"${id}@${tenant}\", secret: key }";

/// A gateway, and a folder with a scenario that names it.
struct Site {
    folder: tempfile::TempDir,
    gateway: Gateway,
    start_at: String,
}

/// Counts that are compared between two ledgers.
const COUNTS: [&str; 9] = [
    "scheduled",
    "sent",
    "accepted",
    "consumed",
    "arrived",
    "lost",
    "duplicates",
    "foreign",
    "residue",
];

impl Site {
    /// Both parts begin some seconds from now, in which their processes have to come up.
    fn new(scenario: &str) -> Self {
        let gateway = Gateway::start::<&str>(&[]);
        let scenario = scenario.replace("DEVICES", &gateway.url);
        Self::at(gateway, &scenario)
    }

    /// A gateway of Hono's, whose devices are heard by this scheme, and its northbound.
    fn of_hono(scheme: &str) -> Self {
        let keys = tempfile::tempdir().expect("a folder");
        let key = keys.path().join("key");
        std::fs::write(&key, "key").expect("the key is written");
        let heard = format!("--{scheme}");
        let mut arguments = vec!["--dialect", "hono", &heard, "127.0.0.1:0"];
        let mut credential = "";
        if scheme == "coaps" {
            arguments.extend(["--psk", key.to_str().expect("a path in UTF-8")]);
            credential = CREDENTIAL;
        }
        let mut gateway = Gateway::start(&arguments);
        let scenario = HONO
            .replace("CREDENTIAL", credential)
            .replace("BACKEND", &gateway.url)
            .replace("DEVICES", &gateway.next_url());
        Self::at(gateway, &scenario)
    }

    fn at(gateway: Gateway, scenario: &str) -> Self {
        let folder = folder_with(scenario);
        let ahead = Command::new("date")
            .args(["-u", "-d", "+8 seconds", "+%Y-%m-%dT%H:%M:%SZ"])
            .output()
            .expect("`date` runs");
        let start_at = String::from_utf8(ahead.stdout).expect("it writes text");
        Self {
            folder,
            gateway,
            start_at: start_at.trim().to_owned(),
        }
    }

    fn start(&self, part: &str, out: &str, more: &[&str]) -> Child {
        let run = ["run", "scenario.yaml", "--run-id", "5eed", "--shards", "1"];
        let parts = ["--part", part, "--start-at", &self.start_at, "--out", out];
        program(self.folder.path(), &[&run[..], &parts, more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the part starts")
    }

    fn result(&self, out: &str) -> Value {
        json(&self.folder.path().join(out).join("result.json"))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The exit code of a part, and what it said.
fn ended(part: Child) -> (Option<i32>, String) {
    let output = part.wait_with_output().expect("the part ends");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("it writes UTF-8");
    (output.status.code(), text)
}

fn uplink(result: &Value) -> Vec<&Value> {
    let ledger = &result["ledger"]["uplink"];
    COUNTS.iter().map(|count| &ledger[*count]).collect()
}

#[test]
fn devices_and_backend_in_two_processes_make_the_ledger_of_one() {
    let site = Site::new(SCENARIO);
    let parts = [
        site.start("devices", "devices", &[]),
        site.start("backend", "backend", &[]),
    ];
    for (part, name) in parts.into_iter().zip(["devices", "backend"]) {
        let (code, said) = ended(part);
        assert_eq!(code, Some(0), "{name}: {said}");
        let hint = format!("PART  apart\n  part {name}: merge the parts with `muster merge`\n");
        assert!(said.contains(&hint), "{said}");
        let result = site.result(name);
        assert_eq!(result["verdict"]["result"], "part");
        assert_eq!(result["environment"]["part"], name);
    }
    let merged = muster(
        site.path(),
        &["merge", "devices", "backend", "--out", "whole"],
    );
    assert_eq!(merged.code, 0, "{merged:?}");
    let verified = muster(site.path(), &["verify", "whole"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let alone = muster(
        site.path(),
        &["run", "scenario.yaml", "--out", "alone", "--quiet"],
    );
    assert_eq!(alone.code, 0, "{alone:?}");
    let (whole, alone) = (site.result("whole"), site.result("alone"));
    assert_eq!(uplink(&whole), uplink(&alone));
    assert_eq!(whole["ledger"]["uplink"]["arrived"], 200);
    assert_eq!(whole["links"]["connected"], 20);
    assert_eq!(whole["verdict"]["result"], "pass");
    assert_eq!(whole["latency"]["end_to_end"]["count"], 200);
    for (folders, why) in [
        (&["devices"][..], "merge the parts devices: give each share"),
        (&["devices", "devices"], "merge the parts devices, devices"),
    ] {
        let merge = [&["merge"], folders, &["--out", "wrong"]].concat();
        let said = muster(site.path(), &merge);
        assert!(said.code == 2 && said.err.contains(why), "{said:?}");
    }
}

#[test]
fn a_part_that_is_none_or_carries_nothing_is_a_usage_error() {
    let text = SCENARIO.replace(", backend: { url: \"DEVICES\", filter: \"muster/#\" }", "");
    let text = text.replace("DEVICES", "mqtt://127.0.0.1:1");
    let folder = folder_with(&text.replace("slo: { loss: 0, end-to-end: { p50: \"<= 2s\" } }", ""));
    let start = ["--run-id", "5eed", "--start-at", "2099-01-01T00:00:00Z"];
    for (part, why) in [
        (
            "device",
            "`device` is no part; write devices or backend, i/n",
        ),
        ("3/2", "`3/2` is no part"),
        (
            "backend",
            "carry --part backend: the scenario names no backend",
        ),
    ] {
        let run = [&["run", "scenario.yaml", "--part", part], &start[..]].concat();
        let said = muster(folder.path(), &run);
        assert!(said.code == 2 && said.err.contains(why), "{said:?}");
    }
}

/// Seconds for which a part settled.
fn settled_s(result: &Value) -> f64 {
    let phases = result["phases"].as_array().expect("a list");
    let settle = phases.iter().find(|phase| phase["phase"] == "settle");
    let settle = settle.expect("it settled");
    let at = |key: &str| settle[key].as_f64().expect("a time");
    at("until_s") - at("from_s")
}

fn kinds(result: &Value) -> Vec<&str> {
    let events = result["events"].as_array().expect("a list");
    let kinds = events.iter().map(|event| event["kind"].as_str());
    kinds.map(|kind| kind.expect("a kind")).collect()
}

/// The results of both together, of the backend and of the devices, which had a line between them and so
/// did not wait for the end of settling.
fn in_two_parts(site: &Site) -> [Value; 3] {
    let port = free_port().to_string();
    let parts = [
        site.start("backend", "backend", &["--listen", &port]),
        site.start("devices", "devices", &["--join", &port]),
    ];
    let parts = parts.into_iter().zip(["backend", "devices"]);
    let [backend, devices] = parts
        .map(|(part, name)| {
            let (code, said) = ended(part);
            assert_eq!(code, Some(0), "{name}: {said}");
            let result = site.result(name);
            assert!(settled_s(&result) < 25.0, "{name}: {said}");
            result
        })
        .collect::<Vec<_>>()
        .try_into()
        .expect("two");
    let merge = ["merge", "devices", "backend", "--out", "whole"];
    let merged = muster(site.path(), &merge);
    assert_eq!(merged.code, 0, "{merged:?}");
    [site.result("whole"), backend, devices]
}

#[test]
fn parts_with_a_line_settle_once_all_has_arrived() {
    let site = Site::new(&with_commands());
    let [whole, parts @ ..] = in_two_parts(&site);
    for part in &parts {
        assert_eq!(kinds(part), [""; 0]);
    }
    let ledger = &whole["ledger"];
    let (uplink, command) = (&ledger["uplink"], &ledger["command"]);
    assert_eq!(
        (&uplink["arrived"], &uplink["residue"]),
        (&200.into(), &0.into())
    );
    let counts = [
        "issued",
        "delivered",
        "received",
        "answered",
        "replies_arrived",
    ];
    assert!(
        counts.iter().all(|count| command[*count] == 100),
        "{command}"
    );
    assert_eq!(command["residue"], 0);
}

/// Traffic that crosses between the parts: an arrival makes a command, which makes a reply.
#[test]
fn queries_of_one_part_are_answered_by_the_other_over_coap_and_dtls() {
    std::thread::scope(|scope| {
        for scheme in ["coap", "coaps"] {
            scope.spawn(move || queries_are_answered(scheme));
        }
    });
}

fn queries_are_answered(scheme: &str) {
    let site = Site::of_hono(scheme);
    let [whole, backend, devices] = in_two_parts(&site);
    let account = site.gateway.stop();
    let (uplink, command) = (&whole["ledger"]["uplink"], &whole["ledger"]["command"]);
    // 120 readings, 60 alarms and 40 queries.
    for count in ["sent", "accepted", "consumed", "arrived"] {
        assert_eq!(uplink[count], 220, "{scheme} {count}: {uplink}");
    }
    assert_eq!(account["received"], 220, "{account}");
    for count in [
        "queries",
        "received_by_query",
        "issued",
        "delivered",
        "received",
        "answered",
        "replies_arrived",
    ] {
        assert_eq!(command[count], 40, "{scheme} {count}: {command}");
    }
    for count in ["queries", "commands", "commands-handed", "replies"] {
        assert_eq!(account[count], 40, "{scheme} {count}: {account}");
    }
    for ledger in [uplink, command] {
        assert_eq!(ledger["residue"], 0, "{scheme}: {ledger}");
    }
    // Each part has seen its own end only.
    assert_eq!(devices["ledger"]["command"]["issued"], 0);
    assert_eq!(backend["ledger"]["command"]["received"], 0);
    let loops = whole["latency"]["command_loop"]["count"].as_u64();
    assert!(loops.is_some_and(|loops| loops > 20), "{loops:?}");
}

#[test]
fn a_part_that_hears_nobody_over_its_line_settles_by_itself_and_says_so() {
    // The backend's name is known on its own host only.
    let apart = SCENARIO.replace("url: \"DEVICES\"", "url: \"mqtt://backend.invalid\"");
    let site = Site::new(&apart);
    let devices = site.start("devices", "devices", &["--join", &free_port().to_string()]);
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let (code, said) = ended(site.start("devices", "deaf", &["--listen", &port]));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("listen for the other parts on --listen 127.0.0.1:"),
        "{said}"
    );
    assert!(
        !site.path().join("deaf").exists(),
        "a refusal leaves nothing behind"
    );
    let (code, said) = ended(devices);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(kinds(&site.result("devices")), ["part-silent"]);
}
