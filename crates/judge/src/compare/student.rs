//! Student's t distribution with any number of degrees of freedom.

/// Steps of the continued fraction; it converges in a few dozen.
const STEPS: u32 = 300;

/// Halvings that find a quantile to twelve digits.
const HALVINGS: u32 = 40;

/// The largest quantile that is looked for; beyond it an interval is as good as infinite.
const QUANTILE_MAX: f64 = 1e9;

/// The two-sided probability of a value as far from 0 as `t`.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value that is exceeded, in either direction, with probability `p`.
pub(super) fn quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > p && high < QUANTILE_MAX {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match two_sided(middle, freedom) > p {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated by the
/// method of Lentz.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side alone.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let factor = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    factor.exp() / a * fraction(a, b, x)
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for step in 1..STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (value - before).abs() <= f64::EPSILON * value.abs() {
            break;
        }
    }
    value
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The logarithm of the gamma function for positive values: Stirling's series (DLMF 5.11.1) above 10, below
/// it the recurrence.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let inverse = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + std::f64::consts::TAU.ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_the_published_ones() {
        for (p, freedom, published) in [
            (0.05, 1.0, 12.706_204_736),
            (0.05, 4.0, 2.776_445_105),
            (0.01, 4.0, 4.604_094_871),
            (0.05, 10.0, 2.228_138_852),
            (0.001, 30.0, 3.645_958_636),
            (0.05, 1_000.0, 1.962_339_081),
        ] {
            let found = quantile(p, freedom);
            assert!((found - published).abs() < 1e-6, "{p} {freedom}: {found}");
            assert!((two_sided(found, freedom) - p).abs() < 1e-9);
        }
    }

    #[test]
    fn nothing_is_nearer_than_no_distance() {
        assert!((two_sided(0.0, 3.0) - 1.0).abs() < 1e-12);
        assert!(two_sided(1e12, 3.0) < 1e-20);
    }
}
