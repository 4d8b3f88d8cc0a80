//! Searches for several sets of service levels, which share their steps.

use muster_judge::capacity::{JointSearch, Next, Observed, Outcome, SearchEnd, SearchSpec};
use muster_model::Micros;
use proptest::prelude::*;

fn spec() -> SearchSpec {
    let (short, long) = SearchSpec::lengths(Micros::from_millis(250));
    SearchSpec {
        first: 50.0,
        most: 100_000.0,
        width: 0.1,
        short,
        long,
        load_seconds: 0.0,
        budget: Micros::from_secs(2_400),
    }
}

/// Searches for sets that hold up to these rates, to their ends, with the number of steps.
fn ends(limits: &[f64]) -> (Vec<SearchEnd>, usize) {
    let mut joint = JointSearch::new(&spec(), limits.len()).expect("a valid specification");
    let mut steps = 0;
    while let Some(turn) = joint.next() {
        let took = turn.step.hold + Micros::from_secs(2);
        let mut outcomes = vec![None; limits.len()];
        for set in joint.open() {
            let outcome = match turn.step.rate <= limits[set] {
                true => Outcome::Pass,
                false => Outcome::Fail,
            };
            outcomes[set] = Some(Observed::new(outcome, took));
        }
        joint.replay(&turn.step, took, &outcomes);
        steps += 1;
    }
    let ends = joint.searches().iter().map(|search| match search.next() {
        Next::End(end) => end,
        Next::Hold(step) => panic!("{step:?} is wanted"),
    });
    (ends.collect(), steps)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Law: the answer for each set has its limit in the interval, wherever those of the others lie.
    #[test]
    fn each_set_has_an_answer_for_itself(strict in 60.0..5_000.0_f64, looser in 1.0..8.0_f64, loosest in 1.0..2.0_f64) {
        let limits = [strict * looser * loosest, strict, strict * looser];
        let (ends, _) = ends(&limits);
        for (end, limit) in ends.iter().zip(limits) {
            let SearchEnd::Found(found) = end else {
                panic!("{limits:?}: {end:?}");
            };
            prop_assert!(found.interval.lower <= limit && limit <= found.interval.upper, "{limits:?}: {found:?}");
        }
    }
}

#[test]
fn sets_with_one_limit_take_the_steps_of_one() {
    let (one, steps) = ends(&[700.0]);
    let (both, of_both) = ends(&[700.0, 700.0]);
    assert_eq!((&both[0], &both[0]), (&both[1], &one[0]));
    assert_eq!(steps, of_both);
}

#[test]
fn a_set_that_fails_at_once_keeps_no_other_from_its_answer() {
    let (ends, _) = ends(&[1.0, 700.0]);
    assert_eq!(ends[0], SearchEnd::FailsAtFirst { rate: 50.0 });
    assert!(matches!(&ends[1], SearchEnd::Found(found) if found.interval.lower <= 700.0));
}
