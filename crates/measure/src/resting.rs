//! Links that were up and need no connection until a message is due.

use muster_model::{LinkEvent, LinkFact};
use rustc_hash::FxHashSet;

use crate::LinkCounts;

/// The links of one recorder that rest: at most all.
#[derive(Debug, Default)]
pub(crate) struct Resting(FxHashSet<u32>);

impl Resting {
    /// Counts a link that joins them, or leaves them.
    pub(crate) fn note(&mut self, fact: &LinkFact, counts: &mut LinkCounts) {
        let link = fact.link.0;
        match fact.event {
            LinkEvent::Disconnected(cause) if cause.rests() => {
                counts.rested += u64::from(self.0.insert(link));
            }
            LinkEvent::Connected { .. } | LinkEvent::Failed(_) | LinkEvent::Disconnected(_) => {
                counts.woken += u64::from(self.0.remove(&link));
            }
            LinkEvent::Returned { .. } | LinkEvent::LastSent { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_model::{Cause, ConnectFailure, LinkId, Micros};

    use super::*;

    /// The links that are up or rest after these events of one link.
    fn usable(events: &[LinkEvent]) -> u64 {
        let (mut resting, mut counts) = (Resting::default(), LinkCounts::default());
        for event in events {
            let fact = LinkFact {
                link: LinkId(7),
                at: Micros::ZERO,
                event: *event,
                by_us: false,
            };
            resting.note(&fact, &mut counts);
            counts.link(event);
        }
        counts.usable()
    }

    #[test]
    fn a_link_that_rests_is_usable_until_it_fails_to_connect() {
        let up = LinkEvent::Connected { took: Micros(1) };
        let rests = LinkEvent::Disconnected(Cause::BetweenRequests);
        let lost = LinkEvent::Disconnected(Cause::Reset);
        let failed = LinkEvent::Failed(ConnectFailure::Refused);
        assert_eq!(usable(&[up]), 1);
        assert_eq!(usable(&[up, rests]), 1);
        assert_eq!(usable(&[up, rests, up]), 1);
        assert_eq!(usable(&[up, rests, up, rests, up, lost]), 0);
        assert_eq!(usable(&[up, rests, failed]), 0);
        assert_eq!(usable(&[up, rests, failed, up]), 1);
        assert_eq!(usable(&[up, lost]), 0);
    }
}
