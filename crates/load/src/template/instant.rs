//! Instants as text.

use super::number::unsigned;

const US_PER_DAY: u64 = 86_400_000_000;

/// Characters of a date and time: four digits of a year last until 9999.
pub(super) const DATE_TIME: usize = "2023-11-14T22:13:22.500999Z".len();

/// Appends microseconds since 1970 as ISO 8601 has them in UTC, such as
/// `2023-11-14T22:13:22.500999Z`.
pub(super) fn date_time(us: u64, out: &mut Vec<u8>) {
    let (year, month, day) = date(us / US_PER_DAY);
    let in_day = us % US_PER_DAY;
    let seconds = in_day / 1_000_000;
    let parts = [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (seconds / 3_600, 2, b':'),
        (seconds / 60 % 60, 2, b':'),
        (seconds % 60, 2, b'.'),
        (in_day % 1_000_000, 6, b'Z'),
    ];
    for (value, width, after) in parts {
        unsigned(value, width, out);
        out.push(after);
    }
}

/// Year, month and day of a day since 1970 in the Gregorian calendar, by eras of 400 years that
/// begin in March, so that the leap day ends a year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + u64::from(is_next_year), month, day)
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
