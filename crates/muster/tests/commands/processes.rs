//! Worker processes: none is lost unseen, and none outlives the run.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::program::{folder_with, json, program, signal};

const SCENARIO: &str = r#"
name: processes
platform: { kind: gateway }
fleet:
  - name: meters
    count: 10
    streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ]
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 10s, quiet: 200ms } }
"#;
/// Longer than a process takes to end, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of two worker processes, in its measured phase.
struct Run {
    folder: TempDir,
    child: Child,
}

impl Run {
    fn measuring(measure: &str) -> Self {
        let folder = folder_with(&SCENARIO.replace("MEASURE", measure));
        let arguments = ["run", "scenario.yaml", "--out", "out", "--workers", "2"];
        let mut child = program(folder.path(), &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut line = String::new();
        while !line.contains("measure") {
            line.clear();
            let read = out.read_line(&mut line).expect("it tells");
            assert!(read > 0, "it ends before it measures");
        }
        std::thread::spawn(move || out.read_to_string(&mut String::new()));
        Self { folder, child }
    }

    fn workers(&self) -> Vec<Pid> {
        let children = processes_of(self.child.id());
        let workers = children.filter(|(_, command)| command.ends_with("\0agent\0"));
        let workers = Vec::from_iter(workers.map(|(pid, _)| pid));
        assert_eq!(workers.len(), 2, "two workers are at work");
        workers
    }

    /// Returns what it and its processes say on standard error until the last of them has ended.
    fn last_words(&mut self) -> String {
        let mut pipe = self.child.stderr.take().expect("its errors are piped");
        let (told, heard) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let is_read = pipe.read_to_string(&mut text);
            told.send(is_read.map(|_| text))
        });
        let text = heard.recv_timeout(PATIENCE).expect("all processes end");
        text.expect("it is text")
    }
}

/// The child processes of a process, with their command lines.
fn processes_of(parent: u32) -> impl Iterator<Item = (Pid, String)> {
    let folders = fs::read_dir("/proc").expect("procfs");
    folders.filter_map(move |folder| {
        let folder = folder.ok()?;
        let pid = folder.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(folder.path().join("stat")).ok()?;
        // proc(5): after the name in parentheses come the state and the parent.
        let (_, rest) = stat.rsplit_once(") ")?;
        let is_child = rest.split(' ').nth(1)? == parent.to_string();
        let command = fs::read_to_string(folder.path().join("cmdline")).ok()?;
        is_child.then_some((Pid::from_raw(pid)?, command))
    })
}

#[test]
fn a_run_that_loses_a_worker_goes_on_to_its_end_and_is_invalid() {
    let mut run = Run::measuring("2s");
    kill_process(run.workers()[0], Signal::KILL).expect("it is there");
    run.last_words();
    assert_eq!(run.child.wait().expect("it ends").code(), Some(3));
    let result = json(&run.folder.path().join("out/result.json"));
    assert_eq!(result["verdict"]["result"], "invalid");
    let events = result["events"].as_array().expect("events");
    let lost = events.iter().find(|event| event["kind"] == "process-lost");
    let detail = &lost.expect("it says so")["detail"];
    assert_eq!(detail, "the worker process ended before its work was done");
    let accepted = result["ledger"]["uplink"]["accepted"].as_u64();
    assert!(
        accepted.is_some_and(|accepted| accepted >= 50),
        "{accepted:?} by the other"
    );
}

#[test]
fn when_the_controller_is_killed_its_workers_and_its_gateway_end() {
    let mut run = Run::measuring("10m");
    run.workers();
    signal(&run.child, Signal::KILL);
    run.last_words();
}
