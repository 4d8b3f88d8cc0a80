//! Comparison of two sides, each of one or several runs: the distance of each figure, and the distance that
//! chance explains.
//!
//! Repetitions of a side are independent values. Windows of one run are not: with fewer than
//! [`REPETITIONS_MIN`] runs a side their scatter bounds a figure of these runs, and the finding is about
//! these runs only. docs/compare.md has the method with its sources. This module must never know where a
//! figure came from.

mod change_point;
mod history;
mod sections;
mod student;

pub use change_point::{ChangePoint, HISTORY_MIN, change_points};
pub use history::{Course, Drift, LevelChange, Series};

use serde::{Deserialize, Serialize};

use self::sections::Spread;

/// Runs a side from which a finding may be about the sides, not about these runs alone.
pub const REPETITIONS_MIN: usize = 3;

/// Share of the comparisons of equal sides that may end with better or worse, at most.
pub const FALSE_ALARMS: f64 = 0.05;

/// Relative difference that does not matter, by default.
pub const TOLERANCE: f64 = 0.05;

/// Difference of a share of messages that is still the same: 1 in 1,000. A larger share is worse in any
/// case if chance does not explain it.
pub const SHARE_MARGIN: f64 = 0.001;

/// Width of a cell of a histogram of latencies, as a part of the value.
const CELL: f64 = 0.001;

/// The most repetitions a side that are proposed.
const PROPOSED_MAX: usize = 200;

/// The better direction of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better, as of a rate.
    Higher,
    /// Less is better, as of a latency.
    Lower,
}

/// The scale on which a figure is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// By ratio: times, rates, bytes.
    Ratio {
        /// The smallest step of a value; smaller values count as this.
        resolution: f64,
    },
    /// By difference: a share of messages, 0 to 1.
    Share {
        /// Messages of a run.
        of: f64,
    },
}

/// A figure of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// The value; one that is not finite counts as not known.
    pub value: f64,
    /// True if the value is a lower bound.
    pub at_least: bool,
    /// The figure in windows of the run, in order; empty if windows do not have it.
    pub windows: Vec<f64>,
    /// Interval that holds the truth with the probability of [`FALSE_ALARMS`] to the whole, as the run states it; none
    /// if it states none.
    pub interval: Option<[f64; 2]>,
}

/// One figure of both sides, a value for each run.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The better direction.
    pub direction: Direction,
    /// The scale.
    pub scale: Scale,
    /// The runs of the base.
    pub base: Vec<Observed>,
    /// The runs of the change.
    pub change: Vec<Observed>,
}

/// Allowed differences and errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// Relative difference that does not matter.
    pub tolerance: f64,
    /// Probability of an interval that misses the truth.
    pub error: f64,
}

/// The finding on one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The observed distance is better by more than the tolerance, and the interval excludes equal sides. The true
    /// distance may still be within the tolerance.
    Better,
    /// Worse, likewise.
    Worse,
    /// The whole interval lies within the tolerance.
    Same,
    /// The interval is too wide to decide.
    Unclear,
    /// Too few runs; in these runs the figure differs by more than the tolerance.
    DiffersHere,
    /// Too few runs; in these runs no difference shows.
    AlikeHere,
}

impl Finding {
    /// The finding in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::DiffersHere => "differs within these runs",
            Self::AlikeHere => "alike within these runs",
        }
    }
}

/// Distance of a figure of the change from that of the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// The base: the geometric mean of its runs, of a share the mean.
    pub base: f64,
    /// The change, likewise.
    pub change: f64,
    /// The distance: 0.05 is 5 % more, of a share 5 percentage points more.
    pub by: f64,
    /// Bounds of the distance; none if nothing bounds it.
    pub interval: Option<[f64; 2]>,
    /// Two-sided probability of so large a distance between equal sides; none with too few runs.
    pub p: Option<f64>,
    /// The finding.
    pub finding: Finding,
    /// Runs a side that would decide, roughly; none if it is decided or nothing is known of it.
    pub proposed: Option<u32>,
}

/// The verdict on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// At least one figure is better, and the others are the same.
    Better,
    /// At least one figure is worse.
    Worse,
    /// All figures are the same.
    Same,
    /// The sides cannot be compared, or too little is known to decide.
    NotComparable,
}

impl Judgement {
    /// The verdict on the figures that decide; not comparable without one.
    pub fn of(deciding: impl IntoIterator<Item = Finding>) -> Self {
        let found: Vec<Finding> = deciding.into_iter().collect();
        let has = |finding| found.contains(&finding);
        let is_open = [Finding::Unclear, Finding::DiffersHere, Finding::AlikeHere]
            .into_iter()
            .any(has);
        match (has(Finding::Worse), is_open || found.is_empty()) {
            (true, _) => Self::Worse,
            (false, true) => Self::NotComparable,
            (false, false) if has(Finding::Better) => Self::Better,
            (false, false) => Self::Same,
        }
    }

