//! Commands, and what devices subscribe to: the ledgers of a run against the gateway's own account.

use std::collections::BTreeSet;

use muster_model::{DeviceId, MessageId, Micros, RunId, Stamp, StreamId};
use serde_json::Value;

use crate::truth::{Truth, count, fnv1a, hash, number, sum};

const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  behaviour: { BEHAVIOUR }
  backend: { filter: "muster/#", commands: { COMMANDS } }
fleet:
  - name: pumps
    count: 20
    client: { CLIENT }
    reconnect: { min: 800ms, max: 1s }
    streams:
      - { name: readings, rate: 40/s }
      - { kind: command }
STREAMS
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 15s, quiet: 500ms } }
slo: { connected: 100% }
"#;

const RESUMED: &str = "clean-start: false, session-expiry: 60s";
const CLEAN: &str = "clean-start: true, session-expiry: 0s";

/// One run with commands.
pub(crate) struct Run(pub(crate) Truth);

impl Run {
    fn of(behaviour: &str, commands: &str, client: &str, streams: &str) -> Self {
        let scenario = SCENARIO
            .replace("BEHAVIOUR", behaviour)
            .replace("COMMANDS", commands)
            .replace("CLIENT", client)
            .replace("STREAMS", streams);
        Self::scenario(&scenario)
    }

    /// A run whose ledgers close.
    pub(crate) fn scenario(scenario: &str) -> Self {
        let run = Self(Truth::run(scenario));
        assert_eq!(run.get("residue"), 0, "{}", run.ledger()["equations"]);
        assert_eq!(run.0.uplink("residue"), 0);
        run
    }

    pub(crate) fn ledger(&self) -> &Value {
        &self.0.result["ledger"]["command"]
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        count(&self.ledger()[name])
    }

    pub(crate) fn presence(&self, place: &str, name: &str) -> u64 {
        count(&self.ledger()["by_presence"][place][name])
    }

    /// Checks what holds whatever happens: both sides counted the same on each border between them.
    pub(crate) fn agrees(&self) {
        assert_eq!(self.0.account("commands"), self.get("issued"));
        let ends = ["delivered", "expired", "undeliverable", "unknown"];
        assert_eq!(self.sum(&ends), self.get("issued"));
        let ends = [
            "one_way",
            "answered",
            "answer_rejected",
            "answer_timed_out",
            "answer_broken",
            "answer_in_flight",
            "answer_shed",
        ];
        assert_eq!(self.sum(&ends), self.get("received"));
        let ends = ["replies_arrived", "replies_lost", "replies_outstanding"];
        assert_eq!(self.sum(&ends), self.get("answered"));
        let (replies, answered) = (self.0.account("replies"), self.get("answered"));
        assert!(replies >= answered, "{replies} of {answered}");
    }

