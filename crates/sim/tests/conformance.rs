//! Laws that every dialect keeps. A dialect in [`Dialect::ALL`] is tested here without another
//! line: each of its messages is encoded, received by its own server end, answered, read back and
//! accounted, and so it is under each misbehaviour of a model platform.

use muster_conduct::{directory, uplink};
use muster_measure::Ledger;
use muster_model::{DeviceId, MessageId, Micros, RunId};
use muster_plan::{Ack, Plan};
use muster_platform::{
    ApplicationId, DevicePublish, Dialect, Downlink, Protocol, Reply, UplinkScratch, Who,
};
use muster_protocol::mqtt::topic;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_sim::{Behaviour, Incident, Run, What, World};

/// Messages of 12 devices with two streams in 4 s.
const MESSAGES: u64 = 480;

/// Login of the links that ask for devices.
const PROVISION: &str = "provision";

/// The dialects whose devices publish: the model platform of the simulator speaks MQTT.
fn over_mqtt() -> impl Iterator<Item = Dialect> {
    Dialect::ALL
        .into_iter()
        .filter(|dialect| dialect.speaks(Protocol::Mqtt))
}

/// Topics to test a dialect with: the empty one, so that its defaults stand, and each topic of
/// requests.
fn topics(dialect: Dialect) -> Vec<&'static str> {
    [&[""], dialect.publishing().requests].concat()
}

/// Login of links, if requests on the topic want one.
fn user(topic: &str) -> Option<&'static str> {
    topic.starts_with("/provision").then_some(PROVISION)
}

