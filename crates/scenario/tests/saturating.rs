//! The plan of a calibration: the shape of a scenario, without its target, rates and rules.

use muster_load::{Schedule, StreamSchedule};
use muster_model::{Micros, StreamId};
use muster_plan::{Plan, StreamKind};
use muster_scenario::{NoFiles, Overrides, Source, parse, peaks};

fn plan(text: &str) -> Plan {
    let name = "s.yaml";
    let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
    plan.unwrap_or_else(|problems| panic!("{problems}"))
}

fn scenario(address: &str, count: u32, rate: u32) -> Plan {
    plan(&format!(
        r#"
name: at-{rate}
platform: {{ kind: mqtt, devices: [ "mqtt://{address}" ], backend: {{ url: "mqtt://{address}", filter: "m/#", user: u, password: p{rate} }} }}
fleet:
  - name: meters
    count: {count}
    streams:
      - {{ name: often, rate: {rate}/s, qos: 1, topic: "m/${{id}}", payload: {{ size: 64 }} }}
      - {{ name: seldom, rate: 1/s, qos: 0, topic: "m/${{id}}", payload: {{ size: 64 }} }}
phases: {{ measure: {rate}s }}
slo: {{ loss: 0 }}
"#
    ))
}

const TURNS: [StreamId; 2] = [StreamId(0), StreamId(1)];

#[test]
fn scenarios_of_one_shape_become_one_plan_whatever_their_target_and_rates() {
    let one = scenario("broker.example", 5_000, 10).saturating(&TURNS);
    let other = scenario("192.0.2.1:7777", 9_000, 30).saturating(&TURNS);
    assert_eq!(one, other);
    assert!(one.links() <= 1_000, "{}", one.links());
    assert_ne!(one, scenario("broker.example", 10, 10).saturating(&TURNS));
}

#[test]
fn each_stream_has_a_second_in_which_it_alone_sends() {
    let plan = scenario("broker.example", 100, 10).saturating(&TURNS);
    let schedules = plan.uplinks().map(|(_, stream)| {
        let schedule = StreamSchedule::new(stream.schedule.clone());
        schedule.expect("a schedule")
    });
    let schedules: Vec<StreamSchedule> = schedules.collect();
    let due = |stream: usize, second: u64| {
        let at = |second| schedules[stream].count_until(Micros::from_secs(second));
        at(second + 1) - at(second)
    };
    let is_due = |second| [0, 1].map(|stream| due(stream, second) > 0);
    assert_eq!(is_due(0), [true, false]);
    assert_eq!(is_due(1), [true, false]);
    assert_eq!(is_due(2), [false, true]);
    assert_eq!(is_due(3), [false, true]);
    assert_eq!(plan.phases.measure, Micros::from_millis(3_500));
}

const COMMANDED: &str = r#"
name: commanded
platform: { kind: gateway, backend: { commands: { rate: 20/s, mode: two-way } } }
fleet: [ { name: pumps, count: 50, streams: [ { name: readings, rate: 50/s }, { kind: command } ] } ]
phases: { measure: 1s }
"#;

#[test]
fn commands_have_a_turn_in_which_devices_send_nothing() {
    let plan = plan(COMMANDED).saturating(&[StreamId(1)]);
    let due = plan.streams().map(|(_, stream)| {
        let schedule = StreamSchedule::new(stream.schedule.clone()).expect("a schedule");
        schedule.count()
    });
    let due: Vec<u64> = due.collect();
    assert_eq!(due[0], 0);
    assert!(due[1] > 0, "{due:?}");
    assert!(plan.backends.iter().any(|backend| backend.issues_commands));
}

#[test]
fn a_plan_of_attempts_alone_is_one_of_devices_that_can_connect_again() {
    let attempting = plan(COMMANDED).attempting().expect("they can");
    let kinds: Vec<_> = attempting.streams().map(|(_, of)| of.kind).collect();
    assert_eq!(kinds, [StreamKind::Connect]);
    let ends = COMMANDED.replace("count: 50", "count: 50, connect: { lifetime: 10s }");
    assert_eq!(plan(&ends).attempting(), None);
}

#[test]
fn peaks_are_those_of_each_stream() {
    let peaks: Vec<_> = peaks(&scenario("broker.example", 5, 10)).collect();
    assert_eq!(peaks, [(StreamId(0), 10.0), (StreamId(1), 1.0)]);
}
