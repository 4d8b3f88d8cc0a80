//! Figures of one second by the formulas of the published scale test of Eclipse Hono.

/// Counts that a producer of the published scale test makes in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishedSecond {
    /// Requests that began.
    pub sent: u64,
    /// Requests that ended with success, whenever they began.
    pub success: u64,
    /// Requests that ended otherwise.
    pub failure: u64,
    /// Sum of the times of those that were answered, in microseconds.
    pub took_us: u64,
}

impl PublishedSecond {
    /// Failures for each request that began, rounded half up to two decimals; 0 if none began. It exceeds 1 where
    /// more failed than began.
    pub fn failure_ratio(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            sent => ((200 * self.failure + sent) / (2 * sent)) as f64 / 100.0,
        }
    }

    /// Sum of the times in whole milliseconds.
    pub const fn took_ms(&self) -> u64 {
        self.took_us / 1_000
    }

    /// Sum of the times in milliseconds, divided by the requests that ended; none if none did. A request that ended
    /// without an answer counts with no time.
    pub fn mean_ms(&self) -> Option<f64> {
        let ended = self.success + self.failure;
        (ended > 0).then(|| self.took_ms() as f64 / ended as f64)
    }
}
