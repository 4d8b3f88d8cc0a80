//! The trend of a series: Theil-Sen slope with a lower bound, and the Mann-Kendall test, both with
//! the variance corrected for autocorrelation.

/// The most points a trend is worked out on. All pairs are compared, so a soak of hours is first
/// coarsened by averaging neighbours; 600 points are 179,700 pairs.
const MAX_POINTS: usize = 600;

/// The normal quantile of a one-sided 95 % bound.
const Z_95: f64 = 1.644_853_627;

/// One value of a series and when it was taken, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds since any fixed instant.
    pub t_s: f64,
    /// The value then.
    pub value: f64,
}

/// Movement of a series over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The median of the slopes of all pairs (Theil-Sen), per second.
    pub slope: f64,
    /// Its one-sided 95 % lower bound (Sen 1968), per second; minus infinity if the series is too
    /// short or too strongly correlated to bound it.
    pub lower: f64,
    /// The Mann-Kendall statistic over its corrected deviation, with continuity correction;
    /// positive if the series rises.
    pub z: f64,
    /// By how much autocorrelation may inflate the variance of the Mann-Kendall statistic, at
    /// least 1 (after Hamed and Rao 1998, on the ranks of the residuals without the trend).
    pub inflation: f64,
}

impl Trend {
    /// The trend of a series in order of time; none below three points.
    pub fn of(series: &[Point]) -> Option<Self> {
        let series = coarsened(series);
        if series.len() < 3 {
            return None;
        }
        let (mut slopes, rising) = slopes(&series);
        let slope = median(&mut slopes);
        let residuals: Vec<f64> = series.iter().map(|p| p.value - slope * p.t_s).collect();
        let inflation = inflation(&residuals);
        let variance = variance(&series) * inflation;
        Some(Self {
            slope,
            lower: lower(&mut slopes, variance),
            z: z(rising, variance),
            inflation,
        })
    }

    /// The two-sided probability of so strong a trend by chance.
    pub fn p(&self) -> f64 {
        2.0 * upper_tail(self.z.abs())
    }

    /// The rise over a number of seconds.
    pub fn rise_over(&self, seconds: f64) -> f64 {
        self.slope * seconds
    }
}

/// At most [`MAX_POINTS`] points: the means of equal runs of neighbours.
fn coarsened(series: &[Point]) -> Vec<Point> {
    let run = series.len().div_ceil(MAX_POINTS).max(1);
    series.chunks(run).map(mean_point).collect()
}

fn mean_point(points: &[Point]) -> Point {
    let n = points.len() as f64;
    Point {
        t_s: points.iter().map(|p| p.t_s).sum::<f64>() / n,
        value: points.iter().map(|p| p.value).sum::<f64>() / n,
    }
}

/// The slopes of all pairs, and how many more of them rise than fall.
fn slopes(series: &[Point]) -> (Vec<f64>, i64) {
    let mut slopes = Vec::with_capacity(series.len() * (series.len() - 1) / 2);
    let mut rising = 0;
    for (i, earlier) in series.iter().enumerate() {
        for later in &series[i + 1..] {
            let rise = later.value - earlier.value;
            rising += i64::from(rise > 0.0) - i64::from(rise < 0.0);
            slopes.push(rise / (later.t_s - earlier.t_s));
        }
    }
    (slopes, rising)
}

/// The middle value, or the mean of the two middle ones.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .filter(|_| is_even);
    lower.map_or(upper, |lower| f64::midpoint(lower, upper))
}

