//! Instants at which a series of results changed.

use muster_model::{mix, unit};

/// Values on each side of a change point at least.
const SEGMENT_MIN: usize = 3;

/// Values from which a change point can be found at all.
pub const HISTORY_MIN: usize = 2 * SEGMENT_MIN;

/// Permutations of a segment that its largest statistic is compared with.
const PERMUTATIONS: u32 = 999;

/// A place at which a series changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Share of random orders of the same values that show so large a change.
    pub p: f64,
}

/// The change points of a series in order, by E-divisive (Matteson and James 2014): the split with the
/// largest energy distance, tested by permutation, and again within both parts. `error` bounds the share
/// of false change points in a series that does not change. `seed` sets the permutations.
///
/// Values that are not finite are not allowed.
pub fn change_points(values: &[f64], error: f64, seed: u64) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    let mut order = Order { seed, drawn: 0 };
    let mut open = vec![(0, values.len())];
    while let Some((from, until)) = open.pop() {
        let segment = &values[from..until];
        let Some((at, energy)) = best_split(segment) else {
            continue;
        };
        let p = p_by_permutation(segment, energy, &mut order);
        if p <= error {
            found.push(ChangePoint { at: from + at, p });
            open.extend([(from, from + at), (from + at, until)]);
        }
    }
    found.sort_by_key(|point| point.at);
    found
}

/// The share of orders, this one among them, whose best split is as good.
fn p_by_permutation(segment: &[f64], energy: f64, order: &mut Order) -> f64 {
    let mut shuffled = segment.to_vec();
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        order.shuffle(&mut shuffled);
        let best = best_split(&shuffled).map_or(0.0, |(_, energy)| energy);
        as_large += u32::from(best >= energy * (1.0 - 1e-12));
    }
    f64::from(as_large) / f64::from(PERMUTATIONS + 1)
}

/// The split with the largest energy distance of both parts; none if the segment is too short or its values
/// are equal. Sums of distances move by one value from split to split.
fn best_split(segment: &[f64]) -> Option<(usize, f64)> {
    let n = segment.len();
    if n < HISTORY_MIN {
        return None;
    }
    let distance =
        |value: f64, of: &[f64]| of.iter().map(|other| (value - other).abs()).sum::<f64>();
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..n)
        .map(|i| distance(segment[i], &segment[i + 1..]))
        .sum();
    let mut best = (0, 0.0);
    for at in 1..n {
        let moved = segment[at - 1];
        let (to_left, to_right) = (
            distance(moved, &segment[..at - 1]),
            distance(moved, &segment[at..]),
        );
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        let (a, b) = (at as f64, (n - at) as f64);
        if at < SEGMENT_MIN || n - at < SEGMENT_MIN {
            continue;
        }
        // Matteson and James (2014), equation 5: means over pairs of different values.
        let within = left * 2.0 / (a * (a - 1.0)) + right * 2.0 / (b * (b - 1.0));
        let energy = a * b / (a + b) * (2.0 * between / (a * b) - within);
        if energy > best.1 {
            best = (at, energy);
        }
    }
    (best.1 > 0.0).then_some(best)
}

/// Pseudo-random orders of a seed.
struct Order {
    seed: u64,
    drawn: u64,
}

impl Order {
    /// Shuffles by the method of Fisher and Yates.
    fn shuffle(&mut self, values: &mut [f64]) {
        for last in (1..values.len()).rev() {
            self.drawn += 1;
            let other = unit(mix(self.seed, self.drawn)) * (last + 1) as f64;
            values.swap(last, (other as usize).min(last));
        }
    }
}
