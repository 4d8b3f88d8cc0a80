//! Offset between the clocks of two parts, from the times of messages in both directions.

use muster_model::Micros;

use super::status::Status;

/// By how much another part's clock is ahead of this one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offset {
    /// The other part's clock.
    pub clock: String,
    /// Its lead in microseconds; below zero if it is behind.
    pub ahead_us: i64,
    /// Bound of the error in microseconds: half of the time that both messages were on their way,
    /// since the share of each is not known.
    pub bound_us: u64,
}

impl Offset {
    /// Computes the offset from an answer received `now`; none from a first message, or from
    /// impossible instants.
    pub(super) fn from_status(status: &Status, now: Micros) -> Option<Self> {
        let (asked, received) = status.last_received?;
        let of = |at: Micros| i64::try_from(at.get()).ok();
        let (asked, received, sent, now) = (of(asked)?, of(received)?, of(status.sent)?, of(now)?);
        // All of them are at least 0, so that no difference of two leaves its type.
        let under_way = (now - asked).checked_sub(sent - received)?;
        let ahead_us = i64::midpoint(received - asked, sent - now);
        Some(Self {
            clock: status.clock.clone(),
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
