//! Growth and law, against simulated targets whose capacities are known.

use muster_scale::{End, Gain, Growth, GrowthSpec, Law, Measured, Next, Outcome, Scalability};
use proptest::prelude::*;

const SPEC: GrowthSpec = GrowthSpec {
    least: 1,
    most: 8,
    first: 100.0,
};

fn within(capacity: f64, share: f64) -> Measured {
    Measured {
        lower: capacity * (1.0 - share),
        middle: capacity,
        upper: capacity * (1.0 + share),
    }
}

/// Grows a target to the end: a search finds the capacity unless its first rate exceeds that.
fn grow(spec: GrowthSpec, mut target: impl FnMut(u32) -> Outcome) -> (End, Vec<(u32, Measured)>) {
    let mut growth = Growth::new(spec);
    for _ in 0..100 {
        match growth.next() {
            Next::End(end) => return (end, growth.found().to_vec()),
            Next::Measure(wanted) => {
                let mut outcome = target(wanted.instances);
                if let Outcome::Found(found) = &outcome
                    && found.middle < wanted.first
                {
                    outcome = Outcome::FailsAtFirst { rate: wanted.first };
                }
                growth.record(&outcome);
            }
        }
    }
    panic!("the growth does not end");
}

fn found(capacity: impl Fn(u32) -> f64) -> impl FnMut(u32) -> Outcome {
    move |instances| Outcome::Found(within(capacity(instances), 0.03))
}

fn gain(found: &[(u32, Measured)]) -> Gain {
    Law::of(found).gain.expect("two numbers of instances")
}

#[test]
fn a_linear_target_grows_to_the_most() {
    let (end, found) = grow(SPEC, found(|n| 500.0 * f64::from(n)));
    assert_eq!(end, End::AtMost);
    assert_eq!(found.len(), 8);
    let gain = gain(&found);
    assert!((gain.per_instance - 500.0).abs() < 1e-6);
    assert!(gain.lower < 500.0 && gain.upper > 500.0);
    let Scalability::Fitted {
        rate, contention, ..
    } = Law::of(&found).scalability
    else {
        panic!("{:?}", Law::of(&found).scalability)
    };
    assert!((rate - 500.0).abs() < 1.0 && contention < 1e-3);
}

#[test]
fn a_shared_bottleneck_is_named_by_the_last_instance_that_helped() {
    let (end, found) = grow(SPEC, found(|n| (500.0 * f64::from(n)).min(1_200.0)));
    assert_eq!(end, End::NoGain { since: 3 });
    assert_eq!(found.len(), 5);
}

#[test]
fn a_bottleneck_reached_at_the_limit_of_the_growth_is_named_too() {
    let helped = |capacities: &[f64]| {
        let most = capacities.len() as u32;
        let mut growth = Growth::new(GrowthSpec { most, ..SPEC });
        for capacity in capacities {
            growth.record(&Outcome::Found(within(*capacity, 0.03)));
        }
        assert_eq!(growth.next(), Next::End(End::AtMost));
        growth.helped_until()
    };
    assert_eq!(helped(&[500.0, 800.0, 800.0]), Some(2));
    assert_eq!(helped(&[500.0, 1_000.0, 1_500.0]), None);
    assert_eq!(helped(&[500.0]), None);
}

#[test]
fn a_target_that_gets_slower_by_instances_ends_the_growth() {
    let capacity = |n: u32| {
        let n = f64::from(n);
        500.0 * n / (1.0 + 0.3 * (n - 1.0) + 0.2 * n * (n - 1.0))
    };
    let (end, found) = grow(SPEC, found(capacity));
    // By its interval, the second instance may have added a fifth of the first one's.
    assert_eq!(end, End::NoGain { since: 2 });
    assert_eq!(found.len(), 4);
}

#[test]
fn intervals_too_wide_to_exclude_a_gain_do_not_end_the_growth() {
    let flat = |share| move |_| Outcome::Found(within(1_000.0, share));
    let (end, _) = grow(SPEC, flat(0.09));
    assert_eq!(end, End::NoGain { since: 1 });
    let (end, found) = grow(SPEC, flat(0.11));
    assert_eq!((end, found.len()), (End::AtMost, 8));
}

#[test]
fn a_search_that_fails_at_its_first_rate_begins_lower_once() {
    // The second instance breaks the first: less than the rate that is tried first.
    let (end, found) = grow(SPEC, found(|n| if n == 1 { 500.0 } else { 200.0 }));
    assert_eq!(end, End::NoGain { since: 1 });
    assert_eq!(found.len(), 3);
    let (end, _) = grow(SPEC, |_| Outcome::Found(within(1.0, 0.03)));
    assert_eq!(end, End::FailsAtFirst { rate: 25.0 });
}

#[test]
fn an_instance_without_load_is_not_judged() {
    let idle = || Outcome::Idle {
        address: "127.0.0.1:2".to_owned(),
    };
    let mut tries = 0;
    let flapping = |n: u32| {
        tries += 1;
        match (n, tries) {
            (2, 2) => idle(),
            _ => Outcome::Found(within(500.0 * f64::from(n), 0.03)),
        }
    };
    let (end, found) = grow(SPEC, flapping);
    assert_eq!((end, found.len()), (End::AtMost, 8));
    let half_dead = |n| match n {
        1 => Outcome::Found(within(500.0, 0.03)),
        _ => idle(),
    };
    let (end, found) = grow(SPEC, half_dead);
    assert_eq!(found.len(), 1);
    assert!(matches!(&end, End::Unclear { instances: 2, why, .. } if why.contains("127.0.0.1:2")));
}

