//! The addresses that links come from, and how they are spread over those that they connect to.

use muster_plan::Endpoint;

use crate::view::View;

/// Returns the endpoints of `devices` with each as often as its weight says, since link after link goes to the
/// next of its protocol. What all weights of a protocol are multiples of is divided out.
pub(super) fn weighted(platform: &View<'_>, endpoints: &[Endpoint]) -> Vec<Endpoint> {
    let items = platform.list("devices");
    let weights: Vec<u32> = items
        .iter()
        .map(|item| item.whole("weight").unwrap_or(1))
        .collect();
    if weights.iter().all(|weight| *weight == 1) {
        return endpoints.to_vec();
    }
    let protocol = |at: usize| endpoints[at].scheme.protocol();
    let mut spread = Vec::new();
    for first in 0..endpoints.len() {
        if (0..first).any(|before| protocol(before) == protocol(first)) {
            continue;
        }
        let same = (0..endpoints.len()).filter(|at| protocol(*at) == protocol(first));
        let same: Vec<usize> = same.collect();
        let of_same: Vec<u32> = same.iter().map(|at| weights[*at]).collect();
        let turns = alternating(&of_same).into_iter();
        spread.extend(turns.map(|turn| endpoints[same[turn]].clone()));
    }
    spread
}

/// Returns the places of the weights, each as often as its weight says and spread evenly.
fn alternating(weights: &[u32]) -> Vec<usize> {
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    let weights: Vec<i64> = weights.iter().map(|it| i64::from(it / divisor)).collect();
    let total: i64 = weights.iter().sum();
    let mut credits = vec![0; weights.len()];
    let turn = |_| {
        let each = credits.iter_mut().zip(&weights);
        each.for_each(|(credit, weight)| *credit += weight);
        // Of equal credits the first place has its turn.
        let best = (0..credits.len()).rev().max_by_key(|at| credits[*at])?;
        credits[best] -= total;
        Some(best)
    };
    (0..total).filter_map(turn).collect()
}

const fn common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        b => common_divisor(b, a % b),
    }
}

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

/// Checks that an address of a platform has a port.
pub(super) fn check_port(url: &View<'_>, endpoint: &Endpoint) {
    if endpoint.port == 0 {
        let port = endpoint.scheme.default_port();
        let help = format!("the port it listens on, such as {port}");
        url.wrong("port 0 is no port of a broker", &help);
    }
}

#[cfg(test)]
mod tests {
    use super::{address, alternating};

    #[test]
    fn places_alternate_as_their_weights_say() {
        assert_eq!(alternating(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(alternating(&[20, 20, 20]), [0, 1, 2]);
        assert_eq!(alternating(&[1, 2]), [1, 0, 1]);
        let mut counts = [0; 3];
        alternating(&[7, 5, 11])
            .iter()
            .for_each(|at| counts[*at] += 1);
        assert_eq!(counts, [7, 5, 11]);
    }

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
