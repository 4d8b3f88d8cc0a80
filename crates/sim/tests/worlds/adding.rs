//! Loads that are added while a run goes on: devices that come and go, commands, longer messages, and
//! connects.

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
    let shares: Vec<f64> = numbers.iter().map(|devices| share(*devices)).collect();
    held(&scenario(phase), load, behaviour, &shares)
}

/// A run in which each factor is held for two seconds.
fn held(scenario: &str, load: AddedLoad, behaviour: Behaviour, factors: &[f64]) -> Run {
    let length = Micros::from_secs(4 * factors.len() as u64 + 4);
    let plan = parsed(scenario).adding(length, load).expect("a load");
    let mut world = World::new(plan, behaviour, seed()).expect("a world");
    for (number, factor) in (1..).zip(factors) {
        let begin = Micros::from_secs(4 * number);
        let hold = AddedHold {
            from: begin,
            until: begin + Micros::from_secs(2),
            factor: *factor,
        };
        let before = begin - Micros::from_secs(1);
        if load.dimension == Dimension::Devices {
            world.order_at(before, Order::Activate(hold.factor));
        }
        world.order_at(before, Order::Hold(hold));
    }
    checked(world.run().expect("it ends"))
}

#[test]
fn commands_are_multiplied_while_devices_send_as_stated() {
    let load = AddedLoad {
        dimension: Dimension::Commands,
        first: 0.5,
        most: 2.0,
    };
    let commanded = "
name: commanded
platform: { backend: { filter: \"muster/#\", commands: { rate: 20/s, mode: two-way } } }
fleet: [ { name: pumps, count: 10, streams: [ { name: readings, rate: 30/s }, { kind: command } ] } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 5s, quiet: 500ms } }
";
    let run = held(commanded, load, Behaviour::default(), &[0.5, 1.0, 2.0]);
    assert_eq!(uplink(&run).scheduled, Some(3 * 30 * 2));
    let command = run.summary.run.command.as_ref().expect("commands");
    assert_eq!(command.ledger.scheduled, Some((10 + 20 + 40) * 2));
    assert_eq!(command.ledger.replies_arrived, Some((10 + 20 + 40) * 2));
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

#[test]
fn bytes_of_messages_are_multiplied_while_devices_send_as_stated() {
    let load = AddedLoad {
        dimension: Dimension::Payload,
        first: 0.5,
        most: 2.0,
    };
    let sized = scenario(", payload: { size: 200 }");
    let run = held(&sized, load, Behaviour::default(), &[0.5, 2.0]);
    let ledger = uplink(&run);
    assert_eq!(ledger.scheduled, Some(2 * 80 * 2));
    assert_eq!(ledger.arrivals.arrived, Some(2 * 80 * 2));
    assert_eq!(ledger.session.bytes_payload, 80 * 2 * (100 + 400));
}

#[test]
fn links_are_closed_and_opened_again_at_the_rate_of_a_hold() {
    let load = AddedLoad {
        dimension: Dimension::Connects,
        first: 0.1,
        most: 1.0,
    };
    let run = held(&scenario(""), load, Behaviour::default(), &[0.1, 0.5]);
    let attempts = (10 + 50) * 2;
    let ledger = uplink(&run);
    assert_eq!(ledger.scheduled, Some(attempts));
    assert_eq!(ledger.accepted, attempts);
    let links = &run.summary.run.links;
    assert_eq!(links.connected, u64::from(DEVICES) + attempts);
    assert_eq!(links.disconnects.get("lifetime"), Some(&attempts));
    assert_eq!(links.open_at_end, Some(u64::from(DEVICES)));
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
