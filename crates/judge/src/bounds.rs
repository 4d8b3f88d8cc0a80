//! The bounds a scenario may move under `validity:` and `stability:`, with their defaults.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Bounds on the generator (docs/semantics.md#validity). CPU, CPU wait and steal have none: they inform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidityBounds {
    /// The most that the p99 of lateness may be; above it the declared shape was not offered.
    pub lateness_p99: Micros,
    /// A message picked up later than this after it was due is shed as `generator-late`.
    pub max_lateness: Micros,
}

impl Default for ValidityBounds {
    fn default() -> Self {
        Self {
            lateness_p99: Micros::from_millis(100),
            max_lateness: Micros::from_secs(5),
        }
    }
}

/// Conditions under which stability is evaluated (docs/semantics.md#stability).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StabilityBounds {
    /// The least number of one-second windows of constant offered rate.
    pub min_windows: u32,
}

impl Default for StabilityBounds {
    fn default() -> Self {
        Self { min_windows: 30 }
    }
}
