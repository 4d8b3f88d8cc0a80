//! Shares and percentiles that compare exactly: whole numbers, no rounding at the bound.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of a whole from 0 to 1, kept in parts per billion so that "29 of 100 is at most 29 %"
/// holds in whole numbers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Share(u32);

const PARTS: u32 = 1_000_000_000;

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0);
    /// The whole.
    pub const ONE: Share = Share(PARTS);

    /// A share given in percent, if it lies in 0 to 100.
    pub fn percent(percent: f64) -> Option<Self> {
        Self::fraction(percent / 100.0)
    }

    /// A share given as a fraction, if it lies in 0 to 1.
    pub fn fraction(fraction: f64) -> Option<Self> {
        let parts = (fraction * f64::from(PARTS)).round();
        (0.0..=f64::from(PARTS))
            .contains(&parts)
            .then_some(Self(parts as u32))
    }

    /// Share of this many whole percent; more than 100 is the whole.
    pub const fn whole_percent(percent: u32) -> Self {
        let parts = percent.saturating_mul(PARTS / 100);
        Self(if parts > PARTS { PARTS } else { parts })
    }

    /// The share as a fraction in 0 to 1.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }

    /// Returns whether `part` is at most this share of `whole`.
    pub fn covers(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(PARTS) <= u128::from(whole) * u128::from(self.0)
    }

    /// Returns whether `part` is at least this share of `whole`.
    pub fn is_reached_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(PARTS) >= u128::from(whole) * u128::from(self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / f64::from(PARTS / 100))
    }
}

/// The X of pX, kept in thousandths of a percent: p99.9 is 99,900.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percentile(u32);

const THOUSANDTHS: u32 = 100_000;

/// Number of messages that must lie above a percentile before it means anything
/// (docs/semantics.md#when-a-percentile-is-printed: `n >= 10 / (1 - X)`).
const MESSAGES_ABOVE: u64 = 10;

impl Percentile {
    /// The median.
    pub const P50: Percentile = Percentile(50_000);
    /// 99 of a hundred.
    pub const P99: Percentile = Percentile(99_000);

    /// The percentile `percent` (99.9 for p99.9), if it lies strictly between 0 and 100 and has at
    /// most three decimals.
    pub fn new(percent: f64) -> Option<Self> {
        let thousandths = percent * 1_000.0;
        let whole = thousandths.round();
        let is_exact = (thousandths - whole).abs() < 1e-6;
        let is_inside = whole > 0.0 && whole < f64::from(THOUSANDTHS);
        (is_exact && is_inside).then_some(Self(whole as u32))
    }

    /// X as a fraction: 0.99 for p99.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(THOUSANDTHS)
    }

    /// Returns whether at most `(1 - X) n` of `n` lie above.
    pub fn allows(self, above: u64, n: u64) -> bool {
        let tail = u128::from(THOUSANDTHS - self.0);
        u128::from(above) * u128::from(THOUSANDTHS) <= tail * u128::from(n)
    }

    /// Number of `n` that may lie above: `(1 - X) n`, rounded down.
    pub fn allowed_above(self, n: u64) -> u64 {
        let tail = u128::from(THOUSANDTHS - self.0);
        // The quotient is at most n, so it fits.
        (tail * u128::from(n) / u128::from(THOUSANDTHS)) as u64
    }

    /// The least number of messages for which this percentile is printed and judged:
    /// `10 / (1 - X)`, rounded up.
    pub fn needed(self) -> u64 {
        (MESSAGES_ABOVE * u64::from(THOUSANDTHS)).div_ceil(u64::from(THOUSANDTHS - self.0))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", f64::from(self.0) / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_compares_in_whole_numbers() {
        for percent in 0..=100 {
            let share = Share::percent(f64::from(percent)).expect("within 0 to 100");
            assert_eq!(share, Share::whole_percent(percent));
            assert!(share.covers(u64::from(percent), 100), "{percent}");
            assert!(share.is_reached_by(u64::from(percent), 100), "{percent}");
            assert!(!share.covers(u64::from(percent) + 1, 100), "{percent}");
        }
        assert_eq!(Share::percent(100.1), None);
        assert_eq!(Share::percent(f64::NAN), None);
        assert_eq!(
            Share::percent(0.1)
                .map(|share| share.to_string())
                .as_deref(),
            Some("0.1 %")
        );
    }

    #[test]
    fn a_percentile_needs_ten_messages_above_it() {
        for (percent, needed) in [
            (50.0, 20),
            (90.0, 100),
            (99.0, 1_000),
            (99.9, 10_000),
            (99.99, 100_000),
        ] {
            let percentile = Percentile::new(percent).expect("a percentile");
            assert_eq!(percentile.needed(), needed);
            assert!(percentile.allows(10, needed));
            assert!(!percentile.allows(11, needed));
            assert_eq!(percentile.allowed_above(needed), 10);
        }
    }

    #[test]
    fn a_percentile_is_named_as_people_write_it() {
        for (percent, name) in [
            (50.0, "p50"),
            (99.0, "p99"),
            (99.9, "p99.9"),
            (99.99, "p99.99"),
        ] {
            let percentile = Percentile::new(percent).expect("a percentile");
            assert_eq!(percentile.to_string(), name);
        }
        for impossible in [0.0, 100.0, -1.0, 99.9999, f64::NAN] {
            assert_eq!(Percentile::new(impossible), None);
        }
    }
}
