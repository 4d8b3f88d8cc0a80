//! QoS 2 exchanges that the platform has accepted (PUBREC) and not completed (PUBCOMP).
//!
//! The attempt is final with PUBREC. Completion is counted beside it, and a run waits for it as long as
//! it waits for an answer.

use muster_model::Micros;

/// The open completions of a shard.
#[derive(Debug, Default)]
pub(crate) struct Completing {
    open: u64,
    /// When the last of them is overdue.
    until: Micros,
}

impl Completing {
    /// The platform accepted a message, whose completion is overdue at `until`.
    pub(crate) fn expect(&mut self, until: Micros) {
        self.open += 1;
        self.until = self.until.max(until);
    }

    /// An exchange is complete, or never will be.
    pub(crate) fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Exchanges that are not complete and not overdue.
    pub(crate) fn open(&self, now: Micros) -> u64 {
        if now < self.until { self.open } else { 0 }
    }
}
