//! Dates of HTTP (RFC 9110 section 5.6.7).

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The seconds since the Unix epoch of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`; none for another form,
/// such as the two that no sender uses any more.
pub fn read_date(value: &[u8]) -> Option<u64> {
    let (_day_name, rest) = value.split_at_checked(5)?;
    let mut words = rest.split(|&byte| byte == b' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    (words.next()? == b"GMT" && words.next().is_none()).then_some(())?;
    let day = number(day, 1..=31)?;
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as u64;
    let year = number(year, 1970..=9999)?;
    let mut parts = time.split(|&byte| byte == b':');
    let mut part = |most| number(parts.next()?, 0..=most);
    let (hour, minute, second) = (part(23)?, part(59)?, part(60)?);
    // Years begin in March, so that the leap day is their last.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

fn number(digits: &[u8], range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let digits = digits.iter().all(u8::is_ascii_digit).then_some(digits)?;
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    range.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_to_the_second() {
        for (date, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun Nov  6 08:49:37 1994", None),
            ("Sun, 06 Nov 1994 24:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994", None),
            ("120", None),
            ("", None),
        ] {
            assert_eq!(read_date(date.as_bytes()), seconds, "{date}");
        }
    }
}
