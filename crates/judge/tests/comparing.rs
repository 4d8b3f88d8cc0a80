//! The laws of a comparison, by simulation: equal sides are rarely told apart, known shifts are found.

#[path = "simulated/random.rs"]
mod random;

use muster_judge::compare::{
    Compared, Criteria, Direction, Distance, FALSE_ALARMS, Finding, Judgement, Observed, Scale,
    Series, TOLERANCE, change_points,
};
use muster_model::mix;
use proptest::prelude::*;
use random::Random;

const SEED: u64 = 20_260_601;

/// Comparisons of each simulated case.
const COMPARISONS: u64 = 400;

/// Figures that decide together in a simulated comparison.
const FIGURES: u64 = 6;

/// The scatter of a figure between runs.
#[derive(Debug, Clone, Copy)]
enum Scatter {
    Normal,
    Lognormal,
    Exponential,
    /// Student's t with three degrees of freedom.
    Heavy,
    /// Rounded so coarsely that many runs agree.
    Rounded,
}

const SCATTERS: [Scatter; 5] = [
    Scatter::Normal,
    Scatter::Lognormal,
    Scatter::Exponential,
    Scatter::Heavy,
    Scatter::Rounded,
];

impl Scatter {
    /// A latency around 10 ms, `relative` the size of its scatter.
    fn draw(self, random: &mut Random, relative: f64) -> f64 {
        let middle = 10_000.0;
        let value = match self {
            Self::Normal => middle * (1.0 + relative * random.normal()),
            Self::Lognormal => middle * (relative * random.normal()).exp(),
            Self::Exponential => middle * (1.0 + relative * random.exponential()),
            Self::Heavy => {
                let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                middle * (1.0 + relative * random.normal() / (squares / 3.0).sqrt()).max(0.1)
            }
            Self::Rounded => {
                let step = middle * relative;
                (middle * (1.0 + relative * random.normal()) / step).round() * step
            }
        };
        value.round().max(1.0)
    }
}

fn observed(values: &[f64]) -> Vec<Observed> {
    let of = |value: &f64| Observed {
        value: *value,
        ..Observed::default()
    };
    values.iter().map(of).collect()
}

fn latency(base: &[f64], change: &[f64]) -> Compared {
    Compared {
        direction: Direction::Lower,
        scale: Scale::Ratio { resolution: 1.0 },
        base: observed(base),
        change: observed(change),
    }
}

fn share(base: &[f64], change: &[f64]) -> Compared {
    Compared {
        scale: Scale::Share { of: 60_000.0 },
        ..latency(base, change)
    }
}

const ALONE: Criteria = Criteria {
    tolerance: TOLERANCE,
    error: FALSE_ALARMS,
};

fn alone(compared: &Compared) -> Distance {
    compared.distance(ALONE).expect("both sides are known")
}

/// The verdict on several figures of two sides of `runs` runs; the change is longer by `shift`.
fn judged(
    random: &mut Random,
    scatter: Scatter,
    runs: usize,
    [relative, shift]: [f64; 2],
) -> Judgement {
    let criteria = Criteria {
        error: FALSE_ALARMS / FIGURES as f64,
        ..ALONE
    };
    let findings = (0..FIGURES).map(|_| {
        let mut side = |factor: f64| -> Vec<f64> {
            let draws = (0..runs).map(|_| scatter.draw(random, relative) * factor);
            draws.collect()
        };
        let (base, change) = (side(1.0), side(1.0 + shift));
        let distance = latency(&base, &change).distance(criteria);
        distance.expect("both sides are known").finding
    });
    Judgement::of(findings.collect::<Vec<_>>())
}

fn random(case: u64) -> Random {
    Random::new(mix(SEED, case))
}

#[test]
fn equal_sides_are_called_better_or_worse_in_at_most_the_stated_share() {
    for (case, scatter) in SCATTERS.into_iter().enumerate() {
        for runs in [3, 8] {
            for relative in [0.02, 0.3] {
                let mut random = random(case as u64);
                let alarms = (0..COMPARISONS).filter(|_| {
                    let found = judged(&mut random, scatter, runs, [relative, 0.0]);
                    matches!(found, Judgement::Better | Judgement::Worse)
                });
                let share = alarms.count() as f64 / COMPARISONS as f64;
                // Three standard errors of the simulation.
                let most = FALSE_ALARMS + 3.0 * (FALSE_ALARMS / COMPARISONS as f64).sqrt();
                assert!(share <= most, "{scatter:?} {runs} {relative}: {share}");
            }
        }
    }
}

