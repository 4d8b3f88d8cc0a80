//! Rules of every dialect against the reference gateway, under each misbehaviour that has a
//! meaning for it: the ledger closes and is the gateway's own account. A dialect that stands in
//! [`Dialect::ALL`] is tested here without another line, over each transport of its devices. Its commands
//! are, over MQTT; where devices ask for them, `hono_commands` has what holds.

use std::sync::Mutex;

use muster_model::{DeviceId, MessageId, RunId, Stamp, StreamId};
use muster_plan::Scheme;
use muster_platform::{CommandScratch, Dialect, OutboundCommand, Protocol};

use crate::truth::{MESSAGES, Truth, count, refusal};

/// A scenario that leaves to the dialect what it can. A busy machine may send late and sheds nothing for that, so
/// that the counts are the gateway's alone.
const SCENARIO: &str = r#"
name: conformance
seed: 7
platform: { kind: gateway, dialect: DIALECT, devices: [ "SCHEME://127.0.0.1:0" ], behaviour: { BEHAVIOUR } }
fleet:
  - count: DEVICES
    reconnect: { min: 100ms, max: 200ms }
    LINK
    streams: [ { name: readings, rate: 400/s, count: EACH, timeout: TIMEOUT TOPIC } ]
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 60s, quiet: 1s } }
slo: { failure-ratio: 0 }
validity: { max-lateness: 60s }
"#;

/// Fault of a run under a misbehaviour (docs/semantics.md#states-and-sums).
#[derive(Clone, Copy)]
enum Broken {
    Nothing,
    /// A message is answered twice: over HTTP the second answer could be that to another request.
    AnsweredTwice,
    /// A message has no answer in time.
    Unanswered,
    /// A message is refused.
    Refused,
    /// An accepted message does not arrive.
    Lost,
    /// A copy may arrive in such a state that nobody knows of which message it is.
    Copy,
}

/// Each misbehaviour as a scenario writes it, its name in the account, how often it befalls, and what it breaks.
const MISBEHAVIOURS: [(&str, &str, u64, Broken); 13] = [
    ("", "", 0, Broken::Nothing),
    ("lose-after-accept: 7", "lose-after-accept", 7, Broken::Lost),
    ("drop: 7", "drop", 7, Broken::Unanswered),
    ("ignore: 7", "ignore", 7, Broken::Unanswered),
    (
        "answer-late: { count: 7, by: 3s }",
        "answer-late",
        7,
        Broken::Unanswered,
    ),
    ("answer-twice: 7", "answer-twice", 7, Broken::AnsweredTwice),
    ("answer-garbled: 7", "answer-garbled", 7, Broken::Unanswered),
    ("answer-unknown: 7", "answer-unknown", 7, Broken::Unanswered),
    ("duplicate: 7", "duplicate", 7, Broken::Nothing),
    (
        "deliver-late: { count: 7, by: 500ms }",
        "deliver-late",
        7,
        Broken::Nothing,
    ),
    ("corrupt: 7", "corrupt", 7, Broken::Copy),
    ("reject: { count: 7 }", "reject", 7, Broken::Refused),
    (
        "reject-but-deliver: 7",
        "reject-but-deliver",
        7,
        Broken::Refused,
    ),
];

/// Runs at the same time: each mostly waits, and tests beside them measure.
const AT_ONCE: usize = 8;

#[test]
fn the_ledger_is_the_gateways_account_in_every_dialect_under_each_misbehaviour() {
    let links = all_topics().flat_map(|(dialect, topic)| {
        let schemes = schemes(dialect, topic).into_iter();
        schemes.map(move |scheme| (dialect, scheme, topic))
    });
    let links = Mutex::new(links);
    let next = || links.lock().expect("no other has panicked with it").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((dialect, scheme, topic)) = next() {
                    is_the_gateways_account(dialect, scheme, topic);
                }
            });
        }
    });
}