/// A scenario that leaves everything to the dialect's defaults, but for keys of the fleet and the topic
/// of its streams.
fn plan(dialect: Dialect, fleet: &str, topic: &str) -> Plan {
    let fleet = match user(topic) {
        Some(user) => format!("{fleet} credential: {{ kind: token, secret: {user} }},"),
        None => fleet.to_owned(),
    };
    let at = match topic {
        "" => String::new(),
        topic => format!(", topic: {topic}"),
    };
    // Where the payload names the message, that of the dialect's defaults is the first stream's.
    let one = format!("{{ name: one, rate: 60/s, timeout: 2s{at} }}");
    let streams = match user(topic) {
        Some(_) => one.replace("60/s", "120/s"),
        None => format!("{one}, {}", one.replace("one", "two")),
    };
    let text = format!(
        "
name: conformance
platform: {{ kind: gateway, dialect: {dialect} }}
fleet: [{{ {fleet} count: 12, reconnect: {{ min: 100ms, max: 1s }}, streams: [ {streams} ] }}]
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
    for (dialect, topic) in all_topics() {
        let plan = plan(dialect, "", topic);
        for (lane, stream) in (0u8..).zip(&plan.fleets[0].streams) {
            if stream.ack != Ack::Application {
                continue;
            }
            let uplink = uplink(stream).expect("the payload is possible");
            let directory = directory(&plan, &plan.fleets[0], 1_600_000_000_000);
            let mut scratch = UplinkScratch::default();
            for (device, seq) in [(0, 0), (11, 9), (3, 1_000_000)] {
                let id = MessageId {
                    run: RunId(1),
                    device: DeviceId(device),
                    stream: stream.id,
                    seq,
                };
                uplink.render(&directory, &id, Micros::from_secs(1), &mut scratch);
                let expected = ApplicationId {
                    stream_index: lane,
                    seq,
                };
                let name = roster_name(&directory, id.device);
                let name = (dialect.server.link_name)(user(topic).or(Some(&name)), "c");
                acknowledged(dialect, (&name, topic), &scratch, expected);
            }
        }
    }
}

fn all_topics() -> impl Iterator<Item = (Dialect, &'static str)> {
    let of = |dialect| {
        topics(dialect)
            .into_iter()
            .map(move |topic| (dialect, topic))
    };
    over_mqtt().flat_map(of)
}

fn roster_name(directory: &muster_platform::Directory, device: DeviceId) -> String {
    let mut name = String::new();
    directory.render_name(device, &mut name);
    name
}

/// The server end's yes and no to the message in `scratch`, as the device reads them.
fn acknowledged(
    dialect: Dialect,
    (name, asked): (&str, &str),
    scratch: &UplinkScratch,
    expected: ApplicationId,
) {
    let heard = (dialect.server.read)(name, scratch.topic(), &scratch.payload);
    let DevicePublish::Message { device, id } = heard else {
        panic!("{dialect}: {heard:?}");
    };
    assert_eq!(device, name, "{dialect}");
    assert!(id.is_some(), "{dialect}: a message has an id");
    for code in [dialect.server.acceptance, dialect.server.refusal] {
        let (mut topic, mut payload) = (String::new(), Vec::new());
        (dialect.server.write_acknowledgement_topic)(device, id, &mut topic);
        // The second of a batch is read too.
        let others = usize::from(dialect.publishing().batches);
        let other = std::iter::repeat_n(Reply { id: None, code }, others);
        let mut replies = other.chain([Reply { id, code }]);
        (dialect.server.write_acknowledgement)(&mut replies, &mut payload);
        assert!(
            listens(dialect, (name, asked), &topic),
            "{dialect}: nobody listens on {topic}"
        );
        let Downlink::Acknowledgements(mut array) =
            (dialect.publishing().downlink)(&topic, &payload)
        else {
            panic!("{dialect}: no acknowledgement on {topic}");
        };
        let last = array
            .nth(others)
            .expect("it is there")
            .expect("it is readable");
        let named = last.id.filter(|_| !last.is_of_oldest);
        assert!(
            named == Some(expected) || (named.is_none() && last.is_of_oldest),
            "{dialect}: {last:?}"
        );
        assert!(
            code == last.code || !dialect.publishing().batches,
            "{dialect}"
        );
        assert_eq!(
            last.is_accepted,
            !(dialect.server.is_refusal)(code),
            "{dialect}"
        );
        assert!(
            !last.is_accepted || named.is_some(),
            "{dialect}: a yes names its message"
        );
        assert!(array.next().is_none(), "{dialect}");
        let (mut stranger, nobodys) = (String::new(), (dialect.server.nobodys)(id));
        (dialect.server.write_acknowledgement_topic)(device, Some(&nobodys), &mut stranger);
        assert!(
            listens(dialect, (name, asked), &stranger),
            "{dialect}: {stranger}"
        );
    }
}

/// Returns whether a link receives messages on a topic.
fn listens(dialect: Dialect, (name, asked): (&str, &str), topic: &str) -> bool {
    let mut filter = String::new();
    let mut subscriptions = dialect.publishing().subscriptions.iter();
    let of_link = subscriptions.any(|subscription| {
        subscription.render("", name, &mut filter);
        topic::matches(&filter, topic)
    });
    let answers = (dialect.topic)(asked).answers;
    let of_stream = answers.is_some_and(|filter| topic::matches(filter, topic));
    of_link || of_stream || (dialect.server.answers_unasked)(name)
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
        for subscription in dialect.publishing().subscriptions {
            let mut filter = String::new();
            subscription.render("t", "d", &mut filter);
            topics.push(filter.replace('+', "1"));
        }
        for request in dialect.publishing().requests {
            topics.push((*request).to_owned());
            topics.push(dialect.numbered(request, 7).replace("${seq}", "1"));
            topics.extend(
                (dialect.topic)(request)
                    .answers
                    .map(|answers| answers.replace('+', "1")),
            );
        }
        let publishing = dialect.publishing();
        let commands =
            [Who::Device, Who::Gateway, Who::Nobody].map(|of| publishing.filter_of_commands(of));
        let commands = commands.into_iter().flatten();
        topics.extend(commands.map(|filter| filter.replace('+', "1")));
        for (topic, payload) in topics.iter().flat_map(|t| damaged.map(|p| (t, p))) {
            if let Downlink::Acknowledgements(array) =
                (dialect.publishing().downlink)(topic, payload.as_bytes())
            {
                assert!(array.take(1_000).count() < 1_000);
            }
            let _ = (dialect.server.read)("d", topic, payload.as_bytes());
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
    for dialect in over_mqtt() {
        for topic in topics(dialect) {
            closes(dialect, "", topic);
        }
        if dialect.shares_links {
            let run = closes(dialect, "gateway: { devices: 5 },", "");
            let announced = if dialect.publishing().announcement.is_some() {
                12
            } else {
                0
            };
            assert_eq!(run.platform.announced, announced, "{dialect}");
        }
    }
}

/// Runs under each misbehaviour, and gives the run under none.
fn closes(dialect: Dialect, fleet: &str, topic: &str) -> Run {
    let mut well = None;
    for (name, misbehave) in MISBEHAVIOURS {
        let mut ways = Behaviour::default();
        misbehave(&mut ways);
        let plan = plan(dialect, fleet, topic);
        let is_acknowledged = is_acknowledged(&plan);
        let run = World::new(plan, ways, 1).expect("it can be placed").run();
        let run = run.expect("time goes on");
        let ledger = &run.summary.run.uplink;
        let what = format!("{dialect}, {fleet} {topic} {name}: {ledger:#?}");
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

/// Checks the laws that hold while every link stays up.
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
        assert_eq!(ledger.session.answered_again, platform.duplicated, "{what}");
        assert_eq!(
            ledger.session.answered_malformed, platform.garbled,
            "{what}"
        );
        assert_eq!(ledger.session.answered_unknown, platform.misled, "{what}");
    } else {
        let of_application = ledger.session.answered_again + ledger.session.answered_malformed;
        assert_eq!(
            of_application + ledger.session.answered_unknown,
            0,
            "{what}"
        );
    }
}