#[test]
fn sides_that_differ_by_twice_the_tolerance_are_never_called_the_same() {
    for scatter in [Scatter::Normal, Scatter::Lognormal] {
        let mut random = random(7);
        let missed = (0..COMPARISONS).filter(|_| {
            let found = judged(&mut random, scatter, 3, [0.02, 2.0 * TOLERANCE]);
            matches!(found, Judgement::Better | Judgement::Same)
        });
        let share = missed.count() as f64 / COMPARISONS as f64;
        assert!(share <= FALSE_ALARMS, "{scatter:?}: {share}");
    }
}

#[test]
fn a_shift_well_above_the_scatter_is_found() {
    for (runs, relative, shift) in [(3, 0.01, 0.1), (5, 0.02, 0.1), (10, 0.05, 0.15)] {
        let mut random = random(9);
        let found = (0..COMPARISONS).filter(|_| {
            judged(&mut random, Scatter::Normal, runs, [relative, shift]) == Judgement::Worse
        });
        let share = found.count() as f64 / COMPARISONS as f64;
        assert!(share >= 0.95, "{runs} {relative} {shift}: {share}");
    }
}

#[test]
fn equal_sides_that_scatter_little_are_the_same() {
    let mut random = random(11);
    let same = (0..COMPARISONS)
        .filter(|_| judged(&mut random, Scatter::Normal, 5, [0.01, 0.0]) == Judgement::Same);
    assert!(same.count() as f64 >= 0.95 * COMPARISONS as f64);
}

#[test]
fn an_interval_covers_the_truth_at_its_stated_share() {
    for runs in [3, 6] {
        let mut random = random(13);
        let covered = (0..COMPARISONS).filter(|_| {
            let mut side = |factor: f64| -> Vec<f64> {
                let draws = (0..runs).map(|_| Scatter::Lognormal.draw(&mut random, 0.1) * factor);
                draws.collect()
            };
            let (base, change) = (side(1.0), side(1.2));
            let [low, high] = alone(&latency(&base, &change))
                .interval
                .expect("an interval");
            low <= 0.2 && 0.2 <= high
        });
        let share = covered.count() as f64 / COMPARISONS as f64;
        assert!(share >= 0.94, "{runs}: {share}");
    }
}

#[test]
fn three_runs_that_agree_are_the_same() {
    let distance = alone(&latency(&[100.0; 3], &[100.0; 3]));
    assert_eq!(distance.finding, Finding::Same);
    assert_eq!(distance.by, 0.0);
    // Equal values prove no more than their rounding: 1 us of 100.
    let [low, high] = distance.interval.expect("an interval");
    assert!(low < -0.005 && high > 0.005, "{low} {high}");
}

#[test]
fn fewer_than_three_runs_speak_of_themselves_alone() {
    let one = alone(&latency(&[100.0], &[200.0]));
    assert_eq!((one.finding, one.p), (Finding::DiffersHere, None));
    let two = alone(&latency(&[100.0, 101.0, 99.0], &[200.0, 201.0]));
    assert_eq!(two.finding, Finding::DiffersHere);
    assert_eq!(
        alone(&latency(&[100.0], &[100.0])).finding,
        Finding::AlikeHere
    );
    let verdict = Judgement::of([one.finding, Finding::Better]);
    assert_eq!(verdict, Judgement::NotComparable);
}

#[test]
fn windows_bound_a_single_run() {
    let run = |value: f64, seed: u64| {
        let mut random = random(seed);
        let windows = (0..60)
            .map(|_| value * (1.0 + 0.2 * random.normal()))
            .collect();
        vec![Observed {
            value,
            windows,
            ..Observed::default()
        }]
    };
    let near = Compared {
        base: run(100.0, 1),
        change: run(106.0, 2),
        ..latency(&[], &[])
    };
    let far = Compared {
        change: run(150.0, 3),
        ..near.clone()
    };
    assert_eq!(
        alone(&near).finding,
        Finding::AlikeHere,
        "{:?}",
        alone(&near)
    );
    assert_eq!(
        alone(&far).finding,
        Finding::DiffersHere,
        "{:?}",
        alone(&far)
    );
    assert!(alone(&far).interval.is_some());
}