fn is_the_gateways_account(dialect: Dialect, scheme: &str, topic: &str) {
    let mut met = 0;
    for (behaviour, name, times, broken) in MISBEHAVIOURS {
        let lasts = if name == "answer-late" {
            "6s"
        } else {
            "1500ms"
        };
        // Only where an answer is missing does a run wait for a time-out; over CoAP it is before a copy is due.
        let timeout = match matches!(broken, Broken::Unanswered) {
            true => "1s",
            false => "4s",
        };
        // Over HTTP a message without an answer keeps those behind it waiting: here there are none.
        let (devices, each) = match scheme.starts_with("http") {
            true => (MESSAGES, 1),
            false => (50, MESSAGES / 50),
        };
        let scenario = SCENARIO
            .replace("DEVICES", &devices.to_string())
            .replace("EACH", &each.to_string())
            .replace("SCHEME", scheme)
            .replace("LINK", &link(dialect, scheme, topic))
            .replace(" TOPIC", &at(topic))
            .replace("DIALECT", dialect.name)
            .replace("BEHAVIOUR", behaviour)
            .replace("TIMEOUT", timeout)
            .replace("MEASURE", lasts);
        if let Some(why) = refusal(&scenario) {
            assert!(why.contains("has no meaning with"), "{dialect}: {why}");
            continue;
        }
        met += 1;
        let truth = Truth::run(&scenario);
        let what = format!("{dialect} {scheme} {topic}, {behaviour}");
        agrees(&truth, &what);
        truth.is_judged(rules(broken, scheme, &truth), &what);
        if times > 0 {
            let befell = truth.gateway["misbehaved"][name].as_array();
            let befell = befell.map_or(0, |hashes| hashes.len() as u64);
            assert_eq!(befell, times, "{dialect} {scheme}, {behaviour}");
        }
    }
    assert!(met > 5, "{dialect} has hardly any misbehaviour");
}

/// The rules that a run breaks.
fn rules(broken: Broken, scheme: &str, truth: &Truth) -> &'static [&'static str] {
    let lost = truth.result["ledger"]["uplink"]["lost"].as_u64();
    match broken {
        Broken::AnsweredTwice if scheme.starts_with("http") => &["disconnects"],
        Broken::Nothing | Broken::AnsweredTwice => &[],
        Broken::Unanswered | Broken::Refused => &["failure-ratio"],
        // Where the platform's application keeps the messages, no other can miss them.
        Broken::Lost if lost.is_none() => &[],
        // Most flipped bits lie outside the id.
        Broken::Copy if lost.is_none_or(|lost| lost == 0) => &[],
        Broken::Lost | Broken::Copy => &["loss"],
    }
}

/// Schemes over which a dialect's devices send to a topic: those of requests, plain and secured, if it has such, and
/// MQTT where it has topics of requests or nothing else. Topics of requests go over plain HTTP and MQTT alone.
fn schemes(dialect: Dialect, topic: &str) -> Vec<&'static str> {
    let of = |protocol: Protocol| {
        let all = Scheme::ALL.into_iter();
        all.filter(move |scheme| scheme.spec().devices == Some(protocol))
    };
    let spoken = Protocol::ALL.into_iter();
    let spoken = spoken.filter(|it| it.asks && dialect.speaks(*it));
    let mut schemes: Vec<&str> = spoken.flat_map(of).map(Scheme::name).collect();
    schemes.retain(|scheme| match *scheme {
        "https" | "coap" | "coaps" => topic.is_empty(),
        _ => true,
    });
    if schemes.is_empty() || !dialect.publishing().requests.is_empty() {
        schemes.push("mqtt");
    }
    schemes
}

/// Every dialect with its defaults, and with its topics of requests but for their short forms, which the
/// gateway hears in the same way.
fn all_topics() -> impl Iterator<Item = (Dialect, &'static str)> {
    let of = |dialect: Dialect| {
        let requests = dialect.publishing().requests.iter().copied();
        let long = requests.filter(|topic| !topic.starts_with("v2/"));
        [""].into_iter()
            .chain(long)
            .map(move |topic| (dialect, topic))
    };
    Dialect::ALL.into_iter().flat_map(of)
}

/// An attempt over CoAP ends before a copy of its request would be sent, and a refusal keeps nobody from
/// sending the next.
const COAP: &str = "obey-retry-after: false\n    client: { coap: { ack-timeout: 5s, nstart: 12 } }";

/// Options of a link: those of requests, the key of a secured one, the login to ask for devices.
fn link(dialect: Dialect, scheme: &str, topic: &str) -> String {
    match scheme {
        "coap" => COAP.to_owned(),
        // The token in the path is all that its devices show.
        "coaps" if dialect == Dialect::Thingsboard => COAP.to_owned(),
        "http" | "https" => "obey-retry-after: false".to_owned(),
        "coaps" => format!(
            "{COAP}\n    credential: {{ kind: psk, user: \"${{id}}@${{tenant}}\", secret: \"key-${{id}}\" }}"
        ),
        _ if topic.starts_with("/provision") => {
            "credential: { kind: token, secret: provision }".to_owned()
        }
        _ => String::new(),
    }
}

