//! Both policies on the same simulated targets under virtual time: the table in `docs/scale.md`.

#[path = "published_test/scenario1.rs"]
mod scenario1;

use std::cell::Cell;

use muster_judge::capacity::{
    Batch, Margin, Next as Turn, Observed, Outcome as Held, Search, SearchEnd, SearchSpec,
};
use muster_measure::PublishedSecond;
use muster_model::{Micros, mix};
use muster_scale::{
    End, Event, Growth, GrowthSpec, Level, Limit, Measured, Next, Outcome, Published, Reading,
    Second, Seconds,
};

use scenario1::scenario1;

/// The seed of the noise.
const SEED: u64 = 1;
/// Messages a second of one unit, and those that one instance carries.
const UNIT: f64 = 2_000.0;
const EACH: f64 = 5_000.0;
/// The SLO of the searches.
const FAILURE_RATIO: f64 = 0.001;
/// The most instances, and units of load.
const MOST: Level = Level {
    units: 14,
    instances: 5,
};

/// A target: the ratio of failures in a second, by its instances and the offered rate.
type Target = fn(u32, f64, u64) -> f64;

/// The ratio of failures of a target that rejects what exceeds a capacity.
fn rejected(offered: f64, capacity: f64) -> f64 {
    (1.0 - capacity / offered).max(0.0)
}

fn linear(instances: u32, offered: f64, _: u64) -> f64 {
    rejected(offered, EACH * f64::from(instances))
}

fn saturating(instances: u32, offered: f64, _: u64) -> f64 {
    rejected(offered, (EACH * f64::from(instances)).min(12_500.0))
}

fn retrograde(instances: u32, offered: f64, _: u64) -> f64 {
    let n = f64::from(instances);
    let divisor = 1.0 + 0.3 * (n - 1.0) + 0.2 * n * (n - 1.0);
    rejected(offered, EACH * n / divisor)
}

/// The capacity differs by up to a tenth from one second to the next.
fn noisy(instances: u32, offered: f64, at: u64) -> f64 {
    let part = (mix(SEED, at) % 1_000) as f64 / 1_000.0;
    rejected(offered, EACH * f64::from(instances) * (0.9 + 0.2 * part))
}

/// Half of the capacity is away for five of ten minutes.
fn flapping(instances: u32, offered: f64, at: u64) -> f64 {
    let part = if (at / 300).is_multiple_of(2) {
        1.0
    } else {
        0.5
    };
    rejected(offered, EACH * f64::from(instances) * part)
}

/// The second instance rejects its share of the requests (issue 735 of Hono).
fn half_dead(instances: u32, offered: f64, _: u64) -> f64 {
    let n = f64::from(instances);
    let dead = if instances > 1 { 1.0 / n } else { 0.0 };
    dead + (1.0 - dead) * rejected(offered, EACH * n)
}

/// A small part of all requests fails at any load.
fn leaky(instances: u32, offered: f64, at: u64) -> f64 {
    linear(instances, offered, at).max(0.0048)
}

/// The published test with the parameters of `Scenario1`: its limit, and the most units that it found acceptable
/// with each number of instances.
fn published(target: Target) -> (Limit, Vec<(u32, u32)>) {
    let spec = scenario1(MOST);
    let begun = 1_532_500_000;
    let (mut test, mut seconds) = (Published::new(spec), Seconds::new(spec.window, spec.offset));
    let mut found: Vec<(u32, u32)> = Vec::new();
    test.applied(Micros::from_secs(begun));
    for at in begun.. {
        let now = Micros::from_secs(at);
        let reading = match now < test.next_check() {
            true => Reading::default(),
            false => seconds.reading(now),
        };
        while let Some(event) = test.step(now, &reading) {
            match event {
                Event::Log(line) if line.is_stable => {
                    found.retain(|(instances, _)| *instances != line.level.instances);
                    found.push((line.level.instances, line.level.units));
                }
                Event::Set(_) => test.applied(now),
                Event::End(limit) => return (limit, found),
                Event::Log(_) | Event::StableStart => {}
            }
        }
        let Level { units, instances } = test.level();
        let sent = UNIT * f64::from(units);
        let failure = sent * target(instances, sent, at);
        seconds.add(Second {
            at,
            requests: PublishedSecond {
                sent: sent as u64,
                success: (sent - failure) as u64,
                failure: failure as u64,
                took_us: 0,
            },
            answered: 0,
            received: (sent - failure) as u64,
        });
    }
    unreachable!("the seconds do not end")
}

