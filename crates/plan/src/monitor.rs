//! What is watched of the target.

use crate::WebAddress;

/// One page of the platform's own counters, as one of its instances tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorPlan {
    /// What it is called in events.
    pub name: String,
    /// Where the page is; never over TLS.
    pub counters: WebAddress,
}
