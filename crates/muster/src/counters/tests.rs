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

fn plan() -> Plan {
    let source = Source {
        name: "t.yaml",
        text: SCENARIO,
    };
    parse(source, &Overrides::new(), &NoFiles).expect("a scenario")
}

fn reading(tenants: &[&str]) -> Reading {
    let names = plan().platform.dialect().spec().counters.as_ref();
    Reading {
        names: names.expect("Hono has some"),
        tenants: tenants.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn counts(all: &[(&str, &str, u64)]) -> Counts {
    let entries = all.iter();
    entries
        .map(|(kind, status, count)| (((*kind).to_owned(), (*status).to_owned()), *count))
        .collect()
}

#[test]
fn a_page_is_summed_over_what_the_labels_tell_beside() {
    let metric = "hono_telemetry_processing_duration_seconds";
    let page = format!(
        "{metric}_count{{tenant=\"t1\",type=\"telemetry\",status=\"forwarded\",ttd=\"none\"}} 5\n\
         {metric}_count{{tenant=\"t1\",type=\"telemetry\",status=\"forwarded\",ttd=\"command\"}} 7\n\
         {metric}_count{{tenant=\"t1\",type=\"event\",status=\"undeliverable\"}} 1\n\
         {metric}_count{{tenant=\"t2\",type=\"event\",status=\"forwarded\"}} 100\n\
         {metric}_sum{{tenant=\"t1\",type=\"event\",status=\"forwarded\"}} 3\n\
         hono_telemetry_processing_duration_count{{tenant=\"t3\",type=\"event\",status=\"forwarded\"}} 9\n"
    );
    let of_one = [
        ("event", "undeliverable", 1),
        ("telemetry", "forwarded", 12),
    ];
    assert_eq!(reading(&["t1"]).counts(&page), counts(&of_one));
    let of_others = [("event", "forwarded", 109)];
    assert_eq!(reading(&["t2", "t3"]).counts(&page), counts(&of_others));
}

#[test]
fn what_grew_is_the_difference_and_what_fell_began_anew() {
    let before = counts(&[("telemetry", "forwarded", 100)]);
    let after = counts(&[("event", "forwarded", 3), ("telemetry", "forwarded", 150)]);
    let grown = counts(&[("event", "forwarded", 3), ("telemetry", "forwarded", 50)]);
    assert_eq!(growth(&before, &after), Ok(grown));
    for (after, has) in [
        (counts(&[("telemetry", "forwarded", 99)]), "99 after"),
        (counts(&[]), "0 after"),
    ] {
        let why = growth(&before, &after).expect_err("it fell");
        assert!(why.contains("began anew") && why.contains(has), "{why}");
    }
}

#[test]
fn a_sum_is_known_only_where_every_page_is() {
    let page = || Ok(counts(&[("telemetry", "forwarded", 50)]));
    let both = summed(&[page(), page()], 9.0);
    assert!(both.unread.is_empty());
    assert_eq!(both.counters[0].grown, Some(100));
    let one = summed(&[page(), Err("b: silent".to_owned())], 9.0);
    assert_eq!(one.counters[0].grown, None);
    let told: Vec<&str> = one
        .unread
        .iter()
        .map(|event| event.detail.as_str())
        .collect();
    assert_eq!(
        told,
        ["how the platform's own counters grew is not known: b: silent"]
    );
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
        assert_eq!((forwarded.ledger, forwarded.unanswered), (17, 1));
        assert_eq!(forwarded.agrees, Some(agrees), "{grown}");
        assert_eq!(differing(forwarded).is_none(), agrees, "{grown}");
    }
}

#[test]
fn rejected_messages_are_told_apart_by_the_class_of_their_code() {
    let rows = rows(&[noted("telemetry", "undeliverable", Some(1))]);
    assert_eq!(rows.len(), 6, "two types, three statuses");
    let of = |status| {
        let row = row(&rows, "telemetry", status);
        (row.grown, row.ledger, row.agrees)
    };
    assert_eq!(of("undeliverable"), (Some(1), 1, Some(true)));
    // The adapter need not count what it refuses as wrong.
    assert_eq!(of("unprocessable"), (Some(0), 1, None));
    assert_eq!(row(&rows, "event", "forwarded").agrees, Some(false));
}

#[test]
fn what_others_sent_is_told_and_what_is_not_known_is_no_difference() {
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
    let told = "hono says 3 event forwarded, the ledger 0: ";
    assert!(warning.detail.starts_with(told), "{}", warning.detail);
    for noted in [&[][..], &[noted("telemetry", "forwarded", None)]] {
        let rows = compared(&alone, noted, &ledgers.each_ref());
        assert!(
            rows.iter()
                .all(|row| row.grown.is_none() && row.agrees.is_none())
        );
        assert_eq!(rows.iter().find_map(differing), None);
    }
}

#[test]
fn what_is_beyond_all_counting_is_counted_as_the_most() {
    let line = "hono_telemetry_processing_duration_seconds_count{tenant=\"t1\",type=\"event\",status=\"forwarded\"} \
                9007199254740991\n";
    let most = counts(&[("event", "forwarded", u64::MAX)]);
    assert_eq!(reading(&["t1"]).counts(&line.repeat(2_049)), most);
}
