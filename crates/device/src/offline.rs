//! Devices that are offline on purpose, and come back at the rate at which they first connected.

use muster_model::Micros;

/// When the links of a fleet are closed on purpose, counted from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// From then on.
    pub from: Micros,
    /// The first link comes back then.
    pub until: Micros,
    /// Whether links are reset, so that the platform publishes their wills.
    pub is_abrupt: bool,
}
