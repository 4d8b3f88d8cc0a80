//! Figures as a summary shows them, those among them that are not known as a dash.

use muster_model::{Micros, figure};

pub(crate) use muster_model::figure::count;

/// A rate, or `-` if it is not known.
pub(crate) fn per_second(rate: Option<f64>) -> String {
    figure::known(rate, figure::rate)
}

/// A latency in three digits and its unit, or `-` if it is not known.
pub(crate) fn latency(latency_us: Option<u64>) -> String {
    figure::known(latency_us.map(Micros), figure::time)
}

/// Bytes in three digits and a decimal unit, or `-` if it is not known.
pub(crate) fn bytes(bytes: Option<u64>) -> String {
    figure::known(bytes, figure::bytes)
}

/// Seconds with what decimals they need, at most one; `-` if it is not known.
pub(crate) fn seconds(seconds: Option<f64>) -> String {
    figure::known(seconds, |seconds| {
        let text = format!("{seconds:.1}");
        format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
    })
}

/// A count, or `-` if it is not known.
pub(crate) fn known(number: Option<u64>) -> String {
    figure::known(number, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_zeros_at_their_end() {
        assert_eq!(
            [0.0, 1.5, 120.0].map(|s| seconds(Some(s))),
            ["0 s", "1.5 s", "120 s"]
        );
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(
            [per_second(None), latency(None), bytes(None), seconds(None)],
            ["-"; 4]
        );
    }
}
