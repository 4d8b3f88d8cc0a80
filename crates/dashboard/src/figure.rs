//! Figures as the terminal shows them, those among them that are not known as a dash.

use muster_model::{Micros, figure};

pub(crate) use muster_model::figure::count;

/// A rate, or `-` if it is not known.
pub(crate) fn per_second(rate: Option<f64>) -> String {
    figure::known(rate, figure::rate)
}

/// A latency in three digits and its unit, or `-` if it is not known.
pub(crate) fn latency(latency: Option<Micros>) -> String {
    figure::known(latency, figure::time)
}

/// A latency that may be a lower bound: `12.3 ms`, `>= 12.3 ms`, or `-`.
pub(crate) fn at_least(length: Option<Micros>, is_at_least: bool) -> String {
    match length {
        Some(_) if is_at_least => format!(">= {}", latency(length)),
        Some(_) | None => latency(length),
    }
}

/// A length of time as `m:ss`, or `h:mm:ss` from an hour on.
pub(crate) use muster_model::figure::clock as duration;

/// A share in per cent, or `-` if it is not known.
pub(crate) fn percent(share: Option<f64>) -> String {
    figure::known(share, figure::percent)
}

/// Seconds with two decimals; `-` if they are not known.
pub(crate) fn seconds(seconds: Option<f64>) -> String {
    figure::known(seconds, |seconds| format!("{seconds:.2} s"))
}

/// Bytes in three digits and a unit, or `-` if they are not known.
pub(crate) fn bytes(bytes: Option<u64>) -> String {
    figure::known(bytes, figure::bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_those_of_a_clock() {
        let lengths = [0, 65, 3_600 + 65].map(|s| duration(Micros::from_secs(s)));
        assert_eq!(lengths, ["0:00", "1:05", "1:01:05"]);
    }

    #[test]
    fn a_lower_bound_says_so() {
        assert_eq!(at_least(Some(Micros(749)), true), ">= 749 us");
        assert_eq!(at_least(Some(Micros(749)), false), "749 us");
        assert_eq!(at_least(None, true), "-");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let unknown = [per_second(None), latency(None), percent(None), bytes(None)];
        assert_eq!(unknown, ["-"; 4]);
        assert_eq!(seconds(Some(0.031)), "0.03 s");
    }
}
