//! Values that rise and fall at even intervals: collections, checkpoints, flushes.

use crate::stability::{Point, Trend};

/// A cycle is taken for one if its autocorrelation is above this.
const CYCLE_MIN: f64 = 0.3;
/// Below this autocorrelation a value no longer depends on the one before, so that a later peak is a cycle.
const APART_MAX: f64 = 0.1;
/// Part of the highest autocorrelation that the first cycle reaches.
const ALIKE: f64 = 0.8;
/// The same of a cycle that may lie between two lags, where its peak is lower.
const ALIKE_BETWEEN: f64 = 0.6;
/// Standard deviations of an autocorrelation by chance, above which it is none.
const SURE: f64 = 4.0;

/// The autocorrelation of a series at a lag.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lag {
    lag: usize,
    correlation: f64,
    /// Autocorrelation above which it is taken for a cycle.
    least: f64,
}

/// The length of the cycle of residuals around a trend, if they show at least three; `power` is the sum of their squares.
pub(crate) fn length(residuals: &[f64], power: f64) -> Option<usize> {
    let lags = (1..=residuals.len() / 3).map(|lag| {
        let products = residuals[lag..].iter().zip(residuals).map(|(a, b)| a * b);
        Lag {
            lag,
            correlation: products.sum::<f64>() / power,
            least: CYCLE_MIN,
        }
    });
    let lags: Vec<Lag> = lags.collect();
    Some(apart(&lags, ALIKE)?.first()?.lag)
}

/// The period in seconds of a latency, by the parts of a run in which its load was constant. The points of a part lie
/// `spacing_s` apart, from which some may be missing. None if no period is sure.
pub fn period(parts: &[Vec<Point>], spacing_s: f64) -> Option<f64> {
    let parts: Vec<Vec<f64>> = parts
        .iter()
        .filter_map(|part| smoothed(part, spacing_s))
        .collect();
    let longest = parts.iter().map(Vec::len).max()?;
    let (mut lags, mut short) = (Vec::new(), 1.0);
    let mut is_short = true;
    for lag in 1..=longest / 2 {
        let pairs = parts
            .iter()
            .filter_map(|part| Some(part.get(lag..)?.iter().zip(part)));
        let pairs: Vec<(f64, f64)> = pairs.flatten().map(|(a, b)| (*a, *b)).collect();
        let correlation = correlation(&pairs);
        is_short &= correlation > APART_MAX;
        if is_short {
            // Neighbours that depend on each other count for less (Bartlett's formula).
            short += 2.0 * correlation * correlation;
        }
        let deviation = (short / pairs.len() as f64).sqrt();
        lags.push(Lag {
            lag,
            correlation,
            least: CYCLE_MIN.max(SURE * deviation),
        });
    }
    peak(apart(&lags, ALIKE_BETWEEN)?).map(|lag| lag * spacing_s)
}

/// The lags from the first one on that is a cycle; none if none is. Multiples of a cycle look like it, and the first one
/// that reaches the part `alike` of the best is it.
fn apart(lags: &[Lag], alike: f64) -> Option<&[Lag]> {
    let from = lags.iter().position(|of| of.correlation <= APART_MAX)?;
    let lags = &lags[from..];
    let sure = lags.iter().filter(|of| of.correlation > of.least);
    let best = sure.map(|of| of.correlation).max_by(f64::total_cmp)?;
    let first = lags.iter().position(|of| of.correlation >= alike * best)?;
    Some(&lags[first..])
}

/// The place of the peak that begins with the first of these lags, between two of them by a parabola.
fn peak(lags: &[Lag]) -> Option<f64> {
    let falls = |pair: &[Lag]| pair[1].correlation <= pair[0].correlation;
    let top = lags.windows(2).position(falls)?;
    let (at, after) = (lags[top], lags[top + 1]);
    // The lag before the first one is lower than all of these.
    let before = top
        .checked_sub(1)
        .map_or(APART_MAX, |before| lags[before].correlation);
    let bend = before - 2.0 * at.correlation + after.correlation;
    let shift = match bend < 0.0 {
        true => (before - after.correlation) / (2.0 * bend),
        false => 0.0,
    };
    Some(at.lag as f64 + shift)
}

