//! Steps that stay unclear: they say nothing, and do not keep a search from its end.

use std::collections::BTreeSet;

use muster_judge::capacity::{Next, Observed, Outcome, Search, SearchEnd, Step, Tried};
use muster_model::Micros;
use proptest::prelude::*;

use crate::searching::spec;

/// Runs a search to its end; its holds too.
fn search(mut hold: impl FnMut(&Step) -> Outcome) -> (SearchEnd, Vec<Tried>) {
    let mut search = Search::new(spec()).expect("a valid specification");
    loop {
        match search.next() {
            Next::End(end) => return (end, search.tried().to_vec()),
            Next::Hold(step) => {
                let outcome = hold(&step);
                search.record(&Observed::new(outcome, step.hold));
            }
        }
    }
}

#[test]
fn an_unclear_step_is_held_three_times_then_for_longer_then_the_search_goes_lower() {
    let (end, tried) = search(|step| match step.rate < 100.0 {
        true => Outcome::Pass,
        false => Outcome::Unclear,
    });
    let rates: Vec<f64> = tried.iter().map(|tried| tried.step.rate).collect();
    assert_eq!(rates[..7], [50.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]);
    assert!(tried[3].step.hold < tried[4].step.hold);
    assert!(tried[7].step.rate > 50.0 && tried[7].step.rate < 100.0);
    let SearchEnd::NothingClear {
        rate,
        known: None,
        passed: Some(passed),
    } = end
    else {
        panic!("{end:?}");
    };
    assert!(passed > 50.0 && passed < 100.0 && rate >= passed);
}

#[test]
fn a_search_in_which_nothing_is_clear_ends_and_claims_nothing() {
    let (end, tried) = search(|_| Outcome::Unclear);
    assert!(
        matches!(
            end,
            SearchEnd::NothingClear {
                known: None,
                passed: None,
                ..
            }
        ),
        "{end:?}"
    );
    assert!(tried.len() <= 12, "{}", tried.len());
    let rates: BTreeSet<u64> = tried.iter().map(|tried| tried.step.rate as u64).collect();
    assert!(rates.len() > 1, "{rates:?}");
}

/// Returns the steps that the median of their holds decided, with that outcome.
fn decided(tried: &[Tried], outcome: Outcome) -> Vec<f64> {
    let decided = tried.iter().filter(|tried| tried.decided == Some(outcome));
    decided.map(|tried| tried.step.rate).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Law: outcomes that are unclear now and then change no answer: an interval holds the limit, nothing that stayed
    /// unclear is the first failing step, and no search gives up.
    #[test]
    fn few_unclear_outcomes_change_no_answer(limit in 60.0..80_000.0_f64, every in 4_usize..20) {
        let mut count = 0;
        let (end, tried) = search(|step| {
            count += 1;
            match () {
                () if count % every == 0 => Outcome::Unclear,
                () if step.rate <= limit => Outcome::Pass,
                () => Outcome::Fail,
            }
        });
        let SearchEnd::Found(found) = end else {
            panic!("{end:?}");
        };
        prop_assert!(found.interval.lower <= limit && found.interval.upper >= limit);
        prop_assert!(found.first_failing > limit);
        prop_assert!(decided(&tried, Outcome::Fail).contains(&found.first_failing));
    }

    /// Law: a rate above which nothing is clear bounds what is claimed: either the search gives up with what passed, or
    /// the capacity lies below.
    #[test]
    fn what_is_unclear_above_a_rate_is_never_claimed(
        limit in 60.0..80_000.0_f64,
        clear in 60.0..80_000.0_f64,
    ) {
        let (end, tried) = search(|step| match () {
            () if step.rate > clear => Outcome::Unclear,
            () if step.rate <= limit => Outcome::Pass,
            () => Outcome::Fail,
        });
        match end {
            SearchEnd::Found(found) => {
                prop_assert!(found.interval.upper <= clear);
                prop_assert!(found.interval.lower <= limit && found.interval.upper >= limit);
            }
            SearchEnd::NothingClear { passed, .. } | SearchEnd::OutOfBudget { passed, .. } => {
                prop_assert!(passed.is_some_and(|passed| passed <= limit.min(clear)));
            }
            SearchEnd::FailsAtFirst { .. }
            | SearchEnd::AtLeast { .. }
            | SearchEnd::NotRecovered { .. } => panic!("{end:?}"),
        }
        let unclear = decided(&tried, Outcome::Unclear);
        prop_assert!(unclear.len() <= 4);
    }

    /// Law: a search that was interrupted after any step, and whose outcomes are recorded again, goes on with the same
    /// step, also while one is being repeated.
    #[test]
    fn a_search_goes_on_where_it_was_interrupted(
        limit in 40.0..90_000.0_f64,
        unclear in 1_usize..9,
        took_s in 4_u64..40,
    ) {
        let mut outcomes = Vec::new();
        let mut whole = Search::new(spec()).expect("a valid specification");
        while let Next::Hold(step) = whole.next() {
            let mut again = Search::new(spec()).expect("a valid specification");
            for outcome in &outcomes {
                again.record(&Observed::new(*outcome, Micros::from_secs(took_s)));
            }
            prop_assert_eq!(again.next(), Next::Hold(step));
            prop_assert_eq!(again.tried(), whole.tried());
            prop_assert_eq!(again.known(), whole.known());
            let outcome = match () {
                () if outcomes.len() % 9 < unclear - 1 => Outcome::Unclear,
                () if step.rate <= limit => Outcome::Pass,
                () => Outcome::Fail,
            };
            outcomes.push(outcome);
            whole.record(&Observed::new(outcome, Micros::from_secs(took_s)));
        }
        prop_assert!(outcomes.len() > 1);
    }
}
