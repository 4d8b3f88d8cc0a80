//! Ends of a link, and the side that was silent.

use std::collections::BTreeMap;

use muster_conduct::{Placement, Progress, RecordingSink, Slice, recorder_plan, schedules};
use muster_device::{Mqtt, Note, SLOT_MAX, Shard, Then};
use muster_measure::Recorder;
use muster_model::{Cause, ConnectFailure, Micros, Reason, RunId};
use muster_scenario::{NoFiles, Overrides, Source, parse};

const SCENARIO: &str = "
name: silent
fleet: [ { name: meters, count: 1, client: { keep-alive: 10s, version: 3.1.1 }, streams: [ { rate: 1/s } ] } ]
phases: { measure: 1s }
";

/// A session of MQTT 3.1.1 is taken.
const CONNACK: &[u8] = &[0x20, 2, 0, 0];

/// One link that came up at T0.
fn connected() -> Shard<Mqtt, RecordingSink> {
    let (shard, _) = connected_as(SCENARIO, CONNACK);
    shard
}

/// The same of any scenario, with the CONNECT that it sent.
fn connected_as(text: &str, connack: &[u8]) -> (Shard<Mqtt, RecordingSink>, Vec<u8>) {
    let (mut shard, link) = opening(text);
    let mut out = Vec::new();
    shard.opened(link, Micros::ZERO, &mut out);
    let connect = std::mem::take(&mut out);
    let _ = shard.received(link, Micros::ZERO, connack, &mut out);
    assert!(shard.links().is_up(link));
    (shard, connect)
}

/// One link whose socket is opening at T0.
fn opening(text: &str) -> (Shard<Mqtt, RecordingSink>, u32) {
    let source = Source {
        name: "silent.yaml",
        text,
    };
    let plan = parse(source, &Overrides::default(), &NoFiles).expect("a scenario");
    let schedules = schedules(&plan).expect("a schedule");
    let recorder = recorder_plan(&plan, RunId(1), &schedules);
    let placement = Placement {
        plan: &plan,
        recorder: &recorder,
        schedules: &schedules,
        run: RunId(1),
        slice: Slice::WHOLE,
        wall_ms_at_t0: 0,
        slot_limit: SLOT_MAX,
    };
    let recording = RecordingSink::new(Recorder::new(recorder.clone()), None);
    let mut shard: Shard<Mqtt, _> = placement.shard(recording).expect("a shard");
    shard.connects_mut().start(Micros::ZERO);
    let link = shard.connects_mut().take(Micros::ZERO).expect("its turn");
    shard.opening(link, Micros::ZERO);
    (shard, link)
}

/// The causes by which links ended that the recorder has.
fn causes(shard: &mut Shard<Mqtt, RecordingSink>, now: Micros) -> BTreeMap<String, u64> {
    let windows = shard.recording().sink().recorder().flush(now);
    let ended = windows.links.values();
    let ended = ended.flat_map(|window| window.counts.disconnects.iter());
    ended.map(|(cause, n)| (cause.to_string(), n)).collect()
}

/// Law: a peer of another protocol, or without one at this path, has refused no link.
#[test]
fn a_link_is_refused_by_a_word_of_the_protocol_alone() {
    for (failure, refused) in [
        (ConnectFailure::Rejected(Reason::Mqtt(0x87)), 1),
        (ConnectFailure::Rejected(Reason::MqttConnack(5)), 1),
        (ConnectFailure::SubscribeRejected(Reason::Mqtt(0x87)), 1),
        (ConnectFailure::UpgradeRefused(401), 1),
        (ConnectFailure::UpgradeRefused(403), 1),
        (ConnectFailure::UpgradeRefused(404), 0),
        (ConnectFailure::UpgradeRefused(502), 0),
        (ConnectFailure::Malformed, 0),
        (ConnectFailure::Unsendable, 0),
        (ConnectFailure::Closed, 0),
        (ConnectFailure::TimedOut, 0),
        (ConnectFailure::GeneratorLimit, 0),
    ] {
        let (mut shard, link) = opening(SCENARIO);
        shard.connect_failed(link, Micros::ZERO, failure);
        let tally = shard.links().counts();
        assert_eq!((tally.failed, tally.refused), (1, refused), "{failure}");
    }
}

