//! Values with units, as people write them.
//!
//! Every reader takes the whole text and says what would be right if it cannot read it.

use muster_judge::{Allowance, Percentile, Share};
use muster_model::{Micros, Rate};

/// Mistake in a text that is no value of its kind, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) what: String,
    pub(crate) help: String,
}

impl Unreadable {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: help.into(),
        }
    }
}

/// A text that is something else than a value of its kind, and what would be right.
fn no<T>(text: &str, what: &str, help: impl Into<String>) -> Read<T> {
    Err(Unreadable::new(format!("`{text}` is {what}"), help))
}

type Read<T> = Result<T, Unreadable>;

/// The longest time a scenario can name: above any run, so that sums never overflow.
const LONGEST: f64 = 1e15;

/// A length of time as scenarios write it: `250ms`, `30s`, `15m`, `1h30m`.
///
/// # Errors
/// The mistake and what would be right, in words.
pub fn length_of_time(text: &str) -> Result<Micros, String> {
    time(text).map_err(|Unreadable { what, help }| format!("{what}; write {help}"))
}

/// A rate by itself, as `500/s` in a scenario.
///
/// # Errors
/// The mistake and what would be right, in words.
pub fn rate_of_events(text: &str) -> Result<Rate, String> {
    rate(text).map_err(|Unreadable { what, help }| format!("{what}; write {help}"))
}

/// `250ms`, `30s`, `15m`, `1h`, `1h30m`, `2d`, `100us`.
pub(crate) fn time(text: &str) -> Read<Micros> {
    let help = "a number and a unit, such as 250ms, 30s, 15m or 1h";
    if number(text).is_some() {
        return no(text, "a time without its unit", help);
    }
    let bad = || Unreadable::new(format!("`{text}` is no time"), help);
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let (value, after) = leading_number(rest).ok_or_else(bad)?;
        let unit_length = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_length);
        total += value * unit_of_time(unit.trim()).ok_or_else(bad)?;
        rest = next;
    }
    if total > LONGEST {
        return no(text, "longer than 31 years", "a shorter time");
    }
    Ok(Micros(total.round() as u64))
}

fn unit_of_time(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        "h" => 3_600e6,
        "d" => 86_400e6,
        _ => return None,
    })
}

/// `500/s`, `1k/s`, `3/min`, `10/h`, `1/10s`.
pub(crate) fn rate(text: &str) -> Read<Rate> {
    let help = "a number and a unit, such as 500/s, 1k/s, 3/min or 1/10s";
    if number(text).is_some() {
        return no(text, "a rate without its unit", help);
    }
    let bad = || Unreadable::new(format!("`{text}` is no rate"), help);
    let (count, period) = text.split_once('/').ok_or_else(bad)?;
    let (count, factor) = leading_number(count.trim())
        .and_then(|(count, factor)| Some((count, unit_of_count(factor.trim())?)))
        .ok_or_else(bad)?;
    let period = match unit_of_time(period.trim()) {
        Some(us) => us,
        None => time(period).map_err(|_| bad())?.get() as f64,
    };
    let rate = Rate::per_second(count * factor * 1e6 / period).ok_or_else(bad)?;
    if rate.get() > MAX_RATE_PER_SECOND {
        let help = "at most 100000000/s: no machine sends more";
        return no(text, "beyond every machine", help);
    }
    Ok(rate)
}

/// Factor of a unit between a count and its period: thousands and millions.
fn unit_of_count(unit: &str) -> Option<f64> {
    Some(match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        _ => return None,
    })
}

/// A rate above this is a slip of the pen, and products with it might not fit.
const MAX_RATE_PER_SECOND: f64 = 1e8;

/// `85%`.
pub(crate) fn percent(text: &str) -> Read<Share> {
    let help = "a share from 0% to 100%, such as 85% or 0.1%";
    let bad = |what: &str| Unreadable::new(format!("`{text}` is {what}"), help);
    let value = text
        .trim()
        .strip_suffix('%')
        .ok_or_else(|| bad("no share in percent"))?;
    let value = number(value.trim()).ok_or_else(|| bad("no share in percent"))?;
    Share::percent(value).ok_or_else(|| bad("not between 0% and 100%"))
}

