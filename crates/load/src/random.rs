//! Draws from distributions, keyed by counters, with the same bits on every machine.
//!
//! Only the four operations and the square root of IEEE 754 are used, which are exact to the bit
//! everywhere; the logarithm is our own for that reason. Two hosts that play parts of one run
//! therefore agree on every arrival.

use std::f64::consts::{LN_2, SQRT_2};

use muster_model::{mix, unit};

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless sequence of values that a seed and a key name (`splitmix64`).
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64, key: u64) -> Self {
        Self {
            state: mix(seed, key),
        }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Even in `(0, 1]`, so that its logarithm is finite.
    fn above_zero(&mut self) -> f64 {
        1.0 - unit(self.bits())
    }

    /// Exponential of mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -ln(self.above_zero())
    }

    /// Standard normal, by the polar method (Marsaglia and Bray 1964); within 12 of zero.
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * unit(self.bits()) - 1.0;
            let y = 2.0 * unit(self.bits()) - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return (x * (-2.0 * ln(square) / square).sqrt()).clamp(-12.0, 12.0);
            }
        }
    }

    /// Gamma of that shape (at least 1) and scale 1, exactly, by rejection (Marsaglia and Tsang
    /// 2000). Their squeeze takes most draws without a logarithm.
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let (v, even, square) = (root * root * root, self.above_zero(), x * x);
            let is_inside = even < 1.0 - 0.0331 * square * square;
            if is_inside || ln(even) < 0.5 * square + d * (1.0 - v + ln(v)) {
                return d * v;
            }
        }
    }
}

/// The natural logarithm of a positive normal number, within 2 units in the last place.
///
/// With x = m * 2^e and s = (m - 1) / (m + 1): ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...), where
/// |s| < 0.172, so that the first term left out is below 2^-60 of the sum.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1_023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1_023 << 52));
    if mantissa > SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for odd in [23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = (series + 1.0 / odd) * square;
    }
    exponent as f64 * LN_2 + 2.0 * (s + s * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(count: u32, mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let values: Vec<f64> = (0..count).map(|_| draw()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        (mean, variance / f64::from(count))
    }

    fn check(measured: (f64, f64), wanted: (f64, f64), tolerance: f64) {
        assert!(
            (measured.0 / wanted.0 - 1.0).abs() < tolerance,
            "{measured:?} {wanted:?}"
        );
        assert!(
            (measured.1 / wanted.1 - 1.0).abs() < 5.0 * tolerance,
            "{measured:?} {wanted:?}"
        );
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        let mut draws = Draws::new(1, 1);
        for _ in 0..100_000 {
            let x = draws.above_zero() * (1u64 << (draws.bits() % 60)) as f64;
            let error = (ln(x) - x.ln()).abs();
            assert!(error <= 4.0 * f64::EPSILON * x.ln().abs(), "{x} {error}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn the_distributions_have_their_moments() {
        let mut draws = Draws::new(3, 4);
        check(moments(200_000, || draws.exponential()), (1.0, 1.0), 0.01);
        check(moments(200_000, || 1.0 + draws.normal()), (1.0, 1.0), 0.01);
        for shape in [1.0, 64.0, 4_096.0] {
            check(
                moments(200_000, || draws.gamma(shape)),
                (shape, shape),
                0.01,
            );
        }
    }

    #[test]
    fn a_very_large_gamma_keeps_its_spread() {
        let mut draws = Draws::new(5, 6);
        let shape = (1u64 << 36) as f64;
        let (mean, variance) = moments(20_000, || draws.gamma(shape));
        assert!(((mean - shape) / shape.sqrt()).abs() < 0.03);
        assert!((variance / shape - 1.0).abs() < 0.05, "{variance}");
    }
}
