//! One exchange of a client: where it stands, and what a response means to it.

use muster_model::Micros;

use crate::coap::client::Failure;
use crate::coap::message::write_merged;
use crate::coap::{
    Block, BlockSize, ClientSettings, Code, Header, Kind, Message, Opt, OptionNumber, Request,
    Ticket, Token, Transmission, Uint,
};

/// Message that an exchange waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// An answer of any kind.
    Sent,
    /// The response: the server has acknowledged.
    Acknowledged,
    /// The caller, who renders the next block.
    BlockDue,
    /// Notifications: the server has taken the observation.
    Observing,
}

/// Flag of a request sent as CON.
pub(super) const CONFIRMABLE: u8 = 1;
/// Flag of an exchange that counts in its device's window.
pub(super) const COUNTED: u8 = 2;
/// The caller no longer waits for it.
pub(super) const FORGOTTEN: u8 = 4;
/// The caller has been asked for a retransmission.
pub(super) const RESEND_DUE: u8 = 8;
/// Flag of an empty CON.
pub(super) const PING: u8 = 16;
/// Blocks of the request's body follow the one that was sent last.
const MORE: u8 = 32;
/// Its message id may still be acknowledged or reset.
pub(super) const LISTED: u8 = 64;
/// Flag of a request that asks for notifications (RFC 7641).
pub(super) const OBSERVES: u8 = 128;

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) ticket: Ticket,
    /// Instant at which it ends in any case.
    pub(super) expires: Micros,
    pub(super) timeout: Micros,
    /// The first byte of the request's body in the block that was sent last, or is due.
    up: u32,
    /// The first byte of the response's body that is wanted.
    down: u32,
    /// Stands for the `ETag` of the body's blocks; 0 for none.
    etag: u32,
    pub(super) id: u16,
    pub(super) token: Token,
    /// Bytes of the request's body, if it was sent whole; else 0.
    whole: u16,
    up_size: BlockSize,
    down_size: BlockSize,
    pub(super) retries: u8,
    pub(super) stage: Stage,
    marks: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The response, or the last block of it.
    Done,
    /// A block, and another must be requested.
    Part,
    /// A block of the request was taken, and the next is due.
    NextBlock,
    /// Answers an earlier request, and came again after its message was forgotten.
    Earlier,
    /// Impossible.
    Failed(Failure),
}

impl Exchange {
    pub(super) fn new(ticket: Ticket, id: u16, token: Token, settings: &ClientSettings) -> Self {
        Self {
            ticket,
            expires: Micros::MAX,
            timeout: Micros::ZERO,
            up: 0,
            down: 0,
            etag: 0,
            id,
            token,
            whole: 0,
            up_size: settings.block_size,
            down_size: settings.block_size,
            retries: 0,
            stage: Stage::Sent,
            marks: 0,
        }
    }

    /// Takes from a request what holds for the whole exchange.
    pub(super) fn begin(&mut self, request: &Request<'_>) {
        self.set(CONFIRMABLE, request.is_confirmable);
    }

    /// A message with a new id is sent now.
    #[inline]
    pub(super) fn start(&mut self, now: Micros, random: u64, transmission: &Transmission) {
        self.stage = Stage::Sent;
        self.retries = 0;
        self.set(RESEND_DUE, false);
        if self.is(CONFIRMABLE) {
            self.timeout = transmission.first_timeout(random);
            self.expires = now + transmission.exchange_lifetime;
        } else {
            self.timeout = transmission.non_lifetime;
            self.expires = now + transmission.non_lifetime;
        }
    }

    #[inline]
    pub(super) fn next_copy(&self, now: Micros) -> Micros {
        (now + self.timeout).min(self.expires)
    }