#[test]
fn a_run_that_states_its_interval_needs_no_repetition() {
    let run = |value: f64, width: f64| Observed {
        value,
        interval: Some([value / (1.0 + width), value * (1.0 + width)]),
        ..Observed::default()
    };
    let finding = |change: Observed| {
        let compared = Compared {
            direction: Direction::Higher,
            scale: Scale::Ratio { resolution: 0.001 },
            base: vec![run(1_000.0, 0.02)],
            change: vec![change],
        };
        alone(&compared).finding
    };
    assert_eq!(finding(run(1_100.0, 0.02)), Finding::Better);
    assert_eq!(finding(run(900.0, 0.02)), Finding::Worse);
    assert_eq!(finding(run(1_010.0, 0.02)), Finding::Same);
    // Together the two intervals are wider than the tolerance.
    assert_eq!(finding(run(1_010.0, 0.06)), Finding::Unclear);
    let unstated = Observed {
        interval: None,
        ..run(1_100.0, 0.0)
    };
    assert_eq!(finding(unstated), Finding::DiffersHere);
}

#[test]
fn what_is_not_known_is_left_out() {
    assert_eq!(latency(&[], &[1.0]).distance(ALONE), None);
    assert_eq!(latency(&[f64::NAN; 3], &[1.0; 3]).distance(ALONE), None);
    let some = alone(&latency(&[f64::NAN, 100.0, f64::INFINITY], &[100.0; 3]));
    assert_eq!(some.finding, Finding::AlikeHere, "one run is left");
}

#[test]
fn no_message_lost_on_either_side_is_the_same() {
    let none = alone(&share(&[0.0; 3], &[0.0; 3]));
    assert_eq!((none.finding, none.by), (Finding::Same, 0.0));
}

#[test]
fn no_message_lost_of_a_few_is_unclear() {
    for (of, finding) in [(400.0, Finding::Unclear), (600.0, Finding::Same)] {
        let none = Compared {
            scale: Scale::Share { of },
            ..latency(&[0.0; 3], &[0.0; 3])
        };
        assert_eq!(alone(&none).finding, finding, "3 of {of} x 6 messages");
    }
}

#[test]
fn both_tests_of_a_history_share_its_error() {
    // Too few for a change of level: only the drift has a p.
    let series = Series {
        direction: Direction::Lower,
        scale: Scale::Ratio { resolution: 1.0 },
        values: [100.0, 102.0, 104.0, 106.0, 108.0, 110.0].into(),
    };
    let drift = |error: f64| {
        let course = series.course(Criteria { error, ..ALONE });
        course.drift.expect("a drift")
    };
    let p = drift(0.01).p;
    assert!(p > 0.0 && p < 0.095, "{p}");
    assert_eq!(drift(p * 1.98).finding, Finding::Same);
    assert_eq!(drift(p * 2.02).finding, Finding::Worse);
}

#[test]
fn a_loss_that_the_base_has_not_is_worse_whatever_the_tolerance() {
    let lost = share(&[0.0; 3], &[0.004, 0.005, 0.006]);
    let criteria = Criteria {
        tolerance: 0.5,
        ..ALONE
    };
    let finding = lost.distance(criteria).map(|distance| distance.finding);
    assert_eq!(finding, Some(Finding::Worse));
}

#[test]
fn a_few_messages_of_many_are_the_same() {
    let few = share(&[0.0, 1.0 / 60_000.0, 0.0], &[0.0, 0.0, 2.0 / 60_000.0]);
    assert_eq!(alone(&few).finding, Finding::Same);
}