/// The variance of the Mann-Kendall statistic of independent values, corrected for ties
/// (Kendall 1975).
fn variance(series: &[Point]) -> f64 {
    let mut values: Vec<f64> = series.iter().map(|p| p.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = values
        .chunk_by(|a, b| a == b)
        .map(|tied| term(tied.len() as f64))
        .sum();
    (term(values.len() as f64) - ties) / 18.0
}

/// Sen's lower bound: the slope whose rank lies `z` deviations of the Mann-Kendall statistic below
/// the middle.
fn lower(slopes: &mut [f64], variance: f64) -> f64 {
    let rank = (slopes.len() as f64 - Z_95 * variance.sqrt()) / 2.0;
    if rank < 1.0 {
        return f64::NEG_INFINITY;
    }
    *slopes
        .select_nth_unstable_by(rank as usize - 1, f64::total_cmp)
        .1
}

fn z(rising: i64, variance: f64) -> f64 {
    if rising == 0 || variance <= 0.0 {
        return 0.0;
    }
    (rising - rising.signum()) as f64 / variance.sqrt()
}

/// By how much autocorrelation may inflate the variance of the Mann-Kendall statistic.
///
/// Hamed and Rao (1998, equation 10) take the rank autocorrelation of the residuals as measured.
/// That estimate is biased towards zero, since removing a fitted line from `n` points lowers the
/// first lag by about `(2 + 4 r) / n`, and it has a standard error of `sqrt((1 - r^2) / n)`: with
/// a few dozen points it raises several times the false alarms one asked for. So the inflation is
/// never below that of a first-order process whose first lag is freed of the bias and lies two
/// standard errors above the estimate. The table of `docs/stability.md` shows what this buys, and
/// that it costs no misses.
fn inflation(residuals: &[f64]) -> f64 {
    let n = residuals.len();
    let ranks = centred_ranks(residuals);
    let power: f64 = ranks.iter().map(|r| r * r).sum();
    if power == 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| -> f64 {
        let products = ranks[lag..].iter().zip(&ranks).map(|(a, b)| a * b);
        products.sum::<f64>() / power
    };
    // Lags beyond the first that is not significantly positive are noise, and noise must not
    // shrink the variance.
    let significant = Z_95 / (n as f64).sqrt();
    let measured = (1..n).map(correlation).take_while(|r| *r > significant);
    let first = unbiased(correlation(1), n);
    let error = ((1.0 - first * first) / n as f64).sqrt();
    let cautious = (first + 2.0 * error).min(MOST_CORRELATED);
    hamed_rao(n, measured).max(hamed_rao(n, first_order(cautious)))
}

/// A first lag above this is as good as a random walk: what distinguishes it lies beyond any hold
/// of practical length.
const MOST_CORRELATED: f64 = 0.98;

/// The first lag of a first-order process whose detrended sample of `n` shows `first`: the
/// inverse of `r - (2 + 4 r) / n`.
fn unbiased(first: f64, n: usize) -> f64 {
    let n = n as f64;
    ((n * first + 2.0) / (n - 4.0).max(1.0)).clamp(0.0, MOST_CORRELATED)
}

fn first_order(first: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), move |r| Some(r * first))
}

/// Hamed and Rao (1998), equation 10.
fn hamed_rao(n: usize, correlations: impl Iterator<Item = f64>) -> f64 {
    let count = n as f64;
    let weight = |lag: f64| (count - lag) * (count - lag - 1.0) * (count - lag - 2.0);
    let lags = (1..n - 2).zip(correlations);
    let sum: f64 = lags.map(|(lag, r)| weight(lag as f64) * r).sum();
    1.0 + 2.0 * sum / weight(0.0)
}

/// Ranks from low to high less their mean; equal values share the mean of their ranks.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut before = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (tied.len() as f64 - 1.0) / 2.0;
        for &index in tied {
            ranks[index] = rank - mean;
        }
        before += tied.len();
    }
    ranks
}

