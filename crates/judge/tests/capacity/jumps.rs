//! Targets with a hard limit: below it no message is bad, above it most or all of them are, as with the largest payload
//! that a platform takes.

use muster_judge::capacity::{
    Batch, Interval, Margin, Next, Observed, Outcome, Search, SearchEnd, SearchSpec,
};
use muster_model::Micros;
use proptest::prelude::*;

use crate::searching::spec;

/// A target with a hard limit.
#[derive(Debug, Clone, Copy)]
struct Limited {
    /// The highest load without a bad message.
    limit: f64,
    /// The share of messages that are bad above it.
    bad: f64,
    /// The share that may be bad.
    allowed: f64,
    /// Messages a second, at every load.
    rate: f64,
}

impl Limited {
    /// Searches the limit to the end, with a budget of these minutes.
    fn end(&self, minutes: u64) -> SearchEnd {
        let budget = Micros::from_secs(60 * minutes);
        let spec = SearchSpec { budget, ..spec() };
        let mut search = Search::new(spec.clone()).expect("a valid specification");
        loop {
            let step = match search.next() {
                Next::End(end) => return end,
                Next::Hold(step) => step,
            };
            let batch = spec.batch(step.rate, step.hold).as_secs_f64();
            let messages = (self.rate * batch) as u64;
            let (outcome, share) = match step.rate <= self.limit {
                true => (Outcome::Pass, 0.0),
                false => (Outcome::Fail, self.bad),
            };
            let part = Batch {
                messages,
                bad: (messages as f64 * share) as u64,
            };
            let parts = (step.hold.as_secs_f64() / batch).ceil() as usize;
            search.record(&Observed {
                margin: Some(Margin {
                    slo: "failure-ratio".to_owned(),
                    allowed: self.allowed,
                    batches: vec![part; parts],
                }),
                ..Observed::new(outcome, step.hold + Micros::from_secs(2))
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Law: a hard limit is found, and the interval holds it, whatever share of messages is bad above it. Steps have enough
    /// messages to allow a bad one.
    #[test]
    fn a_hard_limit_is_found(
        limit in 60.0..80_000.0_f64,
        bad in 0.3..=1.0_f64,
        allowed in prop::sample::select(vec![0.001, 0.01, 0.05]),
        rate in 50.0..2_000.0_f64,
    ) {
        let target = Limited { limit, bad, allowed, rate };
        let end = target.end(20);
        let SearchEnd::Found(found) = &end else {
            panic!("{target:?}: {end:?}");
        };
        let interval = found.interval;
        prop_assert!(interval.lower <= limit && limit <= interval.upper, "{target:?}: {interval:?}");
        prop_assert!(found.first_failing > limit);
    }
}

/// Few messages, of which not one may be bad in a step: the outcome alone counts.
#[test]
fn a_hard_limit_is_found_by_few_messages() {
    for limit in [80.0, 700.0, 2_000.0, 9_000.0] {
        let target = Limited {
            limit,
            bad: 1.0,
            allowed: 0.001,
            rate: 20.0,
        };
        let end = target.end(20);
        let SearchEnd::Found(found) = end else {
            panic!("{target:?}: {end:?}");
        };
        let interval = found.interval;
        assert!(
            interval.lower <= limit && limit <= interval.upper,
            "{target:?}: {interval:?}"
        );
    }
}

/// Steps just below the limit and just above it: no curve has both.
#[test]
fn what_ten_minutes_leave_of_a_hard_limit_holds_it() {
    for (allowed, rate) in [(0.001, 2_000.0), (0.01, 100.0), (0.01, 2_000.0)] {
        for at in 0..40 {
            let target = Limited {
                limit: 70.0 * 1.15_f64.powf(f64::from(at) + 0.37 * f64::from(at % 7)),
                bad: 1.0,
                allowed,
                rate,
            };
            let end = target.end(10);
            let interval = match &end {
                SearchEnd::Found(found) => Some(found.interval),
                SearchEnd::OutOfBudget { known, .. } => *known,
                SearchEnd::FailsAtFirst { .. }
                | SearchEnd::AtLeast { .. }
                | SearchEnd::NotRecovered { .. }
                | SearchEnd::NothingClear { .. } => None,
            };
            let Interval { lower, upper, .. } = interval.expect("a step passed, and one failed");
            let holds = lower <= target.limit && target.limit <= upper;
            assert!(holds, "{target:?}: {end:?}");
        }
    }
}
