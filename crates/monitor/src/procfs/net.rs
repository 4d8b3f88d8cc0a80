//! Files of the network namespace: `net/snmp`, `net/netstat` and the ephemeral port range.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What the kernel dropped on the receiving side, over all sockets of the network namespace.
///
/// A target on the same host shares the namespace, so a drop here is not yet ours: the sockets'
/// own counters (`SO_RXQ_OVFL`) tell whose it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceiveDrops {
    /// Datagrams dropped because a UDP socket's receive buffer was full (`RcvbufErrors`).
    pub udp_buffer: u64,
    /// TCP segments dropped because a socket's receive queue or backlog was full (`RcvPruned`,
    /// `TCPRcvQDrop`, `TCPBacklogDrop`); the sender repeats them, late.
    pub tcp_queue: u64,
    /// Connections dropped because a listener's queue was full (`ListenOverflows`).
    pub listen_queue: u64,
}

impl ReceiveDrops {
    /// What was dropped between an earlier reading and this one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            udp_buffer: self.udp_buffer.saturating_sub(earlier.udp_buffer),
            tcp_queue: self.tcp_queue.saturating_sub(earlier.tcp_queue),
            listen_queue: self.listen_queue.saturating_sub(earlier.listen_queue),
        }
    }
}

impl AddAssign for ReceiveDrops {
    fn add_assign(&mut self, other: Self) {
        self.udp_buffer += other.udp_buffer;
        self.tcp_queue += other.tcp_queue;
        self.listen_queue += other.listen_queue;
    }
}

/// Parses `/proc/net/snmp` and `/proc/net/netstat`; a counter that a kernel lacks counts as 0.
#[must_use]
pub fn receive_drops(snmp: &str, netstat: &str) -> ReceiveDrops {
    let tcp = |name| counter(netstat, "TcpExt: ", name).unwrap_or(0);
    ReceiveDrops {
        udp_buffer: counter(snmp, "Udp: ", "RcvbufErrors").unwrap_or(0),
        tcp_queue: tcp("RcvPruned") + tcp("TCPRcvQDrop") + tcp("TCPBacklogDrop"),
        listen_queue: tcp("ListenOverflows"),
    }
}

/// Parses `/proc/sys/net/ipv4/ip_local_port_range`: first and last port, both usable.
#[must_use]
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A counter of a file whose lines come in pairs: names, then values, both after one prefix.
fn counter(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names
        .split_ascii_whitespace()
        .position(|candidate| candidate == name)?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = include_str!("../../captured/snmp.txt");
    const NETSTAT: &str = include_str!("../../captured/netstat.txt");

    #[test]
    fn a_quiet_host_dropped_nothing() {
        assert_eq!(receive_drops(SNMP, NETSTAT), ReceiveDrops::default());
        assert_eq!(counter(SNMP, "Udp: ", "InDatagrams"), Some(121));
    }

    #[test]
    fn drops_are_found_by_name_and_not_by_place() {
        let snmp = "Udp: InDatagrams RcvbufErrors\nUdp: 5 7\nUdpLite: RcvbufErrors\nUdpLite: 99\n";
        let netstat = "TcpExt: TCPRcvQDrop RcvPruned ListenOverflows TCPBacklogDrop\n\
                       TcpExt: 1 2 4 8\nIpExt: InOctets\nIpExt: 16\n";
        let expected = ReceiveDrops {
            udp_buffer: 7,
            tcp_queue: 11,
            listen_queue: 4,
        };
        assert_eq!(receive_drops(snmp, netstat), expected);
    }

    #[test]
    fn drops_since_an_earlier_reading_are_the_difference() {
        let earlier = ReceiveDrops {
            udp_buffer: 7,
            tcp_queue: 11,
            listen_queue: 4,
        };
        let later = ReceiveDrops {
            udp_buffer: 9,
            tcp_queue: 11,
            listen_queue: 5,
        };
        let expected = ReceiveDrops {
            udp_buffer: 2,
            tcp_queue: 0,
            listen_queue: 1,
        };
        assert_eq!(later.since(earlier), expected);
    }

    #[test]
    fn the_port_range_has_two_ends() {
        assert_eq!(port_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(port_range("32768"), None);
    }
}
