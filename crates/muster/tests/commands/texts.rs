//! Messages when something is wrong, and what is left behind then.

use std::net::TcpListener;
use std::path::Path;

use crate::program::{Gateway, Said, folder_with, muster};

const SCENARIO: &str = r#"
name: texts
fleet:
  - { name: meters, count: 10, streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ] }
phases: { warm-up: 0s, measure: 60s, settle: { at-most: 60s, quiet: 200ms } }
"#;

fn refused(folder: &Path, options: &[&str]) -> Said {
    let said = muster(
        folder,
        &[&["run", "scenario.yaml", "--out", "out"], options].concat(),
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(!folder.join("out").exists(), "a refusal leaves no folder");
    said
}

#[test]
fn an_address_that_is_taken_is_said_once() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("its address").to_string();
    let folder = folder_with(SCENARIO);
    let devices = format!("platform.devices=[mqtt://{taken}]");
    let alone = muster(folder.path(), &["gateway", "--listen", &taken]);
    assert_eq!(alone.code, 2, "{alone:?}");
    for said in [alone, refused(folder.path(), &["--set", &devices])] {
        assert_eq!(said.err.matches("failed").count(), 1, "{}", said.err);
        assert_eq!(
            said.err.matches("cannot listen on").count(),
            1,
            "{}",
            said.err
        );
    }
}

#[test]
fn a_second_gateway_on_the_port_of_another_is_refused_however_many_threads_they_have() {
    let folder = folder_with(SCENARIO);
    for (first, second) in [("2", "2"), ("2", "1"), ("1", "2")] {
        let gateway = Gateway::start(&["--threads", first]);
        let taken = gateway.url.trim_start_matches("mqtt://");
        let options = ["gateway", "--listen", taken, "--threads", second];
        let said = muster(folder.path(), &options);
        assert_eq!(said.code, 2, "{said:?}");
        let why = format!("cannot listen on {taken}: another program listens there");
        assert!(said.err.contains(&why), "{}", said.err);
    }
}

#[test]
fn a_label_without_a_key_or_a_value_is_refused() {
    let folder = folder_with(SCENARIO);
    for label in ["=v", "k=", "k"] {
        let said = refused(folder.path(), &["--label", label]);
        let what = format!("--label `{label}`: write it as key=value");
        assert!(said.err.contains(&what), "{}", said.err);
    }
}

#[test]
fn a_run_that_is_refused_leaves_its_files_as_they_were() {
    let folder = folder_with(SCENARIO);
    let facts = folder.path().join("facts");
    std::fs::write(&facts, "of an earlier run").expect("a file");
    let said = refused(folder.path(), &["--facts", "facts", "--workers", "2"]);
    assert!(
        said.err.contains("only a run of one process can"),
        "{}",
        said.err
    );
    let said = refused(folder.path(), &["--facts", "no-such-folder/facts"]);
    assert!(said.err.contains("no-such-folder"), "{}", said.err);
    std::fs::create_dir(folder.path().join("used")).expect("a folder");
    std::fs::write(folder.path().join("used/result.json"), "{}").expect("a result");
    let options = ["run", "scenario.yaml", "--facts", "new", "--out", "used"];
    let said = muster(folder.path(), &options);
    assert!(said.err.contains("it holds one already"), "{}", said.err);
    let left = std::fs::read_to_string(&facts).expect("it is still there");
    assert_eq!(left, "of an earlier run");
}

/// Message that refuses these arguments, in a folder with a scenario.
fn said_of(arguments: &[&str]) -> String {
    let folder = folder_with(SCENARIO);
    let said = muster(folder.path(), arguments);
    assert_eq!(said.code, 2, "{said:?}");
    said.err
}

#[test]
fn what_is_wrong_with_an_option_is_told_of_the_option() {
    let run = ["run", "scenario.yaml"];
    for (options, what) in [
        (["--set", "fleet.count="], "--> --set\n"),
        (
            ["--seed", "x"],
            "write it as a whole number from 0 to 18446744073709551615",
        ),
    ] {
        let err = said_of(&[&run[..], &options[..]].concat());
        assert!(err.contains(what), "{err}");
        assert!(!err.contains("scenario.yaml"), "{err}");
    }
    let err = said_of(&["gateway", "--behaviour", "dorp: 5"]);
    assert!(err.contains("--> --behaviour\n"), "{err}");
    for option in [["--max-payload", "9"], ["--devices", "list"]] {
        let err = said_of(&[&["gateway"], &option[..]].concat());
        assert!(err.contains(option[0]), "{err}");
        assert!(err.contains("use --dialect hono"), "{err}");
    }
    let err = said_of(&["gateway", "--http", "127.0.0.1:0"]);
    assert!(
        err.contains("use --dialect hono or thingsboard or http"),
        "{err}"
    );
}