/// The values of a part without its trend, at even distances, each averaged with its neighbours: a period need not be a
/// multiple of the distance. None if there are too few.
fn smoothed(part: &[Point], spacing_s: f64) -> Option<Vec<f64>> {
    let slope = Trend::of(part)?.slope;
    let rest: Vec<f64> = part.iter().map(|of| of.value - slope * of.t_s).collect();
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let first = part.first()?.t_s;
    let place = |of: &Point| ((of.t_s - first) / spacing_s).round() as usize;
    let mut values = vec![0.0; place(part.last()?) + 1];
    for (of, rest) in part.iter().zip(&rest) {
        values[place(of)] = rest - mean;
    }
    let neighbours = values.windows(3);
    Some(
        neighbours
            .map(|of| (of[0] + 2.0 * of[1] + of[2]) / 4.0)
            .collect(),
    )
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let power = (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt();
    sum(|(a, b)| a * b) / power.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use muster_model::{mix, unit};

    use super::*;

    const SPACING_S: f64 = 2.0;

    /// A latency in logarithms, in steps with pauses of 5 s between them.
    #[derive(Debug, Clone, Copy)]
    struct Latency {
        /// A collection each period lengthens it; none without.
        period_s: Option<f64>,
        /// Autocorrelation of its noise.
        memory: f64,
        seed: u64,
    }

    impl Latency {
        fn steps(self, number: usize, length_s: f64) -> Vec<Vec<Point>> {
            let each = (length_s / SPACING_S) as usize;
            let mut noise = 0.0;
            let mut step = |at: usize| {
                let from = at as f64 * (length_s + 5.0);
                let mut point = |of: usize| {
                    let t_s = from + of as f64 * SPACING_S;
                    let fresh = unit(mix(self.seed, (at * each + of) as u64)) - 0.5;
                    noise = self.memory * noise + fresh;
                    let has_collection = self.period_s.is_some_and(|period_s| {
                        let cycles = |t_s: f64| (t_s / period_s).floor();
                        cycles(t_s) != cycles(t_s + SPACING_S)
                    });
                    let rise = if has_collection { 2.0 } else { 0.0 };
                    Point {
                        t_s,
                        value: noise + rise,
                    }
                };
                (0..each).map(&mut point).collect()
            };
            (0..number).map(&mut step).collect()
        }
    }

    #[test]
    fn a_period_is_found_to_a_second_or_not_at_all() {
        // One that lies between two lags is seen less well.
        for (period_s, number, length_s, least) in [
            (42.0, 4, 120.0, 95),
            (9.0, 8, 40.0, 60),
            (10.0, 10, 40.0, 95),
            (15.0, 6, 60.0, 95),
        ] {
            let found = (0..100).filter_map(|seed| {
                let latency = Latency {
                    period_s: Some(period_s),
                    memory: 0.0,
                    seed,
                };
                period(&latency.steps(number, length_s), SPACING_S)
            });
            let found: Vec<f64> = found.collect();
            let wrong = found.iter().find(|found| (*found - period_s).abs() > 1.0);
            assert_eq!(wrong, None, "{period_s} s");
            assert!(found.len() >= least, "{period_s} s: {}", found.len());
        }
    }

    #[test]
    fn noise_has_no_period() {
        for (number, length_s) in [(4, 120.0), (10, 40.0), (20, 20.0), (3, 30.0)] {
            let found = (0..300).filter(|seed| {
                let memory = [0.0, 0.5, 0.8][*seed as usize % 3];
                let latency = Latency {
                    period_s: None,
                    memory,
                    seed: *seed,
                };
                period(&latency.steps(number, length_s), SPACING_S).is_some()
            });
            let found = found.count();
            assert!(found <= 3, "{found} of 300 in {number} of {length_s} s");
        }
    }

    #[test]
    fn a_period_that_no_step_shows_twice_is_not_stated() {
        let latency = Latency {
            period_s: Some(42.0),
            memory: 0.0,
            seed: 1,
        };
        assert_eq!(period(&latency.steps(10, 40.0), SPACING_S), None);
        assert_eq!(period(&[], SPACING_S), None);
    }
}
