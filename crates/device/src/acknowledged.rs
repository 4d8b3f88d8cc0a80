//! Messages that the application may acknowledge, and those that it has acknowledged.

use muster_measure::SeqSet;
use rustc_hash::FxHashMap;

use crate::slots::SlotId;

/// The messages of a shard that the application acknowledges; empty where there is none.
///
/// Open attempts are found by queue and number in one map for the whole shard, so that a link at
/// rest takes nothing there; what is over is kept as sets of numbers, as in the ledger.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// At most one entry an open attempt, and so bounded by the pool of messages.
    open: FxHashMap<(u32, u32), SlotId>,
    /// By queue.
    over: Vec<Over>,
}

/// Messages of one stream on one link that were acknowledged or given up.
#[derive(Debug, Default, Clone)]
struct Over {
    acknowledged: SeqSet,
    /// Ended without the application's word.
    given_up: SeqSet,
}

/// Result of matching an acknowledgement to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// An open attempt.
    Open(SlotId),
    /// A message that was given up.
    GivenUp,
    /// A message that was acknowledged before.
    Acknowledged,
    /// No message that was sent.
    Unknown,
}

impl Acknowledged {
    /// Room for the stream queues of a shard; nothing is kept where no stream is acknowledged by the application.
    pub(crate) fn of(queues: usize) -> Self {
        Self {
            open: FxHashMap::default(),
            over: vec![Over::default(); queues],
        }
    }

    /// An attempt goes out.
    pub(crate) fn expect(&mut self, queue: usize, seq: u32, slot: SlotId) {
        self.open.insert((queue as u32, seq), slot);
    }

    /// An attempt is open no more, or goes out anew.
    pub(crate) fn withdraw(&mut self, queue: usize, seq: u32) {
        self.open.remove(&(queue as u32, seq));
    }

    /// An attempt ended without the application's word.
    pub(crate) fn give_up(&mut self, queue: usize, seq: u32) {
        self.over[queue].given_up.insert(seq);
    }

    /// The application has spoken on a message: on what?
    pub(crate) fn meet(&mut self, queue: usize, seq: u32) -> Met {
        let over = &mut self.over[queue];
        if let Some(slot) = self.open.get(&(queue as u32, seq)) {
            over.acknowledged.insert(seq);
            return Met::Open(*slot);
        }
        if over.acknowledged.contains(seq) {
            return Met::Acknowledged;
        }
        if over.given_up.contains(seq) {
            over.acknowledged.insert(seq);
            return Met::GivenUp;
        }
        Met::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_acknowledged_once() {
        let mut known = Acknowledged::of(2);
        let slot = SlotId::from_index(5);
        known.expect(1, 7, slot);
        assert_eq!(known.meet(0, 7), Met::Unknown, "another queue's");
        assert_eq!(known.meet(1, 7), Met::Open(slot));
        known.withdraw(1, 7);
        assert_eq!(known.meet(1, 7), Met::Acknowledged);
        assert_eq!(known.meet(1, 8), Met::Unknown);
    }

    #[test]
    fn what_was_given_up_is_acknowledged_late_and_then_again() {
        let mut known = Acknowledged::of(1);
        known.expect(0, 3, SlotId::from_index(0));
        known.withdraw(0, 3);
        known.give_up(0, 3);
        assert_eq!(known.meet(0, 3), Met::GivenUp);
        assert_eq!(known.meet(0, 3), Met::Acknowledged);
    }
}
