//! Counters of the target that are watched.

use crate::WebAddress;

/// One page of the platform's own counters, as one of its instances reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorPlan {
    /// Its name in events.
    pub name: String,
    /// Address of the page; never over TLS.
    pub counters: WebAddress,
}
