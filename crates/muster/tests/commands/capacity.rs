//! `muster capacity`: a search that was killed goes on where it was.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Gateway, folder_with, json, muster, program};

/// A target of a known capacity.
const SCENARIO: &str = r#"
name: capacity
platform: { kind: gateway, behaviour: { capacity: 400/s, queue: 20000, full: drop } }
fleet:
  - { name: meters, count: 20, streams: [ { name: readings, rate: 400/s, qos: 1, timeout: 3s } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 200ms } }
slo: { response: { p90: "<= 250ms" } }
"#;

/// Runs the program until it has judged a step, and kills it.
fn kill_after_a_step(folder: &Path, arguments: &[&str]) {
    let mut child = program(folder, &["capacity", "scenario.yaml"])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut lines = out.lines().map(|line| line.expect("it tells"));
    let step = lines.find(|line| line.starts_with("step"));
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    assert!(
        step.is_some(),
        "it ends before its first step: {arguments:?}"
    );
}

/// The lines of a journal: the search, and the steps.
fn journal(folder: &Path) -> (Value, Vec<Value>) {
    let text = fs::read_to_string(folder.join("search.jsonl")).expect("a journal");
    let lines = text.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("whole lines");
    (lines.remove(0), lines)
}

#[test]
fn a_killed_search_goes_on_with_a_longer_budget_and_repeats_no_step() {
    let folder = folder_with(SCENARIO);
    let [out, first] = ["out", "first"].map(|name| folder.path().join(name));
    kill_after_a_step(folder.path(), &["--out", "out", "--budget", "3m"]);
    // As a kill amid the first step leaves it.
    fs::create_dir(&first).expect("a folder");
    fs::copy(out.join("windows.bin"), first.join("windows.bin")).expect("the run");
    let text = fs::read_to_string(out.join("search.jsonl")).expect("a journal");
    let begun = text.lines().next().expect("a line").to_owned() + "\n";
    fs::write(first.join("search.jsonl"), begun).expect("it is written");
    let (begun, held) = journal(&out);
    assert_eq!(
        (held.len(), &begun["spec"]["budget"]),
        (1, &180_000_000.into())
    );

    std::thread::scope(|scope| {
        scope.spawn(|| kill_after_a_step(folder.path(), &["--resume", "first"]));
        kill_after_a_step(folder.path(), &["--resume", "out", "--budget", "9m"]);
    });
    let (begun, steps) = journal(&out);
    assert_eq!(begun["spec"]["budget"], 540_000_000);
    assert_eq!(steps[0], held[0]);
    let of = |key: &str| -> Vec<f64> { steps.iter().filter_map(|it| it[key].as_f64()).collect() };
    assert_eq!(of("number"), [1.0, 2.0]);
    assert_eq!(of("session"), [1.0, 2.0]);
    assert_eq!(of("load"), [40.0, 80.0]);
    for step in &steps {
        let batches = step["margin"]["batches"].as_array().expect("parts");
        let messages = batches.iter().filter_map(|it| it["messages"].as_u64());
        assert_eq!(
            messages.sum::<u64>(),
            step["figures"]["ledger"]["scheduled"]
        );
    }
    let (begun, steps) = journal(&first);
    assert_eq!(begun["spec"]["budget"], 180_000_000, "it is kept");
    assert_eq!((steps.len(), &steps[0]["load"]), (1, &40.0.into()));
    for of in [&out, &first] {
        assert!(of.join("run-1/windows.bin").exists(), "{}", of.display());
    }
}

