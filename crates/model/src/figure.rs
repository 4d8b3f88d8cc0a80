//! Figures as people read them: the one place that makes words of a number.
//!
//! ```
//! use muster_model::{Micros, figure};
//!
//! assert_eq!(figure::count(1_234_567), "1,234,567");
//! assert_eq!(figure::time(Micros(12_345)), "12.3 ms");
//! assert_eq!(figure::percent(0.999876), "99.988 %");
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Micros;

/// Digits that are tried to distinguish two figures; beyond them they are equal to a reader.
const DIGITS_MORE: usize = 12;

/// Text of a figure that is not known.
pub const UNKNOWN: &str = "-";

/// A figure in words, or [`UNKNOWN`].
pub fn known<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), shown)
}

/// A count with a comma between each three digits.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 step`, `12,000 steps`.
pub fn number_of(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A number of events per second: whole from 100 on, below it two digits that count, and at least
/// one decimal if there is one.
pub fn rate(per_second: f64) -> String {
    rate_with(per_second, 0)
}

/// A share of 0 to 1 in per cent: one decimal, more of a share close to nothing or to the whole,
/// so that two digits of what is missing are seen, and neither is written that is not exact.
pub fn percent(share: f64) -> String {
    percent_with(share, 0)
}

/// A length of time in three digits and its unit, all three of them always.
pub fn time(length: Micros) -> String {
    let (value, unit, decimals) = in_unit(length);
    format!("{value:.decimals$} {unit}")
}

/// A number of bytes in three digits and a decimal unit.
pub fn bytes(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (bytes as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        1_000_000_000.. => (bytes as f64 / 1e9, "GB"),
    };
    format!("{value:.*} {unit}", decimals_of_three(value))
}

/// A length of time to plan with, rounded up: seconds below two minutes, minutes below two hours.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        7_200.. => format!("{} h", count(seconds.div_ceil(3_600))),
    }
}

/// An instant of a run, or a length of time, as `m:ss`, or `h:mm:ss` from an hour on.
pub fn clock(length: Micros) -> String {
    let seconds = length.get() / 1_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// A value with its unit, as a rule observes or allows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A number of messages, links or events.
    Count(u64),
    /// A part of a whole, 0 to 1, in words a percentage.
    Fraction(f64),
    /// A length of time.
    Time(Micros),
    /// A lower bound of a length of time.
    AtLeast(Micros),
    /// Events per second.
    PerSecond(f64),
}

impl Figure {
    /// The number alone: a count, a fraction, microseconds, or a rate per second.
    pub fn value(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Time(Micros(us)) | Self::AtLeast(Micros(us)) => us as f64,
            Self::Fraction(value) | Self::PerSecond(value) => value,
        }
    }

    /// The figure in words, with as many digits as distinguish it from the other one where
    /// the two differ: what breaks a bound must not be rounded onto it.
    pub fn beside(self, other: Self) -> String {
        let pairs = (0..DIGITS_MORE).map(|more| (self.with(more), other.with(more)));
        let mut apart = pairs.filter(|(own, others)| own != others);
        match apart.next() {
            Some((own, _)) if self != other => own,
            Some(_) | None => self.to_string(),
        }
    }

    fn with(self, more: usize) -> String {
        match self {
            Self::Count(number) => count(number),
            Self::Fraction(share) => percent_with(share, more),
            Self::Time(length) => time_with(length, more),
            Self::AtLeast(length) => format!(">= {}", time_with(length, more)),
            Self::PerSecond(rate) => format!("{}/s", rate_with(rate, more)),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(0))
    }
}