#[test]
fn a_run_tells_at_an_interval_how_its_slos_stand() {
    let scenario = "name: brief
platform: { kind: gateway, behaviour: { reject: { code: '0x97', count: 150 } } }
fleet: [ { name: meters, count: 10, streams: [ { rate: 50/s, qos: 1 } ] } ]
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 10s, quiet: 200ms } }
";
    let folder = folder_with(scenario);
    let run = ["run", "scenario.yaml", "--out", "out"];
    let said = muster(folder.path(), &[&run[..], &["--every", "1s"]].concat());
    assert_eq!(said.code, 1, "{said:?}");
    let lines = || said.out.lines().filter(|line| line.contains("| SLOs "));
    assert!((3..=12).contains(&lines().count()), "{}", said.out);
    let failing = "| SLOs failing: failure-ratio 100 % (at most 0 %) | ";
    assert!(lines().any(|line| line.contains(failing)), "{}", said.out);
    for (every, why) in [
        ("10", "without its unit"),
        ("100ms", "shorter than a second"),
    ] {
        let said = muster(folder.path(), &[&run[..], &["--every", every]].concat());
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn a_folder_that_is_no_result_is_told_as_such() {
    let folder = folder_with(SCENARIO);
    let report = |of: &str| muster(folder.path(), &["report", of]).err;
    let err = report(".");
    assert!(err.contains("neither result.json nor windows.bin"), "{err}");
    let err = report("nowhere");
    assert!(err.contains("there is no such folder"), "{err}");
    let repeated = folder.path().join("repeated");
    std::fs::create_dir(&repeated).expect("a folder");
    std::fs::write(repeated.join("repeat.json"), "{}").expect("a file");
    let err = report("repeated");
    assert!(
        err.contains("name one of them, such as repeated/1"),
        "{err}"
    );
}

#[test]
fn a_scenario_that_is_no_text_is_told_as_such() {
    let folder = folder_with(SCENARIO);
    std::fs::write(folder.path().join("scenario.yaml"), b"name: \xff").expect("a file");
    let said = muster(folder.path(), &["run", "scenario.yaml"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("line 1 is no UTF-8 text"), "{}", said.err);
}

#[test]
fn a_place_that_cannot_be_written_is_told_with_the_option_that_names_another() {
    for option in ["--out", "--json", "--facts"] {
        let err = said_of(&["run", "scenario.yaml", option, "scenario.yaml/x"]);
        assert!(err.contains(&format!("with {option})")), "{err}");
    }
}

#[test]
fn a_scheme_that_is_none_is_refused_with_those_that_there_are() {
    let platform = "platform={ kind: mqtt, devices: [ \"opc.tcp://127.0.0.1\" ] }";
    let err = said_of(&["run", "scenario.yaml", "--set", platform]);
    assert!(
        err.contains("`mqtt`, `mqtts`, `ws`, `wss`, `http`, `https`, `coap`, `coaps`"),
        "{err}"
    );
}

#[test]
fn a_variable_that_is_none_is_refused_with_those_that_there_are() {
    let topic = "fleet.streams.topic=a/${nonsense}";
    let err = said_of(&["run", "scenario.yaml", "--set", topic]);
    let known = "known here: ${id}, ${index}, ${tenant}; a column needs a table";
    assert!(err.contains(known), "{err}");
    let payload = "fleet.streams.payload={ template: \"${nonsense}\" }";
    let err = said_of(&["run", "scenario.yaml", "--set", payload]);
    assert!(err.contains("${tenant}, ${seq}, ${due_ms}, "), "{err}");
}

#[test]
fn a_check_names_the_embedded_gateway_and_no_bound_that_is_far() {
    let folder = folder_with(SCENARIO);
    let said = muster(folder.path(), &["check", "scenario.yaml"]);
    assert_eq!(said.code, 0, "{said:?}");
    let towards = "ports towards the embedded gateway (mqtt): ";
    assert!(said.out.contains(towards), "{}", said.out);
    assert!(!said.out.contains("no run can last"), "{}", said.out);
    let long = [
        "check",
        "scenario.yaml",
        "--set",
        "fleet.connect.rate=0.1/d",
    ];
    let said = muster(folder.path(), &long);
    assert_eq!(said.code, 3, "{said:?}");
    let most = "no run can last longer than 12.7 days";
    assert!(said.out.contains(most), "{}", said.out);
}

#[test]
fn evidence_of_before_is_neither_overwritten_nor_mixed() {
    let folder = folder_with(SCENARIO);
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("facts"), "old").expect("it can be written");
    std::fs::create_dir(at("rep")).expect("it can be made");
    std::fs::write(at("rep/repeat.json"), "{}").expect("it can be written");
    for (arguments, wanted) in [
        (
            &["--facts", "facts", "--out", "out"][..],
            "facts holds something already; remove it",
        ),
        (
            &["--facts", "new", "--out", "rep"],
            "it holds `repeat.json`, which is no part of it",
        ),
        (&["--repeat", "2", "--out", "rep"], "it holds `repeat.json`"),
    ] {
        let said = muster(
            folder.path(),
            &[&["run", "scenario.yaml"], arguments].concat(),
        );
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(wanted), "{said:?}");
    }
    let facts = std::fs::read_to_string(at("facts")).expect("it is there");
    assert_eq!(facts, "old");
}

#[test]
fn a_run_that_was_killed_before_it_began_is_called_so() {
    let folder = folder_with("");
    let dead = folder.path().join("dead");
    std::fs::create_dir(&dead).expect("it can be made");
    std::fs::write(dead.join("windows.bin"), "").expect("it can be written");
    let said = muster(folder.path(), &["report", "dead"]);
    assert!(said.err.contains("ended before it began"), "{said:?}");
}

#[test]
fn a_secret_on_the_command_line_is_warned_of() {
    let folder = folder_with(SCENARIO);
    for (value, is_warned) in [("x.token=hunter2", true), ("x.token=${env:NAME}", false)] {
        let said = muster(folder.path(), &["check", "scenario.yaml", "--set", value]);
        assert_eq!(said.err.contains("history"), is_warned, "{said:?}");
    }
}
