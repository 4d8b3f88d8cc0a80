//! Several sets of service levels, one sequence of steps.

use muster_judge::capacity::{Interval, Next, Outcome, Search, SearchEnd, SearchError, Searches};
use muster_model::Micros;
use proptest::prelude::*;

use crate::searching::spec;

const PAUSE: Micros = Micros::from_secs(2);

/// Outcomes of a step for sets that hold up to these rates.
fn outcomes(limits: &[f64], rate: f64) -> Vec<Outcome> {
    let outcome = |limit: &f64| match rate <= *limit {
        true => Outcome::Pass,
        false => Outcome::Fail,
    };
    limits.iter().map(outcome).collect()
}

/// Runs the searches to their ends; the number of steps too.
fn search(limits: &[f64]) -> (Vec<SearchEnd>, usize) {
    let mut searches = Searches::new(&spec(), limits.len()).expect("a valid specification");
    let mut steps = 0;
    while let Some(step) = searches.next() {
        searches.record(&outcomes(limits, step.rate), step.hold + PAUSE, true);
        steps += 1;
    }
    (searches.ends().flatten().collect(), steps)
}

fn alone(limit: f64) -> usize {
    let mut search = Search::new(spec()).expect("a valid specification");
    let mut steps = 0;
    while let Next::Hold(step) = search.next() {
        search.record(outcomes(&[limit], step.rate)[0], step.hold + PAUSE, true);
        steps += 1;
    }
    steps
}

#[test]
fn steps_serve_every_set() {
    let limits = [4_000.0, 4_300.0, 9_000.0];
    let (ends, steps) = search(&limits);
    let each: usize = limits.iter().map(|limit| alone(*limit)).sum();
    assert!(
        ends.iter().all(|end| matches!(end, SearchEnd::Found(_))),
        "{ends:?}"
    );
    assert!(steps * 4 <= each * 3, "{steps} instead of {each}");
}

#[test]
fn sets_that_never_or_always_hold_leave_the_others_their_answer() {
    let (ends, _) = search(&[1.0, 2_000.0, f64::INFINITY]);
    assert_eq!(ends[0], SearchEnd::FailsAtFirst { rate: 50.0 });
    assert!(matches!(ends[1], SearchEnd::Found(_)), "{:?}", ends[1]);
    assert_eq!(ends[2], SearchEnd::AtLeast { rate: 100_000.0 });
}

#[test]
fn a_target_that_does_not_come_back_ends_every_search() {
    let mut searches = Searches::new(&spec(), 2).expect("a valid specification");
    searches.record(&[Outcome::Pass, Outcome::Pass], PAUSE, true);
    searches.record(&[Outcome::Fail, Outcome::Pass], PAUSE, false);
    assert_eq!(searches.next(), None);
    let is_lost = |end: &SearchEnd| matches!(end, SearchEnd::NotRecovered { .. });
    assert_eq!(searches.ends().flatten().filter(is_lost).count(), 2);
}

#[test]
fn without_a_set_there_is_no_search() {
    assert_eq!(
        Searches::new(&spec(), 0).map(|_| ()),
        Err(SearchError::NoSets)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// Law: each set gets its capacity, or the budget of all is spent; a search that was interrupted goes on
    /// with the same step.
    #[test]
    fn each_set_gets_its_answer(limits in proptest::collection::vec(60.0..80_000.0_f64, 1..4)) {
        let mut whole = Searches::new(&spec(), limits.len()).expect("a valid specification");
        let mut held = Vec::new();
        while let Some(step) = whole.next() {
            let mut again = Searches::new(&spec(), limits.len()).expect("a valid specification");
            for rate in &held {
                again.record(&outcomes(&limits, *rate), Micros::from_secs(9), true);
            }
            prop_assert_eq!(again.next(), Some(step));
            held.push(step.rate);
            whole.record(&outcomes(&limits, step.rate), Micros::from_secs(9), true);
        }
        for (limit, end) in limits.iter().zip(whole.ends()) {
            let interval = match end {
                Some(SearchEnd::Found(found)) => Some(found.interval),
                Some(SearchEnd::OutOfBudget { known, .. }) => known,
                end => panic!("{end:?}"),
            };
            let covers = |it: Interval| it.lower <= *limit && *limit <= it.upper;
            prop_assert!(interval.is_none_or(covers), "{limit}: {interval:?}");
        }
    }
}
