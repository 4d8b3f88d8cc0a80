//! Limits of this host and process, checked before the run and not during it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Links from one source address to one destination. The kernel first searches the ephemeral
/// ports of one parity (14,116 of the usual 28,232) and a connect gets five times dearer beyond
/// them; this stays below with room for other sockets.
pub const LINKS_PER_SOURCE: u32 = 12_000;

/// Raises this process's bound on descriptors to its maximum and returns the bound that holds
/// (`RLIMIT_NOFILE`, getrlimit(2)).
pub fn raise_descriptors() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // Where it is refused the old bound holds, which the answer tells.
    let _ = setrlimit(Resource::Nofile, wanted);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The ports the kernel chooses from when it connects; the usual range if it does not report one.
pub fn ephemeral_ports() -> RangeInclusive<u16> {
    port_range().unwrap_or(32_768..=60_999)
}

/// The range of ports that the kernel reports, if it does.
pub fn port_range() -> Option<RangeInclusive<u16>> {
    parse_range(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

/// The largest receive buffer that the kernel grants a socket, in bytes (`net.core.rmem_max`,
/// socket(7)); none if it does not report one.
pub fn receive_buffer_max() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?;
    text.trim().parse().ok()
}

/// The source address of one of `links` links to a destination; none leaves it to the kernel.
///
/// On loopback every address of 127.0.0.0/8 is this host's, so the links are spread round-robin
/// over as many as hold [`LINKS_PER_SOURCE`] each.
pub fn source_for(link: u32, links: u32, to: SocketAddr) -> Option<IpAddr> {
    let IpAddr::V4(to) = to.ip() else { return None };
    if !to.is_loopback() || links <= LINKS_PER_SOURCE {
        return None;
    }
    let place = link % links.div_ceil(LINKS_PER_SOURCE);
    let [low, middle] = [place % 254 + 1, place / 254];
    Some(IpAddr::V4(Ipv4Addr::new(127, 0, middle as u8, low as u8)))
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut words = text.split_whitespace();
    let first = words.next()?.parse().ok()?;
    let last = words.next()?.parse().ok()?;
    Some(first..=last)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let holds = raise_descriptors();
        assert_eq!(
            Some(holds),
            getrlimit(Resource::Nofile).maximum.or(Some(u64::MAX))
        );
        assert!(holds >= 64);
    }

    #[test]
    fn the_kernels_port_range_is_read() {
        assert_eq!(parse_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(parse_range("nonsense"), None);
        assert_eq!(parse_range("32768"), None);
        assert!(ephemeral_ports().count() > 1_000);
    }

    #[test]
    fn links_are_spread_evenly_from_12_001_on_and_only_on_loopback() {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 1883));
        let other = SocketAddr::from(([10, 0, 0, 1], 1883));
        assert_eq!(source_for(5, 12_000, loopback), None);
        assert_eq!(source_for(5, 30_000, other), None);
        let mut uses = BTreeMap::new();
        for link in 0..30_000 {
            *uses.entry(source_for(link, 30_000, loopback)).or_insert(0) += 1;
        }
        assert_eq!(uses.values().copied().collect::<Vec<_>>(), [10_000; 3]);
        let million = source_for(83, 1_000_000, loopback);
        assert_eq!(million, Some(IpAddr::from([127, 0, 0, 84])));
    }
}
