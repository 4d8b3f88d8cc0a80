//! Counters made by hand.

use muster_platform::{CounterKey, Dialect};

use super::*;

fn reader(dialect: Dialect) -> CounterReader {
    let names = dialect.spec().counters.as_ref();
    CounterReader::new(names.expect("it has some"), ["t1".to_owned()].into())
}

fn counts(all: &[(&str, &str, u64)]) -> CounterCounts {
    let entries = all.iter().map(|(kind, status, count)| {
        let (kind, status) = ((*kind).to_owned(), (*status).to_owned());
        (CounterKey { kind, status }, *count)
    });
    entries.collect()
}

fn details(of: &CountersEnd) -> Vec<&str> {
    let events = of.unread.iter();
    events.map(|event| event.detail.as_str()).collect()
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
    let reader = reader(Dialect::Hono);
    let both = summed(&reader, &[page(), page()], 9.0);
    assert!(both.unread.is_empty());
    assert_eq!(both.counters[0].grown, Some(100));
    let one = summed(&reader, &[page(), Err("b: silent".to_owned())], 9.0);
    assert_eq!(one.counters[0].grown, None);
    let told = ["how the platform's own counters grew is not known: b: silent"];
    assert_eq!(details(&one), told);
    let none = summed(&reader, &[Ok(counts(&[]))], 9.0);
    assert!(none.counters.is_empty());
    let [told] = details(&none)[..] else {
        panic!("{:?}", details(&none));
    };
    assert!(
        told.contains("_duration_seconds_count` of tenant t1 (are they pages"),
        "{told}"
    );
}

#[test]
fn a_metric_that_the_server_does_not_export_is_named_and_the_others_are_known() {
    let page = counts(&[
        ("ruleEngine_producer", "successfulMsgs", 600),
        ("ruleEngine queues", "successfulMsgs", 600),
    ]);
    let end = summed(&reader(Dialect::Thingsboard), &[Ok(page)], 9.0);
    let told = "how the platform's own counters grew is not known: no page has `ts_queue_*_total` (does ThingsBoard keep \
                time series in PostgreSQL?)";
    assert_eq!(details(&end), [told]);
    let of = |kind: &str| {
        let mut counters = end.counters.iter();
        counters
            .find(|of| of.kind == kind && of.status == "successfulMsgs")
            .expect("it")
            .grown
    };
    assert_eq!((of("ruleEngine queues"), of("ts_queue")), (Some(600), None));
}
