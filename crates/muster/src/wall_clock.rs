//! The wall clock, for display and for names of folders.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the wall clock is what is shown, not measured"
)]
pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// An instant as RFC 3339 in UTC.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let (date, time) = civil(unix_ms / 1_000);
    let [year, month, day] = date;
    let [hour, minute, second] = time;
    let ms = unix_ms % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// An instant as it stands in the name of a folder: `20261121T101500Z`.
pub(crate) fn compact(unix_s: u64) -> String {
    let ([year, month, day], [hour, minute, second]) = civil(unix_s);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Date and time of day in UTC, by the algorithm of days and eras (H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`).
fn civil(unix_s: u64) -> ([u64; 3], [u64; 3]) {
    let (days, seconds) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (
        [year, month, day],
        [seconds / 3_600, seconds / 60 % 60, seconds % 60],
    )
}

/// Seconds since the Unix epoch of an instant in UTC, such as `2026-11-21T10:15:00Z`.
pub(crate) fn parse_s(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let fields = |text: &str, separator: char| -> Option<[u64; 3]> {
        let fields: Option<Vec<u64>> = text
            .split(separator)
            .map(|field| field.parse().ok())
            .collect();
        fields?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (fields(date, '-')?, fields(time, ':')?);
    // The inverse of `civil`: years begin in March, so that the leap day is the last one.
    let shifted = (month + 9) % 12;
    let year = year.checked_sub(u64::from(month <= 2))?;
    let day_of_year = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    let unix_s = days.checked_sub(719_468)? * 86_400 + hour * 3_600 + minute * 60 + second;
    // An instant that is none, such as the 31st of June, is written differently.
    (compact(unix_s) == text.replace(['-', ':'], "")).then_some(unix_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_they_are_written() {
        for unix_s in [
            0,
            951_782_399,
            951_868_799,
            1_709_210_096,
            1_795_255_200,
            4_107_542_400,
        ] {
            let text = rfc3339(unix_s * 1_000).replace(".000", "");
            assert_eq!(parse_s(&text), Some(unix_s), "{text}");
        }
        for wrong in [
            "",
            "2026-11-21",
            "2026-06-31T00:00:00Z",
            "2026-11-21T25:00:00Z",
            "99999999999-1-1T0:0:0Z",
        ] {
            assert_eq!(parse_s(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
        assert_eq!(
            compact(1_795_255_200),
            "2026-11-21T10:00:00Z".replace(['-', ':'], "")
        );
    }
}