/// `120`, `120B`, `4KiB`, `4kB`, `1MiB`.
pub(crate) fn size(text: &str) -> Read<u32> {
    let help = "bytes, such as 120, 4KiB or 1MiB";
    let bad = || Unreadable::new(format!("`{text}` is no size"), help);
    let (value, unit) = leading_number(text.trim()).ok_or_else(bad)?;
    let bytes = value * unit_of_size(unit.trim()).ok_or_else(bad)?;
    if bytes.fract() != 0.0 {
        return Err(bad());
    }
    if bytes > f64::from(MAX_PAYLOAD) {
        let help = format!("at most {MAX_PAYLOAD} bytes");
        return no(text, "larger than an MQTT packet can be", help);
    }
    Ok(bytes as u32)
}

/// A number of anything, or of bytes: `1.5`, `2GiB`.
pub(crate) fn quantity(text: &str) -> Read<f64> {
    let read = leading_number(text.trim())
        .and_then(|(value, unit)| Some(value * unit_of_size(unit.trim())?));
    let help = "a number, such as 250, 0.5 or 2GiB";
    read.map_or_else(|| no(text, "no number", help), Ok)
}

fn unit_of_size(unit: &str) -> Option<f64> {
    const KIB: f64 = 1024.0;
    Some(match unit {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => KIB,
        "MiB" => KIB * KIB,
        "GiB" => KIB * KIB * KIB,
        "TiB" => KIB * KIB * KIB * KIB,
        _ => return None,
    })
}

/// The largest remaining length of an MQTT packet (MQTT 5 section 1.5.5).
pub(crate) const MAX_PAYLOAD: u32 = 268_435_455;

/// A whole number between two bounds; `1_000` and `1000` are the same.
pub(crate) fn whole(text: &str, least: u64, most: u64) -> Read<u64> {
    let range = match (least, most) {
        (0, u64::MAX) => "a whole number".to_owned(),
        (least, u64::MAX) => format!("a whole number from {least}"),
        (least, most) => format!("a whole number from {least} to {most}"),
    };
    let digits: String = text.trim().chars().filter(|c| *c != '_').collect();
    let is_digits = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    if !is_digits {
        return no(text, "no whole number", range);
    }
    match digits.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(Unreadable::new(format!("{text} is out of range"), range)),
    }
}

/// The code of a refusal, of MQTT 5, of CoAP or of a platform's application, as a number or as
/// results print it: `151`, `0x97`, `503`, `5.03`.
pub(crate) fn code(text: &str) -> Read<u16> {
    let text = text.trim();
    let code = match (text.strip_prefix("0x"), text.split_once('.')) {
        (Some(digits), _) => u16::from_str_radix(digits, 16).ok(),
        // A class and its detail (RFC 7252 section 3), as HTTP would write them.
        (None, Some((class, detail))) if detail.len() == 2 => {
            format!("{class}{detail}").parse().ok()
        }
        (None, _) => text.parse().ok(),
    };
    let help = "from 0x80 to 0xff in MQTT, such as 0x97; with sap-edge up to 999, such as 503; with hono such as 5.03";
    code.filter(|code| (0x80..1_000).contains(code))
        .map_or_else(|| no(text, "no code of a refusal", help), Ok)
}

pub(crate) fn fraction(text: &str) -> Read<f64> {
    let value = number(text.trim()).filter(|value| (0.0..=1.0).contains(value));
    value.map_or_else(|| no(text, "no number from 0 to 1", "such as 0.5"), Ok)
}

pub(crate) fn factor(text: &str) -> Read<f64> {
    let value = number(text.trim()).filter(|value| (1.0..=100.0).contains(value));
    value.map_or_else(|| no(text, "no number from 1 to 100", "such as 1.5"), Ok)
}

