//! Rule (b): does the latency rise over the hold?

use super::trend::{Point, Trend};

/// A rise below this many microseconds is no rise.
const LEAST_RISE_US: f64 = 1_000.0;

/// A rise below this share of the median is no rise.
const LEAST_RISE_SHARE: f64 = 0.10;

/// The two-sided significance of the Mann-Kendall test.
const SIGNIFICANCE: f64 = 0.01;

/// Movement of one percentile of latency over a hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Creep {
    /// Trend of the percentile, in microseconds per second.
    pub trend: Trend,
    /// The rise over the hold, in microseconds.
    pub rise_us: f64,
    /// The least rise that counts: `max(10 % of the median, 1 ms)`, in microseconds.
    pub least_us: f64,
}

impl Creep {
    /// The creep of a percentile, given for each window of due that has one, in microseconds; none
    /// below three points.
    pub fn of(latency: &[Point]) -> Option<Self> {
        let trend = Trend::of(latency)?;
        let length_s = latency.last()?.t_s - latency.first()?.t_s;
        let mut values: Vec<f64> = latency.iter().map(|p| p.value).collect();
        let middle = values.len() / 2;
        let median = *values.select_nth_unstable_by(middle, f64::total_cmp).1;
        Some(Self {
            trend,
            rise_us: trend.rise_over(length_s),
            least_us: LEAST_RISE_US.max(LEAST_RISE_SHARE * median),
        })
    }

    /// Returns whether the latency rises: both conditions of docs/semantics.md#stability.
    pub fn is_rising(&self) -> bool {
        self.rise_us > self.least_us && self.trend.z > 0.0 && self.trend.p() < SIGNIFICANCE
    }
}
