//! Growth of several components, and sweeps, against simulated targets whose capacities are known.

use muster_scale::{
    Addition, ComponentGrowth, ComponentLimits, ComponentsSpec, End, Measured, Next, Outcome,
    Setting, Sweep,
};
use proptest::prelude::*;

const LIMITS: ComponentLimits = ComponentLimits { least: 1, most: 4 };

fn within(capacity: f64, share: f64) -> Measured {
    Measured {
        lower: capacity * (1.0 - share),
        middle: capacity,
        upper: capacity * (1.0 + share),
    }
}

/// The outcome of a search that begins at `first` on a target that carries `capacity`.
fn searched(capacity: f64, first: f64) -> Outcome {
    match capacity < first {
        true => Outcome::FailsAtFirst { rate: first },
        false => Outcome::Found(within(capacity, 0.03)),
    }
}

/// Grows a target to its end, and counts the searches.
fn grow(
    limits: &[ComponentLimits],
    mut capacity: impl FnMut(&[u32]) -> f64,
) -> (ComponentGrowth, End<Setting>) {
    let mut growth = ComponentGrowth::new(ComponentsSpec {
        limits: limits.to_vec(),
        first: 50.0,
    });
    for _ in 0..100 {
        match growth.next() {
            Next::End(end) => return (growth, end),
            Next::Measure(wanted) => {
                let before = growth.further();
                let outcome = searched(capacity(&wanted.instances.sizes), wanted.first);
                growth.record(&outcome);
                let is_fewer = growth.further() < before;
                let is_found = matches!(outcome, Outcome::Found(_));
                assert!(is_fewer || !is_found, "each search counts: {growth:?}");
            }
        }
    }
    panic!("the growth does not end");
}

fn kept(growth: &ComponentGrowth) -> Vec<Vec<u32>> {
    let kept = growth.kept().iter();
    kept.map(|(setting, _)| setting.sizes.clone()).collect()
}

fn tried(growth: &ComponentGrowth) -> Vec<(Vec<usize>, bool)> {
    let tried = growth.additions().iter();
    tried
        .map(|addition| (addition.components.clone(), addition.has_helped))
        .collect()
}

#[test]
fn the_component_that_helps_is_kept_and_the_other_put_back() {
    let (growth, end) = grow(&[LIMITS; 2], |sizes| 200.0 * f64::from(sizes[1]));
    assert_eq!(kept(&growth), [[1, 1], [1, 2], [1, 3], [1, 4]]);
    let helped = (vec![1], true);
    let first = (vec![0], false);
    // The second one is tried first once it has helped; there is no more of it in the end.
    let expected = [first.clone(), helped.clone(), helped.clone(), helped, first];
    assert_eq!(tried(&growth), expected);
    let since = Setting::new(vec![1, 4]);
    assert_eq!(end, End::NoGain { since });
}

#[test]
fn components_that_limit_in_turn_grow_in_turn() {
    let (growth, end) = grow(&[LIMITS; 2], |sizes| {
        (100.0 * f64::from(sizes[0])).min(150.0 * f64::from(sizes[1]))
    });
    // The last but one needs both.
    let expected = [[1, 1], [2, 1], [2, 2], [3, 2], [4, 3]];
    assert_eq!(kept(&growth), expected);
    let since = Setting::new(vec![4, 3]);
    assert_eq!(end, End::NoGain { since });
}

#[test]
fn components_that_help_only_together_grow_together() {
    let both = |sizes: &[u32]| 200.0 * f64::from(sizes[0].min(sizes[1]));
    let (growth, end) = grow(&[LIMITS; 2], both);
    assert_eq!(kept(&growth), [[1, 1], [2, 2], [3, 3], [4, 4]]);
    assert_eq!(end, End::AtMost);
    let of_round = &tried(&growth)[..3];
    let expected = [(vec![0], false), (vec![1], false), (vec![0, 1], true)];
    assert_eq!(of_round, expected);
}

#[test]
fn a_target_that_no_component_helps_stays_as_it_was() {
    let (growth, end) = grow(&[LIMITS; 2], |_| 200.0);
    assert_eq!(kept(&growth), [[1, 1]]);
    assert_eq!(growth.additions().len(), 3);
    assert!(
        growth
            .additions()
            .iter()
            .all(|addition| !addition.has_helped)
    );
    let since = Setting::new(vec![1, 1]);
    assert_eq!(end, End::NoGain { since });
}

#[test]
fn a_component_that_slows_the_others_is_measured_and_put_back() {
    // Below the first rate of its search, which is 90 % of what was carried before.
    let (growth, _) = grow(&[LIMITS; 2], |sizes| {
        200.0 * f64::from(sizes[1]) / f64::from(sizes[0])
    });
    assert_eq!(kept(&growth).last(), Some(&vec![1, 4]));
    let Some(Addition { gain, measured, .. }) = growth.additions().first() else {
        panic!("nothing was added");
    };
    assert_eq!((measured.middle, *gain), (100.0, -100.0));
}