    pub(crate) fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.get(name)).sum()
    }

    fn befell(&self, misbehaviour: &str) -> BTreeSet<(u32, u32)> {
        let payload: Vec<u8> = b"muster ".iter().copied().cycle().take(64).collect();
        self.befell_as(misbehaviour, |stamp| {
            let (device, id) = (stamp.id.device.0, stamp.encode_text(&[&payload]));
            let topic = format!(
                "command/pumps-{device:08}/req/{}",
                String::from_utf8_lossy(&id)
            );
            [topic.as_bytes(), &payload].concat()
        })
    }

    /// Commands that the gateway says it treated so, as device and number: it names them by topic
    /// and payload, which are made here anew from the facts.
    pub(crate) fn befell_as(
        &self,
        misbehaviour: &str,
        bytes: impl Fn(&Stamp) -> Vec<u8>,
    ) -> BTreeSet<(u32, u32)> {
        let run = self.0.result["run"].as_str().expect("a run has an id");
        let run = u32::from_str_radix(run, 16).expect("it is hexadecimal");
        let mut named = std::collections::BTreeMap::new();
        for line in self.0.facts.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let ["issue", _, device, stream, seq, _, issued, ..] = fields[..] else {
                continue;
            };
            let (device, seq) = (number(device) as u32, number(seq) as u32);
            let id = MessageId {
                run: RunId(run),
                device: DeviceId(device),
                stream: StreamId(number(stream) as u8),
                seq,
            };
            let stamp = Stamp {
                id,
                due: Some(Micros(number(issued))),
            };
            named.insert(fnv1a(&bytes(&stamp)), (device, seq));
        }
        let hashes = self.0.gateway["misbehaved"][misbehaviour].as_array();
        let hashes = hashes.expect("it happened").iter();
        hashes.map(|name| named[&hash(name)]).collect()
    }

    /// Commands that the result lists as delivered and not received.
    pub(crate) fn not_received(&self) -> BTreeSet<(u32, u32)> {
        let mut ids = BTreeSet::new();
        for (name, ranges) in self.ledger()["not_received_ids"]
            .as_object()
            .expect("a list of ids")
        {
            let Some(ranges) = ranges.as_array() else {
                continue;
            };
            let device = name.strip_prefix("pumps-");
            let device = device.and_then(|rest| rest.split('/').next());
            let device = number(device.expect("a device")) as u32;
            for range in ranges {
                let (from, to) = (count(&range[0]) as u32, count(&range[1]) as u32);
                ids.extend((from..=to).map(|seq| (device, seq)));
            }
        }
        ids
    }
}

#[test]
fn lost_commands_are_those_that_the_gateway_lost() {
    let run = Run::of(
        "lose-commands: 9",
        "rate: 60/s, mode: two-way, to: online",
        RESUMED,
        "",
    );
    run.agrees();
    assert_eq!(run.get("issued"), 180);
    assert_eq!(run.get("delivered"), 180, "a broker takes what it loses");
    assert_eq!(run.get("delivered_not_received"), 9);
    assert_eq!(run.get("received"), 171);
    let lost = run.befell("lose-commands");
    assert_eq!(lost.len(), 9);
    assert_eq!(run.not_received(), lost);
}

#[test]
fn doubled_commands_are_answered_once_and_late_ones_still_arrive() {
    let run = Run::of(
        "duplicate-commands: 7, delay-commands: { count: 5, by: 300ms }",
        "rate: 60/s, mode: two-way, to: online",
        RESUMED,
        "",
    );
    run.agrees();
    assert_eq!(run.get("received"), 180);
    assert_eq!(run.get("received_again"), 7);
    assert_eq!(run.get("answered"), 180);
    assert_eq!(run.get("replies_arrived"), 180);
    assert_eq!(run.befell("delay-commands").len(), 5);
    let longest = count(&run.0.result["latency"]["command_loop"]["max_us"]);
    assert!(longest >= 300_000, "{longest}");
    assert_eq!(run.0.account("replies"), 180);
}

#[test]
fn commands_to_devices_that_are_away_wait_in_their_sessions() {
    let run = Run::of(
        "close-links: { at: 1s, share: 50% }",
        "rate: 200/s, mode: two-way, to: online",
        RESUMED,
        "",
    );
    run.agrees();
    assert!(run.presence("offline", "scheduled") > 20);
    assert!(run.presence("reconnected", "scheduled") > 20);
    for place in ["online", "offline", "reconnected"] {
        let due = run.presence(place, "scheduled");
        assert_eq!(run.presence(place, "received"), due, "{place}");
    }
    assert_eq!(run.get("received"), 600);
    assert_eq!(run.get("delivered_not_received"), 0);
    let longest = count(&run.0.result["latency"]["command_loop"]["max_us"]);
    assert!(
        longest >= 300_000,
        "some waited for their device: {longest}"
    );
}

