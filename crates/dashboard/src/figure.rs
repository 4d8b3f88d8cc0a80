//! Numbers as the terminal shows them.

use muster_model::Micros;

/// A count with a comma between each three digits.
pub(crate) fn count(count: u64) -> String {
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

/// A rate: whole from 100 on, one decimal below; `-` if it is not known.
pub(crate) fn per_second(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate >= 100.0 || rate == 0.0 => count(rate.round() as u64),
        Some(rate) => format!("{rate:.1}"),
    }
}

/// A latency in three digits and its unit; `-` if it is not known.
pub(crate) fn latency(latency: Option<Micros>) -> String {
    let Some(Micros(us)) = latency else {
        return "-".to_owned();
    };
    let (value, unit) = match us {
        0..1_000 => return format!("{us} us"),
        1_000..1_000_000 => (us as f64 / 1e3, "ms"),
        1_000_000.. => (us as f64 / 1e6, "s"),
    };
    let decimals = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.decimals$} {unit}")
}

/// A length of time as `m:ss`, or `h:mm:ss` from an hour on.
pub(crate) fn duration(length: Micros) -> String {
    let seconds = length.get() / 1_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// A share as whole per cent, one decimal below 10; `-` if it is not known.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || "-".to_owned(),
        |share| format!("{:.*} %", usize::from(share < 0.1), share * 100.0),
    )
}

/// Seconds with two decimals; `-` if they are not known.
pub(crate) fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2} s"))
}

/// Bytes as whole megabytes; `-` if they are not known.
pub(crate) fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(
        || "-".to_owned(),
        |bytes| format!("{} MB", count(bytes.div_ceil(1_000_000))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        let latencies = [999, 1_000, 12_345, 123_456, 2_400_000];
        assert_eq!(
            latencies.map(|us| latency(Some(Micros(us)))),
            ["999 us", "1.00 ms", "12.3 ms", "123 ms", "2.40 s"]
        );
        assert_eq!(
            [0.0, 12.34, 1999.7].map(|rate| per_second(Some(rate))),
            ["0", "12.3", "2,000"]
        );
        let lengths = [0, 65, 3_600 + 65].map(|s| duration(Micros::from_secs(s)));
        assert_eq!(lengths, ["0:00", "1:05", "1:01:05"]);
    }

    #[test]
    fn shares_and_sizes_are_short() {
        assert_eq!(
            [0.853, 0.0134].map(|share| percent(Some(share))),
            ["85 %", "1.3 %"]
        );
        assert_eq!(
            (seconds(Some(0.031)), bytes(Some(48_300_000))),
            ("0.03 s".to_owned(), "49 MB".to_owned())
        );
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!([per_second(None), latency(None)], ["-", "-"]);
    }
}