fn at(topic: &str) -> String {
    match topic {
        "" => String::new(),
        topic => format!(", topic: {topic}"),
    }
}

/// The dialects whose devices receive commands without asking.
fn told_commands() -> impl Iterator<Item = Dialect> {
    let dialects = Dialect::ALL.into_iter();
    dialects.filter(|dialect| dialect.speaks(Protocol::Mqtt) && issues_commands(*dialect))
}

/// True if the application of a dialect has a topic for a command.
fn issues_commands(dialect: Dialect) -> bool {
    let id = MessageId {
        run: RunId(1),
        device: DeviceId(0),
        stream: StreamId(0),
        seq: 0,
    };
    let to = OutboundCommand {
        stamp: &Stamp { id, due: None },
        device: "one",
        tenant: "",
        is_two_way: false,
    };
    let mut command = CommandScratch::default();
    (dialect.application.write_command)(&to, &mut command);
    !command.topic.is_empty()
}

/// Commands, as far as a dialect has them.
const COMMANDS: &str = r"
name: conformance
seed: 7
platform: { kind: gateway, dialect: DIALECT, behaviour: { BEHAVIOUR }, backend: { commands: { rate: 100/s, mode: MODE } } }
fleet:
  - count: 20
    LINK
    streams: [ { name: readings, rate: 20/s }, { kind: command } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 15s, quiet: 400ms } }
";

/// Each misbehaviour towards commands, and how many are then received and received again.
const OF_COMMANDS: [(&str, u64, u64); 4] = [
    ("", 200, 0),
    ("lose-commands: 7", 193, 0),
    ("duplicate-commands: 7", 200, 7),
    ("delay-commands: { count: 7, by: 300ms }", 200, 0),
];

#[test]
fn the_ledger_of_commands_closes_in_every_dialect_that_tells_them() {
    let links = told_commands().flat_map(|dialect| {
        // Where gateways announce no device, one is known for whom it has spoken: `hono_mqtt` has that.
        let announces = dialect.publishing().announcement.is_some();
        let of_gateways = announces.then_some("gateway: { devices: 5 }");
        [Some(""), of_gateways]
            .into_iter()
            .flatten()
            .map(move |link| (dialect, link))
    });
    std::thread::scope(|scope| {
        for (dialect, link) in links {
            scope.spawn(move || commands_close(dialect, link));
        }
    });
}

fn commands_close(dialect: Dialect, link: &str) {
    let mode = if dialect.application.replies.is_some() {
        "two-way"
    } else {
        "one-way"
    };
    for (behaviour, received, again) in OF_COMMANDS {
        let scenario = COMMANDS
            .replace("LINK", link)
            .replace("DIALECT", dialect.name)
            .replace("BEHAVIOUR", behaviour)
            .replace("MODE", mode);
        let truth = Truth::run(&scenario);
        let ledger = &truth.result["ledger"]["command"];
        let told = |name: &str| count(&ledger[name]);
        let what = format!("{dialect}, {link} {behaviour}: {}", ledger["equations"]);
        assert_eq!(told("residue"), 0, "{what}");
        assert_eq!(told("issued"), 200, "{what}");
        assert_eq!(truth.account("commands"), 200, "{what}");
        assert_eq!(told("received"), received, "{what}");
        assert_eq!(told("received_again"), again, "{what}");
        assert_eq!(told("delivered_not_received"), 200 - received, "{what}");
        if mode == "two-way" {
            assert_eq!(told("replies_arrived"), received, "{what}");
        }
    }
}

fn agrees(truth: &Truth, what: &str) {
    truth.closes();
    assert_eq!(truth.account("received"), truth.uplink("sent"), "{what}");
    let answered = truth.uplink("accepted") + truth.uplink("answered_late");
    assert_eq!(truth.account("accepted"), answered, "{what}");
    assert_eq!(
        truth.account("rejected"),
        truth.uplink("rejected"),
        "{what}"
    );
    // A late answer over HTTP finds its connection closed.
    let gone = truth.account("unanswerable");
    let silent = truth.account("unanswered") + gone + truth.uplink("answered_late");
    assert_eq!(truth.uplink("timed_out"), silent, "{what}");
    assert_eq!(truth.uplink("sent"), MESSAGES, "{what}");
    let consumed = &truth.result["ledger"]["uplink"]["consumed"];
    if !consumed.is_null() {
        assert_eq!(truth.account("delivered"), count(consumed), "{what}");
    }
}
