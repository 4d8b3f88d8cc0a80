//! Counts of one of several addresses that devices connect to.

use muster_model::{LinkEvent, Outcome};
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;

/// The links and messages of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetCounts {
    /// Tries to connect that ended with a usable link.
    pub connected: u64,
    /// Tries that ended without one.
    pub failed: u64,
    /// Usable links that the platform, or the network on the way to it, ended.
    pub lost: u64,
    /// Messages that were accepted.
    pub accepted: u64,
    /// Messages that were refused.
    pub rejected: u64,
    /// Messages whose answer did not come in time.
    pub timed_out: u64,
    /// Messages whose link ended before the answer.
    pub broken: u64,
    /// Messages that were sent and have no answer by design.
    #[serde(default)]
    pub unacknowledged: u64,
}

impl TargetCounts {
    /// Counts what happened to one of its links.
    pub fn link(&mut self, event: &LinkEvent) {
        match event {
            LinkEvent::Connected { .. } => self.connected += 1,
            LinkEvent::Failed(_) => self.failed += 1,
            LinkEvent::Disconnected(cause) => self.lost += u64::from(cause.is_of_platform()),
            LinkEvent::Returned { .. } | LinkEvent::LastSent { .. } => {}
        }
    }

    /// Messages that were sent to it and came to an end.
    pub const fn sent(&self) -> u64 {
        self.accepted + self.rejected + self.timed_out + self.broken + self.unacknowledged
    }

    /// Counts the final state of one of its messages; what never went out counts for none.
    pub fn message(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Accepted => self.accepted += 1,
            Outcome::Rejected(_) => self.rejected += 1,
            Outcome::TimedOut => self.timed_out += 1,
            Outcome::Broken(_) => self.broken += 1,
            Outcome::Unacknowledged => self.unacknowledged += 1,
            Outcome::Shed(_) | Outcome::InFlight => {}
        }
    }
}

merge_fields! {
    TargetCounts { connected, failed, lost, accepted, rejected, timed_out, broken, unacknowledged }
}

#[cfg(test)]
mod tests {
    use muster_model::{Cause, ConnectFailure, Micros, Reason, ShedCause};

    use super::*;

    #[test]
    fn an_address_counts_what_became_of_its_links_and_messages() {
        let mut counts = TargetCounts::default();
        for event in [
            LinkEvent::Connected { took: Micros(1) },
            LinkEvent::Failed(ConnectFailure::Refused),
            LinkEvent::Disconnected(Cause::Reset),
            LinkEvent::Disconnected(Cause::Lifetime),
        ] {
            counts.link(&event);
        }
        for outcome in [
            Outcome::Accepted,
            Outcome::Rejected(Reason::Http(503)),
            Outcome::TimedOut,
            Outcome::Broken(Cause::Reset),
            Outcome::Unacknowledged,
            Outcome::Shed(ShedCause::Window),
        ] {
            counts.message(outcome);
        }
        let one_each = TargetCounts {
            connected: 1,
            failed: 1,
            lost: 1,
            accepted: 1,
            rejected: 1,
            timed_out: 1,
            broken: 1,
            unacknowledged: 1,
        };
        assert_eq!(counts.sent(), 5);
        assert_eq!(counts, one_each);
    }
}