#[test]
fn commands_to_devices_without_a_session_are_undeliverable() {
    let run = Run::of(
        "close-links: { at: 1s, share: 50% }",
        "rate: 200/s, mode: one-way, to: online",
        CLEAN,
        "",
    );
    run.agrees();
    let unheard = run.get("undeliverable");
    assert!(unheard > 20, "{unheard}");
    assert_eq!(sum(&run.ledger()["undeliverable_by_status"]), unheard);
    assert_eq!(
        count(&run.ledger()["undeliverable_by_status"]["0x10"]),
        unheard
    );
    assert_eq!(run.get("one_way"), run.get("received"));
    assert!(run.presence("offline", "received") < run.presence("offline", "scheduled"));
}

#[test]
fn absent_devices_get_nothing_and_the_others_all() {
    let run = Run::of("", "rate: 60/s, mode: one-way, to: all", RESUMED, "");
    run.agrees();
    assert_eq!(run.get("undeliverable"), 90);
    assert_eq!(run.get("received"), 90);
    assert_eq!(run.presence("offline", "scheduled"), 90);
    assert_eq!(run.presence("online", "received"), 90);
}

#[test]
fn every_query_is_answered_with_a_command_unless_that_is_lost() {
    let run = Run::of(
        "lose-commands: 4",
        "mode: two-way, to: waiting",
        RESUMED,
        "      - { name: asks, kind: command-query, every: 1s, ttd: 400ms }",
    );
    run.agrees();
    assert_eq!(run.get("queries"), 60);
    assert_eq!(run.get("issued"), 60);
    assert_eq!(run.get("received_by_query"), 56);
    assert_eq!(run.get("no_command"), 4);
    assert_eq!(run.get("received"), 56);
    assert_eq!(run.ledger()["scheduled"], Value::Null);
    assert_eq!(
        count(&run.0.result["latency"]["command_request"]["count"]),
        56
    );
    let asks = &run.0.result["ledger"]["by_stream"]["pumps/asks"];
    assert_eq!(count(&asks["ledger"]["accepted"]), 60);
    assert_eq!(count(&asks["ledger"]["arrived"]), 60);
    assert_eq!(asks["latency"]["response"], Value::Null);
}

#[test]
fn slos_on_commands_decide_the_verdict() {
    let slo = "{ kind: command, slo: { commands-not-received: 4, replies-lost: 0, \
               command-response: { p50: 1m }, command-loop: { p90: 1m, p50: 1us } } }";
    let scenario = SCENARIO
        .replace("BEHAVIOUR", "lose-commands: 5")
        .replace("COMMANDS", "rate: 100/s, mode: two-way")
        .replace("CLIENT", RESUMED)
        .replace("STREAMS\n", "")
        .replace("{ kind: command }", slo);
    let truth = Truth::run(&scenario);
    assert_eq!(truth.exit_code, 1);
    let rules = truth.result["verdict"]["rules"].as_array().expect("rules");
    let of = |name: &str| {
        let rule = rules.iter().find(|rule| rule["rule"] == name);
        let rule = rule.unwrap_or_else(|| panic!("no rule {name} in {rules:?}"));
        (
            rule["result"].as_str().expect("a result"),
            &rule["observed"],
        )
    };
    let (result, lost) = of("commands-not-received");
    assert_eq!((result, count(lost)), ("fail", 5));
    assert_eq!(of("command-loop p50").0, "fail");
    for passed in ["replies-lost", "command-response p50", "command-loop p90"] {
        assert_eq!(of(passed).0, "pass", "{passed}");
    }
    let warned = truth.result["verdict"]["warnings"].to_string();
    assert!(
        !warned.contains("not-received"),
        "a rule looked at it: {warned}"
    );
}