fn rate_with(per_second: f64, more: usize) -> String {
    let size = per_second.abs();
    if more == 0 && size >= 100.0 {
        let sign = if per_second < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    decimal(per_second, two_digits(size) + more)
}

fn percent_with(share: f64, more: usize) -> String {
    let percent = share * 100.0;
    // What counts is how far it is from nothing or from the whole.
    let tail = percent.abs().min((100.0 - percent).abs());
    format!("{} %", decimal(percent, two_digits(tail) + more))
}

fn time_with(length: Micros, more: usize) -> String {
    let (value, unit, decimals) = in_unit(length);
    format!("{} {unit}", decimal(value, decimals + more))
}

/// A length of time in its unit, and the decimals of three digits.
fn in_unit(length: Micros) -> (f64, &'static str, usize) {
    let us = length.get() as f64;
    let (value, unit) = match length.get() {
        0..1_000 => return (us, "us", 0),
        1_000..1_000_000 => (us / 1e3, "ms"),
        1_000_000.. => (us / 1e6, "s"),
    };
    (value, unit, decimals_of_three(value))
}

/// Decimals that show two digits of a value, at least one.
fn two_digits(value: f64) -> usize {
    if value <= 0.0 || !value.is_finite() {
        return 0;
    }
    let decimals = 1.0 - value.log10().floor();
    decimals.clamp(1.0, DIGITS_MORE as f64) as usize
}

/// Decimals that make three digits of a value from 1 to 999.
fn decimals_of_three(value: f64) -> usize {
    if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    }
}

/// Renders a value with this many decimals, without trailing zeros.
fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    let is_zero = !text.contains(|digit: char| ('1'..='9').contains(&digit));
    if is_zero {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_three() {
        let counts = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let steps = [0, 1, 12_000].map(|number| number_of(number, "step"));
        assert_eq!(steps, ["0 steps", "1 step", "12,000 steps"]);
    }

    #[test]
    fn times_and_sizes_have_three_digits_and_a_unit() {
        let times = [999, 1_000, 12_345, 123_456, 2_400_000].map(|us| time(Micros(us)));
        assert_eq!(times, ["999 us", "1.00 ms", "12.3 ms", "123 ms", "2.40 s"]);
        let sizes = [999, 48_300_000, 2_000_000_000].map(bytes);
        assert_eq!(sizes, ["999 B", "48.3 MB", "2.00 GB"]);
    }

    #[test]
    fn spans_are_rounded_up_to_a_unit_to_plan_with() {
        let spans = [119, 120, 4_492, 7_200, 5_000_000].map(span);
        assert_eq!(spans, ["119 s", "2 min", "75 min", "2 h", "1,389 h"]);
    }

    #[test]
    fn rates_are_whole_from_a_hundred_on() {
        let rates = [0.0, 0.05, 12.34, 1999.7, -0.44, -250.0].map(rate);
        assert_eq!(rates, ["0", "0.05", "12.3", "2,000", "-0.44", "-250"]);
    }

    #[test]
    fn a_percentage_keeps_two_digits_of_what_is_missing_to_nothing_or_all() {
        let cases = [
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.384_51, "38.5 %"),
            (0.083_75, "8.4 %"),
            (0.008_375, "0.84 %"),
            (0.000_837_5, "0.084 %"),
            (3e-7, "0.00003 %"),
            (0.999, "99.9 %"),
            (0.999_876, "99.988 %"),
            (0.999_999_97, "99.999997 %"),
        ];
        for (share, wanted) in cases {
            assert_eq!(percent(share), wanted, "{share}");
        }
    }

    #[test]
    fn a_figure_is_never_rounded_onto_its_bound() {
        let cases = [
            (
                Figure::Fraction(0.001_02),
                Figure::Fraction(0.001),
                "0.102 %",
            ),
            (Figure::Fraction(0.8504), Figure::Fraction(0.85), "85.04 %"),
            (Figure::Fraction(0.8504), Figure::Fraction(0.8), "85 %"),
            (
                Figure::Time(Micros(250_400)),
                Figure::Time(Micros(250_000)),
                "250.4 ms",
            ),
            (
                Figure::Time(Micros(2_630_000)),
                Figure::Time(Micros(250_000)),
                "2.63 s",
            ),
            (Figure::PerSecond(10.04), Figure::PerSecond(10.0), "10.04/s"),
            (Figure::Count(1_001), Figure::Count(1_000), "1,001"),
            (
                Figure::Time(Micros(50_000)),
                Figure::Time(Micros(50_000)),
                "50 ms",
            ),
        ];
        for (observed, bound, wanted) in cases {
            assert_eq!(observed.beside(bound), wanted, "{observed:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(known(None, count), "-");
        assert_eq!(known(Some(1_000), count), "1,000");
    }
}