#[test]
fn a_single_component_grows_while_it_helps() {
    let (growth, end) = grow(&[LIMITS], |sizes| (200.0 * f64::from(sizes[0])).min(450.0));
    assert_eq!(kept(&growth), [[1], [2], [3]]);
    assert_eq!(
        end,
        End::NoGain {
            since: Setting::new(vec![3])
        }
    );
}

#[test]
fn instances_that_cannot_be_judged_end_the_growth() {
    let mut growth = ComponentGrowth::new(ComponentsSpec {
        limits: vec![LIMITS; 2],
        first: 50.0,
    });
    assert_eq!(growth.further(), 12);
    growth.record(&searched(200.0, 50.0));
    let idle = Outcome::Idle {
        address: "127.0.0.1:2".to_owned(),
    };
    growth.record(&idle);
    assert!(
        matches!(growth.next(), Next::Measure(_)),
        "it is searched again"
    );
    growth.record(&idle);
    let Next::End(End::Unclear { instances, why, .. }) = growth.next() else {
        panic!("{:?}", growth.next())
    };
    assert_eq!(instances, Setting::new(vec![2, 1]));
    assert!(why.contains("127.0.0.1:2"), "{why}");
}

/// Two sizes of a component in two environments.
fn cells() -> Vec<Setting> {
    let pairs = [(1, 0), (2, 0), (1, 1), (2, 1)];
    let cells = pairs.map(|(size, environment)| Setting {
        sizes: vec![size],
        environment,
    });
    cells.to_vec()
}

#[test]
fn each_cell_of_a_sweep_is_measured_from_what_smaller_ones_carry() {
    let mut sweep = Sweep::new(cells(), 50.0);
    let mut firsts = Vec::new();
    while let Next::Measure(wanted) = sweep.next() {
        firsts.push(wanted.first);
        let Setting { sizes, environment } = &wanted.instances;
        let each = [200.0, 400.0][*environment];
        sweep.record(
            &wanted.instances,
            &searched(each * f64::from(sizes[0]), wanted.first),
        );
    }
    let below = |capacity: f64| within(capacity, 0.03).lower * 0.9;
    assert_eq!(firsts, [50.0, below(200.0), 50.0, below(400.0)]);
    let found: Vec<_> = sweep.cells().map(|(_, outcome)| outcome.cloned()).collect();
    let expected = [200.0, 400.0, 400.0, 800.0].map(|of| Some(searched(of, 0.0)));
    assert_eq!(found, expected);
}

#[test]
fn a_cell_that_cannot_be_judged_does_not_end_a_sweep() {
    let mut sweep = Sweep::new(cells(), 50.0);
    let unclear = Outcome::Unclear {
        why: "no time".to_owned(),
        known: None,
    };
    let mut searches = 0;
    while let Next::Measure(wanted) = sweep.next() {
        searches += 1;
        let outcome = match wanted.instances.environment {
            0 => searched(200.0, wanted.first),
            _ => unclear.clone(),
        };
        sweep.record(&wanted.instances, &outcome);
    }
    assert_eq!(searches, 6, "an unclear cell is searched twice");
    assert_eq!((sweep.further(), sweep.next()), (0, Next::End(End::AtMost)));
    let last = sweep.cells().last().and_then(|(_, outcome)| outcome);
    assert_eq!(last, Some(&unclear));
}

#[test]
fn a_sweep_goes_on_at_the_cells_that_were_not_judged() {
    let mut sweep = Sweep::new(cells(), 50.0);
    let all = cells();
    for cell in [&all[0], &all[2]] {
        sweep.record(cell, &searched(200.0, 50.0));
    }
    assert_eq!(sweep.further(), 2);
    let Next::Measure(wanted) = sweep.next() else {
        panic!("two cells are left")
    };
    assert_eq!(wanted.instances, all[1]);
    let End::Unclear { instances, .. } = sweep.out_of_budget("no time is left".to_owned()) else {
        panic!("a cell is under way")
    };
    assert_eq!(instances, all[1]);
}

proptest! {
    /// Law: a growth ends, keeps only instances that helped, and never has more of a component than allowed.
    #[test]
    fn a_growth_of_components_ends(
        most in prop::collection::vec(1_u32..4, 1..4), seeds in prop::collection::vec(1_u8..9, 40),
    ) {
        let limits: Vec<_> = most.iter().map(|most| ComponentLimits { least: 1, most: *most }).collect();
        let mut at = 0;
        let (growth, _) = grow(&limits, |_| {
            at += 1;
            f64::from(seeds[at % seeds.len()]) * 100.0
        });
        for (setting, _) in growth.kept() {
            prop_assert!(setting.sizes.iter().zip(&most).all(|(size, most)| size <= most));
        }
        let helped = growth.additions().iter().filter(|addition| addition.has_helped).count();
        prop_assert_eq!(growth.kept().len(), helped + 1);
        prop_assert!(growth.kept().windows(2).all(|pair| pair[1].1.middle > pair[0].1.middle));
    }
}
