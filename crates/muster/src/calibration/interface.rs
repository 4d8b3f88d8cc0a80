//! The network interface towards a target, and its speed.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use muster_monitor::procfs::interface_towards;

use crate::target::{Addresses, is_local};

/// Bytes below the protocol of each message: Ethernet with preamble and gap (38), IPv4 (20), TCP with
/// time stamps (32).
const PACKET_BYTES: f64 = 90.0;

/// Speed of the interface towards a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Interface {
    /// All addresses are on this machine.
    None,
    /// Bits per second, each way.
    Speed(f64),
    /// The system does not know it, as of most virtual interfaces.
    Unknown,
}

impl Interface {
    /// The slowest interface towards any address, or `link_speed` where that is given.
    pub(super) fn towards(addresses: &Addresses, link_speed: Option<u64>) -> Self {
        if let Some(speed) = link_speed {
            return Self::Speed(speed as f64);
        }
        let remote: Vec<SocketAddr> = addresses.all().filter(|at| !is_local(*at)).collect();
        if remote.is_empty() {
            return Self::None;
        }
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        let speeds: Option<Vec<f64>> = remote.iter().map(|at| speed(&routes, *at)).collect();
        let slowest = speeds.and_then(|all| all.into_iter().reduce(f64::min));
        slowest.map_or(Self::Unknown, Self::Speed)
    }

    pub(super) fn is_unknown(self) -> bool {
        self == Self::Unknown
    }

    /// Messages per second of this size; each comes back once a backend. Infinite without a known limit.
    pub(super) fn messages(self, bytes: f64, backends: f64) -> f64 {
        match self {
            Self::Speed(bits) => bits / 8.0 / ((bytes + PACKET_BYTES) * backends.max(1.0)),
            Self::None | Self::Unknown => f64::INFINITY,
        }
    }
}

/// Bits per second of the interface towards an address.
fn speed(routes: &str, address: SocketAddr) -> Option<f64> {
    let IpAddr::V4(address) = address.ip() else {
        return None;
    };
    let name = interface_towards(routes, address)?;
    let text = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
    // -1 where it is not known.
    let megabits: i64 = text.trim().parse().ok()?;
    (megabits > 0).then_some(megabits as f64 * 1e6)
}

/// Parses a speed such as `10G`, `2.5G` or `100M`, in bits per second.
pub(crate) fn link_speed(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'k')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        Some((at, 'G')) => (&text[..at], 1e9),
        Some(_) | None => (text, 1.0),
    };
    let speed = number.parse::<f64>().ok().map(|number| number * unit);
    match speed {
        Some(speed) if (1.0..=1e15).contains(&speed) => Ok(speed as u64),
        Some(_) | None => {
            Err("no speed in bits per second; write it as 100M, 2.5G or 10G".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_has_a_unit_and_is_in_bits() {
        for (text, bits) in [
            ("10G", 10_000_000_000),
            ("2.5G", 2_500_000_000),
            ("100M", 100_000_000),
            ("9600", 9_600),
            ("64k", 64_000),
        ] {
            assert_eq!(link_speed(text), Ok(bits));
        }
        for text in ["", "G", "fast", "-1G", "0", "NaN", "10g", "1e300G"] {
            assert!(link_speed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_message_needs_its_bytes_and_those_of_its_packet_once_each_way() {
        let gigabit = Interface::Speed(1e9);
        assert_eq!(gigabit.messages(160.0, 0.0), 500_000.0);
        assert_eq!(gigabit.messages(160.0, 1.0), 500_000.0);
        assert_eq!(gigabit.messages(160.0, 2.0), 250_000.0);
        assert_eq!(Interface::None.messages(160.0, 1.0), f64::INFINITY);
    }
}
