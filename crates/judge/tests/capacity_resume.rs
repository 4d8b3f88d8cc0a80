//! A search that goes on with another budget: its steps depend on the budget, those that were held do not change.

use muster_judge::capacity::{Next, Observed, Outcome, Phase, Search, SearchEnd, SearchSpec, Step};
use muster_model::Micros;

const CAPACITY: f64 = 7_340.0;
/// Half the width around the capacity in which steps contradict each other.
const NOISE: f64 = 0.03;

fn spec(budget_s: u64) -> SearchSpec {
    let (short, long) = SearchSpec::lengths(Micros::from_millis(250));
    SearchSpec {
        first: 50.0,
        most: 100_000.0,
        width: 0.1,
        short,
        long,
        load_seconds: 0.0,
        budget: Micros::from_secs(budget_s),
    }
}

/// The outcome of the step with this number.
fn outcome(step: &Step, number: usize) -> Outcome {
    let is_near = (step.rate / CAPACITY - 1.0).abs() < NOISE;
    match (step.rate < CAPACITY) != (is_near && number.is_multiple_of(3)) {
        true => Outcome::Pass,
        false => Outcome::Fail,
    }
}

fn took(step: &Step) -> Micros {
    step.hold + Micros::from_secs(2)
}

/// Goes on to the end.
fn end(search: &mut Search) -> SearchEnd {
    loop {
        match search.next() {
            Next::End(end) => return end,
            Next::Hold(step) => {
                let outcome = outcome(&step, search.tried().len());
                search.record(&Observed::new(outcome, took(&step)));
            }
        }
    }
}

#[test]
fn steps_of_one_budget_keep_their_rates_lengths_and_outcomes_in_a_search_with_another() {
    let mut is_other = false;
    for budget in (60..900).step_by(70) {
        let mut earlier = Search::new(spec(budget)).expect("a search");
        end(&mut earlier);
        for (other, is_longer) in [(1_800, true), (40, false)] {
            let mut search = Search::new(spec(other)).expect("a search");
            for tried in earlier.tried() {
                is_other |= is_longer && search.next() != Next::Hold(tried.step);
                let observed = Observed::new(tried.outcome, took(&tried.step));
                search.replay(&tried.step, &observed);
            }
            assert_eq!(
                search.tried(),
                earlier.tried(),
                "{budget} s, then {other} s"
            );
            assert_eq!(search.known(), earlier.known());
            let end = end(&mut search);
            let held = earlier.tried().len();
            assert_eq!(&search.tried()[..held], earlier.tried());
            let interval = match &end {
                SearchEnd::Found(found) => {
                    assert!(found.first_failing >= found.interval.lower);
                    Some(found.interval)
                }
                SearchEnd::OutOfBudget { known, .. } => *known,
                SearchEnd::FailsAtFirst { .. }
                | SearchEnd::AtLeast { .. }
                | SearchEnd::NothingClear { .. }
                | SearchEnd::NotRecovered { .. } => panic!("{budget} s, then {other} s: {end:?}"),
            };
            if let (Some(interval), true) = (interval, is_longer) {
                let near = [1.0 - NOISE, 1.0, 1.0 + NOISE].map(|part| CAPACITY * part);
                let is_in = |rate: &f64| interval.lower < *rate && *rate < interval.upper;
                assert!(near.iter().any(is_in), "{budget} s: {interval:?}");
            }
        }
    }
    assert!(is_other, "no step depends on the budget");
}

#[test]
fn a_step_of_a_target_that_was_idle_confirms_nothing() {
    let mut search = Search::new(spec(1_800)).expect("a search");
    let step = loop {
        match search.next() {
            Next::End(end) => panic!("it ends before its confirmation: {end:?}"),
            Next::Hold(step) if step.phase == Phase::ConfirmUpper => break step,
            Next::Hold(step) => {
                let outcome = match step.rate < CAPACITY {
                    true => Outcome::Pass,
                    false => Outcome::Fail,
                };
                search.record(&Observed::new(outcome, took(&step)));
            }
        }
    };
    let phase_after = |mut search: Search| {
        search.record(&Observed::new(Outcome::Fail, took(&step)));
        match search.next() {
            Next::Hold(step) => step.phase,
            Next::End(end) => panic!("it lacks two passes: {end:?}"),
        }
    };
    assert_eq!(phase_after(search.clone()), Phase::ConfirmLower);
    search.cool();
    assert_eq!(phase_after(search), Phase::ConfirmUpper);
}
