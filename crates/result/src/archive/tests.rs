//! Archives made by hand.

use muster_conduct::{Part, Slice};
use muster_measure::{ArrivalWindow, LinkWindow, Phase, State, UplinkWindow, WindowKey};
use muster_model::{BackendId, Cause, FleetId, Listening, RunId, StreamId};
use muster_plan::Plan;
use muster_scenario::{NoFiles, Overrides, Reader, Source, parse};

use super::*;

const TEXT: &str = "name: parts
platform: { kind: mqtt, devices: [ \"mqtt://a\" ], backend: { url: \"mqtt://a\", filter: \"muster/#\" } }
fleet: [ { name: meters, count: 10, streams: [ { name: readings, rate: 100/s, qos: 1 } ] } ]
phases: { warm-up: 0s, measure: 10s }
slo: { end-to-end: { p99: \"<= 1s\" } }
";

fn scenario(text: &str) -> Plan {
    let source = Source {
        name: "parts.yaml",
        text,
    };
    parse(source, &Overrides::new(), &NoFiles).expect("a scenario")
}

/// An environment with one variable.
struct Environment;

impl Reader for Environment {
    fn file(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| "hunter2".to_owned())
    }
}

#[test]
fn what_the_environment_holds_is_not_written_with_messages_wills_and_client_ids() {
    let text = r#"
name: x
platform: { kind: mqtt, devices: "mqtt://a" }
fleet:
  - name: a
    client: { id: "${env:KEY}-${index}", will: { topic: w, payload: "${env:KEY}" } }
    credential: { kind: password, secret: "${env:KEY}" }
    streams: [ { rate: 1/s, payload: { template: '{"k":"${env:KEY}","s":"${stamp}"}' } }, { name: b, rate: 1/s } ]
"#;
    let source = Source {
        name: "x.yaml",
        text,
    };
    let plan = parse(source, &Overrides::new(), &Environment).expect("a scenario");
    let written = |plan: &Plan| String::from_utf8_lossy(&encoded(plan)).contains("hunter2");
    assert!(written(&plan));
    let kept = Header::for_disk(plan.clone());
    assert!(!written(&kept), "{kept:?}");
    let second = |plan: &Plan| plan.fleets[0].streams[1].payload.clone();
    assert_eq!(second(&kept), second(&plan), "what refers to nothing stays");
}

fn archive(plan: Plan, windows: WindowDelta) -> Archive {
    let header = Header {
        muster: "0.1.0".to_owned(),
        resolved_sha256: Header::digest(&plan),
        plan,
        run: RunId(1),
        part: Part::WHOLE,
        scenario_sha256: String::new(),
        started: String::new(),
        environment: "{}".to_owned(),
        co_located: false,
        clocks: Vec::new(),
    };
    Archive {
        windows,
        timeline: Timeline::starting(Micros::ZERO, Micros::ZERO, Micros::from_secs(10)),
        ..Archive::new(header)
    }
}

fn measured(second: u32) -> WindowKey {
    WindowKey {
        second,
        phase: Phase::Measure,
        cold: false,
    }
}

fn part(index: u32, clock: &str) -> Archive {
    let mut windows = WindowDelta::default();
    let mut arrivals = ArrivalWindow {
        arrived: 1_000,
        arrived_due: 1_000,
        ..ArrivalWindow::default()
    };
    arrivals.end_to_end.record_n(Micros(500), 1_000);
    let place = (BackendId(0), StreamId(0), measured(3));
    windows.arrivals.insert(place, arrivals);
    windows.until = Micros::from_secs(10);
    let mut part = archive(scenario(TEXT), windows);
    part.header.part = Part::of(Slice { index, of: 2 });
    part.header.clocks.push(clock.to_owned());
    part
}

fn merged(clocks: [&str; 2]) -> Archive {
    let mut whole = part(0, clocks[0]);
    whole.merge(part(1, clocks[1])).expect("two parts of a run");
    whole.header.part = Part::WHOLE;
    whole
}

#[test]
fn parts_of_one_host_know_when_their_messages_arrived() {
    let whole = merged(["box (1)", "box (1)"]);
    let report = whole.report().expect("a report");
    let end_to_end = report.latency.end_to_end.expect("it is known");
    assert_eq!(end_to_end.count, 2_000);
    assert!(
        report
            .events
            .iter()
            .all(|event| event.kind != "clocks-apart")
    );
}

#[test]
fn parts_of_two_hosts_do_not_and_say_so() {
    let whole = merged(["box (1)", "other (2)"]);
    let report = whole.report().expect("a report");
    assert_eq!(report.latency.end_to_end, None);
    let told = report
        .events
        .iter()
        .find(|event| event.kind == "clocks-apart");
    let told = &told.expect("it is an event").detail;
    assert!(
        told.contains("2 hosts") && told.contains("box (1), other (2)"),
        "{told}"
    );
    let windows = report.windows.iter();
    assert!(
        windows
            .clone()
            .all(|window| window.end_to_end.p50_us.is_none())
    );
    assert_eq!(
        windows
            .map(|window| window.arrived.unwrap_or(0))
            .sum::<u64>(),
        2_000
    );
}

#[test]
fn copies_that_came_before_they_were_due_tell_by_how_much_clocks_are_apart_at_least() {
    let told = |early_us: u64| {
        let mut consumers = part(1, "other (2)");
        for window in consumers.windows.arrivals.values_mut() {
            window.early = Micros(early_us);
        }
        let mut whole = part(0, "box (1)");
        whole.merge(consumers).expect("two parts of a run");
        whole.header.part = Part::WHOLE;
        let events = whole.report().expect("a report").events.into_iter();
        let apart = events.filter(|event| event.kind == "clocks-apart");
        apart.map(|event| event.detail).collect::<Vec<_>>()
    };
    let apart = told(12_000);
    assert_eq!(apart.len(), 2, "{apart:?}");
    assert!(apart[1].contains("seen up to 12 ms before"), "{apart:?}");
    assert_eq!(told(0).len(), 1, "two hosts");
}

#[test]
fn what_was_heard_ends_with_the_first_consumer_that_left() {
    let heard = |until| Listening::until(Micros::from_secs(until));
    let footer = |end, until: Option<u64>, devices: Option<u64>| Footer {
        health: GeneratorHealth::default(),
        afterlives: Vec::new(),
        end: Micros::from_secs(end),
        listening: until.map(heard),
        devices_until: devices.map(Micros::from_secs),
        ending: Ending::Planned,
        stop: None,
        target: NotedTarget::default(),
    };
    for (mine, theirs, until) in [
        (Some(20), Some(25), Some(20)),
        (None, Some(25), Some(25)),
        (None, None, None),
    ] {
        let both = footer(20, mine, theirs).merged(footer(25, theirs, mine));
        let devices = mine.into_iter().chain(theirs).min();
        assert_eq!(both.devices_until, devices.map(Micros::from_secs));
        assert_eq!(both.listening, until.map(heard));
        assert_eq!(both.end, Micros::from_secs(25));
    }
}

const TWO_STREAMS: &str = "name: two
platform: { kind: mqtt, devices: [ \"mqtt://a\" ], backend: { url: \"mqtt://a\", filter: \"muster/#\" } }
fleet:
  - name: meters
    count: 10
    streams: [ { name: readings, rate: 1000/s, qos: 0 }, { name: events, rate: 40/s, qos: 1 } ]
phases: { warm-up: 0s, measure: 10s }
";

/// Ten seconds of both streams: of those at QoS 0 so many arrive, of those at QoS 1 so many are
/// accepted and arrive.
fn two_streams(unacknowledged: u64, accepted: u64) -> Vec<String> {
    let mut windows = WindowDelta::default();
    for second in 0..10 {
        for (stream, sent, state, arrived) in [
            (0, 1_000, State::Unacknowledged, unacknowledged),
            (1, 40, State::Accepted, accepted),
        ] {
            let mut uplink = UplinkWindow::default();
            uplink.flow.sent = sent;
            uplink.flow.ended[state.index()] = if stream == 0 { sent } else { accepted };
            let key = (StreamId(stream), measured(second));
            windows.uplinks.insert(key, uplink);
            let arrivals = ArrivalWindow {
                arrived,
                ..ArrivalWindow::default()
            };
            let key = (BackendId(0), StreamId(stream), measured(second));
            windows.arrivals.insert(key, arrivals);
        }
    }
    windows.until = Micros::from_secs(10);
    let report = archive(scenario(TWO_STREAMS), windows).report();
    let events = report.expect("a report").events;
    let kinds = events.into_iter().map(|event| event.kind);
    kinds.filter(|kind| kind.starts_with("no-")).collect()
}

#[test]
fn messages_without_an_answer_by_design_are_not_missed_and_their_arrivals_are() {
    assert_eq!(two_streams(1_000, 40), [""; 0]);
    assert_eq!(two_streams(1_000, 1), ["no-answer"]);
    assert_eq!(two_streams(0, 40), ["no-arrival"]);
}

/// Ten seconds of a hundred messages due, each of ten links up but for `down` of them from second 3 on. In seconds
/// 3 to 6 nothing is sent; before, `answered` of each hundred sent are refused in the second in which they are sent.
fn without_sending(answered: u64, down: u64) -> Vec<String> {
    let mut windows = WindowDelta::default();
    for second in 0..10 {
        let sent = if (3..7).contains(&second) { 0 } else { 100 };
        let mut uplink = UplinkWindow::default();
        uplink.flow.sent = sent;
        uplink.flow.ended[State::Rejected.index()] = if second < 3 { answered } else { sent };
        uplink.flow.ended[State::Shed.index()] = 100 - sent;
        windows
            .uplinks
            .insert((StreamId(0), measured(second)), uplink);
    }
    let mut links = LinkWindow::default();
    links.counts.connected = 10;
    windows.links.insert((FleetId(0), measured(0)), links);
    let mut links = LinkWindow::default();
    links.counts.disconnects.add(Cause::Reset, down);
    windows.links.insert((FleetId(0), measured(3)), links);
    let mut links = LinkWindow::default();
    links.counts.connected = down;
    windows.links.insert((FleetId(0), measured(7)), links);
    windows.until = Micros::from_secs(10);
    let report = archive(scenario(TEXT), windows).report();
    let events = report.expect("a report").events.into_iter();
    let events = events.filter(|event| event.kind == "no-answer");
    let times = events.map(|event| format!("{}-{:?}", event.t_s, event.until_s));
    times.collect()
}

#[test]
fn a_device_that_was_asked_to_wait_misses_no_answer() {
    assert_eq!(without_sending(100, 0), [""; 0]);
    let from_3_to_7 = ["3-Some(7.0)"];
    assert_eq!(without_sending(90, 0), from_3_to_7, "some wait for theirs");
    assert_eq!(without_sending(100, 10), from_3_to_7, "no link is up");
}

#[test]
fn the_hash_of_the_plan_is_of_its_rules_and_load_and_not_of_labels_or_secrets() {
    let text = |slo: &str, seed: u32, more: &str| {
        let text = format!("seed: {seed}\n{}{more}", TEXT.replace("<= 1s", slo));
        Header::digest(&scenario(&text))
    };
    let plain = text("<= 1s", 1, "");
    assert_eq!(plain, text("<= 1s", 1, "labels: { site: north }\n"));
    assert_ne!(plain, text("<= 2s", 1, ""), "a threshold was moved");
    assert_ne!(plain, text("<= 1s", 2, ""), "another seed");
    assert_ne!(plain, text("<= 1s", 1, "cold: { first-message: true }\n"));
}

#[test]
fn a_part_that_never_began_is_named() {
    let mut whole = part(0, "box (1)");
    let mut other = part(1, "box (1)");
    other.timeline = Timeline::CONNECTING;
    let refused = whole
        .merge(other)
        .expect_err("there is no whole")
        .to_string();
    assert!(
        refused.contains("part 2 of 2 never had a message due"),
        "{refused}"
    );
}

#[test]
fn a_whole_is_co_located_if_a_part_is() {
    let mut whole = part(0, "box (1)");
    let mut other = part(1, "other (2)");
    (whole.header.co_located, other.header.co_located) = (false, true);
    whole.merge(other).expect("two parts of a run");
    assert!(whole.header.co_located);
}

#[test]
fn parts_of_different_scenarios_are_not_merged() {
    let mut whole = part(0, "box (1)");
    let mut other = part(1, "box (1)");
    other.header.resolved_sha256 = "another".to_owned();
    let refused = whole.merge(other).expect_err("they differ");
    assert!(
        refused.to_string().contains("--set and --seed"),
        "{refused}"
    );
}
