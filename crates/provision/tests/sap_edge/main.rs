//! SAP Edge is told of devices: against the reference gateway, and against peers that are in a bad
//! way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod refusals;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use muster_net::Clock;
use muster_provision::{JOURNAL, ProvisionError, Watch};

use crate::world::World;

/// Stops once so many things are done.
struct Until(u64, AtomicU64);

impl Watch for Until {
    fn progress(&self, done: u64, _of: u64) {
        self.1.fetch_max(done, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

#[test]
fn what_is_created_is_there_and_is_created_once() {
    let world = World::start(20);
    let summary = world.create().unwrap().to_string();
    let all = "capability: 1 created; device: 20 created; sensor type: 1 created";
    assert_eq!(summary, all);
    assert_eq!(world.count("devices"), 20);
    let summary = world.create().unwrap().to_string();
    let none =
        "capability: 1 already there; device: 20 already there; sensor type: 1 already there";
    assert_eq!(summary, none);
    let verified = world.verify().unwrap();
    assert!(verified.is_as_wanted());
    assert_eq!(verified.to_string(), none);
}

#[test]
fn what_is_removed_is_what_was_created() {
    let world = World::start(3);
    world.create().unwrap();
    let more = world.with(8);
    more.create().unwrap();
    let removed = more.remove().unwrap().to_string();
    assert_eq!(removed, "device: 5 removed");
    assert_eq!(world.count("devices"), 3);
    let removed = world.remove().unwrap().to_string();
    let all = "capability: 1 removed; device: 3 removed; sensor type: 1 removed";
    assert_eq!(removed, all);
    for kind in ["devices", "sensorTypes", "capabilities"] {
        assert_eq!(world.count(kind), 0);
    }
    assert_eq!(world.remove().unwrap().to_string(), "nothing");
}

#[test]
fn a_type_that_others_use_is_not_taken_away_and_stays_in_the_record() {
    let world = World::start(2);
    world.create().unwrap();
    let more = world.with(3);
    more.create().unwrap();
    let error = world.remove().unwrap_err().to_string();
    assert!(
        error.contains("status 409") && error.contains("uses it"),
        "{error}"
    );
    assert_eq!(world.count("devices"), 1);
    more.remove().unwrap();
    let removed = world.remove().unwrap().to_string();
    assert_eq!(removed, "capability: 1 removed; sensor type: 1 removed");
}

#[test]
fn what_was_interrupted_is_taken_up_again() {
    let world = World::start(30);
    let until = Until(12, AtomicU64::new(0));
    let error = world.create_watched(&until).unwrap_err();
    assert!(matches!(error, ProvisionError::Interrupted));
    let there = world.count("devices");
    assert!((10..30).contains(&there), "{there}");
    let summary = world.create().unwrap();
    let counts = summary.kinds["device"];
    assert_eq!(counts.already_there, there as u64);
    assert_eq!(counts.created, 30 - there as u64);
    let removed = world.remove().unwrap();
    assert_eq!(removed.kinds["device"].removed, 30);
}

/// A process that is killed between its call and the answer leaves a device that its record calls
/// `creating`: it is ours. One that was there before is in no record.
#[test]
fn a_device_whose_creation_was_cut_off_is_removed_and_no_other() {
    for again in [true, false] {
        let world = World::start(3);
        world.with(1).create().unwrap();
        world.post_device("PerfTest_1");
        world.append(r#"{"did":"creating","kind":"device","key":"PerfTest_1"}"#);
        world.append(r#"{"did":"creating","kind":"device","key":"PerfTest_2"}"#);
        world.append(r#"{"did":"creat"#);
        if again {
            let counts = world.create().unwrap().kinds["device"];
            assert_eq!((counts.created, counts.already_there), (1, 2));
        }
        let counts = world.remove().unwrap().kinds["device"];
        let wanted = if again { (2, 0) } else { (1, 1) };
        assert_eq!((counts.removed, counts.already_gone), wanted);
        assert_eq!(world.count("devices"), 1);
    }
}

#[test]
fn what_is_missing_or_different_is_named() {
    let world = World::start(2);
    world.create().unwrap();
    world.with(1).post_device("PerfTest_2");
    let more = world.with(4);
    world.rename("PerfTest_2");
    let verified = more.verify().unwrap();
    assert!(!verified.is_as_wanted());
    let counts = verified.kinds["device"];
    let counts = (counts.already_there, counts.different, counts.missing);
    assert_eq!(counts, (2, 1, 1));
    let mut wrong = verified.wrong;
    wrong.sort();
    let differs = r#"the device `PerfTest_2` differs: `name` is "other", wanted "PerfTest_2""#;
    assert_eq!(wrong, [differs, "the device `PerfTest_3` is not there"]);
    let nothing = World::start(1).verify().unwrap();
    assert_eq!(nothing.wrong.len(), 3);
}

#[test]
fn a_device_that_is_there_with_another_content_is_a_conflict() {
    let world = World::start(2);
    world.create().unwrap();
    world.with(1).post_device("PerfTest_2");
    world.rename("PerfTest_2");
    let error = world.with(3).create().unwrap_err().to_string();
    let wanted = r#"the device `PerfTest_2` is there already and differs: `name` is "other""#;
    assert!(error.contains(wanted), "{error}");
    assert!(
        error.contains(&world.url) && error.contains("remove it there"),
        "{error}"
    );
}

#[test]
fn calls_are_no_faster_than_their_rate() {
    let world = World::start(8).keys("rate: 100/s, pending: 8");
    let clock = Clock::start();
    world.create().unwrap();
    // One to find the gateway, and two for each thing: to look for it and to create it.
    let calls = 1 + 2 * 10;
    assert!(clock.now().get() >= (calls - 1) * 10_000);
}

#[test]
fn the_record_is_in_the_folder_and_holds_no_token() {
    let world = World::start(1);
    world.create().unwrap();
    let text = std::fs::read_to_string(world.folder().join(JOURNAL)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert_eq!(lines[0], format!(r#"{{"target":"{}/api/v1"}}"#, world.url));
    assert_eq!(
        lines[5],
        r#"{"did":"creating","kind":"device","key":"PerfTest_0"}"#
    );
    assert_eq!(
        lines[6],
        r#"{"did":"created","kind":"device","key":"PerfTest_0","id":"3"}"#
    );
    assert!(!text.contains(world::TOKEN));
}
