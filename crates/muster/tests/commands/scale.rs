//! `muster scale`: instances of the target are added, and taken away again.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;

use crate::program::{folder_with, json, muster};
use crate::verify::{other, places};

/// Every response is slower than the rule wants, so that the growth ends early.
const HOPELESS: &str = r#"
name: growth
platform: { kind: mqtt, devices: [ "mqtt://127.0.0.1:PORT" ] }
fleet:
  - { name: meters, count: 4, streams: [ { name: readings, rate: 320/s, qos: 1 } ] }
phases: { settle: { at-most: 5s, quiet: 200ms } }
slo: { response: { p50: "<= 50ms" } }
scale:
  actuator: { kind: process, command: [ "${muster}", gateway, --listen, "127.0.0.1:${port}", --threads, "1", --behaviour, "service-time: 500ms" ] }
  instances: { min: 2, max: 3 }
  hold: 4s
"#;

/// Number of pairs of ports that tests of this process have looked at.
static GIVEN: AtomicU16 = AtomicU16::new(0);

fn scenario(text: &str) -> (tempfile::TempDir, u16) {
    let port = free_ports();
    (folder_with(&text.replace("PORT", &port.to_string())), port)
}

/// The first of two neighbouring ports that nobody uses. The system gives neither away until they are taken: they lie below
/// those that it hands to clients and to servers that want any. No other test of this process gets them.
fn free_ports() -> u16 {
    use std::net::TcpListener;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let own = (std::process::id() % 4_000) as u16;
    let mut pairs = (0..4_000).map(|_| {
        let pair = own + GIVEN.fetch_add(1, Ordering::Relaxed) % 4_000;
        20_000 + pair % 4_000 * 2
    });
    let port = pairs.find(|port| is_free(*port) && is_free(port + 1));
    port.expect("two free ports")
}

