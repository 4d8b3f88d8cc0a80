//! Counters made by hand.

use muster_platform::Dialect;

use super::*;

fn reading(tenants: &[&str]) -> Reading {
    let names = Dialect::Hono.spec().counters.as_ref();
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

#[test]
fn what_is_beyond_all_counting_is_counted_as_the_most() {
    let line = "hono_telemetry_processing_duration_seconds_count{tenant=\"t1\",type=\"event\",status=\"forwarded\"} \
                9007199254740991\n";
    let most = counts(&[("event", "forwarded", u64::MAX)]);
    assert_eq!(reading(&["t1"]).counts(&line.repeat(2_049)), most);
}
