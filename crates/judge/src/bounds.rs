//! The bounds a scenario may move under `validity:` and `stability:`, with their defaults.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::Share;

/// When the generator, not the target, is to blame (SEMANTICS section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidityBounds {
    /// The most that the p99 of lateness may be; none: derived from the tightest response bound,
    /// or from the measured p99.
    pub lateness_p99: Option<Micros>,
    /// A message picked up later than this after it was due is shed as `generator-late`.
    pub max_lateness: Micros,
    /// A thread on CPU for this share of a window or more is too busy.
    pub cpu: Share,
    /// A thread that waits for a CPU for this share of a window or more is starved.
    pub cpu_wait: Share,
    /// The hypervisor may take less than this share.
    pub steal: Share,
}

impl Default for ValidityBounds {
    fn default() -> Self {
        Self {
            lateness_p99: None,
            max_lateness: Micros::from_secs(5),
            cpu: Share::whole_percent(85),
            cpu_wait: Share::whole_percent(10),
            steal: Share::whole_percent(3),
        }
    }
}

/// When stability is evaluated (SEMANTICS section 6).
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
