//! The addresses that links come from.

use crate::view::View;

/// Reads `connect.from`; no address stands there twice, however it is written.
pub(super) fn sources(view: &View<'_>) -> Option<Vec<String>> {
    let mut sources: Vec<String> = Vec::new();
    let mut known = Vec::new();
    for source in view.list("from") {
        let Some(address) = address(source.text()) else {
            let what = format!("`{}` is no IP address", source.text());
            return source.refuse(what, "an address of this machine, such as 127.0.0.2");
        };
        if known.contains(&address) {
            return source.refuse("the address stands here twice", "remove one");
        }
        known.push(address);
        sources.push(source.text().to_owned());
    }
    Some(sources)
}

/// An IPv4 or IPv6 address (RFC 4291 section 2.2) as a number; IPv4 is mapped (section 2.5.5.2).
fn address(text: &str) -> Option<u128> {
    if !text.contains(':') {
        return v4(text).map(|it| 0xffff << 32 | u128::from(it));
    }
    let (head, tail) = match text.split_once("::") {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    };
    let (high, high_groups) = groups(head, tail.is_none())?;
    let (low, low_groups) = groups(tail.unwrap_or_default(), true)?;
    let all = high_groups + low_groups;
    let is_whole = if tail.is_some() { all < 8 } else { all == 8 };
    let high = high.checked_shl(16 * (8 - high_groups)).unwrap_or(0);
    is_whole.then_some(high | low)
}

/// Groups of 16 bits between colons, and how many; an IPv4 address at the end stands for two.
fn groups(text: &str, may_end_in_v4: bool) -> Option<(u128, u32)> {
    if text.is_empty() {
        return Some((0, 0));
    }
    let mut value = 0;
    let mut count = 0;
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        let is_hex = part.len() <= 4 && part.bytes().all(|b| b.is_ascii_hexdigit());
        let (bits, group) = if is_hex {
            (16, u128::from(u16::from_str_radix(part, 16).ok()?))
        } else {
            let is_last = parts.peek().is_none() && may_end_in_v4;
            (32, u128::from(v4(part).filter(|_| is_last)?))
        };
        count += bits / 16;
        if count > 8 {
            return None;
        }
        value = value << bits | group;
    }
    Some((value, count))
}

fn v4(text: &str) -> Option<u32> {
    let mut value = 0;
    let mut count = 0;
    for part in text.split('.') {
        let is_plain = part == "0" || (part.len() <= 3 && !part.starts_with('0'));
        let is_digits = part.bytes().all(|b| b.is_ascii_digit());
        let octet: u8 = part.parse().ok().filter(|_| is_plain && is_digits)?;
        value = value << 8 | u32::from(octet);
        count += 1;
    }
    (count == 4).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_equal_however_they_are_written() {
        for (text, number) in [
            ("127.0.0.2", 0xffff_7f00_0002),
            ("::ffff:127.0.0.2", 0xffff_7f00_0002),
            ("::1", 1),
            ("0:0:0:0:0:0:0:1", 1),
            ("::", 0),
            ("fe80::1", 0xfe80 << 112 | 1),
            ("1::", 1 << 112),
            ("1:2:3:4:5:6:7:8", 0x0001_0002_0003_0004_0005_0006_0007_0008),
        ] {
            assert_eq!(address(text), Some(number), "{text}");
        }
    }
}
