//! The bounds of docs/semantics.md#stability, by a simulation short enough for every test run. The full
//! table is printed by the example `stability_power` and kept in `docs/stability.md`.

#[path = "../simulated/random.rs"]
mod random;
mod simulation;

use muster_judge::stability::{Growth, Point};
use random::Random;
use simulation::{Case, Process, first_order};

const SEED: u64 = 20_260_601;

fn assert_at_most_five_percent(case: Case, holds: u32, is_wrong: fn(simulation::Findings) -> u32) {
    let found = case.judged(SEED, holds);
    assert!(is_wrong(found) * 20 <= holds, "{case:?}: {found:?}");
}

fn noise(correlation: f64) -> impl Iterator<Item = Case> {
    let lengths = [30, 60];
    let sizes = [0.25, 1.0, 100.0];
    lengths.into_iter().flat_map(move |windows| {
        sizes.into_iter().map(move |deviation_s| Case {
            process: Process::Noise {
                correlation,
                deviation_s,
            },
            rate: 1_000.0,
            windows,
        })
    })
}

#[test]
fn white_noise_raises_at_most_five_percent_of_alarms() {
    for case in noise(0.0) {
        assert_at_most_five_percent(case, 1_000, |found| found.unstable + found.unclear);
    }
}

#[test]
fn correlated_noise_raises_at_most_five_percent_of_alarms() {
    for case in noise(0.8) {
        assert_at_most_five_percent(case, 1_000, |found| found.unstable + found.unclear);
    }
}

#[test]
fn a_queue_at_95_percent_raises_at_most_five_percent_of_alarms() {
    let case = Case {
        process: Process::Queue { load: 0.95 },
        rate: 1_000.0,
        windows: 60,
    };
    assert_at_most_five_percent(case, 40, |found| found.unstable + found.unclear);
}

#[test]
fn five_percent_too_much_is_missed_in_at_most_five_percent_of_minutes() {
    let case = Case {
        process: Process::Queue { load: 1.05 },
        rate: 1_000.0,
        windows: 60,
    };
    assert_at_most_five_percent(case, 40, |found| found.holds - found.unstable);
}

#[test]
fn two_percent_too_much_is_missed_in_at_most_five_percent_of_three_minutes() {
    let case = Case {
        process: Process::Queue { load: 1.02 },
        rate: 1_000.0,
        windows: 180,
    };
    assert_at_most_five_percent(case, 20, |found| found.holds - found.unstable);
}

#[test]
fn the_lower_bound_lies_below_the_true_slope_95_times_of_a_hundred() {
    for correlation in [0.0, 0.8] {
        let covers = |hold: u64| {
            let noise = first_order(&mut Random::new(SEED ^ hold), correlation, 60);
            let at = |(t, value): (usize, f64)| {
                let t_s = t as f64;
                Point {
                    t_s,
                    value: 7.0 * t_s + 40.0 * value,
                }
            };
            let series: Vec<Point> = noise.into_iter().enumerate().map(at).collect();
            Growth::of(&series, 1_000.0).unwrap().trend.lower <= 7.0
        };
        let covered = (0..1_000).filter(|hold| covers(*hold)).count();
        assert!(
            covered >= 950,
            "correlation {correlation}: {covered} of 1000"
        );
    }
}