/// The probability that a standard normal value exceeds `z`, for `z >= 0`: Abramowitz and Stegun
/// 26.2.17, absolute error below 7.5e-8.
fn upper_tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_530,
    ];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = COEFFICIENTS.iter().fold(0.0, |sum, c| (sum + c) * t);
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    density * polynomial
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(values: &[f64]) -> Vec<Point> {
        let at = |(t, &value): (usize, &f64)| Point {
            t_s: t as f64,
            value,
        };
        values.iter().enumerate().map(at).collect()
    }

    fn trend(values: &[f64]) -> Trend {
        Trend::of(&series(values)).expect("three points or more")
    }

    #[test]
    fn a_straight_line_has_its_slope_for_a_bound() {
        let line: Vec<f64> = (0..30).map(|t| 3.0 + 0.5 * f64::from(t)).collect();
        let trend = trend(&line);
        assert_eq!((trend.slope, trend.lower, trend.inflation), (0.5, 0.5, 1.0));
        // S = 435 of 435 pairs, variance 30 * 29 * 65 / 18.
        assert!((trend.z - 434.0 / (30.0_f64 * 29.0 * 65.0 / 18.0).sqrt()).abs() < 1e-9);
        assert!(trend.p() < 1e-10);
    }

    #[test]
    fn a_constant_series_has_no_trend_and_no_doubt() {
        let trend = trend(&[4.0; 30]);
        assert_eq!(
            (trend.slope, trend.lower, trend.z, trend.p()),
            (0.0, 0.0, 0.0, trend.p())
        );
        assert!((trend.p() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn an_outlier_does_not_move_the_slope() {
        let mut line: Vec<f64> = (0..41).map(f64::from).collect();
        line[7] = 1e9;
        assert!((trend(&line).slope - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_variance_is_kendalls_with_and_without_ties() {
        // Kendall (1975): n (n - 1) (2 n + 5) / 18, less t (t - 1) (2 t + 5) / 18 for each tie.
        let without = variance(&series(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        assert!((without - 5.0 * 4.0 * 15.0 / 18.0).abs() < 1e-12);
        let with = variance(&series(&[1.0, 2.0, 2.0, 2.0, 5.0]));
        assert!((with - (300.0 - 3.0 * 2.0 * 11.0) / 18.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_share_the_mean_of_their_ranks() {
        assert_eq!(centred_ranks(&[5.0, 1.0, 5.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_middle_ones() {
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn the_normal_tail_is_the_published_one() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_254),
            (1.644_853_627, 0.05),
            (2.575_829_304, 0.005),
        ] {
            assert!((upper_tail(z) - tail).abs() < 1e-7, "{z}");
        }
    }

    #[test]
    fn a_first_order_process_inflates_as_hamed_and_rao_say() {
        // For many points (1 + r) / (1 - r).
        let inflation = hamed_rao(100_000, first_order(0.8));
        assert!((inflation - 9.0).abs() < 0.01, "{inflation}");
        assert_eq!(hamed_rao(60, std::iter::empty()), 1.0);
        // Three points and the first lag at its bound.
        let three = [0.5, 0.25];
        let expected = 1.0 + 2.0 * (24.0 * 0.5 + 6.0 * 0.25) / 60.0;
        assert!((hamed_rao(5, three.into_iter()) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_long_series_is_coarsened_and_keeps_its_slope() {
        let long: Vec<f64> = (0..36_000).map(|t| 0.25 * f64::from(t)).collect();
        assert!(coarsened(&series(&long)).len() <= MAX_POINTS);
        assert!((trend(&long).slope - 0.25).abs() < 1e-9);
    }

    #[test]
    fn two_points_have_no_trend() {
        assert_eq!(Trend::of(&series(&[1.0, 2.0])), None);
    }

    proptest! {
        /// The lower bound is never above the slope; turning the series upside down turns the
        /// slope and the test; a longer unit of the value only scales the slope.
        #[test]
        fn a_trend_turns_and_scales_with_its_series(
            values in prop::collection::vec(-1_000_i32..1_000, 3..80),
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let upright = trend(&values);
            prop_assert!(upright.lower <= upright.slope);
            prop_assert!(upright.inflation >= 1.0);
            prop_assert!((0.0..=1.0 + 1e-6).contains(&upright.p()));
            let turned = trend(&values.iter().map(|v| -v).collect::<Vec<_>>());
            prop_assert!((turned.slope + upright.slope).abs() < 1e-9);
            let scaled = trend(&values.iter().map(|v| 4.0 * v).collect::<Vec<_>>());
            prop_assert_eq!(scaled.slope, 4.0 * upright.slope);
            prop_assert_eq!(scaled.z, upright.z);
        }
    }
}
