//! Numbers as people read them.

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
pub(crate) fn latency(latency_us: Option<u64>) -> String {
    let Some(us) = latency_us else {
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

/// Bytes in three digits and a decimal unit; `-` if it is not known.
pub(crate) fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else {
        return "-".to_owned();
    };
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (bytes as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        1_000_000_000.. => (bytes as f64 / 1e9, "GB"),
    };
    let decimals = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.decimals$} {unit}")
}

/// A share in per cent, with up to four decimals, so that little is not rounded to nothing.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Seconds with what decimals they need, at most one; `-` if it is not known.
pub(crate) fn seconds(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else {
        return "-".to_owned();
    };
    let text = format!("{seconds:.1}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A count, or `-` if it is not known.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), count)
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
            latencies.map(|us| latency(Some(us))),
            ["999 us", "1.00 ms", "12.3 ms", "123 ms", "2.40 s"]
        );
        assert_eq!(
            [0.0, 12.34, 1999.7].map(|rate| per_second(Some(rate))),
            ["0", "12.3", "2,000"]
        );
        assert_eq!(
            [0.0, 1.5, 120.0].map(|s| seconds(Some(s))),
            ["0 s", "1.5 s", "120 s"]
        );
        assert_eq!(
            [0.0, 0.001, 0.99975, 1.0].map(percent),
            ["0 %", "0.1 %", "99.975 %", "100 %"]
        );
        let sizes = [999, 48_300_000, 2_000_000_000].map(|size| bytes(Some(size)));
        assert_eq!(sizes, ["999 B", "48.3 MB", "2.00 GB"]);
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(
            [per_second(None), latency(None), bytes(None), seconds(None)],
            ["-"; 4]
        );
    }
}
