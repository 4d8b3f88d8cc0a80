//! Actuators against real processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "surroundings/surroundings.rs"]
mod surroundings;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use muster_actuator::{ActuatorError, Site, Wait, open};
use muster_model::Micros;
use muster_net::Clock;
use muster_plan::{ActuatorPlan, Endpoint, InstancePorts, Scheme, Variable};

use surroundings::{LONG, NEVER, site};

/// A limit that is to be reached.
const SHORT: Micros = Micros::from_millis(200);

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

/// The text of a file, once it has that number of lines.
fn text_of_lines(path: &Path, number: usize) -> String {
    let clock = Clock::start();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= number && text.ends_with('\n') {
            return text;
        }
        assert!(clock.now() < LONG, "{number} lines are missing: {text:?}");
        std::thread::yield_now();
    }
}

/// Waits until a process is this program, whole.
fn until_named(pid: &str, name: &str) {
    let clock = Clock::start();
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    while read("comm").trim_end() != name || read("environ").is_empty() {
        assert!(clock.now() < LONG, "{pid} never became `{name}`");
        std::thread::yield_now();
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
    let error = |set: &str, actual: &str, at_most| {
        let folder = tempfile::tempdir().unwrap();
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
fn a_record_of_another_actuator_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let plan = file(folder.path());
    let mut killed = open(&plan, site(folder.path())).unwrap();
    killed.set(5, &Wait::new(LONG, &NEVER)).unwrap();
    drop(killed);
    let another = Site {
        actuator: "another".to_owned(),
        ..site(folder.path())
    };
    let processes = ActuatorPlan::Process {
        command: shell("exec sleep 1000"),
        ports: InstancePorts::Shared,
    };
    for plan in [&plan, &processes] {
        let error = open(plan, another.clone()).err().unwrap();
        assert!(matches!(error, ActuatorError::Another { .. }), "{error}");
    }
    assert!(folder.path().join("target.json").exists());
}

#[test]
fn commands_and_instances_have_the_environment_that_was_set_last() {
    let folder = tempfile::tempdir().unwrap();
    let wait = Wait::new(LONG, &NEVER);
    let cpus = |value: &str| Variable {
        name: "CPUS".to_owned(),
        value: value.to_owned(),
    };
    let commands = ActuatorPlan::Command {
        set: shell("true ${count}"),
        actual: shell("echo $CPUS"),
    };
    let mut actuator = open(&commands, site(folder.path())).unwrap();
    for value in ["3", "5"] {
        actuator.set_environment(&[cpus(value)]);
        assert_eq!(actuator.actual(&wait).unwrap().to_string(), value);
    }
    let started = folder.path().join("started");
    let processes = ActuatorPlan::Process {
        command: shell(&format!(
            "echo $CPUS >>{}; exec sleep 1000",
            started.display()
        )),
        ports: InstancePorts::Shared,
    };
    let mut actuator = open(&processes, site(folder.path())).unwrap();
    for (value, count, lines) in [("3", 1, 1), ("3", 2, 2), ("5", 1, 3)] {
        actuator.set_environment(&[cpus(value)]);
        actuator.set(count, &wait).unwrap();
        let text = text_of_lines(&started, lines);
        assert_eq!(text.lines().last(), Some(value));
    }
}

#[test]
fn instances_that_a_killed_program_left_are_gone_before_others_start() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let plan = ActuatorPlan::Process {
        command: shell(&format!("echo $$ >>{}; exec sleep 1000", pids.display())),
        ports: InstancePorts::Shared,
    };
    let wait = Wait::new(LONG, &NEVER);
    let mut killed = open(&plan, site(folder.path())).unwrap();
    killed.set(2, &wait).unwrap();
    let before = text_of_lines(&pids, 2);
    // A process that becomes another program has no environment for that moment.
    before.lines().for_each(|pid| until_named(pid, "sleep"));
    // A kill runs no destructor.
    std::mem::forget(killed);
    let record = folder.path().join("target.json");
    let written = fs::read_to_string(&record).unwrap();
    // As if the kill had come between the start of the second one and the record of it.
    let cut = written.rfind("},{\"pid\"").unwrap();
    let end = cut + written[cut..].find(']').unwrap();
    let written = format!("{}}}{}", &written[..cut], &written[end..]);
    let written = written.replace("\"is_starting\":false", "\"is_starting\":true");
    fs::write(&record, written).unwrap();
    let next = open(&plan, site(folder.path())).unwrap();
    for pid in before.lines() {
        assert!(!runs(pid), "process {pid} is still there");
    }
    assert!(!record.exists());
    drop(next);
}

/// True unless a process is gone, or waits for this one, its parent, to take note of its end.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_port_that_answers_already_is_not_taken_for_an_instance() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let devices = Endpoint {
        scheme: Scheme::Mqtt,
        host: "127.0.0.1".to_owned(),
        port,
        path: String::new(),
    };
    let taken = Site {
        devices: Some(devices),
        ..site(folder.path())
    };
    for ports in [InstancePorts::Each, InstancePorts::Shared] {
        let plan = ActuatorPlan::Process {
            command: shell("exec sleep 1000"),
            ports,
        };
        let mut actuator = open(&plan, taken.clone()).unwrap();
        let error = actuator.set(1, &Wait::new(LONG, &NEVER)).unwrap_err();
        assert!(error.to_string().contains(&port.to_string()), "{error}");
        assert!(matches!(error, ActuatorError::Taken { .. }), "{error}");
    }
}

#[test]
fn errors_name_the_program_without_its_arguments() {
    for (set, actual) in [
        ("false # hunter2 ${count}", "echo 1"),
        ("true ${count}", "echo warning >&2; echo many # hunter2"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let plan = ActuatorPlan::Command {
            set: shell(set),
            actual: shell(actual),
        };
        let mut actuator = open(&plan, site(folder.path())).unwrap();
        let error = actuator.set(3, &Wait::new(LONG, &NEVER)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`sh`") && !text.contains("hunter2"), "{text}");
        assert!(!text.contains("warning"), "{text}");
    }
}

#[test]
fn a_number_that_cannot_be_read_once_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let tried = folder.path().join("tried");
    let plan = ActuatorPlan::Command {
        set: shell("true ${count}"),
        actual: shell(&format!(
            "echo >>{0}; [ $(wc -l <{0}) != 2 ] && echo 3",
            tried.display()
        )),
    };
    let mut actuator = open(&plan, site(folder.path())).unwrap();
    actuator.set(3, &Wait::new(LONG, &NEVER)).unwrap();
    assert_eq!(fs::read_to_string(&tried).unwrap().len(), 3);
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
