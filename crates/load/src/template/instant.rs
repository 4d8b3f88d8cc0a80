//! Instants as text.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// Characters of a date and time: four digits of a year last until 9999.
pub(super) const DATE_TIME: usize = "2023-11-14T22:13:22.500999Z".len();

/// RFC 3339 to the microsecond.
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Appends microseconds since 1970 as ISO 8601 has them in UTC, such as
/// `2023-11-14T22:13:22.500999Z`.
pub(super) fn date_time(us: u64, out: &mut Vec<u8>) {
    let us = i64::try_from(us).unwrap_or(i64::MAX);
    let at = Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX);
    // Appending to a vector cannot fail.
    let _ = PRINTER.print_timestamp(&at, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_the_calendars() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_800_000_001, "2000-03-01T00:00:00.000001Z"),
            (1_704_067_199_000_000, "2023-12-31T23:59:59.000000Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        ];
        for (us, expected) in cases {
            let mut out = Vec::new();
            date_time(us, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