#[test]
fn a_lower_bound_proves_only_what_a_larger_value_would_prove() {
    let bounded = |at_least: [bool; 2], change: f64| {
        let mut compared = latency(
            &[100.0, 101.0, 99.0],
            &[change, change * 1.01, change * 0.99],
        );
        for run in &mut compared.base {
            run.at_least = at_least[0];
        }
        compared.change[0].at_least = at_least[1];
        alone(&compared).finding
    };
    assert_eq!(bounded([false, true], 200.0), Finding::Worse);
    assert_eq!(bounded([false, true], 100.0), Finding::Unclear);
    assert_eq!(bounded([false, true], 50.0), Finding::Unclear);
    assert_eq!(bounded([true, false], 50.0), Finding::Better);
    assert_eq!(bounded([true, false], 200.0), Finding::Unclear);
    assert_eq!(bounded([true, true], 200.0), Finding::Unclear);
}

#[test]
fn an_unclear_figure_says_how_many_runs_would_decide() {
    let distance = alone(&latency(&[90.0, 100.0, 110.0], &[92.0, 101.0, 109.0]));
    assert_eq!(distance.finding, Finding::Unclear);
    assert!(
        distance.proposed.is_some_and(|runs| runs > 3),
        "{distance:?}"
    );
}

#[test]
fn one_figure_that_is_worse_decides() {
    use Finding::{Better, Same, Unclear, Worse};
    for (findings, verdict) in [
        (&[Same, Better, Worse, Unclear][..], Judgement::Worse),
        (&[Same, Better, Unclear], Judgement::NotComparable),
        (&[Same, Better], Judgement::Better),
        (&[Same, Same], Judgement::Same),
        (&[], Judgement::NotComparable),
    ] {
        assert_eq!(
            Judgement::of(findings.iter().copied()),
            verdict,
            "{findings:?}"
        );
    }
}

#[test]
fn a_change_of_level_is_found_where_it_is() {
    let mut random = random(17);
    let values: Vec<f64> = (0..40)
        .map(|at| if at < 25 { 100.0 } else { 115.0 } + 3.0 * random.normal())
        .collect();
    let points = change_points(&values, 0.01, SEED);
    assert_eq!(points.len(), 1, "{points:?}");
    assert!(points[0].at.abs_diff(25) <= 1, "{points:?}");
}

#[test]
fn a_series_without_a_change_has_rarely_a_change_point() {
    let mut random = random(19);
    let series = 200;
    let alarms = (0..series).filter(|_| {
        let values: Vec<f64> = (0..20).map(|_| 100.0 + random.normal()).collect();
        !change_points(&values, FALSE_ALARMS, SEED).is_empty()
    });
    let most = FALSE_ALARMS + 3.0 * (FALSE_ALARMS / f64::from(series)).sqrt();
    assert!(alarms.count() as f64 / f64::from(series) <= most);
}

#[test]
fn a_short_or_constant_series_has_no_change_point() {
    assert!(change_points(&[], 0.05, SEED).is_empty());
    assert!(change_points(&[1.0, 1.0, 9.0, 9.0], 0.05, SEED).is_empty());
    assert!(change_points(&[4.0; 30], 0.05, SEED).is_empty());
}

proptest! {
    /// Exchanging the sides turns the finding and the interval; another unit of time changes neither.
    #[test]
    fn a_comparison_turns_with_its_sides(
        base in prop::collection::vec(1_000_u32..2_000, 3..8),
        change in prop::collection::vec(1_000_u32..4_000, 3..8),
    ) {
        let of = |values: &[u32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
        let (base, change) = (of(&base), of(&change));
        let forth = alone(&latency(&base, &change));
        let back = alone(&latency(&change, &base));
        let opposites = [(Finding::Better, Finding::Worse), (Finding::Worse, Finding::Better)];
        let opposite = opposites.iter().find(|(of, _)| *of == forth.finding);
        let turned = opposite.map_or(forth.finding, |(_, opposite)| *opposite);
        prop_assert_eq!(back.finding, turned);
        let [low, high] = forth.interval.expect("an interval");
        let [back_low, back_high] = back.interval.expect("an interval");
        prop_assert!(((1.0 + low) * (1.0 + back_high) - 1.0).abs() < 1e-9);
        prop_assert!(((1.0 + high) * (1.0 + back_low) - 1.0).abs() < 1e-9);
        prop_assert!(low <= forth.by && forth.by <= high);
        let p = forth.p.expect("a probability");
        prop_assert!((0.0..=1.0).contains(&p));
    }
}
