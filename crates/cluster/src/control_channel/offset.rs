//! Offset between the clocks of two parts, from the times of messages in both directions.

use muster_model::Micros;

use super::word::Word;

/// By how much another part's clock is ahead of this one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offset {
    /// The other part's clock.
    pub clock: String,
    /// Microseconds by which it is ahead; below zero: behind.
    pub ahead_us: i64,
    /// By how much that may be wrong, in microseconds: half of the time that the words were on
    /// their way, since nobody knows which of the two took how much of it.
    pub bound_us: u64,
}

impl Offset {
    /// Computes the offset from an answer received `now`; none from a first message, or from
    /// impossible instants.
    pub(super) fn of(word: &Word, now: Micros) -> Option<Self> {
        let (asked, heard) = word.heard?;
        let of = |at: Micros| i64::try_from(at.get()).ok();
        let (asked, heard, said, now) = (of(asked)?, of(heard)?, of(word.said)?, of(now)?);
        // All of them are at least 0, so that no difference of two leaves its type.
        let under_way = (now - asked).checked_sub(said - heard)?;
        let ahead_us = i64::midpoint(heard - asked, said - now);
        Some(Self {
            clock: word.clock.clone(),
            ahead_us,
            bound_us: u64::try_from(under_way).ok()?.div_ceil(2),
        })
    }

    /// The surer of two.
    pub(super) fn better(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        [one, other]
            .into_iter()
            .flatten()
            .min_by_key(|offset| offset.bound_us)
    }
}
