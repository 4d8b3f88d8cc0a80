//! What is said when something is wrong, and what is left behind then.

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
    let options = ["run", "scenario.yaml", "--facts", "facts", "--out", "used"];
    let said = muster(folder.path(), &options);
    assert!(said.err.contains("it holds one already"), "{}", said.err);
    let left = std::fs::read_to_string(&facts).expect("it is still there");
    assert_eq!(left, "of an earlier run");
}
