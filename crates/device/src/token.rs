//! How a session names a publish: by its stream and its slot.

use muster_model::StreamId;
use muster_protocol::mqtt::Token;

use crate::slots::{SlotId, Stage};
use crate::{Shard, Sink};

/// Bits of a token that name the slot; the rest name the stream, so that an answer to a slot that
/// is long given back still tells which stream it is of.
const SLOT_BITS: u32 = 24;

/// The most slots a shard can have; the last number that the bits can say is `NOBODY`.
pub const SLOT_MAX: u32 = (1 << SLOT_BITS) - 1;

/// The slot in the token of a message that nobody waits for.
const NOBODY: u32 = SLOT_MAX;

impl<S: Sink> Shard<S> {
    /// The attempt that a token names, if it is still open on this link.
    pub(crate) fn open_attempt(&self, link: u32, token: Token) -> Option<SlotId> {
        let id = SlotId::from_index(token.0 & SLOT_MAX);
        let slot = self.slots.find(id)?;
        let is_open = match slot.stage {
            Stage::Writing | Stage::Flying | Stage::Again => true,
            Stage::Waiting | Stage::Free => false,
        };
        (is_open && slot.link == link).then_some(id)
    }

    pub(crate) fn token(&self, id: SlotId) -> Token {
        let stream = self.slots.get(id).stream;
        Token(u32::from(stream.0) << SLOT_BITS | id.index() as u32)
    }
}

/// The stream that a token names, also of an attempt that is over.
pub(crate) fn stream_of(token: Token) -> StreamId {
    StreamId((token.0 >> SLOT_BITS) as u8)
}

/// Whether a token is that of a message which is final once it is sent.
pub(crate) const fn is_unawaited(token: Token) -> bool {
    token.0 & SLOT_MAX == NOBODY
}

/// The token of a message that is final once it is sent.
pub(crate) const fn nobody(stream: StreamId) -> Token {
    Token((stream.0 as u32) << SLOT_BITS | NOBODY)
}
