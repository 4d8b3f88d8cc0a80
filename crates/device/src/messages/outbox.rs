//! Messages that a link writes.

use crate::slots::{Chain, SlotId};

/// Messages that a link writes, and those that wait for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outbox {
    /// Sent and unanswered, in the order sent.
    pub(super) flight: Chain,
    /// To be sent again on a resumed session, before anything new.
    pub(super) again: Chain,
    /// The message that the kernel holds a part of.
    pub(super) writing: Writing,
    /// Messages without an answer by design that were sent since the peer sent its last packet.
    last_sent: u32,
    /// Obstacle that keeps the link from writing.
    write_block: WriteBlock,
    /// True if something waits for the end of the silence that the platform asked for.
    waits_for_silence: bool,
}

/// Message of a link that the socket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Nothing,
    Message(SlotId),
    /// A message that became final while its copy was still being written.
    Orphan,
}

/// Obstacle that keeps a link from writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteBlock {
    Nothing,
    /// A datagram goes at the end of the turn, with those of others.
    Gathering,
    /// The kernel has no room.
    Full,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            flight: Chain::default(),
            again: Chain::default(),
            writing: Writing::Nothing,
            last_sent: 0,
            write_block: WriteBlock::Nothing,
            waits_for_silence: false,
        }
    }
}

impl Outbox {
    /// Returns whether the socket has taken all that was written.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.write_block == WriteBlock::Nothing && self.writing == Writing::Nothing
    }

    #[inline]
    pub(crate) fn write_block(&self) -> WriteBlock {
        self.write_block
    }

    #[inline]
    pub(crate) fn set_write_block(&mut self, write_block: WriteBlock) {
        self.write_block = write_block;
    }

    pub(crate) fn waits_for_silence(&self) -> bool {
        self.waits_for_silence
    }

    pub(crate) fn set_waits_for_silence(&mut self, waits: bool) {
        self.waits_for_silence = waits;
    }

    /// The first message that is to be sent again on a resumed session.
    #[inline]
    pub(crate) fn first_again(&self) -> Option<SlotId> {
        self.again.first()
    }

    /// The first message that was sent and has no answer.
    pub(crate) fn first_open(&self) -> Option<SlotId> {
        self.again.first().or_else(|| self.flight.first())
    }

    /// The message that the socket holds.
    pub(crate) fn written(&self) -> Option<SlotId> {
        match self.writing {
            Writing::Message(id) => Some(id),
            Writing::Nothing | Writing::Orphan => None,
        }
    }

    /// The socket holds no message any more: which one it held.
    #[inline]
    pub(crate) fn take_written(&mut self) -> Option<SlotId> {
        let written = self.written();
        self.writing = Writing::Nothing;
        written
    }

    /// A message without an answer by design was sent.
    pub(crate) fn count_last_sent(&mut self, is_uplink: bool) {
        self.last_sent = self.last_sent.saturating_add(u32::from(is_uplink));
    }

    /// Messages without an answer that were sent since the last call.
    #[inline]
    pub(crate) fn take_last_sent(&mut self) -> u32 {
        std::mem::take(&mut self.last_sent)
    }
}
