//! Devices over HTTP and HTTPS: the ledger of a run against the gateway's own account, message by message.

use crate::hono::{all, named};
use crate::truth::{MESSAGES, Truth, count, sum};

/// Each device has one message: over HTTP one without an answer would keep those behind it waiting. The
/// target's misbehaviour is the subject, not the speed of a machine that runs other tests beside it: a busy one may
/// send late and sheds nothing for that.
const SCENARIO: &str = r#"
name: truth
seed: 7
platform: { kind: gateway, dialect: hono, devices: [ "SCHEME://127.0.0.1:0" ], behaviour: { BEHAVIOUR } }
fleet:
  - name: meters
    count: 600
    tenant: t1
    credential: { kind: password, secret: "key-${index}" }
    obey-retry-after: false
    streams:
      - name: readings
        rate: 400/s
        count: 1
        timeout: TIMEOUT
        payload: { template: '{"id":"${stamp}","rest":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}' }
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 60s, quiet: 2s } }
slo: { loss: 0, failure-ratio: 0 }
validity: { max-lateness: 60s }
"#;

fn scenario(scheme: &str, behaviour: &str) -> String {
    // Only where an answer is missing does a run wait for a time-out.
    let (timeout, lasts) = match behaviour.contains("answer-late") {
        true => ("2s", "8s"),
        false => ("30s", "1600ms"),
    };
    SCENARIO
        .replace("SCHEME", scheme)
        .replace("BEHAVIOUR", behaviour)
        .replace("TIMEOUT", timeout)
        .replace("MEASURE", lasts)
}

/// Looks at a run over HTTP and at one over HTTPS, both at once, which break these rules.
fn each(behaviour: &str, broken: &[&str], look: impl Fn(&Truth) + Sync) {
    let run = |scheme: &str| {
        let truth = named(&scenario(scheme, behaviour));
        truth.agrees();
        truth.is_judged(broken, &format!("{scheme}, {behaviour}"));
        look(&truth);
    };
    std::thread::scope(|scope| {
        let run = &run;
        let runs = ["http", "https"].map(|scheme| scope.spawn(move || run(scheme)));
        for run in runs {
            run.join()
                .unwrap_or_else(|why| std::panic::resume_unwind(why));
        }
    });
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree_and_a_link_is_a_connection() {
    each("", &[], |truth| {
        assert_eq!(truth.uplink("accepted"), MESSAGES);
        assert_eq!(truth.uplink("arrived"), MESSAGES);
        assert_eq!(truth.account("http-connections"), MESSAGES);
    });
}

/// The device closes a connection on which a request had no answer in time, and a late answer then finds nobody.
#[test]
fn messages_without_an_answer_in_time_are_those_that_the_gateway_left_without() {
    let behaviour = "drop: 13, ignore: 11, answer-late: { count: 9, by: 3s }";
    each(behaviour, &["failure-ratio"], |truth| {
        let [dropped, ignored, late] = [("drop", 13), ("ignore", 11), ("answer-late", 9)]
            .map(|(name, wanted)| truth.befell(name, wanted));
        assert_eq!(
            truth.in_state("timed_out"),
            all([&dropped, &ignored, &late])
        );
        assert_eq!(truth.absent(), dropped);
        assert_eq!(truth.uplink("timed_out_but_arrived"), 20);
        let unanswered = (truth.account("unanswered"), truth.account("unanswerable"));
        assert_eq!(unanswered, (24, 9));
        let ends = &truth.result["links"]["disconnects"];
        assert_eq!(count(&ends["request-unanswered"]), 33, "{ends}");
        assert_eq!(truth.uplink("lost"), 0);
    });
}

/// A second answer could be taken for that to another request: the connection ends, and the cause is named.
#[test]
fn a_second_answer_changes_nothing_and_ends_its_connection() {
    each("answer-twice: 13", &["disconnects"], |truth| {
        truth.befell("answer-twice", 13);
        assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
        let ends = &truth.result["links"]["disconnects"];
        assert_eq!(count(&ends["malformed"]), 13, "{ends}");
        assert_eq!(sum(ends), 13, "{ends}");
    });
}

#[test]
fn what_becomes_of_the_delivery_is_found_of_each_message() {
    let behaviour = "lose-after-accept: 17, duplicate: 12, deliver-late: { count: 7, by: 300ms }";
    each(behaviour, &["loss"], |truth| {
        let lost = truth.befell("lose-after-accept", 17);
        assert_eq!(truth.uplink("lost"), 17);
        assert_eq!((truth.lost_ids(), truth.absent()), (lost.clone(), lost));
        let twice = truth.befell("duplicate", 12);
        assert_eq!(truth.ids_where(|fared| fared.seen_us.len() == 2), twice);
        assert_eq!(truth.uplink("duplicates"), 12);
        truth.befell("deliver-late", 7);
    });
}

#[test]
fn the_corrupted_are_counted_whether_or_not_their_id_can_be_read() {
    each("corrupt: 19", &["loss"], |truth| {
        let corrupted = truth.befell("corrupt", 19);
        assert_eq!(truth.uplink("corrupted"), 19);
        let unreadable = truth.absent();
        assert!(unreadable.is_subset(&corrupted), "{unreadable:?}");
        let readable = corrupted.difference(&unreadable).copied().collect();
        assert_eq!(truth.ids_where(|fared| fared.is_corrupted), readable);
    });
}

#[test]
fn the_rejected_are_counted_by_their_code_whether_or_not_they_are_delivered() {
    each(
        "reject: { code: 429, count: 31 }, reject-but-deliver: 9",
        &["failure-ratio"],
        |truth| {
            let rejected = truth.befell("reject", 31);
            let delivered = truth.befell("reject-but-deliver", 9);
            assert_eq!(truth.in_state("rejected"), all([&rejected, &delivered]));
            assert_eq!(truth.absent(), rejected);
            assert_eq!(truth.by_code("http-429"), 40);
            assert_eq!(truth.uplink("rejected_but_arrived"), 9);
            assert_eq!(truth.account("http-connections"), MESSAGES);
        },
    );
}

/// The server ends the connection with its answer, since it does not read the body.
#[test]
fn what_is_too_long_is_refused_and_named() {
    let truth = Truth::run(&scenario("http", "").replace("behaviour: {  }", "max-payload: 50"));
    truth.closes();
    truth.is_judged(&["failure-ratio"], "what is too long");
    assert_eq!(truth.by_code("http-413"), MESSAGES);
    assert_eq!(truth.account("refused-requests"), MESSAGES);
    assert_eq!(truth.not_arrived("rejected"), MESSAGES);
    assert_eq!(truth.account("http-connections"), MESSAGES);
    let events = truth.result["events"].to_string();
    assert!(events.contains("maxPayloadSize"), "{events}");
}

/// A request that is under way when its connection is closed is not read.
#[test]
fn closed_connections_are_counted_as_often_as_they_were_closed() {
    for scheme in ["http", "https"] {
        let truth = Truth::run(&scenario(scheme, "close-links: { at: 700ms, share: 20% }"));
        truth.closes();
        assert_eq!(truth.account("closed-links"), MESSAGES / 5);
        let ends = &truth.result["links"]["disconnects"];
        assert_eq!(sum(ends), MESSAGES / 5, "{ends}");
        assert_eq!(truth.uplink("arrived"), truth.account("delivered"));
        assert_eq!(truth.uplink("lost"), 0);
    }
}
