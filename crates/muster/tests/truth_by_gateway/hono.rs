//! Devices over CoAP and over DTLS, by themselves and behind gateways, which name the device in each
//! path: the ledger of a run against the gateway's own account, message by message.

use std::collections::BTreeSet;
use std::panic::resume_unwind;

use crate::truth::{DEVICES, Id, MESSAGES, Truth, count, refusal, sum};

/// An attempt ends before a copy of its request would be sent, so that each request comes once. A
/// gateway's other devices go on while one waits in vain.
const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "SCHEME://127.0.0.1:0" ]
  behaviour: { BEHAVIOUR }
fleet:
  - name: meters
    count: 50
    tenant: t1
    LINK
    obey-retry-after: false
    reconnect: { min: 100ms, max: 200ms }
    client: { coap: { ack-timeout: 5s, nstart: 12 } }
    streams:
      - name: readings
        rate: 400/s
        count: 12
        timeout: 1s
        payload: { PAYLOAD }
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 15s, quiet: 400ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

/// Most bits of it that can be flipped lie outside the id.
const PAYLOAD: &str =
    r#"template: '{"id":"${stamp}","rest":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'"#;
/// For how long nothing comes before a run is over in which something is missing.
const QUIET: &str = "quiet: 400ms";
/// Links of ten devices each.
const GATEWAYS: &str = "gateway: { devices: 10, id: \"gw-${index}\" }";
const KEYS: &str = "credential: { kind: psk, user: \"${id}@t1\", secret: \"key-${id}\" }";
/// Links of a run whose devices stand behind gateways.
const LINKS: u64 = DEVICES as u64 / 10;

/// Way in which devices connect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over {
    scheme: &'static str,
    pub(crate) is_behind_gateways: bool,
}

const EACH: [Over; 4] = [
    over("coap", false),
    over("coaps", false),
    over("coap", true),
    over("coaps", true),
];

pub(crate) const fn over(scheme: &'static str, is_behind_gateways: bool) -> Over {
    Over {
        scheme,
        is_behind_gateways,
    }
}

impl Over {
    pub(crate) fn scenario(self, behaviour: &str, measure: &str) -> String {
        let mut link = Vec::new();
        if self.is_behind_gateways {
            link.push(GATEWAYS);
        }
        if self.scheme == "coaps" {
            link.push(KEYS);
        }
        SCENARIO
            .replace("SCHEME", self.scheme)
            .replace("BEHAVIOUR", behaviour)
            .replace("LINK", &link.join("\n    "))
            .replace("MEASURE", measure)
            .replace("PAYLOAD", PAYLOAD)
    }

    fn truth(self, behaviour: &str, measure: &str) -> Truth {
        named(&self.scenario(behaviour, measure))
    }
}

