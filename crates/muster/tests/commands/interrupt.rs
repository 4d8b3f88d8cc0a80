//! Ctrl-C: the run ends in order, and its result says that it was cut short.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{folder_with, json, muster, program, signal};

/// Nothing is ever answered, so that settling lasts until its bound.
const SCENARIO: &str = r#"
name: interrupted
platform: { kind: gateway, behaviour: { drop: 100 } }
fleet:
  - name: meters
    count: 10
    streams: [ { kind: telemetry, rate: 100/s, qos: 1, timeout: 5m } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10m, quiet: 200ms } }
"#;

struct Run {
    folder: TempDir,
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Run {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let folder = folder_with(SCENARIO);
        let run = program(folder.path(), &["run", "scenario.yaml", "--out", "out"]);
        // Who runs the tests may ignore SIGHUP (`nohup`), and the program would too.
        let mut child = Command::new("env")
            .arg("--default-signal=HUP")
            .arg(run.get_program())
            .args(run.get_args())
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { folder, child, out }
    }

    /// Waits until it tells that it has come so far.
    fn until(&mut self, phase: &str) {
        let mut line = String::new();
        while !line.contains(phase) {
            line.clear();
            let read = self.out.read_line(&mut line).expect("it tells");
            assert!(read > 0, "it ends before {phase}");
        }
    }

    /// Returns what it says on standard error until it ends, and its exit code.
    fn end(&mut self) -> (String, Option<i32>) {
        let (mut err, mut rest) = (String::new(), String::new());
        self.out.read_to_string(&mut rest).expect("it ends");
        let pipe = self.child.stderr.as_mut().expect("its errors are piped");
        pipe.read_to_string(&mut err).expect("it ends");
        (err, self.child.wait().expect("it ends").code())
    }
}

#[test]
fn an_interrupt_while_settling_ends_it_and_the_result_is_written() {
    let mut run = Run::start();
    run.until("settle");
    signal(&run.child, Signal::INT);
    assert_eq!(run.end(), (String::new(), Some(3)));
    let result = json(&run.folder.path().join("out/result.json"));
    assert_eq!(result["verdict"]["result"], "invalid");
    let uplink = &result["ledger"]["uplink"];
    let counts = ["scheduled", "in_flight", "residue"].map(|name| uplink[name].as_u64());
    assert_eq!(counts, [Some(100), Some(100), Some(0)]);
    let rules = result["verdict"]["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["rule"] == "uninterrupted");
    assert_eq!(rule.expect("it says why")["result"], "fail");
}

#[test]
fn an_interrupt_while_connecting_says_nothing_against_the_target() {
    let mut run = Run::start_with(&["--set", "fleet.connect.rate=1/s"]);
    run.until("connect");
    signal(&run.child, Signal::INT);
    assert_eq!(run.end(), (String::new(), Some(3)));
    let verdict = &json(&run.folder.path().join("out/result.json"))["verdict"];
    assert_eq!(
        (&verdict["result"], &verdict["would_be"]),
        (&"invalid".into(), &Value::Null)
    );
}

#[test]
fn an_interrupt_before_the_beginning_does_not_wait_for_it() {
    let mut run = Run::start_with(&["--start-at", "2099-01-01T00:00:00Z"]);
    run.until("the run begins in");
    signal(&run.child, Signal::INT);
    let (_, code) = run.end();
    assert_eq!(code, Some(3));
    assert!(!run.folder.path().join("out").exists(), "nothing to tell");
}

#[test]
fn the_end_of_the_terminal_ends_a_run_as_an_interrupt_does() {
    let mut run = Run::start();
    run.until("settle");
    signal(&run.child, Signal::HUP);
    assert_eq!(run.end(), (String::new(), Some(3)));
    let result = json(&run.folder.path().join("out/result.json"));
    assert_eq!(result["verdict"]["result"], "invalid");
    assert_eq!(result["ledger"]["uplink"]["residue"], 0);
}

#[test]
fn a_second_interrupt_ends_the_run_at_once_without_a_word() {
    let mut run = Run::start();
    run.until("measure");
    signal(&run.child, Signal::INT);
    // Of two signals at one time, which two threads hear at once, neither is the second one.
    run.until("settle");
    signal(&run.child, Signal::TERM);
    assert_eq!(run.end(), (String::new(), Some(130)));
}

#[test]
fn a_report_of_a_run_that_goes_on_or_was_killed_is_headed_by_how_far_it_came() {
    let mut run = Run::start();
    run.until("settle");
    let folder = run.folder.path().to_owned();
    let said = muster(&folder, &["report", "out"]).out;
    assert!(said.starts_with("RUNNING, 0:0"), "{said}");
    assert!(
        !said.contains("remedy") && !said.contains("INVALID"),
        "{said}"
    );
    signal(&run.child, Signal::KILL);
    run.end();
    let said = muster(&folder, &["report", "out"]).out;
    assert!(said.starts_with("INTERRUPTED at 0:0"), "{said}");
    assert!(
        said.contains(", INVALID (exit code 3)  interrupted"),
        "{said}"
    );
}
