//! Counters made by hand.

use muster_scenario::{NoFiles, Overrides, Source, parse};

use super::*;

const SCENARIO: &str = "name: t
platform: { kind: hono, devices: [ \"coap://h\" ] }
fleet:
  - name: f
    tenant: t1
    streams: [ { name: a, rate: 1/s }, { name: b, topic: t, rate: 1/s }, { name: e, kind: event, rate: 1/s } ]
";

const BOARD: &str = "name: t
platform: { kind: thingsboard, devices: [ \"mqtt://h\" ] }
fleet:
  - name: f
    streams:
      - { name: a, rate: 1/s }
      - { name: b, topic: v1/devices/me/attributes, rate: 1/s, payload: { template: '{\"a\":1}' } }
      - { name: c, topic: v1/devices/me/claim, rate: 1/s }
";

fn plan() -> Plan {
    plan_of(SCENARIO)
}

fn plan_of(text: &str) -> Plan {
    let source = Source {
        name: "t.yaml",
        text,
    };
    parse(source, &Overrides::new(), &NoFiles).expect("a scenario")
}

fn noted(kind: &str, status: &str, grown: Option<u64>) -> NotedCounter {
    NotedCounter {
        kind: kind.to_owned(),
        status: status.to_owned(),
        grown,
    }
}

/// Ten messages of each stream: of telemetry two are rejected, and one has no answer.
fn ledgers() -> [Ledger; 3] {
    let accepted = |accepted| Ledger {
        accepted,
        ..Ledger::default()
    };
    let mut telemetry = accepted(7);
    telemetry.timed_out = 1;
    telemetry.rejected_by_code = [("4.13".to_owned(), 1), ("5.03".to_owned(), 1)].into();
    [telemetry, accepted(10), accepted(10)]
}

fn rows(noted: &[NotedCounter]) -> Vec<CounterGrowth> {
    let ledgers = ledgers();
    compared(&plan(), noted, &ledgers.each_ref())
}

fn row<'a>(rows: &'a [CounterGrowth], kind: &str, status: &str) -> &'a CounterGrowth {
    let mut rows = rows.iter();
    let found = rows.find(|row| row.kind == kind && row.status == status);
    found.expect("a row")
}

#[test]
fn streams_of_one_type_are_summed_and_what_nobody_answered_may_count() {
    for (grown, agrees) in [(16, false), (17, true), (18, true), (19, false)] {
        let rows = rows(&[noted("telemetry", "forwarded", Some(grown))]);
        let forwarded = row(&rows, "telemetry", "forwarded");
        assert_eq!((forwarded.ledger, forwarded.unanswered), (Some(17), 1));
        assert_eq!(forwarded.agrees, Some(agrees), "{grown}");
        assert_eq!(differing(forwarded).is_none(), agrees, "{grown}");
    }
}

#[test]
fn rejected_messages_are_counted_by_the_class_of_their_code() {
    let rows = rows(&[noted("telemetry", "undeliverable", Some(1))]);
    assert_eq!(rows.len(), 6, "two types, three statuses");
    let of = |status| {
        let row = row(&rows, "telemetry", status);
        (row.grown, row.ledger, row.agrees)
    };
    assert_eq!(of("undeliverable"), (Some(1), Some(1), Some(true)));
    // The adapter need not count what it refuses as wrong.
    assert_eq!(of("unprocessable"), (Some(0), Some(1), None));
    assert_eq!(row(&rows, "event", "forwarded").agrees, Some(false));
}

#[test]
fn messages_of_others_are_a_warning_and_an_unknown_count_is_none() {
    let mut alone = plan();
    alone.fleets[0].streams.truncate(2);
    let ledgers = ledgers();
    let all = [
        noted("telemetry", "forwarded", Some(17)),
        noted("event", "forwarded", Some(3)),
    ];
    let rows = compared(&alone, &all, &ledgers.each_ref()[..2]);
    let warning = differing(row(&rows, "event", "forwarded")).expect("it differs");
    assert_eq!(warning.kind, WarningKind::CountersDiffer);
    let expected = "hono says 3 event forwarded, the ledger 0: ";
    assert!(warning.detail.starts_with(expected), "{}", warning.detail);
    for noted in [&[][..], &[noted("telemetry", "forwarded", None)]] {
        let rows = compared(&alone, noted, &ledgers.each_ref());
        assert!(
            rows.iter()
                .all(|row| row.grown.is_none() && row.agrees.is_none())
        );
        assert_eq!(rows.iter().find_map(differing), None);
    }
}

/// Counts of a ThingsBoard next to the ledgers' 17 accepted messages of telemetry and attributes, one without an answer.
fn on_board(noted: &[NotedCounter]) -> Vec<CounterGrowth> {
    let ledgers = ledgers();
    compared(&plan_of(BOARD), noted, &ledgers.each_ref())
}

#[test]
fn messages_of_others_may_hide_that_some_are_missing_in_a_rule_engine() {
    let queues = "ruleEngine queues";
    for (grown, agrees) in [(16, Some(false)), (17, None), (18, None), (19, None)] {
        let rows = on_board(&[noted(queues, "successfulMsgs", Some(grown))]);
        let processed = row(&rows, queues, "successfulMsgs");
        assert_eq!(
            (processed.ledger, processed.agrees),
            (Some(17), agrees),
            "{grown}"
        );
        assert_eq!(
            differing(processed).is_some(),
            agrees == Some(false),
            "{grown}"
        );
    }
}

#[test]
fn messages_that_failed_behind_their_acknowledgement_are_a_warning() {
    let queues = "ruleEngine queues";
    let all = [
        noted(queues, "failedMsgs", Some(53)),
        noted(queues, "tmpFailed", Some(60)),
        noted("ts_queue", "successfulMsgs", None),
    ];
    let rows = on_board(&all);
    let failed = row(&rows, queues, "failedMsgs");
    assert_eq!((failed.ledger, failed.agrees), (None, Some(false)));
    let warning = differing(failed).expect("a warning");
    let expected = "thingsboard says 53 ruleEngine queues failedMsgs, perhaps lost behind their acknowledgement: those of \
                    others count too, and a message may have been stored";
    assert_eq!(warning.detail, expected);
    let tried_again = row(&rows, queues, "tmpFailed");
    assert_eq!((tried_again.grown, tried_again.agrees), (Some(60), None));
    let saved = row(&rows, "ts_queue", "successfulMsgs");
    assert_eq!((saved.grown, saved.agrees), (None, None));
}
