//! Flags of other load tests become scenarios that run.

use muster_load::{Names, PayloadSpec, Shape, StreamSchedule};
use muster_model::Micros;
use muster_plan::Plan;
use muster_platform::Dialect;
use muster_scenario::{NoFiles, Overrides, Source, parse};

use crate::program::{Said, folder_with, muster};

fn import(flags: &str) -> Said {
    let folder = folder_with("");
    let mut arguments = vec!["import", "sap"];
    arguments.extend(flags.split_whitespace());
    muster(folder.path(), &arguments)
}

fn plan(text: &str) -> Plan {
    let source = Source {
        name: "imported.yaml",
        text,
    };
    let plan = parse(source, &Overrides::new(), &NoFiles);
    plan.unwrap_or_else(|problems| panic!("{problems}"))
}

fn imported(flags: &str) -> Plan {
    let said = import(flags);
    assert_eq!(said.code, 0, "{flags}: {said:?}");
    let plan = plan(&said.out);
    assert_eq!(plan.warnings, [], "{flags}");
    plan
}

#[test]
fn without_flags_it_is_what_the_test_does_without_flags() {
    let plan = imported("");
    assert_eq!(plan.platform.dialect(), Dialect::SapEdge);
    let endpoint = plan.platform.endpoints[0].to_string();
    assert_eq!(endpoint, "mqtt://localhost:61657");
    assert_eq!((plan.devices(), plan.name.as_str()), (1, "sap-1x100"));
    let names = Names::formula("PerfTest_${index}").expect("a formula");
    assert_eq!(plan.fleets[0].names, names);
    let stream = &plan.fleets[0].streams[0];
    assert_eq!(stream.qos as u8, 0);
    assert_eq!(stream.timeout, Micros::from_secs(30));
    assert_eq!(count(&plan), 6_000);
    assert_eq!(plan.phases.warm_up, Micros::ZERO);
    assert_eq!(plan.phases.measure, Micros::from_secs(60));
    assert!(matches!(stream.payload, PayloadSpec::Template(_)));
}

/// Law: each device sends time x rate messages, at its rate.
#[test]
fn every_flag_is_heard_and_the_number_of_messages_is_exact() {
    for (flags, devices, rate, time, wanted) in [
        ("-d 6 -r 2300 -t 180", 6, 2_300, 180, Some((230, 100))),
        ("--devices 10 --rate 1 --time 5", 10, 1, 5, None),
        ("-d2 -r7 -t7", 2, 7, 7, None),
        ("-d 3 -r 33 -t 61", 3, 33, 61, None),
        ("-d 7 -r 25 -t 1", 7, 25, 1, Some((1, 40))),
        ("-d 9 -r 2305 -t 3", 9, 2_305, 3, Some((461, 200))),
        ("-r 999983 -t 2", 1, 999_983, 2, None),
        ("-m 8 -s 5 -d 8 -r 10", 8, 10, 60, None),
    ] {
        let plan = imported(flags);
        assert_eq!(plan.devices(), devices, "{flags}");
        assert_eq!(plan.phases.measure, Micros::from_secs(time), "{flags}");
        assert_eq!(count(&plan), u64::from(devices) * rate * time, "{flags}");
        let shape = &plan.fleets[0].streams[0].schedule.shape;
        let burst = if let Shape::Burst { n, every } = shape {
            Some((*n, every.get() / 1_000))
        } else {
            None
        };
        assert_eq!(burst, wanted, "{flags}");
    }
}

/// Messages that are due in the whole run.
fn count(plan: &Plan) -> u64 {
    let schedule = StreamSchedule::new(plan.fleets[0].streams[0].schedule.clone());
    schedule.expect("a plan can run").count()
}

#[test]
fn host_port_samples_and_processes_are_where_they_belong() {
    let plan = imported("-b gateway.example -p 1883");
    let endpoint = plan.platform.endpoints[0].to_string();
    assert_eq!(endpoint, "mqtt://gateway.example:1883");
    let plan = imported("--host ::1");
    assert_eq!(plan.platform.endpoints[0].to_string(), "mqtt://[::1]:61657");
    let said = import("-s 5 -m 4");
    assert!(said.out.contains("samples: 5"), "{said:?}");
    assert!(said.out.contains("muster run --workers 4"), "{said:?}");
}

#[test]
fn what_that_test_does_not_know_is_refused_with_its_name() {
    for (flags, named) in [
        ("--qos 1", "--qos"),
        ("-q 1", "-q"),
        ("-d 11", "1..=10"),
        ("-d 0", "1..=10"),
        ("-d many", "many"),
        ("-r 0", "--rate"),
        ("-r 1.5", "1.5"),
        ("-s 0", "--samples"),
        ("-t 0", "--time"),
        ("-t -1", "-1"),
        ("-m 9", "1..=8"),
        ("-p 0", "--port"),
        ("-p 65536", "65536"),
        ("-b mqtt://h", "without scheme"),
        ("-b a\"b", "without scheme"),
        ("-r", "--rate"),
        ("-d 1 -d 2", "-d"),
        ("stray", "stray"),
    ] {
        let said = import(flags);
        assert_eq!(said.code, 2, "{flags}: {said:?}");
        assert!(said.err.contains(named), "{flags}: {said:?}");
        assert_eq!(said.out, "", "{flags}");
    }
}

#[test]
fn a_scenario_is_written_once_and_never_over_another() {
    let folder = folder_with("mine");
    let arguments = ["import", "sap", "-d", "2", "--out", "new.yaml"];
    assert_eq!(muster(folder.path(), &arguments).code, 0);
    let text = std::fs::read_to_string(folder.path().join("new.yaml")).expect("written");
    assert_eq!(plan(&text).devices(), 2);
    let said = muster(folder.path(), &arguments);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("new.yaml"), "{said:?}");
    let said = muster(folder.path(), &["import"]);
    assert_eq!(said.code, 2, "{said:?}");
    let said = muster(folder.path(), &["import", "sap", "--help"]);
    assert!(
        said.out.contains("Example: muster import sap -b"),
        "{said:?}"
    );
}

#[test]
fn a_host_may_be_an_address_and_has_no_port() {
    for host in ["::1", "[::1]"] {
        let plan = imported(&format!("-b {host}"));
        let endpoint = plan.platform.endpoints[0].to_string();
        assert_eq!(endpoint, "mqtt://[::1]:61657", "{host}");
    }
    for host in ["h:1883", "[h]", "[::1]:1883"] {
        let said = import(&format!("-b {host}"));
        assert_eq!(said.code, 2, "{host}: {said:?}");
    }
}
