//! The project's own scenarios, and the file that shows every key.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use muster_plan::{Plan, PlatformKind, Policy};
use muster_scenario::{NoFiles, Overrides, Problems, Source, not_yet, parse};

fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn plan(name: &str) -> Result<Plan, Problems> {
    let text = text(name);
    parse(Source { name, text: &text }, &Overrides::new(), &NoFiles)
}

#[test]
fn every_scenario_can_run_and_warns_of_nothing() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "complete.yaml" || !name.ends_with(".yaml") {
            continue;
        }
        let plan = plan(&name).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(plan.warnings, [], "{name}");
        assert_eq!(format!("{}.yaml", plan.name), name);
        seen += 1;
    }
    assert!(seen >= 7, "{seen} scenarios");
}

#[test]
fn the_first_scenario_is_short_and_judged_by_what_a_slow_gateway_breaks() {
    let plan = plan("first.yaml").unwrap();
    let seconds = plan.phases.warm_up + plan.phases.measure + plan.phases.settle.quiet;
    assert!(seconds.as_secs_f64() < 8.0);
    assert!(matches!(plan.platform.kind, PlatformKind::Gateway { .. }));
    assert_eq!(plan.backends.len(), 1);
    assert_eq!(plan.devices(), 200);
}

#[test]
fn the_stall_scenarios_differ_in_nothing_but_the_loop() {
    let (open, mut closed) = (
        plan("open-loop-stall.yaml").unwrap(),
        plan("closed-loop-stall.yaml").unwrap(),
    );
    assert_eq!(
        open.fleets[0].streams[0].policy,
        Policy::Queue {
            bound: 1_000,
            in_flight: None
        }
    );
    assert_eq!(closed.fleets[0].streams[0].policy, Policy::Closed);
    closed.fleets[0].streams[0].policy = Policy::Queue {
        bound: 1_000,
        in_flight: None,
    };
    closed.name.clone_from(&open.name);
    closed.resolved.clone_from(&open.resolved);
    assert_eq!(open, closed);
}

#[test]
fn the_complete_file_is_of_the_language_and_all_of_it_is_built() {
    let text = text("complete.yaml");
    let later = not_yet(Source {
        name: "complete.yaml",
        text: &text,
    });
    let later = later.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(later, []);
}
