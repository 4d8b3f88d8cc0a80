//! One figure over a history of results: where its level changed, and whether it drifts since.

use super::{Criteria, Direction, Finding, Scale, change_points};
use crate::stability::{Point, Trend};

/// Seed of the permutations, so that one history always gives one answer.
const SEED: u64 = 0x6d75_7374_6572;

/// Results since the last change from which a drift is looked for.
const DRIFT_MIN: usize = 6;

/// One figure of each result, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The better direction.
    pub direction: Direction,
    /// The scale.
    pub scale: Scale,
    /// The values; one that is not finite counts as not known.
    pub values: Vec<f64>,
}

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// Index of the first result after it.
    pub at: usize,
    /// Level before it: the geometric mean since the change before, of a share the mean.
    pub before: f64,
    /// Level after it, until the next change.
    pub after: f64,
    /// Distance of both levels: 0.05 is 5 % more, of a share 5 percentage points more.
    pub by: f64,
    /// Share of random orders that show so large a change.
    pub p: f64,
    /// Better, worse, or the same within the tolerance.
    pub finding: Finding,
}

/// A drift since the last change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Distance from the first to the last of these results, by the slope of Theil and Sen.
    pub by: f64,
    /// Two-sided probability by Mann and Kendall, corrected for autocorrelation.
    pub p: f64,
    /// Better, worse, or the same: within the tolerance, or explained by chance.
    pub finding: Finding,
}

/// The findings on one figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Course {
    /// The changes of level in order.
    pub changes: Vec<LevelChange>,
    /// The drift since then; none with too few results.
    pub drift: Option<Drift>,
}

impl Series {
    /// The course of the figure. Both its tests, for changes and for a drift, share the error.
    pub fn course(&self, criteria: Criteria) -> Course {
        let criteria = Criteria {
            error: criteria.error / 2.0,
            ..criteria
        };
        let known: Vec<(usize, f64)> = self
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_finite())
            .map(|(at, value)| (at, self.scale.scaled(*value)))
            .collect();
        let scaled: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let points = change_points(&scaled, criteria.error, SEED);
        let mut edges: Vec<usize> = points.iter().map(|point| point.at).collect();
        edges.insert(0, 0);
        edges.push(scaled.len());
        let level = |part: &[usize]| mean(&scaled[part[0]..part[1]]);
        let changes = points.iter().zip(edges.windows(3)).map(|(point, edges)| {
            let (before, after) = (level(&edges[..2]), level(&edges[1..]));
            LevelChange {
                at: known[point.at].0,
                before: self.scale.value(before),
                after: self.scale.value(after),
                by: self.scale.distance(after - before),
                p: point.p,
                finding: self.moved(after - before, before, criteria),
            }
        });
        let last = points.last().map_or(0, |point| point.at);
        Course {
            changes: changes.collect(),
            drift: self.drift(&scaled[last..], criteria),
        }
    }

    fn drift(&self, scaled: &[f64], criteria: Criteria) -> Option<Drift> {
        let point = |(at, value): (usize, &f64)| Point {
            t_s: at as f64,
            value: *value,
        };
        let series: Vec<Point> = scaled.iter().enumerate().map(point).collect();
        let trend = Trend::of(&series).filter(|_| series.len() >= DRIFT_MIN)?;
        let rise = trend.rise_over((series.len() - 1) as f64);
        let p = trend.p().min(1.0);
        let finding = match p <= criteria.error {
            true => self.moved(rise, scaled[0], criteria),
            false => Finding::Same,
        };
        Some(Drift {
            by: self.scale.distance(rise),
            p,
            finding,
        })
    }

    /// The finding on a difference that chance does not explain.
    fn moved(&self, difference: f64, from: f64, criteria: Criteria) -> Finding {
        if difference.abs() <= self.scale.margins(criteria.tolerance, from).matters {
            return Finding::Same;
        }
        match difference > 0.0 {
            true => self.direction.of_rise(),
            false => self.direction.of_fall(),
        }
    }
}

impl Course {
    /// The finding on the present: the drift if there is one, else the last change of level.
    pub fn finding(&self) -> Finding {
        let drift = self.drift.map(|drift| drift.finding);
        let drift = drift.filter(|finding| *finding != Finding::Same);
        let change = self.changes.last().map(|change| change.finding);
        drift.or(change).unwrap_or(Finding::Same)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