pub(crate) fn truth(text: &str) -> Read<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => no(text, "neither true nor false", "true or false"),
    }
}

/// The demand that a scenario makes of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand<T> {
    Any,
    Bound(T),
}

/// `any`, or a bound that `read` understands.
pub(crate) fn or_any<T>(text: &str, read: impl Fn(&str) -> Read<T>) -> Read<Demand<T>> {
    match text.trim() {
        ANY => Ok(Demand::Any),
        _ => read(text).map(Demand::Bound),
    }
}

/// The word that switches a rule off.
pub(crate) const ANY: &str = "any";

/// `0`, `5`, `"<= 5"`, `0.1%`, `"<= 0.1%"`.
pub(crate) fn count_at_most(text: &str) -> Read<Allowance> {
    let help = "a count or a share at most, such as 0, \"<= 5\" or \"<= 0.1%\"; `any` switches the rule off";
    let bound = at_most(text, help)?;
    if bound.ends_with('%') {
        return percent(bound).map(Allowance::Ratio);
    }
    let count = whole(bound, 0, u64::MAX);
    count
        .map(Allowance::Count)
        .map_err(|_| Unreadable::new(format!("`{text}` is no bound"), help))
}

/// `0`, `0.1%`, `"<= 0.1%"`.
pub(crate) fn share_at_most(text: &str) -> Read<Share> {
    let help = "a share at most, such as 0 or \"<= 0.1%\"; `any` switches the rule off";
    match at_most(text, help)? {
        "0" => Ok(Share::ZERO),
        bound => percent(bound),
    }
}

/// `99.9%`, `">= 99.9%"`.
pub(crate) fn share_at_least(text: &str) -> Read<Share> {
    let text = text.trim();
    if text.starts_with('<') || (text.starts_with('>') && !text.starts_with(">=")) {
        let help = "a share at least, such as \">= 99.9%\"; `any` switches the rule off";
        return no(text, "the wrong way round", help);
    }
    percent(text.strip_prefix(">=").unwrap_or(text).trim())
}

/// `"<= 250ms"` or `250ms`: a time at most.
pub(crate) fn time_at_most(text: &str) -> Read<Micros> {
    time(at_most(text, "a time at most, such as \"<= 250ms\"")?)
}

fn at_most<'a>(text: &'a str, help: &str) -> Read<&'a str> {
    let text = text.trim();
    if text.starts_with('>') || (text.starts_with('<') && !text.starts_with("<=")) {
        return no(text, "no bound of this rule", help);
    }
    Ok(text.strip_prefix("<=").unwrap_or(text).trim())
}

/// The X of `p99` or `p99.9`.
pub(crate) fn percentile(text: &str) -> Read<Percentile> {
    let value = text
        .strip_prefix('p')
        .and_then(number)
        .and_then(Percentile::new);
    let help = "p50, p90, p95, p99, p99.9 or another with at most three decimals";
    value.map_or_else(|| no(text, "no percentile", help), Ok)
}

/// `"> 20% for 10s"`, or with `<`: a share and for how long it must lie beyond it.
pub(crate) fn beyond(text: &str, sign: char) -> Read<(Share, Micros)> {
    let help = format!("such as \"{sign} 20% for 10s\"");
    let bad = || Unreadable::new(format!("`{text}` is no condition"), help.clone());
    let bound = text.trim().strip_prefix(sign).ok_or_else(bad)?;
    let (share, lasting) = bound.split_once("for").ok_or_else(bad)?;
    Ok((percent(share.trim())?, time(lasting.trim())?))
}

/// `"p99 > 500ms for 10s"`: a percentile, its bound, and for how long it must lie above it.
pub(crate) fn percentile_above(text: &str) -> Read<(Percentile, Micros, Micros)> {
    let bad = || {
        let help = "such as \"p99 > 500ms for 10s\"";
        Unreadable::new(format!("`{text}` is no condition"), help)
    };
    let (name, bound) = text.split_once('>').ok_or_else(bad)?;
    let (bound, lasting) = bound.split_once("for").ok_or_else(bad)?;
    let name = percentile(name.trim())?;
    Ok((name, time(bound.trim())?, time(lasting.trim())?))
}

