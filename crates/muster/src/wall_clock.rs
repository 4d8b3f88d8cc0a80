//! The wall clock, for display and for names of folders.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

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
    format!("{:.3}", timestamp(unix_ms))
}

/// An instant for the name of a folder: `20261121T101500Z`.
pub(crate) fn compact(unix_s: u64) -> String {
    let at = timestamp(unix_s * 1_000);
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Milliseconds since the Unix epoch of an instant of RFC 3339, such as `2026-11-21T10:15:00Z`.
pub(crate) fn parse_ms(text: &str) -> Option<u64> {
    let at: Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

fn timestamp(unix_ms: u64) -> Timestamp {
    let unix_ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_they_are_written() {
        for unix_ms in [0, 951_782_399_000, 1_709_210_096_789, 4_107_542_400_000] {
            let text = rfc3339(unix_ms);
            assert_eq!(parse_ms(&text), Some(unix_ms), "{text}");
        }
        assert_eq!(parse_ms("1970-01-01T01:00:01+01:00"), Some(1_000));
        for wrong in [
            "",
            "2026-11-21",
            "2026-11-21T10:15:00",
            "2026-06-31T00:00:00Z",
            "2026-11-21T25:00:00Z",
            "1969-12-31T23:59:59Z",
            "99999999999-1-1T0:0:0Z",
        ] {
            assert_eq!(parse_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
        assert_eq!(compact(1_795_255_200), "20261121T100000Z");
    }
}
