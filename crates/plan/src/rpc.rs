//! Commands by calls of a platform's REST API.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Settings of the calls; their address and login are those of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcNorthbound {
    /// Calls without an answer at the most: a two-way call has none until its device replies. At least 1.
    pub pending: u16,
    /// Time for which the platform waits for the device.
    pub timeout: Micros,
    /// True if the paths of older versions are called, whose refusals have other statuses.
    pub is_old: bool,
}

impl RpcNorthbound {
    /// The most calls without an answer: each has a connection.
    pub const PENDING_MAX: u16 = 4_096;
    /// The shortest wait for a device that ThingsBoard takes.
    pub const TIMEOUT_MIN: Micros = Micros::from_secs(5);
}
