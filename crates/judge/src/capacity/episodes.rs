//! Bad messages come in episodes: a queue that is too long, a pause, a busy neighbour.
//!
//! The number of episodes in a time is Poisson-distributed and their sizes exponentially, so that the number of bad
//! messages has a compound distribution. With the load, both the number and the size of episodes grow, each as the
//! square root of the share of bad messages (the Tweedie distribution of exponent 1.5). Thus few large episodes
//! prove less than many small ones.

use super::margin::Batch;

/// A share of bad messages above this many times the allowed one says only that it is far too high.
const MOST: f64 = 10.0;

/// Logarithm of the probability of the batches of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Episodes {
    /// The share that is allowed.
    pub(super) allowed: f64,
    /// Episodes a message if the share is the allowed one.
    pub(super) frequency: f64,
    /// The factor on the bad messages of a step that has more than [`MOST`] times as many as allowed.
    pub(super) cut: f64,
}

impl Episodes {
    /// The factor on the bad messages of a step whose share is this many times the allowed one.
    pub(super) fn cut(ratio: f64) -> f64 {
        (MOST / ratio).min(1.0)
    }

    /// The logarithm of the probability of a batch, if the share of bad messages is the allowed one times `e^excess`.
    pub(super) fn ln_likelihood(&self, batch: &Batch, excess: f64) -> f64 {
        let messages = batch.messages as f64;
        let times = times(excess);
        let mean = (messages * self.allowed * times).max(f64::MIN_POSITIVE);
        let size = (self.allowed * times.sqrt() / self.frequency).max(0.5);
        let count = mean / size;
        let bad = batch.bad as f64 * self.cut;
        if bad < 0.5 {
            return -count;
        }
        let product = count * bad / size;
        -count - bad / size + 0.5 * (count / (size * bad)).ln() + ln_bessel(2.0 * product.sqrt())
    }
}

/// The share of bad messages by the allowed one: `e^excess`, which levels off above [`MOST`].
fn times(excess: f64) -> f64 {
    let times = excess.exp();
    times * (MOST + 1.0) / (MOST + times)
}

/// The logarithm of the modified Bessel function of the first kind and first order, for `z` above 0, with a relative
/// error of the function below 1e-6 (M. Abramowitz and I. A. Stegun, 9.8.3 and 9.8.4).
fn ln_bessel(z: f64) -> f64 {
    const SMALL: [f64; 7] = [
        0.5,
        0.878_905_94,
        0.514_988_69,
        0.150_849_34,
        0.026_587_33,
        0.003_015_32,
        0.000_324_11,
    ];
    const LARGE: [f64; 9] = [
        0.398_942_28,
        -0.039_880_24,
        -0.003_620_18,
        0.001_638_01,
        -0.010_315_55,
        0.022_829_67,
        -0.028_953_12,
        0.017_876_54,
        -0.004_200_59,
    ];
    let polynomial = |of: &[f64], t: f64| of.iter().rev().fold(0.0, |sum, part| sum * t + part);
    match z < 3.75 {
        true => (z * polynomial(&SMALL, (z / 3.75).powi(2))).ln(),
        false => z - 0.5 * z.ln() + polynomial(&LARGE, 3.75 / z).ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bessel_function_has_its_tabulated_values() {
        for (z, value) in [
            (0.1, 0.050_062_526),
            (1.0, 0.565_159_104),
            (3.7, 7.435_745_80),
            (5.0, 24.335_642_1),
            (10.0, 2_670.988_30),
        ] {
            let relative = ln_bessel(z) - f64::ln(value);
            assert!(relative.abs() < 1e-3, "{z}: {relative}");
        }
    }

    /// Law: the probabilities of all numbers of bad messages sum to 1, and their mean is the stated one.
    #[test]
    fn probabilities_sum_to_one() {
        for (frequency, excess) in [(0.001, 0.0), (0.0002, -1.0), (0.0002, 1.0)] {
            let episodes = Episodes {
                allowed: 0.01,
                frequency,
                cut: 1.0,
            };
            let probability = |bad: u64| {
                let batch = Batch {
                    messages: 10_000,
                    bad,
                };
                episodes.ln_likelihood(&batch, excess).exp()
            };
            let sum: f64 = (0..20_000).map(probability).sum();
            let mean: f64 = (0..20_000).map(|bad| bad as f64 * probability(bad)).sum();
            let stated = 100.0 * times(excess);
            assert!((sum - 1.0).abs() < 0.05, "{frequency}, {excess}: {sum}");
            assert!((mean / stated - 1.0).abs() < 0.02, "{excess}: {mean}");
        }
    }
}
