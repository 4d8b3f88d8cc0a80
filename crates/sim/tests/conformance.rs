//! What every dialect keeps to. A dialect that stands in [`Dialect::ALL`] is tested here without
//! another line: each of its messages is encoded, heard by its own server end, answered, read
//! back and accounted, and so it is under each misbehaviour of a model platform.

use muster_conduct::{roster, uplink};
use muster_measure::Ledger;
use muster_model::{DeviceId, MessageId, Micros, RunId};
use muster_platform::{ApplicationId, Dialect, Downlink, Heard, Reply, UplinkScratch};
use muster_protocol::mqtt::topic;
use muster_scenario::{Ack, NoFiles, Overrides, Plan, Source, parse};
use muster_sim::{Behaviour, Incident, Run, What, World};

/// What 12 devices with two streams send in 4 s.
const MESSAGES: u64 = 480;

/// A scenario that leaves everything to the dialect's defaults.
fn plan(dialect: Dialect) -> Plan {
    plan_of(dialect, "")
}

/// The same, with further keys of the fleet.
fn plan_of(dialect: Dialect, fleet: &str) -> Plan {
    let text = format!(
        "
name: conformance
platform: {{ kind: gateway, dialect: {dialect} }}
fleet: [{{ {fleet} count: 12, reconnect: {{ min: 100ms, max: 1s }},
  streams: [ {{ name: one, rate: 60/s, timeout: 2s }}, {{ name: two, rate: 60/s, timeout: 2s }} ] }}]
phases: {{ warm-up: 1s, measure: 3s, settle: {{ at-most: 40s, quiet: 500ms }} }}
"
    );
    let source = Source {
        name: "conformance.yaml",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

fn is_acknowledged(plan: &Plan) -> bool {
    plan.fleets[0].streams[0].ack == Ack::Application
}

#[test]
fn a_message_is_heard_by_the_server_end_and_its_acknowledgement_finds_it() {
    for dialect in Dialect::ALL {
        let plan = plan(dialect);
        for (lane, stream) in (0u8..).zip(&plan.fleets[0].streams) {
            if stream.ack != Ack::Application {
                continue;
            }
            let uplink = uplink(stream).expect("the payload is possible");
            let roster = roster(&plan, &plan.fleets[0], 1_600_000_000_000);
            let mut scratch = UplinkScratch::default();
            for (device, seq) in [(0, 0), (11, 9), (3, 1_000_000)] {
                let id = MessageId {
                    run: RunId(1),
                    device: DeviceId(device),
                    stream: stream.id,
                    seq,
                };
                uplink.render(&roster, &id, Micros::from_secs(1), &mut scratch);
                let expected = ApplicationId { lane, seq };
                acknowledged(
                    dialect,
                    &roster_name(&roster, id.device),
                    &scratch,
                    expected,
                );
            }
        }
    }
}

fn roster_name(roster: &muster_platform::Roster, device: DeviceId) -> String {
    let mut name = String::new();
    roster.render_name(device, &mut name);
    name
}

/// The server end's yes and no to the message in `scratch`, as the device reads them.
fn acknowledged(dialect: Dialect, name: &str, scratch: &UplinkScratch, expected: ApplicationId) {
    let heard = dialect.hear(name, scratch.topic(), &scratch.payload);
    let Heard::Message { device, id } = heard else {
        panic!("{dialect}: {heard:?}");
    };
    assert_eq!(device, name, "{dialect}");
    assert!(id.is_some(), "{dialect}: a message has an id");
    for code in [dialect.acceptance(), dialect.refusal()] {
        let (mut topic, mut payload) = (String::new(), Vec::new());
        dialect.write_acknowledgement_topic(device, &mut topic);
        // The second of a batch is read too.
        let replies = [Reply { id: None, code }, Reply { id, code }];
        dialect.write_acknowledgement(replies.into_iter(), &mut payload);
        let mut filter = String::new();
        let is_subscribed = dialect.subscriptions().iter().any(|subscription| {
            subscription.render(name, &mut filter);
            topic::matches(&filter, &topic)
        });
        assert!(is_subscribed, "{dialect}: nobody listens on {topic}");
        let Downlink::Acknowledgements(mut array) = dialect.downlink(&topic, &payload) else {
            panic!("{dialect}: no acknowledgement on {topic}");
        };
        let second = array
            .nth(1)
            .expect("there are two")
            .expect("it is readable");
        assert_eq!(
            (second.id, second.code),
            (Some(expected), code),
            "{dialect}"
        );
        assert_eq!(second.is_accepted, !dialect.is_refusal(code), "{dialect}");
        assert!(array.next().is_none(), "{dialect}");
    }
}

#[test]
fn a_downlink_of_any_bytes_is_survived() {
    let damaged = [
        "",
        "[",
        "{}",
        "[{\"id\":",
        "null",
        "\u{0}",
        "[[[[[[[[",
        "\"\\",
    ];
    for dialect in Dialect::ALL {
        let mut topics = vec!["unheard/of".to_owned()];
        for subscription in dialect.subscriptions() {
            let mut filter = String::new();
            subscription.render("d", &mut filter);
            topics.push(filter.replace('+', "1"));
        }
        for (topic, payload) in topics.iter().flat_map(|t| damaged.map(|p| (t, p))) {
            if let Downlink::Acknowledgements(array) = dialect.downlink(topic, payload.as_bytes()) {
                assert!(array.take(1_000).count() < 1_000);
            }
            let _ = dialect.hear("d", topic, payload.as_bytes());
        }
    }
}

/// Makes a platform misbehave in one way.
type Misbehave = fn(&mut Behaviour);

/// Each misbehaviour of the model platform by itself.
const MISBEHAVIOURS: [(&str, Misbehave); 13] = [
    ("none", |_| {}),
    ("reject", |ways| ways.reject = 0.1),
    ("drop", |ways| ways.drop = 0.1),
    ("ignore", |ways| ways.ignore = 0.1),
    ("twice", |ways| ways.duplicate = 0.1),
    ("late", |ways| {
        (ways.late, ways.late_by) = (0.1, Micros::from_millis(2_500));
    }),
    ("garble", |ways| ways.garble = 0.1),
    ("mislead", |ways| ways.mislead = 0.1),
    ("hold", |ways| ways.hold = 0.3),
    ("refuse", |ways| ways.refuse_session = 0.3),
    ("refuse-subscribe", |ways| ways.refuse_subscribe = 0.3),
    ("reset", |ways| {
        ways.incidents = incident(What::Reset);
    }),
    ("half-open", |ways| {
        ways.incidents = incident(What::HalfOpen);
    }),
];

fn incident(what: What) -> Vec<Incident> {
    vec![Incident {
        at: Micros::from_millis(3_050),
        share: 0.5,
        what,
    }]
}

#[test]
fn the_ledger_closes_and_is_the_platforms_account_under_each_misbehaviour() {
    for dialect in Dialect::ALL {
        closes(dialect, "");
        if dialect.shares_links() {
            let run = closes(dialect, "gateway: { devices: 5 },");
            let announced = if dialect.announces().is_some() { 12 } else { 0 };
            assert_eq!(run.platform.announced, announced, "{dialect}");
        }
    }
}

/// Runs under each misbehaviour, and gives the run under none.
fn closes(dialect: Dialect, fleet: &str) -> Run {
    let mut well = None;
    for (name, misbehave) in MISBEHAVIOURS {
        let mut ways = Behaviour::default();
        misbehave(&mut ways);
        let plan = plan_of(dialect, fleet);
        let is_acknowledged = is_acknowledged(&plan);
        let run = World::new(plan, ways, 1).expect("it can be placed").run();
        let run = run.expect("time goes on");
        let ledger = &run.summary.run.uplink;
        let what = format!("{dialect}, {fleet} {name}: {ledger:#?}");
        assert_eq!(run.summary.residue, Some(0), "{what}");
        assert_eq!(ledger.scheduled, Some(MESSAGES), "{what}");
        assert_eq!((run.finals.repeated, run.finals.absurd), (0, 0), "{what}");
        let platform = &run.platform;
        assert_eq!(
            (platform.unsubscribed, platform.unannounced),
            (0, 0),
            "{what}"
        );
        if !matches!(name, "reset" | "half-open") {
            agrees(ledger, &run, is_acknowledged, &what);
        }
        well.get_or_insert(run);
    }
    well.expect("the first misbehaviour is none")
}

/// What holds while every link stays up.
fn agrees(ledger: &Ledger, run: &Run, is_acknowledged: bool, what: &str) {
    let platform = &run.platform;
    assert_eq!(ledger.sent, platform.received, "{what}");
    assert_eq!(ledger.rejected, platform.rejected, "{what}");
    // A late answer that nobody waits for any more is the platform's yes all the same.
    assert!(ledger.accepted <= platform.accepted, "{what}");
    assert!(
        ledger.accepted + ledger.timed_out >= platform.accepted,
        "{what}"
    );
    if is_acknowledged {
        assert_eq!(ledger.answered_again, platform.duplicated, "{what}");
        assert_eq!(ledger.answered_malformed, platform.garbled, "{what}");
        assert_eq!(ledger.answered_unknown, platform.misled, "{what}");
    } else {
        let of_application = ledger.answered_again + ledger.answered_malformed;
        assert_eq!(of_application + ledger.answered_unknown, 0, "{what}");
    }
}
