//! Policies of a growth that searches one setting after the other.

use muster_plan::SweepPlan;
use muster_scale::{
    ComponentGrowth, ComponentLimits, ComponentsSpec, End, Growth, GrowthSpec, Next, Outcome,
    Setting, Sweep, Wanted,
};

use super::log::Basis;

/// Decides on the next setting of the target.
#[derive(Debug)]
pub(super) enum Policy {
    /// The instances of one component grow.
    One(Growth),
    /// Instances of several components grow.
    Several(ComponentGrowth),
    /// Each cell of a matrix is measured.
    Sweep(Sweep),
}

impl Policy {
    /// The policy of a growth, whose first search begins at the rate `first`.
    pub(super) fn new(basis: &Basis, first: f64) -> Self {
        if let Some(sweep) = &basis.sweep {
            return Self::Sweep(Sweep::new(cells(sweep), first));
        }
        match &basis.components[..] {
            [only] if only.name.is_empty() => Self::One(Growth::new(GrowthSpec {
                least: only.least,
                most: only.most,
                first,
            })),
            all => Self::Several(ComponentGrowth::new(ComponentsSpec {
                limits: all
                    .iter()
                    .map(|of| ComponentLimits {
                        least: of.least,
                        most: of.most,
                    })
                    .collect(),
                first,
            })),
        }
    }

    /// The next move.
    pub(super) fn next(&self) -> Next<Setting> {
        match self {
            Self::One(growth) => match growth.next() {
                Next::Measure(wanted) => Next::Measure(Wanted {
                    instances: alone(wanted.instances),
                    first: wanted.first,
                }),
                Next::End(end) => Next::End(end.map(alone)),
            },
            Self::Several(growth) => growth.next(),
            Self::Sweep(sweep) => sweep.next(),
        }
    }

    /// Takes the outcome of a search of a setting.
    pub(super) fn record(&mut self, setting: &Setting, outcome: &Outcome) {
        match self {
            Self::One(growth) => growth.record(outcome),
            Self::Several(growth) => growth.record(outcome),
            Self::Sweep(sweep) => sweep.record(setting, outcome),
        }
    }

    /// Number of further searches, the one under way included.
    pub(super) fn further(&self) -> u32 {
        match self {
            Self::One(growth) => growth.further(),
            Self::Several(growth) => growth.further(),
            Self::Sweep(sweep) => sweep.further(),
        }
    }

    /// The change of the scenario that makes the searches fewer.
    pub(super) fn fewer(&self) -> &'static str {
        match self {
            Self::One(_) => "lower `scale.instances.max`",
            Self::Several(_) => "lower `scale.components[].instances.max`",
            Self::Sweep(_) => "give `scale.sweep` fewer cells",
        }
    }

    /// The end for want of time.
    pub(super) fn out_of_budget(&self, why: String) -> End<Setting> {
        match self {
            Self::One(growth) => growth.out_of_budget(why).map(alone),
            Self::Several(growth) => growth.out_of_budget(why),
            Self::Sweep(sweep) => sweep.out_of_budget(why),
        }
    }
}

pub(super) fn alone(instances: u32) -> Setting {
    Setting::new(vec![instances])
}

/// Each size of each component with each of the others; the environment changes last, for its change restarts all.
fn cells(sweep: &SweepPlan) -> Vec<Setting> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for sizes in &sweep.sizes {
        let with = |before: &Vec<u32>| {
            let before = before.clone();
            sizes
                .iter()
                .map(move |size| [&before[..], &[*size]].concat())
        };
        all = all.iter().flat_map(with).collect();
    }
    let environments = 0..sweep.environments.len();
    environments
        .flat_map(|environment| {
            all.iter().map(move |sizes| Setting {
                sizes: sizes.clone(),
                environment,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_each_size_with_each_other_in_each_environment() {
        let cells = cells(&SweepPlan {
            sizes: vec![vec![1, 2], vec![1, 3]],
            environments: vec![Vec::new(), Vec::new()],
        });
        let sizes: Vec<_> = cells.iter().map(|cell| &cell.sizes[..]).collect();
        let of_each = [[1, 1], [1, 3], [2, 1], [2, 3]];
        assert_eq!(sizes, [of_each, of_each].concat());
        let environments: Vec<_> = cells.iter().map(|cell| cell.environment).collect();
        assert_eq!(environments, [0, 0, 0, 0, 1, 1, 1, 1]);
    }
}