    #[inline]
    pub(super) const fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: u8, is: bool) {
        self.marks = if is {
            self.marks | mark
        } else {
            self.marks & !mark
        };
    }

    /// Appends the request as it is due: whole, or the block of it that is.
    #[inline]
    pub(super) fn write(
        &mut self,
        request: &Request<'_>,
        settings: &ClientSettings,
        out: &mut Vec<u8>,
    ) {
        let body = if self.down > 0 { &[] } else { request.payload };
        let up = self.block_of(body);
        self.set(MORE, up.is_some_and(|block| block.more));
        // A body that is sent whole has at most a block's 1,024 bytes.
        self.whole = up.map_or(body.len() as u16, |_| 0);
        let down = self.wanted(settings);
        let [down, up_value] = [down, up].map(|block| block.map(Block::uint));
        let size = up.filter(|block| block.number == 0);
        let size = size.map(|_| Uint::of(body.len() as u32));
        let own = [
            (OptionNumber::BLOCK2, &down),
            (OptionNumber::BLOCK1, &up_value),
            (OptionNumber::SIZE1, &size),
        ];
        let own = own
            .iter()
            .filter_map(|(number, value)| value.as_ref().map(|value| Opt::new(*number, value)));
        self.header(request.method).write(out);
        let payload = up.map_or(body, |block| block.of(body));
        write_merged(request.options.iter().copied(), own, payload, out);
    }

    pub(super) fn header(&self, code: Code) -> Header {
        Header {
            kind: Kind::of(self.is(CONFIRMABLE)),
            code,
            id: self.id,
            token: self.token,
        }
    }

    /// The block of the request's body that is due; none where the body is one message.
    #[inline]
    fn block_of(&self, body: &[u8]) -> Option<Block> {
        let offset = self.up as usize;
        if self.down > 0 || offset == 0 && body.len() <= self.up_size.bytes() {
            return None;
        }
        let mut block = Block::at(offset, false, self.up_size)?;
        block.more = block.is_before_the_end(body.len());
        Some(block)
    }

    /// The block of the response's body to ask for, where there is a need to.
    #[inline]
    fn wanted(&self, settings: &ClientSettings) -> Option<Block> {
        let is_asked = self.down > 0 || settings.asks_block_size && !self.is(MORE);
        let block = || Block::at(self.down as usize, false, self.down_size);
        is_asked.then(block).flatten()
    }

    #[inline]
    pub(super) fn answer(&mut self, message: &Message<'_>, settings: &ClientSettings) -> Step {
        let blocks = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];
        let [Ok(block1), Ok(block2)] = blocks.map(|number| message.options.block(number)) else {
            return Step::Failed(Failure::Block);
        };
        if self.is(MORE)
            && let Some(step) = self.answer_to_block(message, block1)
        {
            return step;
        }
        if let Some(size) = self.smaller_blocks(message, block1) {
            self.up_size = size;
            return Step::NextBlock;
        }
        if message.code == Code::CONTINUE {
            return Step::Failed(Failure::Block);
        }
        self.block_of_response(message, block2, settings)
    }

    /// The block size that the server asks for by refusing a body that was sent whole; none where
    /// the body has no more bytes than such a block (RFC 7959 section 2.9.3).
    #[inline]
    fn smaller_blocks(&self, message: &Message<'_>, block: Option<Block>) -> Option<BlockSize> {
        let asked = block.filter(|block| block.number == 0)?.size;
        let is_refused = message.code == Code::REQUEST_ENTITY_TOO_LARGE;
        (is_refused && usize::from(self.whole) > asked.bytes()).then_some(asked)
    }

    /// Returns the effect of a response to a block that is not the last (RFC 7959 sections 2.3 and
    /// 2.9); none for the response to the request as a whole.
    fn answer_to_block(&mut self, message: &Message<'_>, block: Option<Block>) -> Option<Step> {
        let sent = self.up / self.up_size.bytes() as u32;
        let taken = block.filter(|block| block.number == sent);
        let is_smaller = taken.is_some_and(|block| block.size < self.up_size);
        let Some(taken) = taken else {
            let is_earlier = message.kind != Kind::Acknowledgement
                && block.is_some_and(|block| block.offset() < self.up as usize);
            return (message.code == Code::CONTINUE).then_some(if is_earlier {
                Step::Earlier
            } else {
                Step::Failed(Failure::Block)
            });
        };
        if message.code == Code::REQUEST_ENTITY_TOO_LARGE && self.up == 0 && is_smaller {
            self.up_size = taken.size;
            return Some(Step::NextBlock);
        }
        if !message.code.is_success() {
            return None;
        }
        self.up += self.up_size.bytes() as u32;
        self.up_size = self.up_size.min(taken.size);
        Some(Step::NextBlock)
    }

    /// Returns true if a response is whole, or its block (RFC 7959 section 2.4).
    #[inline]
    fn block_of_response(
        &mut self,
        message: &Message<'_>,
        block: Option<Block>,
        settings: &ClientSettings,
    ) -> Step {
        let Some(block) = block.filter(|_| message.code.is_success()) else {
            let is_missing = self.down > 0 && message.code.is_success();
            return if is_missing {
                Step::Failed(Failure::Block)
            } else {
                Step::Done
            };
        };
        if block.offset() < self.down as usize && message.kind != Kind::Acknowledgement {
            return Step::Earlier;
        }
        let length = message.payload.len();
        let is_full = !block.more || length == block.size.bytes();
        if block.offset() != self.down as usize || !is_full {
            return Step::Failed(Failure::Block);
        }
        if block.offset() + length > settings.body_max as usize {
            return Step::Failed(Failure::BodyTooLarge);
        }
        let etag = message.options.first(OptionNumber::ETAG).map_or(0, fold);
        if block.number > 0 && etag != self.etag && self.etag != 0 {
            return Step::Failed(Failure::BodyChanged);
        }
        self.etag = etag;
        if !block.more {
            return Step::Done;
        }
        self.down += length as u32;
        self.down_size = self.down_size.min(block.size);
        Step::Part
    }
}

/// A number that stands for an `ETag` or a token; never 0.
#[inline]
pub(super) fn fold(bytes: &[u8]) -> u32 {
    let mixed = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mixed) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_takes_little_memory() {
        assert!(size_of::<Exchange>() <= 64, "{}", size_of::<Exchange>());
    }
}
