//! What a loop counts of its own work.

/// Counts of what a loop did at its sockets since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Connections begun by `connect` (sockets that sent a SYN).
    pub opened: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Times no descriptor was left to accept with.
    pub accept_failures: u64,
    /// Write system calls.
    pub writes: u64,
    /// Bytes the kernel took.
    pub bytes_out: u64,
    /// Read system calls.
    pub reads: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Writes that the kernel did not take whole.
    pub held: u64,
    /// Times the buffer pool was empty when it was needed.
    pub pool_exhausted: u64,
    /// Turns of the loop.
    pub turns: u64,
}
