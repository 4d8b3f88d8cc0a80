//! The bounds of an event loop.

/// Bounds of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopConfig {
    /// Most connections at once.
    pub connections_max: u32,
    /// Most pooled buffers (held writes and unread input) in use at once.
    pub buffers_max: u32,
    /// Most bytes that a handler may leave unread on a connection, above 64 KiB.
    pub kept_max: u32,
}

/// Bytes of one read, and of what layers put around a packet.
const BESIDE_A_PACKET: u32 = 256 * 1024;

impl LoopConfig {
    /// Room for connections whose handler leaves packets of up to `bytes` bytes unread until they
    /// are whole.
    pub const fn with_packets_of(self, bytes: u32) -> Self {
        Self {
            kept_max: bytes.saturating_add(BESIDE_A_PACKET),
            ..self
        }
    }
}

impl Default for LoopConfig {
    /// A million connections, 16,384 buffers, and packets of 1 MiB.
    fn default() -> Self {
        Self {
            connections_max: 1 << 20,
            buffers_max: 16_384,
            kept_max: 0,
        }
        .with_packets_of(1 << 20)
    }
}
