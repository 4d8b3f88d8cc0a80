//! The number of messages that a tenant may send, which is noticed late.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use muster_model::Micros;
use muster_model::behaviour::Delayed;

/// Messages of the tenant, and their limit.
#[derive(Debug)]
pub(super) struct MessageTotal {
    /// No limit if its count is zero.
    limit: Delayed,
    sent: AtomicU64,
    /// Instant of the message that reached the limit.
    reached: OnceLock<Micros>,
}

impl MessageTotal {
    pub(super) fn new(limit: Delayed) -> Self {
        Self {
            limit,
            sent: AtomicU64::new(0),
            reached: OnceLock::new(),
        }
    }

    /// Counts a message.
    pub(super) fn note(&self, now: Micros) {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if sent == u64::from(self.limit.count) {
            // No other message is that one.
            let _ = self.reached.set(now);
        }
    }

    /// True if the limit was reached, and that is known by now.
    pub(super) fn is_exceeded(&self, now: Micros) -> bool {
        let reached = self.reached.get();
        reached.is_some_and(|reached| now >= *reached + self.limit.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_noticed_some_time_after_its_last_message() {
        let (count, by) = (2, Micros(10));
        let total = MessageTotal::new(Delayed { count, by });
        let exceeded = |total: &MessageTotal, at: &[u64]| {
            let exceeded = at.iter().map(|at| total.is_exceeded(Micros(*at)));
            exceeded.collect::<Vec<_>>()
        };
        total.note(Micros(1));
        assert_eq!(exceeded(&total, &[1, 99]), [false, false]);
        total.note(Micros(5));
        total.note(Micros(9));
        assert_eq!(exceeded(&total, &[14, 15, 99]), [false, true, true]);
        let none = MessageTotal::new(Delayed::default());
        none.note(Micros(1));
        assert_eq!(exceeded(&none, &[99]), [false]);
    }
}