    /// The verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::NotComparable => "not comparable",
        }
    }

    /// The exit code of this verdict (docs/semantics.md#verdict-and-exit-codes).
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Better | Self::Same => 0,
            Self::Worse => 1,
            Self::NotComparable => 3,
        }
    }

    /// The worse of two: worse before not comparable before same before better.
    pub fn or_worse(self, other: Self) -> Self {
        let order = [Self::Better, Self::Same, Self::NotComparable, Self::Worse];
        let place = |of: Self| order.iter().position(|one| *one == of);
        if place(other) > place(self) {
            other
        } else {
            self
        }
    }
}

impl Compared {
    /// The distance of both sides; none if a side has no value.
    pub fn distance(&self, criteria: Criteria) -> Option<Distance> {
        let (base, change) = (known(&self.base), known(&self.change));
        let sides = [&base, &change].map(|side| Summary::new(self.scale, side));
        let [Some(of_base), Some(of_change)] = sides else {
            return None;
        };
        let has_repetitions = base.len().min(change.len()) >= REPETITIONS_MIN;
        let between = of_change.mean - of_base.mean;
        let spread = match has_repetitions {
            true => self.between_runs(&of_base, &of_change),
            false => self.within_runs(&base, &change),
        };
        let stated = (!has_repetitions).then(|| self.stated_half(&base, &change));
        let stated = stated.flatten();
        let half = stated.or_else(|| spread.map(|spread| spread.half(criteria.error)));
        let [low, high] = [-1.0, 1.0].map(|sign| half.map(|half| between + sign * half));
        let margins = self.scale.margins(criteria.tolerance, of_base.mean);
        let runs = of_base.runs + of_change.runs;
        let found = Found {
            between,
            half,
            margins,
            most_unseen: self.scale.most_unseen(runs),
        };
        let finding = match has_repetitions || stated.is_some() {
            true => self.if_bounds_allow(found.of_sides(self.direction), [&base, &change]),
            false => found.within_these_runs(),
        };
        let is_open = has_repetitions && finding == Finding::Unclear;
        Some(Distance {
            base: self.scale.value(of_base.mean),
            change: self.scale.value(of_change.mean),
            by: self.scale.distance(between),
            interval: low
                .zip(high)
                .map(|(low, high)| [self.scale.distance(low), self.scale.distance(high)]),
            p: spread
                .filter(|_| has_repetitions)
                .map(|spread| spread.p(between)),
            finding,
            proposed: spread.filter(|_| is_open).and_then(|spread| {
                found.proposed(base.len().max(change.len()), spread, criteria.error)
            }),
        })
    }

    /// The scatter of the runs (Welch 1947).
    fn between_runs(&self, base: &Summary, change: &Summary) -> Option<Spread> {
        let floor = |side: &Summary| self.scale.least_variance(side, [base.mean, change.mean]);
        let parts = [base, change].map(|side| {
            let variance = side.variance.max(floor(side));
            (variance / side.runs, side.runs - 1.0)
        });
        Spread::new(&parts)
    }

    /// The scatter of the windows within each run.
    fn within_runs(&self, base: &[&Observed], change: &[&Observed]) -> Option<Spread> {
        let mut parts = Vec::new();
        for side in [base, change] {
            let runs = side.len() as f64;
            for run in side {
                let windows: Vec<f64> = run.windows.iter().map(|v| self.scale.scaled(*v)).collect();
                let (variance, freedom) = sections::variance(&windows)?;
                parts.push((variance / (runs * runs), freedom));
            }
        }
        Spread::new(&parts)
    }

    /// Half the width of the interval that the stated ones give together; none if a run states none.
    fn stated_half(&self, base: &[&Observed], change: &[&Observed]) -> Option<f64> {
        let mut squares = 0.0;
        for side in [base, change] {
            for run in side {
                let [low, high] = run.interval?.map(|bound| self.scale.scaled(bound));
                squares += ((high - low) / 2.0 / side.len() as f64).powi(2);
            }
        }
        Some(squares.sqrt())
    }

    /// A finding where some values are lower bounds: only what a larger true value would not change stays.
    fn if_bounds_allow(&self, finding: Finding, [base, change]: [&[&Observed]; 2]) -> Finding {
        let is_bounded = |side: &[&Observed]| side.iter().any(|run| run.at_least);
        let stays = match (is_bounded(base), is_bounded(change)) {
            (false, false) => return finding,
            (false, true) => self.direction.of_rise(),
            (true, false) => self.direction.of_fall(),
            (true, true) => return Finding::Unclear,
        };
        if finding == stays {
            finding
        } else {
            Finding::Unclear
        }
    }
}

impl Direction {
    /// The finding if the figure rose.
    const fn of_rise(self) -> Finding {
        match self {
            Self::Higher => Finding::Better,
            Self::Lower => Finding::Worse,
        }
    }