/// Of 60 queries that are due four have no command.
#[test]
fn the_share_of_queries_with_a_command_is_judged() {
    for (wanted, exit_code) in [("80%", 0), ("100%", 1)] {
        let asks = format!(
            "      - {{ name: asks, kind: command-query, every: 1s, ttd: 400ms, \
             slo: {{ queries-with-command: {wanted} }} }}\n"
        );
        let scenario = SCENARIO
            .replace("BEHAVIOUR", "lose-commands: 4")
            .replace("COMMANDS", "mode: two-way, to: waiting")
            .replace("CLIENT", RESUMED)
            .replace("STREAMS\n", &asks);
        let truth = Truth::run(&scenario);
        assert_eq!(truth.exit_code, exit_code, "{wanted}");
        let rules = truth.result["verdict"]["rules"].as_array().expect("rules");
        let rule = rules
            .iter()
            .find(|rule| rule["rule"] == "queries-with-command");
        let rule = rule.expect("the rule is there");
        let told = rule["evidence"].as_str().expect("evidence");
        assert_eq!(told, "56 of 60 queries due had a command: none came 4");
        let warned = truth.result["verdict"]["warnings"].to_string();
        assert!(
            !warned.contains("no-command"),
            "a rule looked at it: {warned}"
        );
    }
}

const OFFLINE: &str = r#"
name: truth
seed: 7
platform:
  behaviour: { BEHAVIOUR }
  backend: { commands: { rate: 40/s, mode: two-way } }
fleet:
  - name: pub
    count: 2
    streams:
      - { name: news, rate: 200/s, topic: "muster/news/${index}", qos: 1 }
  - name: sub
    count: 4
    client: { CLIENT }
    connect: { rate: 8/s }
    offline: { at: 500ms, for: 1s }
    streams:
      - { kind: receive, filter: "muster/news/#", qos: 1 }
      - { kind: command }
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 15s, quiet: 500ms } }
slo: { connected: 100% }
"#;

/// A run whose subscribers are offline for a while, and how their messages and commands drained.
fn offline(behaviour: &str, client: &str) -> (Truth, [Value; 2]) {
    let scenario = OFFLINE
        .replace("BEHAVIOUR", behaviour)
        .replace("CLIENT", client);
    let truth = Truth::run(&scenario);
    let ledger = &truth.result["ledger"];
    let drains = ["receive", "command"].map(|what| {
        let residue = &ledger[what]["residue"];
        assert_eq!(count(residue), 0, "{}", ledger[what]["equations"]);
        ledger[what]["offline_queue"].clone()
    });
    for drain in &drains {
        assert_eq!(count(&drain["devices"]), 4);
        assert_eq!(count(&drain["returned"]), 4);
        let ends = ["drained", "lost", "outstanding"].map(|name| count(&drain[name]));
        assert_eq!(ends.iter().sum::<u64>(), count(&drain["expected"]));
    }
    (truth, drains)
}

#[test]
fn what_waits_for_devices_that_are_offline_drains_when_they_are_back() {
    let (truth, drains) = offline("", RESUMED);
    let [messages, commands] = &drains;
    // Four subscribers were away for at least a second, to each of whom 200 messages a second go.
    assert!(count(&messages["expected"]) >= 4 * 200, "{messages}");
    assert!(count(&commands["expected"]) >= 40, "{commands}");
    for drain in &drains {
        assert_eq!(drain["drained"], drain["expected"]);
        let flaws = ["forgotten", "incomplete", "duplicates", "reordered"];
        assert_eq!(flaws.map(|name| count(&drain[name])), [0; 4]);
        let [began, ended] = ["began_s", "ended_s"].map(|name| drain[name].as_f64());
        assert!(began.expect("they were back") < ended.expect("they drained"));
        assert_eq!(count(&drain["took"]["count"]), 4);
    }
    assert_eq!(truth.account("offline-overflowed"), 0);
    let links = &truth.result["links"]["disconnects"];
    assert_eq!((count(&links["offline"]), sum(links)), (4, 4));
}

