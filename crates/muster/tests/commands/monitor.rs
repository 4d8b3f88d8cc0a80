//! Parts of the target that are watched, and commands that a run starts.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Said, folder_with, json as read_json, muster};

const SCENARIO: &str = r#"
name: watched
hooks: [ HOOKS ]
monitor: [ MONITOR ]
fleet: [ { name: f, count: 5, streams: [ { name: a, rate: 20/s, timeout: 5s, payload: { size: 64 } } ] } ]
phases: { warm-up: 0s, measure: 4s, settle: { at-most: 8s, quiet: 300ms } }
"#;

/// A run with these entries; its words, its result, and the samples as a table.
fn run(monitor: &str, hooks: &str) -> (Said, Value, String) {
    let scenario = SCENARIO.replace("MONITOR", monitor);
    let folder = folder_with(&scenario.replace("HOOKS", hooks));
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_eq!(said.code, 0, "{said:?}");
    let out = folder.path().join("out");
    let result = read_json(&out.join("result.json"));
    let table = std::fs::read_to_string(out.join("monitor.csv")).unwrap_or_default();
    // The same is reported again from what the run left behind.
    std::fs::remove_file(out.join("result.json")).expect("it is there");
    let again = muster(folder.path(), &["report", "out", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.out).expect("a result");
    for key in ["monitor", "hooks", "events", "verdict"] {
        assert_eq!(again[key], result[key], "{key}");
    }
    (said, result, table)
}

fn series<'a>(result: &'a Value, name: &str, resource: &str) -> &'a Value {
    let all = result["monitor"].as_array().expect("a list");
    let found = all
        .iter()
        .find(|of| of["name"] == name && of["resource"] == resource);
    found.expect("it was sampled")
}

#[test]
fn the_gateway_and_a_command_are_sampled_on_the_time_axis_of_the_load() {
    let entries = "{ name: target, process: gateway, every: 200ms, limit: 4GiB }, \
                   { name: lag, command: 'echo 7', every: 500ms }";
    let (said, result, table) = run(entries, "");
    let (cpu, memory) = (
        series(&result, "target", "cpu"),
        series(&result, "target", "memory"),
    );
    let average = |of: &Value| of["average"].as_f64().expect("it was measured");
    assert!(average(cpu) >= 0.0 && cpu["unit"] == "cores", "{cpu}");
    assert!(
        average(memory) > 1e6 && memory["limit"] == 4.0 * f64::from(1 << 30),
        "{memory}"
    );
    let lag = series(&result, "lag", "value");
    assert_eq!((&lag["min"], &lag["max"]), (&json!(7.0), &json!(7.0)));
    let windows = lag["windows"].as_array().expect("a list");
    assert!(
        windows.len() >= 4 && windows.iter().all(|window| window[1] == 7.0),
        "{lag}"
    );
    assert!(
        said.out.contains("\ntarget     target cpu "),
        "{}",
        said.out
    );
    assert!(
        said.unbroken().contains("lag value average 7 min 7 max 7"),
        "{}",
        said.out
    );
    let rows = table
        .lines()
        .filter(|line| line.contains(",lag,value,number,7,7,7"));
    assert_eq!(rows.count(), windows.len(), "{table}");
}

#[test]
fn a_process_that_ends_is_named_and_the_run_goes_on() {
    let mut command = Command::new("cat");
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("cat is everywhere");
    let pid = child.id();
    let entry = format!("{{ name: broker, process: {pid}, every: 100ms }}");
    let hook =
        format!("{{ name: stop, when: measure, at: 1s, command: 'kill {pid}; echo killed' }}");
    let (_, result, _) = run(&entry, &hook);
    child.wait().expect("it was killed");
    assert!(series(&result, "broker", "memory")["average"].is_number());
    let events = result["events"].as_array().expect("a list");
    let ended: Vec<&Value> = events
        .iter()
        .filter(|of| of["kind"] == "monitor-ended")
        .collect();
    assert_eq!(ended.len(), 1, "{events:?}");
    assert_eq!(
        ended[0]["detail"],
        format!("broker: process {pid} (cat) ended")
    );
    let (stopped, at) = (&result["hooks"][0], ended[0]["t_s"].as_f64());
    assert_eq!(
        (&stopped["code"], &stopped["output"]),
        (&json!(0), &json!("killed\n"))
    );
    assert!(at >= stopped["t_s"].as_f64(), "{ended:?} {stopped}");
}

#[test]
fn a_hook_that_fails_is_a_warning_and_one_before_the_load_keeps_the_run_from_beginning() {
    let fails = "{ name: fetch, when: after, command: 'echo not there >&2; exit 3' }, \
                 { name: never, when: measure, at: 1h, command: 'true' }";
    let (said, result, _) = run("", fails);
    let warnings = result["verdict"]["warnings"].as_array().expect("a list");
    let words: Vec<&str> = warnings
        .iter()
        .filter_map(|of| of["detail"].as_str())
        .collect();
    let expected = [
        "hook `fetch`: code 3: not there",
        "hook `never`: not started: the run ended before its time",
    ];
    assert_eq!(words, expected, "{}", said.out);
    let scenario = SCENARIO.replace("MONITOR", "");
    let before = "{ name: fault, when: before, command: 'touch begun' }, \
                  { name: reset, when: before, command: 'echo no database >&2; exit 1' }, \
                  { name: repair, when: after, command: 'rm begun' }";
    let folder = folder_with(&scenario.replace("HOOKS", before));
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.out.contains("hook `reset`: code 1: no database"),
        "{said:?}"
    );
    assert!(!folder.path().join("out").exists());
    // The fault was begun, since otherwise its repair fails, and is repaired.
    assert!(!said.err.contains("repair"), "{said:?}");
    assert!(!folder.path().join("begun").exists());
}

#[test]
fn what_cannot_be_watched_keeps_the_run_from_beginning() {
    for (entry, why) in [
        (
            "{ name: a, process: no-such-process }",
            "no process is named `no-such-process`; there are ",
        ),
        (
            "{ name: a, cgroup: no-such-group }",
            "/sys/fs/cgroup/no-such-group is no cgroup",
        ),
        (
            "{ name: a, command: 'echo x' }",
            "its command printed `x`, which is no number",
        ),
        (
            "{ name: a, prometheus: { url: 'http://127.0.0.1:1/metrics', series: { up: up } } }",
            "read http://127.0.0.1:1/metrics: ",
        ),
    ] {
        let scenario = SCENARIO.replace("MONITOR", entry);
        let folder = folder_with(&scenario.replace("HOOKS", ""));
        let said = muster(
            folder.path(),
            &["run", "scenario.yaml", "--quiet", "--out", "out"],
        );
        assert_eq!(said.code, 4, "{said:?}");
        let words = format!("failed to watch `a`: {why}");
        assert!(said.out.contains(&words), "{said:?}");
        assert!(!folder.path().join("out").exists());
    }
}
