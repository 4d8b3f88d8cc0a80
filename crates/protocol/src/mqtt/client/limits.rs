//! Bounds and counters of a client session.

use muster_model::Micros;

/// Bounds of a client in addition to those that its [`Connect`](super::Connect) announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Bytes of the largest packet that is received. A CONNECT of MQTT 5 can announce it; MQTT
    /// 3.1.1 has no word for it.
    pub maximum_packet_size: u32,
    /// Time that the server has to answer a ping; a shorter keep-alive shortens it.
    pub ping_timeout: Micros,
}

impl Default for ClientLimits {
    /// 1 MiB, far above what a device is sent, and 10 s, the default time-out of a stream.
    fn default() -> Self {
        Self {
            maximum_packet_size: 1 << 20,
            ping_timeout: Micros::from_secs(10),
        }
    }
}

/// Counters of a client session that no event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounts {
    /// Answers to a packet id that was answered before.
    pub again: u32,
    /// Answers to a packet id that was not given out. After 65,535 publishes of a session every id
    /// was.
    pub unknown: u32,
    /// Messages at QoS 2 that came although the receive maximum we announced was reached.
    pub over_window: u32,
}
