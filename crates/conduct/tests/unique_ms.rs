//! Named payloads of a whole plan: no two messages of a device have one `ts`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use muster_conduct::{directory, uplink};
use muster_load::{Schedule, StreamSchedule};
use muster_model::{MessageId, Micros, RunId};
use muster_plan::Plan;
use muster_platform::UplinkScratch;
use muster_scenario::{NoFiles, Overrides, Source, parse};

const T0_MS: u64 = 1_600_000_000_000;

fn plan(streams: &str) -> Plan {
    let text = format!(
        "name: t\nplatform: {{ kind: thingsboard, devices: [ 'mqtt://h:1883' ] }}\n\
         fleet: [ {{ count: 7, streams: [ {streams} ] }} ]\nphases: {{ warm-up: 1s, measure: 4s }}\n"
    );
    let source = Source {
        name: "t.yaml",
        text: &text,
    };
    parse(source, &Overrides::new(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The `ts` of each message less its due millisecond, by device and `ts`.
fn offsets(streams: &str) -> BTreeMap<(u32, u64), u64> {
    let plan = plan(streams);
    let fleet = &plan.fleets[0];
    let directory = directory(&plan, fleet, T0_MS);
    let (mut all, mut count) = (BTreeMap::new(), 0);
    for stream in &fleet.streams {
        let (uplink, mut scratch) = (uplink(stream).unwrap(), UplinkScratch::default());
        let schedule = StreamSchedule::new(stream.schedule.clone()).unwrap();
        for n in 0..schedule.count() {
            let (device, seq) = schedule.owner(n);
            let id = MessageId {
                run: RunId(1),
                device,
                stream: stream.id,
                seq,
            };
            let due = schedule.due(n).unwrap() + Micros(3_456_789);
            uplink.render(&directory, &id, due, &mut scratch);
            let text = std::str::from_utf8(&scratch.payload).unwrap();
            let (_, rest) = text.split_once("\"ts\":").unwrap();
            let ts: u64 = rest.split(',').next().unwrap().parse().unwrap();
            all.insert((device.0, ts), ts.abs_diff(T0_MS + due.get() / 1_000));
            count += 1;
        }
    }
    assert_eq!(all.len(), count, "{streams}: some share a `ts`");
    all
}

#[test]
fn no_two_messages_of_a_device_share_a_ts() {
    let burst = "shape: { burst: { n: 5, every: 500ms } }";
    for streams in [
        format!("{{ {burst}, payload: smart-meter }}"),
        format!("{{ {burst}, phase: together, payload: random-mix, carrier: none }}"),
        format!("{{ {burst}, payload: {{ industrial-plc: {{ datapoints: 2 }} }} }}"),
        "{ rate: 7000/s, payload: smart-meter }".to_owned(),
        "{ rate: 700/s, shape: { poisson: true }, payload: smart-meter }".to_owned(),
        "{ rate: 70/s, shape: { spike: { to: 5000/s, at: 1s, for: 1s } } }".to_owned(),
        format!("{{ name: a, {burst} }}, {{ name: b, {burst} }}, {{ name: c, rate: 700/s }}"),
    ] {
        let offsets = offsets(&streams);
        assert!(offsets.values().all(|it| *it < 30), "{streams}");
    }
    offsets("{ rate: 20000/s, payload: smart-meter }");
}

#[test]
fn the_ts_of_a_burst_is_due_and_place() {
    let offsets = offsets("{ shape: { burst: { n: 5, every: 1s } }, count: 10 }");
    let first = offsets.range((0, 0)..(1, 0)).map(|(_, offset)| *offset);
    assert_eq!(first.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}
