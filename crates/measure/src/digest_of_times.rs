//! A t-digest: percentiles of a stream in bounded room (Dunning and Ertl, "Computing extremely
//! accurate quantiles using t-digests", 2019), as the published test of SAP Edge uses one.

use std::f64::consts::PI;

/// The compression: about the number of centroids that are kept.
const COMPRESSION: f64 = 100.0;
/// Values and centroids held before they are compressed.
const ROOM: usize = 500;

/// Percentiles of a stream of values.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeDigest {
    centroids: Vec<Centroid>,
    /// Number of centroids after the last compression.
    compressed: usize,
    least: f64,
    most: f64,
}

#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    weight: f64,
}

impl TimeDigest {
    /// Adds a value. Allocates once, for the first one.
    pub(crate) fn add(&mut self, value: f64) {
        if self.centroids.is_empty() {
            self.centroids.reserve_exact(ROOM);
            (self.least, self.most) = (value, value);
        }
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        if self.centroids.len() == ROOM {
            self.compress();
        }
        self.centroids.push(Centroid {
            mean: value,
            weight: 1.0,
        });
    }

    /// The value below which this share of all lies; 0 without any.
    pub(crate) fn quantile(&mut self, q: f64) -> f64 {
        if self.compressed < self.centroids.len() {
            self.compress();
        }
        let total = self.total();
        let wanted = q * total;
        let (mut before, mut last) = (0.0, (0.0, self.least));
        for Centroid { mean, weight } in &self.centroids {
            let middle = (before + weight / 2.0, *mean);
            if wanted < middle.0 {
                return between(last, middle, wanted);
            }
            before += weight;
            last = middle;
        }
        between(last, (total, self.most), wanted)
    }

    fn total(&self) -> f64 {
        self.centroids.iter().map(|centroid| centroid.weight).sum()
    }

    /// Merges neighbours as long as they stay within a step of the scale function.
    fn compress(&mut self) {
        let total = self.total();
        let all = &mut self.centroids;
        all.sort_unstable_by(|a, b| a.mean.total_cmp(&b.mean));
        let (mut kept, mut before) = (0, 0.0);
        let mut limit = total * step_after(0.0);
        for at in 1..all.len() {
            let next = all[at];
            let weight = all[kept].weight + next.weight;
            if before + weight <= limit {
                let share = next.weight / weight;
                all[kept].mean += (next.mean - all[kept].mean) * share;
                all[kept].weight = weight;
            } else {
                before += all[kept].weight;
                limit = total * step_after(before / total);
                kept += 1;
                all[kept] = next;
            }
        }
        all.truncate(kept + 1);
        self.compressed = all.len();
    }
}

/// The value at a rank on the line between two ranks and their values.
fn between(from: (f64, f64), to: (f64, f64), rank: f64) -> f64 {
    let length = to.0 - from.0;
    let share = if length > 0.0 {
        (rank - from.0) / length
    } else {
        1.0
    };
    from.1 + share.clamp(0.0, 1.0) * (to.1 - from.1)
}

/// The quantile one step of the scale function k1 beyond `q`.
fn step_after(q: f64) -> f64 {
    let scale = COMPRESSION / (2.0 * PI);
    let k = scale * (2.0 * q - 1.0).clamp(-1.0, 1.0).asin() + 1.0;
    if k >= COMPRESSION / 4.0 {
        return 1.0;
    }
    f64::midpoint((k / scale).sin(), 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A percentile lies between the exact ones two hundredths of the ranks around it.
        #[test]
        fn percentiles_are_close_in_rank(values in prop::collection::vec(0u32..100_000, 1..5_000)) {
            let mut digest = TimeDigest::default();
            values.iter().for_each(|value| digest.add(f64::from(*value)));
            let mut sorted = values;
            sorted.sort_unstable();
            for q in [0.5, 0.95, 0.99] {
                let got = digest.quantile(q);
                let rank = |q: f64| ((q * sorted.len() as f64) as usize).min(sorted.len() - 1);
                let slack = 0.02 + 1.0 / sorted.len() as f64;
                let low = f64::from(sorted[rank((q - slack).max(0.0))]);
                let high = f64::from(sorted[rank((q + slack).min(1.0))]);
                prop_assert!((low..=high).contains(&got), "{q}: {got} not in {low}..{high}");
            }
        }
    }

    #[test]
    fn the_room_is_bounded() {
        let mut digest = TimeDigest::default();
        for value in 0..100_000u32 {
            digest.add(f64::from(value.wrapping_mul(2_654_435_761) % 1_000));
        }
        assert!(digest.centroids.capacity() <= ROOM);
        assert!((digest.quantile(0.5) - 500.0).abs() < 10.0);
        assert!((digest.quantile(0.99) - 990.0).abs() < 3.0);
        assert!(digest.centroids.len() < 150);
    }

    #[test]
    fn without_values_it_is_zero() {
        assert_eq!(TimeDigest::default().quantile(0.5), 0.0);
    }
}
