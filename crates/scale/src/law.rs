//! The law that capacities follow as instances are added.

use serde::Serialize;

use crate::growth::Measured;

/// Numbers of instances that a fit of three parameters needs.
const FIT_LEAST: usize = 4;
/// A fit whose prediction at twice the most instances is wider than this says nothing.
const FIT_WIDTH: f64 = 0.25;

/// The gain of one instance, in messages a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// The median of the slopes of all pairs (Theil-Sen).
    pub per_instance: f64,
    /// The same of the lowest slopes that the intervals of both ends allow. It does not exceed the slope of the
    /// true capacities if these lie in their intervals.
    pub lower: f64,
    /// The same of the highest slopes.
    pub upper: f64,
}

/// The Universal Scalability Law (N. J. Gunther, 2007): `rate * n / (1 + contention * (n - 1) + coherence * n *
/// (n - 1))`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "fit")]
pub enum Scalability {
    /// The parameters.
    Fitted {
        /// The rate of one instance.
        rate: f64,
        /// The share of the work that instances do one after the other.
        contention: f64,
        /// The cost of each pair of instances.
        coherence: f64,
        /// The number of instances with the highest capacity; null if each further one adds some.
        peak: Option<f64>,
        /// The width of the prediction for twice the most instances, as a part of it.
        uncertainty: f64,
    },
    /// The capacities do not distinguish the parameters.
    NotIdentifiable {
        /// The reason.
        why: String,
    },
}

/// The law of a list of capacities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Law {
    /// The gain of an instance; null with a single number of instances.
    pub gain: Option<Gain>,
    /// The fit over all of them.
    pub scalability: Scalability,
}

impl Law {
    /// The law of capacities by the number of instances, which ascends.
    pub fn of(found: &[(u32, Measured)]) -> Self {
        Self {
            gain: gain(found),
            scalability: scalability(found),
        }
    }
}

fn gain(found: &[(u32, Measured)]) -> Option<Gain> {
    let of = |from: fn(&Measured) -> f64, to: fn(&Measured) -> f64| {
        let later = |at: usize| found[at + 1..].iter();
        let pairs = found.iter().enumerate();
        let slopes = pairs.flat_map(|(at, (few, low))| {
            later(at).map(move |(many, high)| (to(high) - from(low)) / f64::from(many - few))
        });
        median(slopes.collect())
    };
    Some(Gain {
        per_instance: of(|it| it.middle, |it| it.middle)?,
        lower: of(|it| it.upper, |it| it.lower)?,
        upper: of(|it| it.lower, |it| it.upper)?,
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Coefficients of `n / capacity` as a sum over [`terms`]: the inverse rate, and that times contention and
/// coherence.
type Fit = [f64; 3];

fn terms(instances: f64) -> [f64; 3] {
    [1.0, instances - 1.0, instances * (instances - 1.0)]
}

fn scalability(found: &[(u32, Measured)]) -> Scalability {
    let not = |why: &str| Scalability::NotIdentifiable {
        why: why.to_owned(),
    };
    if found.len() < FIT_LEAST {
        return not("three parameters need the capacities of four numbers of instances");
    }
    let points: Vec<(f64, f64)> = found
        .iter()
        .map(|(instances, it)| (f64::from(*instances), it.middle))
        .collect();
    let ahead = 2.0
        * points
            .iter()
            .map(|(instances, _)| *instances)
            .fold(0.0, f64::max);
    let predicted = |fit: &Fit| ahead / inner(fit, &terms(ahead));
    let Some(best) = fitted(&points) else {
        return not("no curve of the law goes through these capacities");
    };
    // Each capacity at the ends of its interval, the others as they are.
    let mut squares = 0.0;
    for (at, (_, measured)) in found.iter().enumerate() {
        let moved = |to: f64| {
            let mut points = points.clone();
            points[at].1 = to;
            fitted(&points).map(|fit| predicted(&fit))
        };
        let (Some(low), Some(high)) = (moved(measured.lower), moved(measured.upper)) else {
            return not("the intervals of the capacities allow no curve of the law");
        };
        squares += (high - low).powi(2);
    }
    let uncertainty = squares.sqrt() / predicted(&best);
    if !uncertainty.is_finite() || uncertainty > FIT_WIDTH {
        return not(&format!(
            "for {ahead:.0} instances it would predict a capacity in an interval {:.0} % wide; measure more numbers of instances",
            uncertainty * 100.0
        ));
    }
    let (contention, coherence) = (best[1] / best[0], best[2] / best[0]);
    Scalability::Fitted {
        rate: 1.0 / best[0],
        contention,
        coherence,
        peak: (coherence > 0.0).then(|| ((1.0 - contention).max(0.0) / coherence).sqrt().max(1.0)),
        uncertainty,
    }
}

/// The least squares of the relative errors, with no coefficient below 0: of all choices of coefficients that
/// are 0 the one that leaves least.
fn fitted(points: &[(f64, f64)]) -> Option<Fit> {
    let choices = [
        [true, true, true],
        [true, true, false],
        [true, false, true],
        [true, false, false],
    ];
    let solved = choices.iter().filter_map(|choice| solve(points, choice));
    let allowed = solved.filter(|fit| fit[0] > 0.0 && fit[1] >= 0.0 && fit[2] >= 0.0);
    allowed.min_by(|a, b| left(points, a).total_cmp(&left(points, b)))
}

fn inner(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of the squared relative errors.
fn left(points: &[(f64, f64)], fit: &Fit) -> f64 {
    let errors = points
        .iter()
        .map(|(instances, capacity)| inner(fit, &terms(*instances)) * capacity / instances - 1.0);
    errors.map(|error| error * error).sum()
}

/// The normal equations of the chosen coefficients, by elimination; none if they have no single solution.
fn solve(points: &[(f64, f64)], choice: &[bool; 3]) -> Option<Fit> {
    let mut rows = [[0.0; 4]; 3];
    for (instances, capacity) in points {
        // Relative errors: each equation is divided by its right side.
        let scaled = terms(*instances).map(|term| term * capacity / instances);
        for (row, a) in rows.iter_mut().zip(scaled) {
            for (cell, b) in row.iter_mut().zip(scaled) {
                *cell += a * b;
            }
            row[3] += a;
        }
    }
    for (at, is_chosen) in choice.iter().enumerate() {
        if !is_chosen {
            rows.iter_mut().for_each(|row| row[at] = 0.0);
            rows[at] = [0.0; 4];
            rows[at][at] = 1.0;
        }
    }
    for at in 0..3 {
        let pivot = rows[at][at];
        if pivot.abs() < f64::EPSILON {
            return None;
        }
        let of_pivot = rows[at];
        for (other, row) in rows.iter_mut().enumerate() {
            if other != at {
                let factor = row[at] / pivot;
                row.iter_mut()
                    .zip(of_pivot)
                    .for_each(|(cell, of)| *cell -= factor * of);
            }
        }
    }
    let solution = [0, 1, 2].map(|at| rows[at][3] / rows[at][at]);
    solution.iter().all(|it| it.is_finite()).then_some(solution)
}