#[test]
fn what_waits_on_a_link_that_was_refused_for_good_is_stranded_once_nothing_is_due() {
    let (final_, transient) = (Reason::MqttConnack(5), Reason::MqttConnack(3));
    let rejected = ConnectFailure::Rejected;
    let subscribe = ConnectFailure::SubscribeRejected;
    for (failure, stranded) in [
        (rejected(final_), 1),
        (subscribe(Reason::Mqtt(0x8f)), 1),
        (ConnectFailure::UpgradeRefused(403), 1),
        (rejected(transient), 0),
        (subscribe(Reason::Mqtt(0x97)), 0),
        (ConnectFailure::Closed, 0),
    ] {
        let (mut shard, link) = opening(SCENARIO);
        shard.connect_failed(link, Micros::ZERO, failure);
        shard.traffic_mut().start(Micros::ZERO);
        let end = Micros::from_secs(1);
        assert!(shard.take_due(end).is_some(), "one is due");
        let counts = |shard: &Shard<Mqtt, RecordingSink>| {
            let progress = Progress::of(shard, end);
            (progress.open, progress.stranded)
        };
        assert_eq!(counts(&shard), (1, 0), "{failure}: more may be due");
        shard.traffic_mut().end_due(end);
        assert_eq!(counts(&shard), (1, stranded), "{failure}");
        shard.opening(link, end);
        shard.opened(link, end, &mut Vec::new());
        let _ = shard.received(link, end, CONNACK, &mut Vec::new());
        assert_eq!(counts(&shard), (1, 0), "{failure}: it is up again");
    }
}

#[test]
fn a_link_that_ends_after_our_own_silence_is_no_fault_of_the_platform() {
    let taken_over = Cause::PeerDisconnect(Reason::Mqtt(0x8d));
    for (cause, silent_for, named) in [
        (Cause::PeerClosed, 14, "closed-by-peer"),
        (Cause::PeerClosed, 15, "keep-alive-missed-by-us"),
        (Cause::Reset, 15, "keep-alive-missed-by-us"),
        (taken_over, 14, "disconnect-0x8d"),
        (taken_over, 15, "keep-alive-missed-by-us"),
        (Cause::Malformed, 15, "malformed"),
        (Cause::Network, 15, "network"),
    ] {
        let mut shard = connected();
        let now = Micros::from_secs(silent_for);
        shard.closed(0, now, cause);
        let causes = causes(&mut shard, now);
        assert_eq!(causes, BTreeMap::from([(named.to_owned(), 1)]), "{cause}");
    }
}

