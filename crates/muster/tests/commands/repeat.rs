//! `muster run --repeat`: several runs, one verdict.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Gateway, folder_with, json, muster, program, signal};

/// A second of 100 messages. No rule on time decides: other tests run beside it.
const SCENARIO: &str = r#"
name: again
seed: 5
platform: PLATFORM
fleet:
  - { name: meters, count: 10, streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 200ms } }
slo: { loss: 0 }
"#;

fn results(repeat: &Value) -> Vec<&str> {
    let runs = repeat["runs"].as_array().expect("runs");
    runs.iter()
        .filter_map(|run| run["result"].as_str())
        .collect()
}

fn spread<'a>(repeat: &'a Value, figure: &str) -> &'a Value {
    let all = repeat["spread"].as_array().expect("a spread");
    let found = all.iter().find(|spread| spread["figure"] == figure);
    found.unwrap_or_else(|| panic!("no spread of {figure}"))
}

#[test]
fn each_run_has_its_own_result_and_the_worst_is_the_verdict() {
    let gateway = Gateway::start(&["--behaviour", "lose-after-accept: 3", "--expect", "100"]);
    let platform = format!(
        r#"{{ kind: mqtt, devices: [ "{0}" ], backend: {{ url: "{0}", filter: "muster/#", qos: 1 }} }}"#,
        gateway.url
    );
    let folder = folder_with(&SCENARIO.replace("PLATFORM", &platform));
    let options = [
        "run",
        "scenario.yaml",
        "--repeat",
        "3",
        "--quiet",
        "--out",
        "out",
    ];
    let beside = ["--facts", "facts", "--json", "copy.json"];
    let said = muster(folder.path(), &[&options[..], &beside[..]].concat());
    assert_eq!(said.code, 1, "{said:?}");
    let at = |name: &str| folder.path().join(name);
    let repeat = json(&at("out/repeat.json"));
    assert_eq!(
        results(&repeat),
        ["fail", "pass", "pass"],
        "it loses 3 of its first 100"
    );
    assert_eq!(repeat["verdict"]["result"], "fail");
    assert_eq!(repeat["runs"][0]["reasons"][0], "loss [run]");
    let lost = spread(&repeat, "lost");
    assert_eq!(
        ["median", "min", "max", "runs"].map(|name| lost[name].as_u64()),
        [Some(0), Some(0), Some(3), Some(3)]
    );
    assert!(spread(&repeat, "offered")["median"]["per_second"].is_f64());
    for run in ["1", "2", "3"] {
        let result = json(&at("out").join(run).join("result.json"));
        assert_eq!(result["seed"], 5, "every run has the same seed");
        assert!(at(&format!("facts.{run}")).exists());
    }
    assert_eq!(json(&at("copy.json")), repeat);
    assert!(
        said.out
            .contains("FAIL  again  3 runs, seed 5: 2 pass, 1 fail"),
        "{}",
        said.out
    );
    let again = muster(folder.path(), &options);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.err.contains("it holds `"), "{}", again.err);
}

#[test]
fn an_interrupt_ends_the_whole_series() {
    let folder = folder_with(&SCENARIO.replace("PLATFORM", "{ kind: gateway }"));
    let options = [
        "run",
        "scenario.yaml",
        "--repeat",
        "50",
        "--quiet",
        "--out",
        "out",
    ];
    let mut child = program(folder.path(), &options)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("the first run ends");
    assert_eq!(line, "run 1: pass\n");
    signal(&child, Signal::INT);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).expect("it ends");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(3), "{rest}");
    let repeat = json(&folder.path().join("out/repeat.json"));
    assert!(results(&repeat).len() <= 2, "{rest}");
    assert_eq!(repeat["wanted"], 50);
    assert!(rest.contains("of 50, then stopped"), "{rest}");
}

#[test]
fn a_part_of_a_run_is_not_repeated() {
    let folder = folder_with(&SCENARIO.replace("PLATFORM", "{ kind: gateway }"));
    let part = [
        "--part",
        "1/2",
        "--run-id",
        "1",
        "--start-at",
        "2026-11-21T10:15:00Z",
    ];
    for (times, more, what) in [
        ("2", &part[..], "cannot be used with"),
        ("1", &[], "2..=1000"),
    ] {
        let options = [&["run", "scenario.yaml", "--repeat", times], more].concat();
        let said = muster(folder.path(), &options);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(what), "{}", said.err);
    }
}
