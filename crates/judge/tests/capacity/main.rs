//! The search for a capacity, against simulated targets whose capacity is known.

mod jumps;
mod laws;
mod published;
#[path = "../simulated/random.rs"]
mod random;
mod searching;
mod targets;
mod unclear;

use muster_judge::capacity::{Next, Observed, Outcome, Search, SearchEnd, SearchSpec, Step};
use muster_model::Micros;
use searching::spec;

/// Runs a search to its end; the number of its steps too.
fn search(spec: SearchSpec, mut hold: impl FnMut(&Step) -> Outcome) -> (SearchEnd, usize) {
    let mut search = Search::new(spec).expect("a valid specification");
    for steps in 0..1_000 {
        match search.next() {
            Next::End(end) => return (end, steps),
            Next::Hold(step) => {
                let outcome = hold(&step);
                search.record(&Observed::new(outcome, step.hold + Micros::from_secs(2)));
            }
        }
    }
    panic!("the search does not end");
}

/// A target that passes up to a rate, and never above.
fn sharp(at: f64) -> impl FnMut(&Step) -> Outcome {
    move |step| match step.rate <= at {
        true => Outcome::Pass,
        false => Outcome::Fail,
    }
}

#[test]
fn a_sharp_limit_is_bracketed_and_confirmed() {
    let (end, steps) = search(spec(), sharp(7_340.0));
    let SearchEnd::Found(found) = end else {
        panic!("{end:?}");
    };
    assert!(found.interval.lower <= 7_340.0 && found.interval.upper >= 7_340.0);
    assert!(found.interval.width() <= 0.1 && found.first_failing > 7_340.0);
    assert!(steps <= 30, "{steps}");
}

#[test]
fn a_target_that_fails_at_once_or_never_is_an_answer() {
    let (end, steps) = search(spec(), sharp(1.0));
    assert_eq!((end, steps), (SearchEnd::FailsAtFirst { rate: 50.0 }, 2));
    let (end, _) = search(spec(), sharp(f64::INFINITY));
    assert_eq!(end, SearchEnd::AtLeast { rate: 100_000.0 });
}

#[test]
fn a_target_that_does_not_come_back_ends_the_search() {
    let mut search = Search::new(spec()).expect("a valid specification");
    let took = Micros::from_secs(7);
    search.record(&Observed::new(Outcome::Pass, took));
    search.record(&Observed {
        has_recovered: false,
        ..Observed::new(Outcome::Fail, took)
    });
    let Next::End(SearchEnd::NotRecovered { rate, known }) = search.next() else {
        panic!("{:?}", search.next());
    };
    assert_eq!(rate, 100.0);
    assert!(known.is_some_and(|known| known.lower < 100.0 && known.upper > 50.0));
}

#[test]
fn a_budget_that_is_too_short_keeps_what_was_learnt() {
    let budget = Micros::from_secs(60);
    let (end, _) = search(SearchSpec { budget, ..spec() }, sharp(700.0));
    let SearchEnd::OutOfBudget { passed, .. } = end else {
        panic!("{end:?}");
    };
    assert!(passed.is_some_and(|passed| (100.0..=700.0).contains(&passed)));
}

#[test]
fn a_first_failure_of_a_cold_target_is_no_answer() {
    let mut is_cold = true;
    let mut holds = sharp(700.0);
    let (end, _) = search(spec(), |step| match std::mem::take(&mut is_cold) {
        true => Outcome::Fail,
        false => holds(step),
    });
    let SearchEnd::Found(found) = end else {
        panic!("{end:?}");
    };
    assert!(found.interval.lower <= 700.0 && found.interval.upper >= 700.0);
}

/// A step of the ramp that fails by accident keeps the search from no rate above.
#[test]
fn a_capacity_far_above_the_first_failure_is_found() {
    let mut has_failed = false;
    let mut holds = sharp(9_000.0);
    let (end, _) = search(spec(), |step| match step.rate {
        400.0 if !std::mem::replace(&mut has_failed, true) => Outcome::Fail,
        _ => holds(step),
    });
    let SearchEnd::Found(found) = end else {
        panic!("{end:?}");
    };
    assert!(found.interval.lower <= 9_000.0 && found.interval.upper >= 9_000.0);
}

#[test]
fn lengths_of_steps_follow_the_longest_latency_limit() {
    let seconds = |seconds| Micros::from_secs(seconds);
    let lengths = |millis| SearchSpec::lengths(Micros::from_millis(millis));
    assert_eq!(lengths(50), (seconds(5), seconds(20)));
    assert_eq!(lengths(2_000), (seconds(20), seconds(100)));
}

/// Each step has the messages that a percentile needs, and longer ones keep their proportion.
#[test]
fn steps_at_low_rates_last_as_long_as_a_percentile_needs() {
    let spec = SearchSpec {
        first: 20.0,
        load_seconds: 2_000.0,
        budget: Micros::from_secs(7_200),
        ..spec()
    };
    let seconds = |rate| [spec.short_at(rate), spec.long_at(rate)].map(|at| at.as_secs_f64());
    assert_eq!(seconds(20.0), [100.0, 400.0]);
    assert_eq!(seconds(400.0), [5.0, 20.0]);
    assert_eq!(spec.least_budget(80.0), Micros::from_secs(100 + 50 + 400));
    let mut holds = sharp(73.4);
    let (end, _) = search(spec.clone(), |step| {
        let messages = step.rate * step.hold.as_secs_f64();
        assert!(messages >= spec.load_seconds, "{step:?}");
        holds(step)
    });
    assert!(matches!(end, SearchEnd::Found(_)), "{end:?}");
}

#[test]
fn a_specification_that_makes_no_sense_is_refused() {
    let bad = [
        SearchSpec {
            first: 0.0,
            ..spec()
        },
        SearchSpec {
            most: 10.0,
            ..spec()
        },
        SearchSpec {
            width: 0.0,
            ..spec()
        },
        SearchSpec {
            short: Micros::from_secs(30),
            ..spec()
        },
        SearchSpec {
            load_seconds: f64::NAN,
            ..spec()
        },
    ];
    assert!(bad.into_iter().all(|spec| Search::new(spec).is_err()));
}