#[test]
fn what_no_step_can_judge_is_refused_before_any_load() {
    let folder =
        folder_with(&SCENARIO.replace("slo: {", "slo: { duplicates: 0, connected: \">= 99%\","));
    let said = muster(
        folder.path(),
        &["capacity", "scenario.yaml", "--out", "out"],
    );
    assert_eq!(said.code, 2, "{said:?}");
    for rule in ["`duplicates`", "`connected`", "remove"] {
        assert!(said.err.contains(rule), "{said:?}");
    }
    // What is stored is read behind the load.
    let read_back = SCENARIO.replacen("kind: gateway", "kind: gateway, dialect: thingsboard", 1);
    let folder = folder_with(&(read_back + "provision: { read-back: true }\n"));
    let said = muster(
        folder.path(),
        &["capacity", "scenario.yaml", "--out", "out"],
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("provision.read-back=false"), "{said:?}");
    let folder = folder_with(SCENARIO);
    let said = muster(
        folder.path(),
        &[
            "capacity",
            "scenario.yaml",
            "--out",
            "out",
            "--budget",
            "60s",
        ],
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("--budget"), "{said:?}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_target_that_is_away_is_silent_by_its_address() {
    let away = "platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1' ] }";
    let stated = SCENARIO.lines().find(|line| line.starts_with("platform"));
    let folder = folder_with(&SCENARIO.replace(stated.expect("a platform"), away));
    let said = muster(
        folder.path(),
        &["capacity", "scenario.yaml", "--out", "out"],
    );
    assert_eq!(said.code, 4, "{said:?}");
    for what in ["nobody listens there", "mqtt://127.0.0.1:1", "--resume out"] {
        assert!(said.unbroken().contains(what), "{said:?}");
    }
    assert!(!folder.path().join("out/capacity.json").exists());
}

#[test]
fn a_load_that_the_scenario_lacks_is_refused_before_any_load() {
    let changed = |of: &str, to: &str| SCENARIO.replace(of, to);
    let readings = "{ name: readings, rate: 400/s, qos: 1, timeout: 3s }";
    let gateway = "{ name: meters, gateway: { devices: 5 }";
    let [devices, commands] = ["devices", "commands"].map(|find| ["--find", find]);
    let same = SCENARIO.to_owned();
    for (text, arguments, needed) in [
        (
            same.clone(),
            &["--find", "devices", "--to", "21"][..],
            "has 20 devices",
        ),
        (
            same.clone(),
            &["--find", "devices", "--to", "40/s"],
            "number of devices",
        ),
        (same.clone(), &["--from", "40"], "such as 200/s"),
        (
            changed("{ name: meters", gateway),
            &devices,
            "links of gateways",
        ),
        (
            changed("qos: 1", "qos: 1, phase: together"),
            &devices,
            "phase: together",
        ),
        (changed(readings, ""), &devices, "devices send nothing"),
        (same, &commands, "issues no commands"),
        (
            COMMANDED.replace("command-loop", "response"),
            &commands,
            "no SLO is about them",
        ),
        (
            COMMANDED.replace("two-way", "one-way"),
            &commands,
            "mode: two-way",
        ),
        (
            COMMANDED.to_owned(),
            &["--find", "commands", "--to", "40"],
            "such as 200/s",
        ),
        (
            LIMITED.replace("size: 500", "template: \"${stamp}\""),
            &["--find", "payload"],
            "payload: { size: 100 }",
        ),
        (
            LIMITED.to_owned(),
            &["--find", "payload", "--from", "5"],
            "needs 22 bytes",
        ),
        (LIMITED.to_owned(), &["--find", "connects"], "speak MQTT"),
        (
            CONNECTING.replace("slo: {", "slo: { loss: 0,"),
            &["--find", "connects"],
            "slo.loss=any",
        ),
    ] {
        let folder = folder_with(&text);
        let fixed = ["capacity", "scenario.yaml", "--out", "out"];
        let said = muster(folder.path(), &[&fixed[..], arguments].concat());
        assert_eq!(said.code, 2, "{arguments:?} {said:?}");
        assert!(said.err.contains(needed), "{arguments:?} {said:?}");
        assert!(!folder.path().join("out").exists(), "{arguments:?}");
    }
}

/// Searches from a load below the capacity, and from one above it, which no step may pass. Gives the first step of the
/// one search, which must not fail, and what the other one said.
fn below_and_above(text: &str, find: &str, loads: [&str; 2]) -> (Value, String) {
    let folder = folder_with(text);
    // To measure the ceilings during a step would delay it.
    muster(folder.path(), &["check", "scenario.yaml", "--offline"]);
    let search = ["--find", find, "--from"];
    let [below, above] = loads.map(|from| [&search[..], &[from, "--out"]].concat());
    let said = std::thread::scope(|scope| {
        scope.spawn(|| kill_after_a_step(folder.path(), &[&below[..], &["below"]].concat()));
        let fixed = ["capacity", "scenario.yaml"];
        muster(folder.path(), &[&fixed[..], &above, &["above"]].concat())
    });
    assert_eq!(said.code, 1, "{said:?}");
    let (_, mut steps) = journal(&folder.path().join("below"));
    let step = steps.remove(0);
    assert_ne!(step["outcome"], "fail", "{step}");
    (step, said.unbroken())
}

/// A target that passes 100 commands on a second.
const COMMANDED: &str = r#"
name: commanded
platform: { kind: gateway, behaviour: { command-rate: 100/s }, backend: { commands: { rate: 100/s, mode: two-way } } }
fleet:
  - { name: pumps, count: 20, streams: [ { name: readings, rate: 20/s }, { kind: command } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 60s, quiet: 200ms } }
slo: { command-loop: { p90: "<= 250ms" } }
"#;

#[test]
fn steps_of_a_search_of_commands_are_judged_by_commands() {
    let (step, said) = below_and_above(COMMANDED, "commands", ["50/s", "150/s"]);
    assert!(said.contains("command-loop p90"), "{said}");
    let figures = &step["figures"];
    let held =
        figures["until_s"].as_f64().expect("an end") - figures["from_s"].as_f64().expect("a begin");
    assert_eq!(figures["commands"]["scheduled"], 50.0 * held);
    assert_eq!(
        figures["commands"]["replied"],
        figures["commands"]["scheduled"]
    );
    assert_eq!(figures["ledger"]["scheduled"], 20.0 * held);
}

/// A target that takes bodies of at most 2,000 bytes.
const LIMITED: &str = r#"
name: limited
platform: { kind: gateway, dialect: http, max-payload: 2000 }
fleet:
  - { name: meters, count: 20, streams: [ { name: readings, rate: 200/s, payload: { size: 500 }, timeout: 3s } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 200ms } }
slo: { response: { p90: "<= 250ms" }, failure-ratio: "<= 1%", disconnects: any }
"#;

#[test]
fn a_step_of_a_search_of_payloads_has_messages_of_its_size() {
    let (step, said) = below_and_above(LIMITED, "payload", ["2000", "2001"]);
    assert!(said.contains("rejected"), "{said}");
    assert_eq!(step["load"], 2000.0);
}

/// A target that takes 100 new connections a second.
const CONNECTING: &str = r#"
name: connecting
platform: { kind: gateway, behaviour: { connect-rate: 100/s } }
fleet:
  - { name: meters, count: 60, connect: { rate: 90/s }, streams: [ { name: readings, rate: 60/s, qos: 1 } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 20s, quiet: 200ms } }
slo: { response: { p90: "<= 100ms" }, failure-ratio: "<= 1%" }
"#;

#[test]
fn steps_of_a_search_of_connects_are_judged_by_connects() {
    let (step, _) = below_and_above(CONNECTING, "connects", ["50/s", "150/s"]);
    let figures = &step["figures"];
    let at = |key: &str| figures[key].as_f64().expect("an instant");
    let attempts = 50.0 * (at("until_s") - at("from_s"));
    assert_eq!(figures["ledger"]["scheduled"], attempts);
    assert_eq!(figures["ledger"]["accepted"], attempts);
}

#[test]
fn a_target_that_dies_ends_the_search_by_name() {
    let gateway = Gateway::start(&["--threads", "1"]);
    let platform = format!(
        "platform: {{ kind: mqtt, devices: [ \"{}\" ] }}",
        gateway.url
    );
    let stated = SCENARIO.lines().find(|line| line.starts_with("platform"));
    let text = SCENARIO.replace(stated.expect("a platform"), &platform);
    // What ends a run by itself ends no search.
    let stop = "stop-if: { failure-ratio: \"> 10% for 1s\" }\n";
    let folder = folder_with(&(text + stop));
    let mut child = program(
        folder.path(),
        &["capacity", "scenario.yaml", "--out", "out"],
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut lines = out.lines().map(|line| line.expect("it tells"));
    assert!(lines.any(|line| line.starts_with("step")), "no first step");
    drop(gateway);
    let rest: Vec<String> = lines.collect();
    let rest = rest.join("\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest}");
    assert!(rest.contains("the target died"), "{rest}");
    let answer = json(&folder.path().join("out/capacity.json"));
    assert_eq!(answer["end"]["end"], "not-recovered", "{answer}");
}
