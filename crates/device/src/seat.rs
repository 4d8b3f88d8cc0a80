//! The place of a link on a socket that it shares.

/// The place of a link on a shared socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The socket, as an index of the shard.
    pub socket: u32,
    /// Its place among the links of that socket.
    pub lane: u32,
}