pub(crate) fn named(scenario: &str) -> Truth {
    let rest = "x".repeat(40);
    Truth::run(scenario).named_by_stamps(r#"{"id":""#, &format!(r#"","rest":"{rest}"}}"#))
}

/// Looks at one run for each way to connect, all at once.
pub(crate) fn each(behaviour: &str, measure: &str, look: impl Fn(Over, &Truth) + Sync) {
    each_of(|over| over.scenario(behaviour, measure), look);
}

/// The same of scenarios that are altered.
pub(crate) fn each_of(
    scenario: impl Fn(Over) -> String + Sync,
    look: impl Fn(Over, &Truth) + Sync,
) {
    let (scenario, look) = (&scenario, &look);
    std::thread::scope(|scope| {
        let runs = EACH.map(|over| scope.spawn(move || look(over, &named(&scenario(over)))));
        for run in runs {
            run.join().unwrap_or_else(|why| resume_unwind(why));
        }
    });
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree_and_a_peer_is_a_link() {
    each("", "1500ms", |over, truth| {
        truth.agrees();
        assert_eq!(truth.uplink("accepted"), MESSAGES, "{over:?}");
        assert_eq!(truth.uplink("arrived"), MESSAGES, "{over:?}");
        assert_eq!(truth.uplink("duplicate_responses"), 0, "{over:?}");
        assert_eq!(truth.exit_code, 0, "{over:?}");
        let links = match over.is_behind_gateways {
            true => LINKS,
            false => u64::from(DEVICES),
        };
        assert_eq!(truth.account("peers"), links, "{over:?}");
    });
}

/// Messages that were never answered, with and without delivery, or were answered too late.
#[test]
fn those_without_an_answer_in_time_are_those_that_the_gateway_left_without() {
    let behaviour = "drop: 13, ignore: 11, answer-late: { count: 9, by: 1500ms }";
    each(behaviour, "4s", |over, truth| {
        truth.agrees();
        let [dropped, ignored, late] = [("drop", 13), ("ignore", 11), ("answer-late", 9)]
            .map(|(name, wanted)| truth.befell(name, wanted));
        assert_eq!(
            truth.in_state("timed_out"),
            all([&dropped, &ignored, &late])
        );
        assert_eq!(truth.absent(), dropped, "{over:?}");
        assert_eq!(truth.uplink("timed_out_but_arrived"), 20, "{over:?}");
        assert_eq!(truth.uplink("answered_late"), 9, "{over:?}");
        assert_eq!(truth.account("separate"), 9, "{over:?}");
        assert_eq!(truth.uplink("lost"), 0, "{over:?}");
    });
}

#[test]
fn those_that_are_answered_twice_are_counted_and_change_nothing() {
    each("answer-twice: 13", "1500ms", |over, truth| {
        truth.agrees();
        truth.befell("answer-twice", 13);
        assert_eq!(truth.uplink("duplicate_responses"), 13, "{over:?}");
        assert_eq!(truth.cell("accepted", "arrived"), MESSAGES, "{over:?}");
        assert_eq!(truth.exit_code, 0, "{over:?}");
    });
}

#[test]
fn what_becomes_of_the_delivery_is_found_of_each_message() {
    let behaviour = "lose-after-accept: 17, duplicate: 12, reorder: 10, \
                     deliver-late: { count: 7, by: 300ms }";
    // What nothing overtakes is delivered after a second of silence: the phase outlasts that.
    each(behaviour, "3500ms", |over, truth| {
        truth.agrees();
        let lost = truth.befell("lose-after-accept", 17);
        assert_eq!(truth.uplink("lost"), 17, "{over:?}");
        assert_eq!(truth.lost_ids(), lost, "{over:?}");
        assert_eq!(truth.absent(), lost, "{over:?}");
        let twice = truth.befell("duplicate", 12);
        assert_eq!(truth.ids_where(|fared| fared.seen_us.len() == 2), twice);
        assert_eq!(truth.uplink("duplicates"), 12, "{over:?}");
        let [behind, late] = ["reorder", "deliver-late"].map(|name| truth.befell_some(name));
        let reordered = truth.reordered();
        assert!(behind.is_subset(&reordered), "{over:?}");
        assert!(reordered.is_subset(&all([&behind, &late])), "{over:?}");
        assert_eq!(truth.uplink("reordered"), reordered.len() as u64);
    });
}

/// Each comes after all others are due, when the run waits for one that never comes.
#[test]
fn those_that_are_refused_at_once_and_delivered_in_settling_are_both() {
    let behaviour = "lose-after-accept: 1, reject-but-deliver: { count: 9, by: 1800ms }";
    let waiting = |over: Over| {
        over.scenario(behaviour, "1500ms")
            .replace(QUIET, "quiet: 2500ms")
    };
    each_of(waiting, |over, truth| {
        truth.agrees();
        let both = truth.befell("reject-but-deliver", 9);
        assert_eq!(truth.by_code("5.03"), 9, "{over:?}");
        assert_eq!(truth.in_state("rejected"), both, "{over:?}");
        assert_eq!(truth.uplink("rejected_but_arrived"), 9, "{over:?}");
        assert_eq!(truth.cell("rejected", "arrived"), 9, "{over:?}");
        let last_due = truth.fared.values().map(|fared| fared.due_us).max();
        let in_settling = |at: &u64| Some(*at) > last_due;
        for id in &both {
            let fared = &truth.fared[id];
            assert_eq!(fared.seen_us.len(), 1, "{over:?} {id:?}");
            assert!(fared.seen_us.iter().all(in_settling), "{over:?} {fared:?}");
            assert!(fared.ended_us < fared.seen_us[0], "{over:?} {fared:?}");
        }
        assert_eq!(truth.absent(), truth.befell("lose-after-accept", 1));
        assert_eq!(truth.uplink("lost"), 1, "{over:?}");
    });
}

/// The id is a part of what is altered, so that some cannot be read any more.
#[test]
fn the_corrupted_are_counted_whether_or_not_their_id_can_be_read() {
    each("corrupt: 19", "1500ms", |over, truth| {
        truth.agrees();
        let corrupted = truth.befell("corrupt", 19);
        assert_eq!(truth.uplink("corrupted"), 19, "{over:?}");
        let unreadable = truth.absent();
        assert!(unreadable.is_subset(&corrupted), "{unreadable:?}");
        assert_eq!(truth.lost_ids(), unreadable, "{over:?}");
        let readable = corrupted.difference(&unreadable).copied().collect();
        assert_eq!(truth.ids_where(|fared| fared.is_corrupted), readable);
    });
}

/// By a count and by a share; what is answered no may be delivered all the same.
#[test]
fn the_rejected_are_the_same_whether_or_not_they_are_delivered() {
    for (kind, amount, refused) in [("telemetry", "count: 31", 31), ("event", "share: 10%", 60)] {
        let behaviour = format!("reject: {{ code: 429, {amount} }}, reject-but-deliver: 9");
        let scenario = |over: Over| {
            let scenario = over.scenario(&behaviour, "1500ms");
            let scenario = scenario.replace("timeout: 1s", "timeout: 4s");
            scenario.replace("rate: 400/s", &format!("kind: {kind}\n        rate: 400/s"))
        };
        each_of(scenario, |over, truth| {
            truth.agrees();
            let rejected = truth.befell("reject", refused);
            let delivered = truth.befell("reject-but-deliver", 9);
            assert_eq!(truth.in_state("rejected"), all([&rejected, &delivered]));
            assert_eq!(truth.absent(), rejected, "{over:?}");
            assert_eq!(truth.by_code("4.29"), refused as u64 + 9, "{over:?}");
            assert_eq!(truth.uplink("rejected_but_arrived"), 9, "{over:?}");
            assert_eq!(truth.cell("rejected", "arrived"), 9, "{over:?}");
            assert_eq!(truth.not_arrived("rejected"), refused as u64, "{over:?}");
            assert_eq!(truth.uplink("lost"), 0, "{over:?}");
            assert_eq!(truth.exit_code, 1, "{over:?}");
        });
    }
}

/// Longer than the gateway takes, in one message and in blocks: none is delivered.
#[test]
fn what_is_too_long_is_refused_and_named() {
    let whole = EACH.map(|over| (over, "max-payload: 50", PAYLOAD));
    // By the limit of the dialect. A gateway's socket has not the message ids for so many blocks.
    let in_blocks = ["coap", "coaps"].map(|scheme| (over(scheme, false), "", "size: 2049"));
    std::thread::scope(|scope| {
        for (over, limit, payload) in whole.into_iter().chain(in_blocks) {
            scope.spawn(move || is_too_long(over, limit, payload));
        }
    });
}

fn is_too_long(over: Over, limit: &str, payload: &str) {
    let scenario = over.scenario("", "1500ms").replace(PAYLOAD, payload);
    let truth = Truth::run(&scenario.replace("behaviour: {  }", limit));
    truth.closes();
    assert_eq!(truth.by_code("4.13"), MESSAGES, "{over:?} {limit}");
    assert_eq!(truth.account("refused-requests"), MESSAGES, "{over:?}");
    assert_eq!(truth.not_arrived("rejected"), MESSAGES, "{over:?}");
    let events = truth.result["events"].to_string();
    assert!(events.contains("maxPayloadSize"), "{events}");
}

/// A closed session says so (RFC 5246 section 7.2.1), and its link comes back.
#[test]
fn closed_sessions_are_counted_as_often_as_they_were_closed() {
    for is_behind_gateways in [false, true] {
        let over = over("coaps", is_behind_gateways);
        let truth = over.truth("close-links: { at: 700ms, share: 20% }", "1500ms");
        truth.closes();
        let links = if is_behind_gateways { LINKS } else { 50 };
        assert_eq!(truth.account("closed-links"), links / 5, "{over:?}");
        let links = &truth.result["links"];
        assert_eq!(sum(&links["disconnects"]), truth.account("closed-links"));
        assert_eq!(count(&links["connected"]), truth.account("dtls-handshakes"));
        assert_eq!(truth.uplink("arrived"), truth.account("delivered"));
        assert_eq!(truth.uplink("lost"), 0, "{over:?}");
    }
}

#[test]
fn where_there_are_no_links_none_can_be_closed() {
    let scenario = over("coap", false).scenario("close-links: { at: 1s, share: 20% }", "2s");
    let why = refusal(&scenario).expect("it is refused");
    assert!(
        why.contains("`close-links` has no meaning over coap://"),
        "{why}"
    );
    assert!(why.contains("truth.yaml:8:"), "{why}");
}

pub(crate) fn all<const N: usize>(sets: [&BTreeSet<Id>; N]) -> BTreeSet<Id> {
    sets.into_iter().flatten().copied().collect()
}
