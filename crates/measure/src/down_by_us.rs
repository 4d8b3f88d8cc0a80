//! Links that are down because we did not look at their connect in time.

use muster_model::{ConnectFailure, LinkEvent, LinkFact};
use rustc_hash::FxHashSet;

use crate::LinkCounts;

/// The links of one recorder whose last try to connect timed out by our own delay: at most all.
#[derive(Debug, Default)]
pub(crate) struct DownByUs(FxHashSet<u32>);

impl DownByUs {
    /// Counts a link that joins them, or leaves them.
    pub(crate) fn note(&mut self, fact: &LinkFact, counts: &mut LinkCounts) {
        match fact.event {
            // A try that the end of the run cut off shows nothing of the link.
            LinkEvent::Failed(ConnectFailure::RunEnded)
            | LinkEvent::Returned { .. }
            | LinkEvent::LastSent { .. }
            | LinkEvent::Disconnected(_) => return,
            LinkEvent::Connected { .. } | LinkEvent::Failed(_) => {}
        }
        let link = fact.link.0;
        if fact.by_us {
            counts.timed_out_by_us += 1;
            counts.down_by_us += u64::from(self.0.insert(link));
        } else {
            counts.down_by_us_no_more += u64::from(self.0.remove(&link));
        }
    }
}
