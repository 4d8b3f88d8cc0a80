//! Names of publishes in a session: each is made of a stream and a slot.

use muster_model::{Micros, StreamId};

use crate::slots::{SlotId, Slots, Stage};

/// The name of a message in its session; unique among those that wait for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(pub(crate) u32);

/// Bits of a token that name the slot; the rest name the stream, so that an answer to a slot that
/// is long given back still names its stream.
const SLOT_BITS: u32 = 24;
/// All of them.
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

/// The bit that marks a message whose answer is not awaited, in place of a slot. The bits below it
/// are then the instant at which it was due, in milliseconds; they repeat after 140 minutes.
const UNAWAITED: u32 = 1 << (SLOT_BITS - 1);

/// The most slots a shard can have.
pub const SLOT_MAX: u32 = UNAWAITED;

impl<K: PartialEq> Slots<K> {
    /// The attempt that a token names, if it is still open on this link.
    pub(crate) fn open_attempt(&self, link: u32, token: Token) -> Option<SlotId> {
        let id = SlotId::from_index(token.0 & SLOT_MASK);
        let slot = self.find(id)?;
        let is_open = match slot.stage {
            Stage::Writing | Stage::Flying | Stage::Again => true,
            Stage::Waiting | Stage::Free => false,
        };
        (is_open && slot.link == link).then_some(id)
    }

    /// The attempt of an exchange, if it still waits for its answer.
    pub(crate) fn open_request(&self, link: u32, token: Token, key: K) -> Option<SlotId> {
        let id = self.open_attempt(link, token)?;
        let slot = self.get(id);
        (slot.stage == Stage::Flying && slot.exchange == Some(key)).then_some(id)
    }

    pub(crate) fn token(&self, id: SlotId) -> Token {
        let stream = self.get(id).stream;
        Token(u32::from(stream.0) << SLOT_BITS | id.index() as u32)
    }
}

/// The stream that a token names, also of an attempt that is over.
pub(crate) fn stream_of(token: Token) -> StreamId {
    StreamId((token.0 >> SLOT_BITS) as u8)
}

/// Returns whether a token is that of a message which is final once it is sent.
pub(crate) const fn is_unawaited(token: Token) -> bool {
    token.0 & UNAWAITED != 0
}

/// The token of a message that is final once it is sent, and to which no answer comes.
pub(crate) const fn nobody(stream: StreamId) -> Token {
    Token((stream.0 as u32) << SLOT_BITS | SLOT_MASK)
}

/// The token of a message that is final once it is sent, and that may be refused all the same.
pub(crate) fn unawaited(stream: StreamId, due: Micros) -> Token {
    let due_ms = (due.get() / 1_000) as u32 & (UNAWAITED - 1);
    Token(u32::from(stream.0) << SLOT_BITS | UNAWAITED | due_ms)
}

/// Instant at which a message that nobody waits for was due, to the millisecond: the last one up to
/// `now` that its token fits.
pub(crate) fn due_of(token: Token, now: Micros) -> Micros {
    let now_ms = now.get() / 1_000;
    let ago_ms = (now_ms as u32).wrapping_sub(token.0) & (UNAWAITED - 1);
    Micros(now_ms.saturating_sub(u64::from(ago_ms)) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_when_a_message_was_due_however_long_the_run_is() {
        let repeats = Micros::from_millis(u64::from(UNAWAITED));
        for due in [0, 1_999, 2_000, 8_388_607, 8_388_608, 90_000_123] {
            let due = Micros::from_millis(due);
            for late in [
                Micros::ZERO,
                Micros::from_secs(5),
                repeats - Micros::from_millis(1),
            ] {
                let token = unawaited(StreamId(200), due + Micros(999));
                assert!(is_unawaited(token));
                assert_eq!(stream_of(token), StreamId(200));
                assert_eq!(
                    due_of(token, due + Micros(999) + late),
                    due,
                    "{due:?} {late:?}"
                );
            }
        }
    }
}