/// MQTT 5 sections 3.1.3.2.2 and 3.14.4: a DISCONNECT would delete the will.
#[test]
fn a_link_that_is_lost_abruptly_is_reset_without_a_word_and_leaves_its_will() {
    for (abrupt, then, goodbye) in [
        ("true", Then::Abort, &[][..]),
        ("false", Then::Close, &[0xe0, 0]),
    ] {
        let text = format!(
            "name: lost\nfleet:\n- client: {{ session-expiry: 9s, will: {{ topic: w, payload: gone, delay: 5s }} }}\n  \
             offline: {{ at: 1s, for: 1s, abrupt: {abrupt} }}\n  streams: [ {{ rate: 1/s, count: 1 }} ]\n\
             phases: {{ warm-up: 0s, measure: 5s }}\n"
        );
        let (mut shard, connect) = connected_as(&text, &[0x20, 3, 0, 0, 0]);
        let delay = [24, 0, 0, 0, 5];
        assert!(
            connect.windows(5).any(|bytes| bytes == delay),
            "{connect:x?}"
        );
        shard.traffic_mut().start(Micros::ZERO);
        let now = shard.deadline(0).expect("it leaves");
        assert_eq!(now, Micros::from_secs(1));
        let mut out = Vec::new();
        assert_eq!(shard.timer(0, now, &mut out), then);
        assert_eq!(out, goodbye, "abrupt: {abrupt}");
        let causes = causes(&mut shard, now);
        assert_eq!(causes, BTreeMap::from([("offline".to_owned(), 1)]));
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// Two runs on one broker would take each other's sessions over.
#[test]
fn a_client_id_that_nobody_named_contains_the_run_and_no_topic_does() {
    for (keys, id) in [
        ("", "meters-00000000-00000001"),
        ("client: { id: \"me-${id}\" },", "me-meters-00000000"),
    ] {
        let text = format!(
            "name: t\nplatform: {{ kind: mqtt, devices: [ \"mqtt://127.0.0.1:1883\" ] }}\n\
             fleet: [ {{ name: meters, {keys} streams: [ {{ rate: 1/s }} ] }} ]\nphases: {{ measure: 1s }}\n"
        );
        let (_, connect) = connected_as(&text, &[0x20, 3, 0, 0, 0]);
        let length = u8::try_from(id.len()).expect("it is short");
        assert!(
            contains(&connect, &format!("\0{}{id}", char::from(length))),
            "{connect:x?}"
        );
    }
}

/// Some brokers say nothing to the client whose session another one takes over (MQTT 3.1.1 section 3.1.4).
#[test]
fn a_link_that_the_peer_ends_again_and_again_may_be_taken_over() {
    let named = "client: { id: \"me-${id}\", version: 3.1.1 },";
    let unnamed = "client: { version: 3.1.1 },";
    let told_by = 0x8e;
    let goodbye = |code| Cause::PeerDisconnect(Reason::Mqtt(code));
    for (keys, lasts, ends, told) in [
        (named, 2, &[Cause::PeerClosed; 3][..], true),
        (named, 2, &[Cause::Reset; 3], true),
        (named, 2, &[Cause::PeerClosed; 2], false),
        (named, 6, &[Cause::PeerClosed; 3], false),
        (unnamed, 2, &[Cause::PeerClosed; 3], false),
        (named, 2, &[Cause::Network; 3], false),
        (unnamed, 2, &[goodbye(told_by)], true),
        (unnamed, 2, &[goodbye(0x8b)], false),
    ] {
        let text = format!(
            "name: t\nplatform: {{ kind: mqtt, devices: [ \"mqtt://127.0.0.1:1883\" ] }}\n\
             fleet: [ {{ name: meters, count: 1, {keys} streams: [ {{ rate: 1/s }} ] }} ]\nphases: {{ measure: 1s }}\n"
        );
        let (mut shard, _) = connected_as(&text, CONNACK);
        let mut now = Micros::ZERO;
        for cause in ends {
            now += Micros::from_secs(lasts);
            shard.closed(0, now, *cause);
            now += Micros::from_secs(2);
            shard.opening(0, now);
            shard.opened(0, now, &mut Vec::new());
            let _ = shard.received(0, now, CONNACK, &mut Vec::new());
        }
        let mut notes = shard.recording().refusals().take().into_iter();
        let taken = notes.find_map(|note| {
            if let Note::TakenOver(text) = note {
                return Some(text);
            }
            None
        });
        assert_eq!(
            taken.is_some(),
            told,
            "{keys} {lasts} s {ends:?}: {taken:?}"
        );
        assert!(taken.is_none_or(|text| text.contains("`client.id`")));
        let again = shard.recording().refusals().take();
        assert!(again.is_empty(), "it is told once: {again:?}");
    }
}

/// MQTT 5 section 3.9.3: the server may grant a lower QoS than was asked for.
#[test]
fn a_subscription_at_a_lower_qos_is_told_once_with_both() {
    for (granted, told) in [(1, None), (0, Some("asked for QoS 1 and was granted 0"))] {
        let text = "name: t\nfleet: [ { name: m, count: 1, streams: [ { kind: receive, filter: \"x/#\", qos: 1 }, { name: r, rate: 1/s } ] } ]\n\
                    phases: { measure: 1s }\n";
        let answers = [0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, granted];
        let (mut shard, _) = connected_as(text, &answers);
        let notes = shard.recording().refusals().take();
        match (notes.as_slice(), told) {
            ([], None) => {}
            ([Note::LowerQos(text)], Some(told)) => assert!(text.ends_with(told), "{text}"),
            _ => panic!("{notes:?}"),
        }
        assert!(shard.recording().refusals().take().is_empty());
    }
}