#[test]
fn what_a_bounded_queue_drops_is_lost_and_nothing_else() {
    let (truth, [messages, commands]) = offline("session-queue: 50", RESUMED);
    let lost = count(&messages["lost"]) + count(&commands["lost"]);
    assert_eq!(lost, truth.account("offline-overflowed"));
    assert!(lost > 0, "the bound was never reached");
    let drained = count(&messages["drained"]) + count(&commands["drained"]);
    // What was due just before they left, or just before they were back, may have a place too, or have
    // lost it; on a busy machine that is more.
    assert!(drained >= 4 * 40, "{drained}");
    assert_eq!(count(&messages["incomplete"]), 4);
}

#[test]
fn sessions_that_end_with_their_link_keep_nothing() {
    let (_, drains) = offline("", CLEAN);
    for drain in &drains {
        assert_eq!(count(&drain["forgotten"]), 4);
    }
    let [messages, commands] = &drains;
    // What was due just before a device was back may have been sent, and come, right after it.
    let [lost, expected] = ["lost", "expected"].map(|name| count(&messages[name]));
    assert!(lost > expected / 2, "{messages}");
    // The platform said of commands that nobody was there.
    assert!(count(&commands["expected"]) <= 4, "{commands}");
}

const FANNED: &str = r#"
name: truth
seed: 7
platform:
  behaviour: { BEHAVIOUR }
fleet:
  - name: pub
    count: 3
    id: "pub-${index}"
    streams:
      - { name: news, rate: 30/s, topic: "muster/news/${id}" }
      - { name: pairs, rate: 30/s, topic: "muster/pairs/${id}" }
  - name: sub
    count: 12
    id: "sub-${index}"
    streams:
      - { name: all, kind: receive, filter: "muster/news/#" }
      - { name: one, kind: receive, filter: "muster/pairs/pub-${index}" }
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 15s, quiet: 500ms } }
slo: { connected: 100% }
"#;

fn fanned(behaviour: &str) -> Truth {
    let truth = Truth::run(&FANNED.replace("BEHAVIOUR", behaviour));
    let received = &truth.result["ledger"]["receive"];
    assert_eq!(count(&received["residue"]), 0, "{}", received["equations"]);
    assert_eq!(truth.uplink("residue"), 0);
    truth
}

#[test]
fn each_subscriber_is_an_account_of_its_own() {
    let truth = fanned("");
    let received = &truth.result["ledger"]["receive"];
    assert_eq!(count(&received["subscribers"]), 24);
    assert_eq!(count(&received["arrived"]), 12 * 90 + 90);
    for name in [
        "duplicates",
        "duplicate_own",
        "lost",
        "outstanding",
        "unexpected",
    ] {
        assert_eq!(count(&received[name]), 0, "{name}");
    }
    let rows = received["by_subscriber"].as_object().expect("rows");
    for device in 0..12 {
        let all = &rows[&format!("sub-{device}/all")];
        assert_eq!(count(&all["arrived"]), 90, "sub-{device}");
        let one = &rows
            .get(&format!("sub-{device}/one"))
            .map(|row| &row["arrived"]);
        let wanted = if device < 3 { 30 } else { 0 };
        assert_eq!(one.map_or(0, count), wanted, "sub-{device}");
    }
}

#[test]
fn what_the_gateway_loses_or_doubles_each_subscriber_misses_or_gets_twice() {
    let truth = fanned("lose-after-accept: 6, duplicate: 5");
    let received = &truth.result["ledger"]["receive"];
    let of_stream = |name: &str| {
        let streams = &truth.result["ledger"]["by_stream"];
        (
            count(&streams[name]["ledger"]["lost"]),
            count(&streams[name]["ledger"]["duplicates"]),
        )
    };
    let (news, pairs) = (of_stream("pub/news"), of_stream("pub/pairs"));
    assert_eq!((news.0 + pairs.0, news.1 + pairs.1), (6, 5));
    assert_eq!(count(&received["lost"]), 12 * news.0 + pairs.0);
    assert_eq!(count(&received["duplicates"]), 12 * news.1 + pairs.1);
}