/// A search as `muster scale` makes it, at the hands of a clock that goes on from one to the next.
fn search(target: Target, instances: u32, first: f64, clock: &Cell<u64>) -> Outcome {
    let spec = SearchSpec {
        first,
        most: 100.0 * EACH,
        width: 0.1,
        short: Micros::from_secs(5),
        long: Micros::from_secs(20),
        load_seconds: 0.0,
        budget: Micros::from_secs(600),
    };
    let mut search = Search::new(spec).expect("a search");
    loop {
        let step = match search.next() {
            Turn::Hold(step) => step,
            Turn::End(SearchEnd::Found(found)) => {
                return Outcome::Found(Measured {
                    lower: found.interval.lower,
                    middle: found.interval.middle,
                    upper: found.interval.upper,
                });
            }
            Turn::End(SearchEnd::FailsAtFirst { rate }) => return Outcome::FailsAtFirst { rate },
            Turn::End(SearchEnd::AtLeast { rate }) => {
                return Outcome::AtLeast { rate, bound: None };
            }
            Turn::End(end) => {
                return Outcome::Unclear {
                    why: format!("{end:?}"),
                    known: None,
                };
            }
        };
        let length = step.hold.get().div_ceil(1_000_000) as usize;
        let begin = clock.get();
        let ratios: Vec<f64> = (begin..begin + length as u64)
            .map(|at| target(instances, step.rate, at))
            .collect();
        let part = search.batch(&step).get().div_ceil(1_000_000) as usize;
        let batches = ratios.chunks(part).map(|ratios| Batch {
            messages: (step.rate * ratios.len() as f64) as u64,
            bad: (step.rate * ratios.iter().sum::<f64>()) as u64,
        });
        let margin = Margin {
            slo: "failure-ratio".to_owned(),
            allowed: FAILURE_RATIO,
            batches: batches.collect(),
        };
        let outcome = match margin.ratio() <= 1.0 {
            true => Held::Pass,
            false => Held::Fail,
        };
        clock.set(begin + length as u64 + 2);
        search.record(&Observed {
            margin: Some(margin),
            ..Observed::new(outcome, Micros::from_secs(length as u64 + 2))
        });
    }
}

/// The policy `muster`: its end, and the capacity of each number of instances.
fn muster(target: Target) -> (End, Vec<(u32, Measured)>) {
    let clock = Cell::new(0);
    let mut growth = Growth::new(GrowthSpec {
        least: 1,
        most: MOST.instances,
        first: 500.0,
    });
    loop {
        match growth.next() {
            Next::End(end) => return (end, growth.found().to_vec()),
            Next::Measure(wanted) => {
                growth.record(&search(target, wanted.instances, wanted.first, &clock));
            }
        }
    }
}

fn is_near(found: &Measured, capacity: f64) -> bool {
    found.lower <= capacity * 1.01
        && capacity * 0.99 <= found.upper
        && found.upper < found.lower * 1.15
}

#[test]
fn a_linear_target_is_found_by_both() {
    let units = [(1, 2), (2, 5), (3, 7), (4, 10), (5, 12)];
    assert_eq!(published(linear), (Limit::Instances, units.to_vec()));
    let (end, found) = muster(linear);
    assert_eq!((end, found.len()), (End::AtMost, 5));
    assert!(
        found
            .iter()
            .all(|(n, it)| is_near(it, EACH * f64::from(*n))),
        "{found:?}"
    );
}

#[test]
fn a_shared_bottleneck_is_named_by_one_and_takes_all_instances_of_the_other() {
    assert_eq!(
        published(saturating),
        (Limit::Instances, vec![(1, 2), (2, 5), (3, 6)])
    );
    let (end, found) = muster(saturating);
    assert_eq!(end, End::NoGain { since: 3 });
    assert!(is_near(&found[4].1, 12_500.0), "{found:?}");
}

#[test]
fn a_target_that_gets_slower_by_instances_is_named_by_one() {
    assert_eq!(published(retrograde), (Limit::Instances, vec![(1, 2)]));
    let (end, found) = muster(retrograde);
    // The second instance adds a sixth of the first one; by the intervals it may be a fifth.
    assert_eq!(end, End::NoGain { since: 2 }, "{found:?}");
}

#[test]
fn noise_counts_by_its_mean_in_one_and_by_its_failures_in_the_other() {
    let units = [(1, 2), (2, 5), (3, 7), (4, 10), (5, 12)];
    assert_eq!(published(noisy), (Limit::Instances, units.to_vec()));
    let (end, found) = muster(noisy);
    assert_eq!((end, found.len()), (End::AtMost, 5));
    // In the worst seconds an instance carries a tenth less.
    let is_near = |(n, it): &(u32, Measured)| is_near(it, 0.92 * EACH * f64::from(*n));
    assert!(found.iter().all(is_near), "{found:?}");
}

#[test]
fn a_target_that_flaps_is_named_by_one() {
    let units = [(1, 2), (2, 5), (3, 7), (4, 10), (5, 12)];
    assert_eq!(published(flapping), (Limit::Instances, units.to_vec()));
    // Steps contradict each other, so that no capacity is confirmed.
    let (end, _) = muster(flapping);
    assert!(matches!(end, End::Unclear { instances: 1, .. }), "{end:?}");
}

#[test]
fn a_dead_instance_is_bought_out_by_one_and_reported_by_the_other() {
    // Nothing is acceptable while a share of the requests meets the dead instance.
    assert_eq!(published(half_dead), (Limit::Instances, vec![(1, 2)]));
    let (end, found) = muster(half_dead);
    assert_eq!(found.len(), 1);
    assert!(matches!(end, End::Unclear { instances: 2, .. }), "{end:?}");
}

#[test]
fn failures_below_half_a_percent_are_seen_by_one() {
    let (limit, units) = published(leaky);
    assert_eq!((limit, units.len()), (Limit::Instances, 5));
    let (end, _) = muster(leaky);
    assert!(matches!(end, End::FailsAtFirst { .. }), "{end:?}");
}
