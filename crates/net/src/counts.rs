//! Counters of a loop's own work.

/// Counts of what a loop did at its sockets since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Connections begun by `connect` (sockets that sent a SYN) and by `connect_udp`.
    pub opened: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Times no descriptor was left to accept with.
    pub accept_failures: u64,
    /// Write system calls.
    pub writes: u64,
    /// Bytes the kernel took.
    pub bytes_out: u64,
    /// Datagrams the kernel took.
    pub datagrams_out: u64,
    /// Datagrams the kernel refused (no route, a firewall, too long), none of them sent.
    pub datagrams_refused: u64,
    /// Read system calls.
    pub reads: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Datagrams read.
    pub datagrams_in: u64,
    /// Datagrams that came and that the kernel dropped, since the socket's receive buffer was full:
    /// as reported by the datagrams read and the sockets ended so far ([`crate::Io::count_drops`]).
    pub datagrams_dropped: u64,
    /// Errors that earlier datagrams brought (ICMP), such as that nobody listens. On a socket with
    /// one peer several between two calls count as one.
    pub icmp_errors: u64,
    /// Writes that the kernel did not take whole.
    pub held: u64,
    /// Times the buffer pool was empty when it was needed.
    pub pool_exhausted: u64,
    /// Turns of the loop.
    pub turns: u64,
}