/// A number at the head of a text, and the rest. No sign, no exponent.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((number(digits)?, rest))
}

fn number(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, us) in [
            ("100us", 100),
            ("250ms", 250_000),
            ("1.5s", 1_500_000),
            ("30 s", 30_000_000),
            ("15m", 900_000_000),
            ("15min", 900_000_000),
            ("1h30m", 5_400_000_000),
            ("1d", 86_400_000_000),
            ("0s", 0),
        ] {
            assert_eq!(time(text), Ok(Micros(us)), "{text}");
        }
        for text in [
            "30",
            "s",
            "",
            "-1s",
            "1e3s",
            "5 weeks",
            "1s2",
            "1..5s",
            "99999999d",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_with_their_units() {
        for (text, per_second) in [
            ("500/s", 500.0),
            ("3/min", 0.05),
            ("36/h", 0.01),
            ("0.5 / s", 0.5),
            ("1_000/s", 1e3),
            ("1k/s", 1e3),
            ("2.5 M/min", 2.5e6 / 60.0),
            ("1/10s", 0.1),
            ("3 / 1h30m", 3.0 / 5_400.0),
            ("1/100ms", 10.0),
        ] {
            assert_eq!(rate(text).map(Rate::get), Ok(per_second), "{text}");
        }
        for text in [
            "500",
            "/s",
            "5/week",
            "-5/s",
            "inf/s",
            "5",
            "200000000/s",
            "1k",
            "1K/s",
            "1kk/s",
            "1/0s",
            "1/10",
            "1,5/s",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_shares_are_read() {
        assert_eq!(size("120"), Ok(120));
        assert_eq!(size("4KiB"), Ok(4_096));
        assert_eq!(size("2 kB"), Ok(2_000));
        assert!(size("0.5").is_err() && size("4 K").is_err() && size("1000MiB").is_err());
        assert_eq!(percent("0.1%"), Ok(Share::percent(0.1).unwrap()));
        assert!(percent("0.1").is_err() && percent("101%").is_err());
    }

    #[test]
    fn bounds_are_read() {
        assert_eq!(or_any(" any ", count_at_most), Ok(Demand::Any));
        let bound = Demand::Bound(Allowance::Count(5));
        assert_eq!(or_any("<= 5", count_at_most), Ok(bound));
        assert!(or_any("<= any", count_at_most).is_err() && or_any("anything", truth).is_err());
        assert_eq!(count_at_most("0"), Ok(Allowance::Count(0)));
        assert_eq!(
            count_at_most("<= 1%"),
            Ok(Allowance::Ratio(Share::whole_percent(1)))
        );
        assert!(count_at_most("< 5").is_err() && count_at_most(">= 5").is_err());
        assert_eq!(share_at_most("0"), Ok(Share::ZERO));
        assert_eq!(share_at_least(">= 100%"), Ok(Share::ONE));
        assert!(share_at_least("<= 5%").is_err());
        assert_eq!(time_at_most("<= 250ms"), Ok(Micros::from_millis(250)));
        assert_eq!(
            beyond("> 20% for 10s", '>'),
            Ok((Share::whole_percent(20), Micros::from_secs(10)))
        );
        assert!(beyond("> 20%", '>').is_err() && beyond("< 20% for 10s", '>').is_err());
        assert_eq!(percentile("p99.9"), Ok(Percentile::new(99.9).unwrap()));
        assert!(percentile("99").is_err() && percentile("p100").is_err());
    }

    #[test]
    fn whole_numbers_keep_their_range() {
        assert_eq!(whole("1_000_000", 1, 2_000_000), Ok(1_000_000));
        for text in ["0", "1.5", "-1", "", "x", "99999999999999999999999"] {
            assert!(whole(text, 1, 100).is_err(), "{text}");
        }
    }
}
