//! What every dialect keeps to against the reference gateway, under each misbehaviour that has a
//! meaning for it: the ledger closes and is the gateway's own account. A dialect that stands in
//! [`Dialect::ALL`] is tested here without another line.

use muster_platform::Dialect;

use crate::truth::{MESSAGES, Truth, count, refusal};

/// A scenario that leaves to the dialect what it can.
const SCENARIO: &str = r"
name: conformance
seed: 7
platform: { kind: gateway, dialect: DIALECT, behaviour: { BEHAVIOUR } }
fleet:
  - count: 50
    reconnect: { min: 100ms, max: 200ms }
    LOGIN
    streams: [ { name: readings, rate: 400/s, count: 12, timeout: 1s TOPIC } ]
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 15s, quiet: 400ms } }
slo: { failure-ratio: 0 }
validity: { lateness-p99: 4s, cpu: 100%, cpu-wait: 100%, steal: 100% }
";

/// Each misbehaviour as a scenario writes it, its name in the account, and how often it befalls.
const MISBEHAVIOURS: [(&str, &str, u64); 13] = [
    ("", "", 0),
    ("lose-after-accept: 7", "lose-after-accept", 7),
    ("drop: 7", "drop", 7),
    ("ignore: 7", "ignore", 7),
    ("answer-late: { count: 7, by: 3s }", "answer-late", 7),
    ("answer-twice: 7", "answer-twice", 7),
    ("answer-garbled: 7", "answer-garbled", 7),
    ("answer-unknown: 7", "answer-unknown", 7),
    ("duplicate: 7", "duplicate", 7),
    ("deliver-late: { count: 7, by: 500ms }", "deliver-late", 7),
    ("corrupt: 7", "corrupt", 7),
    ("reject: { count: 7 }", "reject", 7),
    ("reject-but-deliver: 7", "reject-but-deliver", 7),
];

#[test]
fn the_ledger_is_the_gateways_account_in_every_dialect_under_each_misbehaviour() {
    // A run is mostly waiting: as many at once as there are topics.
    std::thread::scope(|scope| {
        for (dialect, topic) in all_topics() {
            scope.spawn(move || is_the_gateways_account(dialect, topic));
        }
    });
}

fn is_the_gateways_account(dialect: Dialect, topic: &str) {
    let mut met = 0;
    for (behaviour, name, times) in MISBEHAVIOURS {
        let lasts = if name == "answer-late" {
            "5s"
        } else {
            "1500ms"
        };
        let scenario = SCENARIO
            .replace("LOGIN", login(topic))
            .replace(" TOPIC", &at(topic))
            .replace("DIALECT", dialect.name())
            .replace("BEHAVIOUR", behaviour)
            .replace("MEASURE", lasts);
        if let Some(why) = refusal(&scenario) {
            assert!(why.contains("has no meaning with"), "{dialect}: {why}");
            continue;
        }
        met += 1;
        let truth = Truth::run(&scenario);
        agrees(&truth, &format!("{dialect} {topic}, {behaviour}"));
        if times > 0 {
            let befell = truth.gateway["misbehaved"][name].as_array();
            let befell = befell.map_or(0, |hashes| hashes.len() as u64);
            assert_eq!(befell, times, "{dialect}, {behaviour}");
        }
    }
    assert!(met > 5, "{dialect} has hardly any misbehaviour");
}

/// The dialects whose devices publish.
fn over_mqtt() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| !dialect.asks())
}

/// Every dialect with its defaults, and with its topics of requests but for their short forms, which the
/// gateway hears in the same way.
fn all_topics() -> impl Iterator<Item = (Dialect, &'static str)> {
    let of = |dialect: Dialect| {
        let requests = dialect.requests().iter().copied();
        let long = requests.filter(|topic| !topic.starts_with("v2/"));
        [""].into_iter()
            .chain(long)
            .map(move |topic| (dialect, topic))
    };
    over_mqtt().flat_map(of)
}

/// What the links that ask for devices log in as.
fn login(topic: &str) -> &'static str {
    match topic.starts_with("/provision") {
        true => "credential: { kind: token, secret: provision }",
        false => "",
    }
}

fn at(topic: &str) -> String {
    match topic {
        "" => String::new(),
        topic => format!(", topic: {topic}"),
    }
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
validity: { lateness-p99: 4s, cpu: 100%, cpu-wait: 100%, steal: 100% }
";

/// Each misbehaviour towards commands, and how many are then received and received again.
const OF_COMMANDS: [(&str, u64, u64); 4] = [
    ("", 200, 0),
    ("lose-commands: 7", 193, 0),
    ("duplicate-commands: 7", 200, 7),
    ("delay-commands: { count: 7, by: 300ms }", 200, 0),
];

#[test]
fn the_ledger_of_commands_closes_in_every_dialect() {
    let links = over_mqtt().flat_map(|dialect| {
        let of_gateways = dialect
            .commands_gateways()
            .then_some("gateway: { devices: 5 }");
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
    let mode = if dialect.replies().is_some() {
        "two-way"
    } else {
        "one-way"
    };
    for (behaviour, received, again) in OF_COMMANDS {
        let scenario = COMMANDS
            .replace("LINK", link)
            .replace("DIALECT", dialect.name())
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
    let silent = truth.account("unanswered") + truth.uplink("answered_late");
    assert_eq!(truth.uplink("timed_out"), silent, "{what}");
    assert_eq!(truth.uplink("sent"), MESSAGES, "{what}");
    let consumed = &truth.result["ledger"]["uplink"]["consumed"];
    if !consumed.is_null() {
        assert_eq!(truth.account("delivered"), count(consumed), "{what}");
    }
}
