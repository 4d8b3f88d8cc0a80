//! Loads that are added while a run goes on: devices that come and go.

use muster_conduct::Order;
use muster_load::AddedHold;
use muster_model::{Dimension, Micros};
use muster_plan::AddedLoad;
use muster_sim::{Behaviour, Run, World};
use proptest::prelude::*;

use crate::laws::{checked, config, parsed, seed, shares, uplink};

const DEVICES: u32 = 20;

/// Twenty devices of 4 messages a second each.
fn scenario(phase: &str) -> String {
    format!(
        "
name: joining
fleet:
  - name: meters
    count: {DEVICES}
    connect: {{ rate: 100/s }}
    streams: [ {{ name: readings, rate: 80/s, qos: 1, timeout: 1s{phase} }} ]
phases: {{ warm-up: 0s, measure: 1s, settle: {{ at-most: 5s, quiet: 500ms }} }}
"
    )
}

/// A run in which each number of devices sends for two seconds, and is connected a second before.
fn run(phase: &str, behaviour: Behaviour, numbers: &[u32]) -> Run {
    let share = |devices: u32| f64::from(devices) / f64::from(DEVICES);
    let load = AddedLoad {
        dimension: Dimension::Devices,
        first: share(numbers[0]),
        most: 1.0,
    };
    let length = Micros::from_secs(4 * numbers.len() as u64 + 4);
    let plan = parsed(&scenario(phase))
        .adding(length, load)
        .expect("a load");
    let mut world = World::new(plan, behaviour, seed()).expect("a world");
    for (number, devices) in (1..).zip(numbers) {
        let begin = Micros::from_secs(4 * number);
        let hold = AddedHold {
            from: begin,
            until: begin + Micros::from_secs(2),
            factor: share(*devices),
        };
        let before = begin - Micros::from_secs(1);
        world.order_at(before, Order::Activate(hold.factor));
        world.order_at(before, Order::Hold(hold));
    }
    checked(world.run().expect("it ends"))
}

#[test]
fn devices_come_and_go_without_a_reconnect_of_the_others() {
    for phase in ["", ", phase: even", ", phase: hash"] {
        let run = run(phase, Behaviour::default(), &[5, 15, 10]);
        let ledger = uplink(&run);
        assert_eq!(ledger.scheduled, Some((5 + 15 + 10) * 4 * 2));
        assert_eq!(ledger.accepted, (5 + 15 + 10) * 4 * 2, "{phase}");
        let links = &run.summary.run.links;
        assert_eq!(links.connected, 5 + 10, "{phase}");
        assert_eq!(links.disconnects.values().sum::<u64>(), 5, "{phase}");
        assert_eq!(links.open_at_end, Some(10), "{phase}");
    }
}

proptest! {
    #![proptest_config(config())]

    /// Law: whatever the numbers and the platform, each message of a device that takes part ends once.
    #[test]
    fn messages_of_devices_that_come_and_go_end_once(
        numbers in prop::collection::vec(1..=DEVICES, 1..5),
        (drop, reject) in (shares(), shares()),
    ) {
        let behaviour = Behaviour { drop, reject, ..Behaviour::default() };
        let run = run("", behaviour, &numbers);
        let wanted: u64 = numbers.iter().map(|devices| u64::from(*devices) * 8).sum();
        prop_assert_eq!(uplink(&run).scheduled, Some(wanted));
    }
}