#[test]
fn a_growth_without_time_keeps_the_interval_that_its_last_search_left() {
    let mut growth = Growth::new(SPEC);
    growth.record(&Outcome::Found(within(500.0, 0.03)));
    assert_eq!(growth.further(), 7);
    let known = Some(within(900.0, 0.1));
    growth.record(&Outcome::Unclear {
        why: "its time is over".to_owned(),
        known,
    });
    let end = growth.out_of_budget("no time is left".to_owned());
    let wanted = End::Unclear {
        instances: 2,
        why: "no time is left".to_owned(),
        known,
    };
    assert_eq!(end, wanted);
}

#[test]
fn an_interval_is_kept_if_the_next_search_leaves_none() {
    let known = Some(within(900.0, 0.1));
    let idle = Outcome::Idle {
        address: "127.0.0.1:2".to_owned(),
    };
    let unclear = Outcome::Unclear {
        why: "an instance ended".to_owned(),
        known: None,
    };
    let fails = Outcome::FailsAtFirst { rate: 450.0 };
    for last in [idle, unclear, fails] {
        let mut growth = Growth::new(SPEC);
        growth.record(&Outcome::Found(within(500.0, 0.03)));
        growth.record(&Outcome::Unclear {
            why: "its time is over".to_owned(),
            known,
        });
        growth.record(&last);
        let Next::End(End::Unclear { known: kept, .. }) = growth.next() else {
            panic!("{:?}", growth.next())
        };
        assert_eq!(kept, known, "{last:?}");
    }
}

#[test]
fn a_capacity_above_the_highest_rate_ends_the_growth() {
    let (end, found) = grow(SPEC, |n| match n {
        1 | 2 => Outcome::Found(within(500.0 * f64::from(n), 0.03)),
        _ => Outcome::AtLeast {
            rate: 1_400.0,
            bound: Some("bound by devices".to_owned()),
        },
    });
    let bound = End::AtLeast {
        instances: 3,
        rate: 1_400.0,
        bound: Some("bound by devices".to_owned()),
    };
    assert_eq!((end, found.len()), (bound, 2));
}

#[test]
fn three_capacities_do_not_tell_three_parameters_apart() {
    let points: Vec<_> = (1..4)
        .map(|n| (n, within(500.0 * f64::from(n), 0.03)))
        .collect();
    assert!(matches!(
        Law::of(&points).scalability,
        Scalability::NotIdentifiable { .. }
    ));
}

proptest! {
    /// Law: the gain of the true capacities lies in its interval if each capacity lies in its own.
    #[test]
    fn the_gain_is_covered(
        capacities in prop::collection::vec((10.0_f64..5_000.0, 0.0_f64..0.1, -1.0_f64..1.0), 2..9),
    ) {
        let mut points = Vec::new();
        let mut truths = Vec::new();
        for (n, (truth, width, off)) in (1_u32..).zip(&capacities) {
            let middle = truth / (1.0 + width * off);
            points.push((n, within(middle, *width)));
            truths.push((n, within(*truth, 0.0)));
        }
        let (seen, truth) = (gain(&points), gain(&truths).per_instance);
        prop_assert!(seen.lower <= truth + 1e-6 && truth <= seen.upper + 1e-6, "{seen:?} {truth}");
    }

    /// Law: exact capacities that follow the law give its parameters back.
    #[test]
    fn the_parameters_of_exact_capacities_are_found(
        rate in 10.0_f64..10_000.0, contention in 0.0_f64..0.5, coherence in 0.0_f64..0.1, most in 4_u32..17,
    ) {
        let capacity = |n: u32| {
            let n = f64::from(n);
            rate * n / (1.0 + contention * (n - 1.0) + coherence * n * (n - 1.0))
        };
        let points: Vec<_> = (1..=most).map(|n| (n, within(capacity(n), 0.0))).collect();
        let Scalability::Fitted { rate: r, contention: c, coherence: h, .. } = Law::of(&points).scalability else {
            return Err(TestCaseError::fail("not fitted"));
        };
        prop_assert!((r / rate - 1.0).abs() < 1e-3, "{r} {rate}");
        prop_assert!((c - contention).abs() < 1e-3 && (h - coherence).abs() < 1e-3, "{c} {h}");
    }

    /// Law: a growth always ends, and each number of instances is measured once at the most.
    #[test]
    fn a_growth_ends(least in 1_u32..4, more in 0_u32..12, seeds in prop::collection::vec(0_u8..8, 40)) {
        let mut at = 0;
        let spec = GrowthSpec { least, most: least + more, first: 100.0 };
        let (_, found) = grow(spec, |n| {
            at += 1;
            match seeds[at % seeds.len()] {
                0 => Outcome::Idle { address: "a".to_owned() },
                1 => Outcome::Unclear { why: "w".to_owned(), known: None },
                seed => Outcome::Found(within(f64::from(n) * 100.0 * f64::from(seed), 0.05)),
            }
        });
        prop_assert!(found.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1));
    }
}