    /// The finding if the figure fell.
    const fn of_fall(self) -> Finding {
        match self {
            Self::Higher => Finding::Worse,
            Self::Lower => Finding::Better,
        }
    }
}

impl Scale {
    /// A value on the scale on which differences are taken: the logarithm for ratios.
    fn scaled(self, value: f64) -> f64 {
        match self {
            Self::Ratio { resolution } => value.max(resolution).ln(),
            Self::Share { .. } => value,
        }
    }

    /// The value of a point of the scale.
    fn value(self, scaled: f64) -> f64 {
        match self {
            Self::Ratio { .. } => scaled.exp(),
            Self::Share { .. } => scaled,
        }
    }

    /// The distance of a difference on the scale.
    fn distance(self, difference: f64) -> f64 {
        match self {
            Self::Ratio { .. } => difference.exp_m1(),
            Self::Share { .. } => difference,
        }
    }

    /// The distance from which a difference matters, and the one up to which it is the same.
    fn margins(self, tolerance: f64, base: f64) -> Margins {
        match self {
            Scale::Ratio { .. } => Margins {
                matters: tolerance.ln_1p(),
                same: tolerance.ln_1p(),
            },
            Scale::Share { .. } => Margins {
                matters: tolerance * base,
                same: (tolerance * base).max(SHARE_MARGIN),
            },
        }
    }

    /// The share that this number of runs may have without showing it, by the rule of three: 95 % sure.
    fn most_unseen(self, runs: f64) -> f64 {
        match self {
            Self::Ratio { .. } => 0.0,
            Self::Share { of } => 3.0 / (of * runs).max(1.0),
        }
    }

    /// The least variance of a run's value: that of rounding, or of counting single messages. Runs that
    /// agree by luck must not prove more than their figures resolve.
    fn least_variance(self, side: &Summary, means: [f64; 2]) -> f64 {
        match self {
            Self::Ratio { resolution } => {
                let step = (resolution / side.mean.exp()).clamp(CELL, 1.0);
                step * step / 12.0
            }
            Self::Share { of } => {
                let share = f64::midpoint(means[0], means[1]).clamp(0.0, 1.0);
                share * (1.0 - share) / of.max(1.0)
            }
        }
    }
}

/// Mean and variance of a side on its scale.
struct Summary {
    runs: f64,
    mean: f64,
    variance: f64,
}

impl Summary {
    fn new(scale: Scale, side: &[&Observed]) -> Option<Self> {
        let values: Vec<f64> = side.iter().map(|run| scale.scaled(run.value)).collect();
        let runs = values.len() as f64;
        let mean = values.iter().sum::<f64>() / runs;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (!values.is_empty()).then(|| Self {
            runs,
            mean,
            variance: squares.sum::<f64>() / (runs - 1.0).max(1.0),
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Margins {
    matters: f64,
    same: f64,
}

/// A difference on its scale with its criteria.
struct Found {
    between: f64,
    half: Option<f64>,
    margins: Margins,
    /// The share of messages that all runs may have and show none of, or only such.
    most_unseen: f64,
}

impl Found {
    /// The finding on the sides.
    fn of_sides(&self, direction: Direction) -> Finding {
        let Some(half) = self.half else {
            // A share of all or none of the messages has no scatter.
            return match self.between == 0.0 && self.most_unseen <= self.margins.same {
                true => Finding::Same,
                false => Finding::Unclear,
            };
        };
        if self.between.abs() > half && self.between.abs() > self.margins.matters {
            return match self.between > 0.0 {
                true => direction.of_rise(),
                false => direction.of_fall(),
            };
        }
        match self.between.abs() + half <= self.margins.same {
            true => Finding::Same,
            false => Finding::Unclear,
        }
    }

    /// The finding on these runs. Counts without an interval are facts of these runs.
    fn within_these_runs(&self) -> Finding {
        let half = self.half.unwrap_or(0.0);
        match self.between.abs() > half && self.between.abs() > self.margins.matters {
            true => Finding::DiffersHere,
            false => Finding::AlikeHere,
        }
    }

    /// Runs a side after which the interval would be narrow enough, if its scatter stays.
    fn proposed(&self, runs: usize, spread: Spread, error: f64) -> Option<u32> {
        let between = self.between.abs();
        let room = match between > self.margins.matters {
            true => between,
            false => self.margins.same - between,
        };
        // A rough number will do: each one tried is a quarter above the one before.
        let tried = std::iter::successors(Some(runs + 1), |runs| Some(runs + runs.div_ceil(4)));
        let more = tried.take_while(|more| *more <= PROPOSED_MAX).find(|more| {
            let times = *more as f64 / runs as f64;
            spread.half_with(times, error) <= room
        });
        more.and_then(|more| u32::try_from(more).ok())
    }
}

/// The runs whose value is known.
fn known(side: &[Observed]) -> Vec<&Observed> {
    side.iter().filter(|run| run.value.is_finite()).collect()
}
