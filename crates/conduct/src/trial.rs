//! Settings of Muster's own tests.

use serde::{Deserialize, Serialize};

/// Bounds so low that a test can meet them, and a fault of our own that the accounts must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The most messages that may be waiting or unanswered at once on one shard.
    pub slots: u32,
    /// The most pooled buffers that the sockets of one shard may use at once.
    pub buffers: u32,
    /// Point at which each thread of consumers loses one copy by itself.
    pub lost_copy: Option<LostCopy>,
}

/// Point at which our own consumer loses a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostCopy {
    /// Before it is counted as consumed: only the target's own account shows the loss.
    Uncounted,
    /// After that: the ledger does not close.
    Counted,
}

impl LostCopy {
    /// Number of that copy, from 0: one in the middle of a small run.
    pub const NUMBER: u64 = 100;
}
