//! Actuators against real processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use muster_actuator::{ActuatorError, Site, Wait, open};
use muster_model::Micros;
use muster_plan::{ActuatorPlan, InstancePorts};

/// A generous limit: only a hang reaches it.
const LONG: Micros = Micros::from_secs(60);
/// A limit that is to be reached.
const SHORT: Micros = Micros::from_millis(200);

static NEVER: AtomicBool = AtomicBool::new(false);

fn site(folder: &Path) -> Site {
    Site {
        devices: None,
        program: "muster".into(),
        folder: folder.to_owned(),
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Commands that keep the number in a file, which has 2 at first.
fn file(folder: &Path) -> ActuatorPlan {
    let at = folder.join("count");
    fs::write(&at, "2\n").unwrap();
    ActuatorPlan::Command {
        set: shell(&format!("echo ${{count}} >{}", at.display())),
        actual: shell(&format!("cat {}", at.display())),
    }
}

#[test]
fn commands_set_read_and_restore_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let plan = file(folder.path());
    let wait = Wait::new(LONG, &NEVER);
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    actuator.set(5, &wait).unwrap();
    assert_eq!(actuator.actual(&wait).unwrap(), 5);
    actuator.restore(&wait).unwrap();
    assert_eq!(actuator.actual(&wait).unwrap(), 2);
    assert!(!folder.path().join("target.json").exists());
}

#[test]
fn the_first_number_outlives_a_program_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = file(folder.path());
    let wait = Wait::new(LONG, &NEVER);
    let mut killed = open(&plan, site(folder.path())).unwrap();
    killed.set(5, &wait).unwrap();
    drop(killed);
    let mut next = open(&plan, site(folder.path())).unwrap();
    next.set(6, &wait).unwrap();
    next.restore(&wait).unwrap();
    assert_eq!(next.actual(&wait).unwrap(), 2);
}

#[test]
fn a_target_that_does_not_follow_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ActuatorPlan::Command {
        set: shell("true ${count}"),
        actual: shell("echo 1"),
    };
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    let error = actuator.set(3, &Wait::new(SHORT, &NEVER)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("set 3 instances: 1 are ready"), "{text}");
}

#[test]
fn a_command_that_fails_hangs_or_prints_no_number_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |set: &str, actual: &str, at_most| {
        let plan = ActuatorPlan::Command {
            set: shell(set),
            actual: shell(actual),
        };
        let mut actuator = open(&plan, site(folder.path())).unwrap();
        let error = actuator.set(3, &Wait::new(at_most, &NEVER)).unwrap_err();
        error.to_string()
    };
    let failed = error(
        "echo no such cluster >&2; exit 7 # ${count}",
        "echo 1",
        LONG,
    );
    assert!(failed.contains("code 7: no such cluster"), "{failed}");
    let hung = error("sleep 1000 # ${count}", "echo 1", SHORT);
    assert!(hung.contains("no exit after"), "{hung}");
    let words = error("true ${count}", "echo many", LONG);
    assert!(words.contains("printed `many`"), "{words}");
}

#[test]
fn processes_come_and_go_with_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "touch {}/started-${{index}}; exec sleep 1000",
        folder.path().display()
    );
    let plan = ActuatorPlan::Process {
        command: shell(&script),
        ports: InstancePorts::Shared,
    };
    let wait = Wait::new(LONG, &NEVER);
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    actuator.set(3, &wait).unwrap();
    assert_eq!(actuator.actual(&wait).unwrap(), 3);
    actuator.set(1, &wait).unwrap();
    assert_eq!(actuator.actual(&wait).unwrap(), 1);
    assert!(folder.path().join("target.json").exists());
    actuator.restore(&wait).unwrap();
    assert_eq!(actuator.actual(&wait).unwrap(), 0);
    assert!(!folder.path().join("target.json").exists());
}

#[test]
fn an_instance_that_ends_is_named_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ActuatorPlan::Process {
        command: shell("echo the port is taken; exit 2"),
        ports: InstancePorts::Shared,
    };
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    let wait = Wait::new(LONG, &NEVER);
    // It may be seen while it still runs.
    let error = actuator.set(1, &wait).and_then(|()| {
        loop {
            actuator.actual(&wait)?;
        }
    });
    let error = error.map(|_: u32| ()).unwrap_err().to_string();
    assert!(
        error.contains("instance 0") && error.contains("the port is taken"),
        "{error}"
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ActuatorPlan::Process {
        command: vec!["/no/such/program".to_owned()],
        ports: InstancePorts::Shared,
    };
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    let error = actuator.set(1, &Wait::new(LONG, &NEVER)).unwrap_err();
    assert!(matches!(error, ActuatorError::Start { .. }), "{error}");
}

#[test]
fn a_wait_ends_once_the_user_asks() {
    static ASKED: AtomicBool = AtomicBool::new(true);
    let folder = tempfile::tempdir().unwrap();
    let plan = ActuatorPlan::Command {
        set: shell("sleep 1000 # ${count}"),
        actual: shell("sleep 1000"),
    };
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    let error = actuator.set(3, &Wait::new(LONG, &ASKED)).unwrap_err();
    assert!(matches!(error, ActuatorError::Interrupted), "{error}");
}
