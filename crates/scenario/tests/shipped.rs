//! The scenarios of the project's folder.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use muster_model::Micros;
use muster_plan::Plan;
use muster_scenario::{Overrides, Reader, Source, needs, parse};

/// No file and no variable.
struct Nothing;

impl Reader for Nothing {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("{path} is not there"))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn plan(file: &Path) -> Plan {
    let text = std::fs::read_to_string(file).unwrap();
    let source = Source {
        name: &file.display().to_string(),
        text: &text,
    };
    parse(source, &Overrides::new(), &Nothing).unwrap_or_else(|problems| panic!("{problems}"))
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
}

#[test]
fn each_is_a_plan_under_its_own_name() {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // Every key at once is no scenario to run.
        .filter(|file| file.file_stem().is_some_and(|name| name != "complete"))
        .collect();
    files.sort();
    assert!(files.len() > 20);
    for file in files {
        assert_eq!(
            Some(plan(&file).name.as_str()),
            file.file_stem().and_then(|name| name.to_str())
        );
    }
}

/// As their comments say: with the address of a real one in place of the gateway.
#[test]
fn the_published_tests_of_thingsboard_are_plans_for_a_real_one() {
    for name in [
        "thingsboard-2019",
        "thingsboard-2019-soak",
        "thingsboard-2026",
        "thingsboard-2026-soak",
    ] {
        let text = std::fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap();
        let gateway = "platform: { kind: gateway, dialect: thingsboard }";
        let platform = r#"{ kind: thingsboard, devices: [ "mqtt://thingsboard:1883" ] }"#;
        let comment = text.replace("\n# ", " ");
        assert!(
            comment.contains(&format!("replace `platform` by `{platform}`")),
            "{text}"
        );
        assert!(text.contains(gateway));
        let text = text.replace(gateway, &format!("platform: {platform}"));
        let source = Source { name, text: &text };
        let plan = parse(source, &Overrides::new(), &Nothing);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(plan.backends.is_empty());
        assert_eq!(plan.warnings, [], "{name}");
    }
}

#[test]
fn the_published_tests_of_hono_have_their_devices_and_rates() {
    for (name, rate) in [("hono-coap-test1", 300.0), ("hono-coap-test2", 600.0)] {
        let plan = plan(&folder().join(format!("{name}.yaml")));
        assert_eq!(plan.devices(), 2_500);
        assert_eq!(plan.phases.measure, Micros::from_secs(15 * 60));
        assert_eq!(needs(&plan).peak.get(), 3.0 * rate, "three classes");
    }
}
