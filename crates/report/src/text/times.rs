//! The table of latencies.

use std::collections::BTreeMap;

use crate::figures::in_words;
use crate::number::{count, latency};
use crate::{Latencies, LatencyFigures, Percentiles, StreamAccount};

/// A leg of a table of latencies.
pub(super) type Leg = fn(&Latencies) -> Option<&LatencyFigures>;

/// The legs that the summary shows, and whether its cold and warm messages stand below it.
pub(super) const LEGS: [(&str, Leg, bool); 7] = [
    ("response", |of| of.response.as_ref(), true),
    ("end-to-end", |of| of.end_to_end.as_ref(), true),
    ("lateness (own)", |of| of.lateness.as_ref(), false),
    ("connect", |of| of.connect.as_ref(), false),
    ("query", |of| of.command_request.as_ref(), true),
    ("reply", |of| of.command_response.as_ref(), true),
    ("command loop", |of| of.command_loop.as_ref(), true),
];

/// The answered; below them all due, the unanswered at their lower bound, and the answered without our
/// own delay, where that differs.
pub(super) fn rows(name: &str, leg: &LatencyFigures) -> Vec<String> {
    let mut rows = vec![row(name, leg)];
    let (answered, all_due) = (leg.percentiles, leg.all_due.unwrap_or_default());
    if leg.all_due.is_some() && percentile_cells(&answered) != percentile_cells(&all_due) {
        let (cells, due) = (percentile_cells(&all_due), count(leg.count + leg.censored));
        rows.push(format!("  {:<14}{cells}{:>9}{due:>11}", "  of all due", ""));
    }
    let lower = leg.lower.map(|lower| cells(|name| own_words(&lower, name)));
    if let Some(cells) = lower.filter(|cells| *cells != percentile_cells(&answered)) {
        rows.push(format!("  {:<14}{cells}", "  without own"));
    }
    rows
}

fn row(name: &str, leg: &LatencyFigures) -> String {
    let (cells, max) = (percentile_cells(&leg.percentiles), latency(leg.max_us));
    let (answered, censored) = (count(leg.count), count(leg.censored));
    format!("  {name:<14}{cells}{max:>9}{answered:>11}{censored:>9}")
}

fn percentile_cells(of: &Percentiles) -> String {
    cells(|name| {
        let words = in_words(of, name);
        // A lower bound fits without its blanks.
        match of.at_least.holds(name) {
            true => words.replace(' ', ""),
            false => words,
        }
    })
}

/// A time without our own delay; where none is left, all of it may be our own.
fn own_words(of: &Percentiles, name: &str) -> String {
    match of.us(name) {
        Some(0) => "all own".to_owned(),
        Some(_) | None => in_words(of, name),
    }
}

/// The cells of the percentiles, each by its field's name.
fn cells(words: impl Fn(&str) -> String) -> String {
    let cells = [("p50_us", 8), ("p90_us", 9), ("p99_us", 9), ("p99_9_us", 9)];
    let cells = cells.map(|(name, width)| format!("{:>width$}", words(name)));
    cells.concat()
}

/// Time that bursts took to go out, for each stream that sends bursts.
pub(super) fn bursts(streams: &BTreeMap<String, StreamAccount>) -> Vec<String> {
    let lengths = streams
        .iter()
        .filter_map(|(name, of)| Some((name, of.burst_us?)));
    lengths
        .map(|(name, us)| format!("{name}: sent within {} of due", latency(Some(us))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, text};

    #[test]
    fn percentiles_of_all_due_stand_below_those_of_the_answered_where_they_differ() {
        let percentiles = |p99_us| Percentiles {
            p99_us: Some(p99_us),
            ..Percentiles::default()
        };
        let mut leg = LatencyFigures {
            count: 990,
            censored: 10,
            percentiles: percentiles(4_000),
            all_due: Some(percentiles(9_000_000)),
            ..LatencyFigures::default()
        };
        let mut report = Report::default();
        report.latency.response = Some(leg.clone());
        let summary = text(&report, 80);
        let told = summary.lines().find(|line| line.contains("of all due"));
        let told = told.expect("a line of its own");
        assert!(
            told.contains("9.00 s") && told.contains("1,000"),
            "{summary}"
        );
        let all_due = leg.all_due.as_mut().expect("all due");
        all_due.at_least.add("p99_us");
        report.latency.response = Some(leg.clone());
        let summary = text(&report, 80);
        assert!(summary.contains(">=9.00s"), "a lower bound: {summary}");
        leg.all_due = Some(leg.percentiles);
        report.latency.response = Some(leg);
        assert!(!text(&report, 80).contains("of all due"));
    }

    #[test]
    fn the_times_without_our_own_delay_stand_below_where_they_differ() {
        let percentiles = |p99_us| Percentiles {
            p99_us: Some(p99_us),
            ..Percentiles::default()
        };
        let leg = |lower| LatencyFigures {
            count: 1_000,
            percentiles: percentiles(12_400),
            lower: Some(percentiles(lower)),
            ..LatencyFigures::default()
        };
        let told = |lower| rows("response", &leg(lower)).join("\n");
        let differing = told(9_300);
        let (upper, lower) = differing.split_once('\n').expect("two rows");
        assert!(upper.contains("12.4 ms"), "{upper}");
        assert!(
            lower.contains("without own") && lower.contains("9.30 ms"),
            "{lower}"
        );
        assert!(
            !told(12_400).contains("without own"),
            "the same twice says nothing"
        );
        assert!(told(0).ends_with("all own        -"), "{}", told(0));
    }

    #[test]
    fn the_length_of_bursts_is_told_of_streams_that_send_such() {
        let account = |burst_us| StreamAccount {
            burst_us,
            ..StreamAccount::default()
        };
        let streams = [("m/a", account(None)), ("m/b", account(Some(12_400)))];
        let streams = streams.map(|(name, of)| (name.to_owned(), of)).into();
        assert_eq!(bursts(&streams), ["m/b: sent within 12.4 ms of due"]);
    }
}