#[test]
fn a_target_that_fails_at_each_rate_is_measured_twice_and_taken_away() {
    let (folder, port) = scenario(HOPELESS);
    let said = muster(folder.path(), &["scale", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 1, "{said:?}");
    let answer = json(&folder.path().join("out/scale.json"));
    assert_eq!(answer["end"]["end"], "fails-at-first", "{answer}");
    let searches = answer["searches"].as_array().expect("searches");
    assert_eq!(
        searches.len(),
        2,
        "one that fails at its first rate is searched from a lower one"
    );
    for search in searches {
        let load = search["load"].as_array().expect("a load");
        assert_eq!(load.len(), 2, "{search}");
        assert!(
            load.iter()
                .all(|of| of["connected"] == 2 && of["accepted"] != 0 && of["sent"] != 0),
            "{search}"
        );
        let steps = search["steps"].as_array().expect("steps");
        let sent_to =
            |step: &Value, port: u16| step["sent_to"][format!("127.0.0.1:{port}")].as_u64();
        for step in steps {
            assert!(
                sent_to(step, port) > Some(0) && sent_to(step, port + 1) > Some(0),
                "{step}"
            );
        }
        let of_search = format!("out/{}", search["folder"].as_str().expect("a folder"));
        let answer = json(&folder.path().join(&of_search).join("capacity.json"));
        assert_eq!(answer["end"]["end"], "fails-at-first", "{answer}");
        let verified = muster(folder.path(), &["verify", &of_search]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
    for port in [port, port + 1] {
        assert!(
            TcpStream::connect(("127.0.0.1", port)).is_err(),
            "an instance still listens"
        );
    }
    assert!(!folder.path().join("out/target.json").exists());
    // All is known: nothing is searched again, and no budget is too short for that.
    let again = muster(
        folder.path(),
        &[
            "scale",
            "scenario.yaml",
            "--resume",
            "out",
            "--budget",
            "1s",
        ],
    );
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(json(&folder.path().join("out/scale.json")), answer);
    let verified = muster(folder.path(), &["verify", "out"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(
        verified.out.contains("scale.json follows from 2 runs"),
        "{verified:?}"
    );
    altered_values_are_not_verified(folder.path());
}

/// Alters some plain values of the answer in `out`, and of the first search in its journal.
fn altered_values_are_not_verified(folder: &Path) {
    for name in ["scale.json", "scale.jsonl"] {
        let path = folder.join("out").join(name);
        let text = fs::read_to_string(&path).expect("a text");
        let is_altered = |altered: &str, place: &str| {
            fs::write(&path, altered).expect("it is written");
            let said = muster(folder, &["verify", "out"]);
            // A word that is none of a list breaks the form of the journal.
            let code = if said.err.contains("unknown variant") {
                2
            } else {
                1
            };
            assert_eq!(said.code, code, "{name}: {place}: {said:?}");
        };
        match name {
            "scale.json" => {
                for (place, altered) in alterations(&text, PLACES) {
                    is_altered(&format!("{altered:#}\n"), &place);
                }
            }
            _ => {
                let (head, line) = text.split_once('\n').expect("a first line");
                let (line, rest) = line.split_once('\n').expect("a line");
                let (most, more) = ("\"most\":3", "\"most\":4");
                assert!(head.contains(most), "{head}");
                let altered = format!("{}\n{line}\n{rest}", head.replace(most, more));
                is_altered(&altered, "the first line");
                for (place, altered) in alterations(line, PLACES) {
                    is_altered(&format!("{head}\n{altered}\n{rest}"), &place);
                }
            }
        }
        fs::write(&path, &text).expect("it is written");
    }
}

/// Values that are altered of each document.
const PLACES: usize = 12;

/// A document with one of its plain values altered, for as many of them, evenly spread, with their places.
fn alterations(text: &str, number: usize) -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(text).expect("JSON");
    let mut all = Vec::new();
    places(&document, "", &mut all);
    let every = (all.len() / number).max(1);
    let chosen = all.into_iter().step_by(every);
    let altered = chosen.map(|place| {
        let mut document = document.clone();
        let value = document.pointer_mut(&place).expect("a place");
        // A whole number stays one, so that its field can be read.
        *value = match value.as_u64() {
            Some(number) => (number + 1).into(),
            None => other(value),
        };
        (place, document)
    });
    altered.collect()
}

#[test]
fn a_step_with_an_instance_without_load_is_not_judged() {
    let one_link = HOPELESS
        .replace("count: 4", "count: 1")
        .replace("response: { p50: \"<= 50ms\" }", "failure-ratio: \"<= 1%\"");
    let (folder, port) = scenario(&one_link.replace("service-time: 500ms", "service-time: 1ms"));
    let said = muster(folder.path(), &["scale", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 3, "{said:?}");
    let answer = json(&folder.path().join("out/scale.json"));
    let idle = format!("127.0.0.1:{}", port + 1);
    assert_eq!(
        answer["end"]["why"],
        format!("the instance at {idle} received no load")
    );
    for search in answer["searches"].as_array().expect("searches") {
        assert_eq!(
            (&search["outcome"], &search["address"]),
            (&"idle".into(), &idle.as_str().into())
        );
        let steps = search["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 3, "it stops after three: {search}");
        assert!(
            steps
                .iter()
                .all(|step| step["outcome"] == "unclear" && step["sent_to"][&idle] == 0),
            "{search}"
        );
        let verified = muster(
            folder.path(),
            &[
                "verify",
                &format!("out/{}", search["folder"].as_str().expect("a folder")),
            ],
        );
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

#[test]
fn a_scenario_that_names_no_means_is_refused() {
    let folder = folder_with("name: t\nfleet: [ { streams: [ { rate: 1/s } ] } ]\n");
    let said = muster(folder.path(), &["scale", "scenario.yaml"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("add `scale` with an `actuator`"),
        "{said:?}"
    );
}

#[test]
fn options_of_a_ceiling_are_refused_by_the_published_policy() {
    let (folder, _) = scenario(&HOPELESS.replace("hold: 4s", "policy: published"));
    for options in [["--no-cache"].as_slice(), &["--link-speed", "10G"]] {
        let said = muster(
            folder.path(),
            &[&["scale", "scenario.yaml"], options].concat(),
        );
        assert_eq!(said.code, 2, "{said:?}");
        let words = format!("{}: the published policy measures no ceiling", options[0]);
        assert!(said.err.contains(&words), "{said:?}");
    }
}

#[test]
fn a_target_that_does_not_start_is_named_with_its_last_words() {
    let (folder, _) = scenario(&HOPELESS.replace("--threads", "--no-such-option"));
    let said = muster(folder.path(), &["scale", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 3, "{said:?}");
    let words = "the target cannot be set to 2 instances: keep instance 0 running";
    assert!(said.unbroken().contains(words), "{said:?}");
    let answer = json(&folder.path().join("out/scale.json"));
    assert_eq!(answer["end"]["end"], "not-set", "{answer}");
}

#[test]
fn a_growth_of_another_scenario_is_refused_and_its_target_left_alone() {
    let commands = |set: &str| {
        let actuator = HOPELESS
            .lines()
            .find(|line| line.contains("actuator:"))
            .expect("an actuator");
        let other = format!(
            "  actuator: {{ kind: command, set: [ sh, -c, \"{set}\" ], actual: [ cat, count ] }}"
        );
        HOPELESS.replace("PORT", "9").replace(actuator, &other)
    };
    let folder = folder_with(&commands("exit 1 # ${count}"));
    let at = |name: &str| folder.path().join(name);
    fs::write(at("count"), "7\n").expect("it is written");
    let said = muster(folder.path(), &["scale", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 5, "it can neither be set nor put back: {said:?}");
    let answer = json(&at("out/scale.json"));
    assert_eq!(answer["end"]["end"], "not-set", "{answer}");
    let record = fs::read_to_string(at("out/target.json")).expect("a record");
    fs::write(at("scenario.yaml"), commands("echo ${count} >count")).expect("it is written");
    let said = muster(
        folder.path(),
        &["scale", "scenario.yaml", "--resume", "out"],
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("were others"), "{said:?}");
    let count = fs::read_to_string(at("count")).expect("a number");
    assert_eq!(count, "7\n");
    let left = fs::read_to_string(at("out/target.json")).expect("the record is kept");
    assert_eq!(left, record);
}
