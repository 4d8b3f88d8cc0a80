//! Sets of messages by subscriber.

use muster_model::{DeviceId, MessageId, Micros, Reception, StreamId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::copies::Seen;

/// Pairs of a subscriber and a sender's stream that are kept apart: a set takes 40 bytes and its
/// place in the table as much again.
pub const PAIRS_MAX: usize = 1 << 20;

/// A subscriber and whose messages it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) stream: StreamId,
    pub(crate) subscriber: DeviceId,
    pub(crate) of: StreamId,
    pub(crate) sender: DeviceId,
}

/// Receptions of all subscribers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receptions {
    pairs: FxHashMap<Pair, Seen>,
    /// Copies that name no message of this run, by stream.
    pub(crate) foreign: FxHashMap<StreamId, u64>,
    /// Altered copies, by stream.
    pub(crate) corrupted: FxHashMap<StreamId, u64>,
    /// Instant at which the last copy was seen.
    pub(crate) last: Option<Micros>,
}

impl Pair {
    pub(crate) fn of(reception: &Reception, id: &MessageId) -> Self {
        Self {
            stream: reception.stream,
            subscriber: reception.subscriber,
            of: id.stream,
            sender: id.device,
        }
    }
}

impl Receptions {
    /// The set of a pair; none if there are too many of them. Allocates for a new pair only.
    pub(crate) fn pair(&mut self, pair: Pair) -> Option<&mut Seen> {
        let has_room = self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&pair);
        has_room.then(|| self.pairs.entry(pair).or_default())
    }

    /// Copies that a subscriber received of a sender's stream.
    pub(crate) fn get(&self, pair: &Pair) -> Option<&Seen> {
        self.pairs.get(pair)
    }

    /// Every pair of a stream of subscribers with at least one copy.
    pub(crate) fn of(&self, stream: StreamId) -> impl Iterator<Item = (&Pair, &Seen)> {
        self.pairs
            .iter()
            .filter(move |(pair, _)| pair.stream == stream)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (pair, theirs) in other.pairs {
            self.pairs.entry(pair).or_default().merge(theirs);
        }
        for (stream, count) in other.foreign {
            *self.foreign.entry(stream).or_default() += count;
        }
        for (stream, count) in other.corrupted {
            *self.corrupted.entry(stream).or_default() += count;
        }
        self.last = self.last.max(other.last);
    }

    pub(crate) fn mark_drain(&mut self) {
        for seen in self.pairs.values_mut() {
            seen.drained = seen.next;
        }
    }

    pub(crate) fn shrink(&mut self) {
        self.pairs.values_mut().for_each(Seen::shrink);
    }
}
