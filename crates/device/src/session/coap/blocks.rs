//! Bodies of answers that come in blocks (RFC 7959), put together.

use muster_protocol::coap::{Again, ExchangeKey, Failure, Response, Ticket};
use rustc_hash::FxHashMap;

use super::Coap;
use super::answering::failed;
use crate::session::{Context, Event, Input};
use crate::token::Token;

/// Bytes of a body at the most: a command of that size is far beyond what adapters take.
const BODY_MAX: usize = 64 << 10;
/// Bodies that may be coming to a shard at once.
const BODIES_MAX: usize = 256;

/// The blocks that have come, by link and ticket; nothing where answers are short.
#[derive(Debug, Default)]
pub(crate) struct Bodies(FxHashMap<(u32, u32), Body>);

#[derive(Debug)]
struct Body {
    key: ExchangeKey,
    bytes: Vec<u8>,
}

impl Bodies {
    /// Takes a block, which the session has checked to be the next; false if there is no room for it.
    fn take(&mut self, link: u32, part: &Response<'_>) -> bool {
        let of = (link, part.ticket.name);
        if part.block.is_none_or(|block| block.number == 0) {
            self.0.remove(&of);
            if self.0.len() >= BODIES_MAX {
                return false;
            }
        }
        let body = self.0.entry(of).or_insert_with(|| Body {
            key: part.key,
            bytes: Vec::new(),
        });
        let fits = body.bytes.len() + part.payload.len() <= BODY_MAX;
        if fits {
            body.bytes.extend_from_slice(part.payload);
        } else {
            self.0.remove(&of);
        }
        fits
    }

    /// The whole body, with its last block; none if what came before is not here.
    fn whole(&mut self, link: u32, last: &Response<'_>) -> Option<Vec<u8>> {
        let body = self.0.remove(&(link, last.ticket.name))?;
        let mut bytes = body.bytes;
        bytes.extend_from_slice(last.payload);
        (body.key == last.key).then_some(bytes)
    }
}

/// A request that the session wants to be rendered again.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockDue {
    pub(super) ticket: Ticket,
    pub(super) key: ExchangeKey,
    pub(super) cause: Again,
}

impl Coap {
    /// A block of an answer that is not the last.
    pub(super) fn received_part<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        part: &Response<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        if self.bodies.0.len() >= BODIES_MAX {
            self.forget_bodies(at);
        }
        if self.bodies.take(at.link, part) {
            let due = BlockDue {
                ticket: part.ticket,
                key: part.key,
                cause: Again::Block,
            };
            self.request_block(at, due, out);
            return None;
        }
        if let Some(mut exchanges) = self.sockets.exchanges(at.state) {
            exchanges.abandon(part.key);
        }
        Some(failed(part.ticket, Failure::BodyTooLarge))
    }

    /// An answer, or the last block of it.
    pub(super) fn received_answer<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &Input<'a>,
        last: &Response<'a>,
    ) -> Event<'a> {
        if last.block.is_none_or(|block| block.number == 0) {
            return self.answered(at, last);
        }
        let Some(body) = self.bodies.whole(at.link, last) else {
            return failed(last.ticket, Failure::Block);
        };
        let whole = Response {
            payload: input.keep(body),
            ..*last
        };
        self.answered(at, &whole)
    }

    /// Asks for the next block of an answer, or sends that of a body. If what came was
    /// acknowledged in a separate datagram, the block goes with the next call.
    pub(super) fn request_block(
        &mut self,
        at: &mut Context<'_, Self>,
        due: BlockDue,
        out: &mut Vec<u8>,
    ) {
        if out.is_empty() {
            self.request_again(at, &due, out);
        } else {
            self.blocks_due.push((at.link, due));
        }
    }

    /// Renders a block of a link that is due, if one is; whether something is to be written.
    pub(super) fn render_block(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> bool {
        let mut due = self.blocks_due.iter();
        let Some(place) = due.position(|(of, _)| *of == at.link) else {
            return false;
        };
        let (_, due) = self.blocks_due.swap_remove(place);
        self.request_again(at, &due, out);
        !out.is_empty()
    }

    /// Forgets what came of answers that nobody waits for any more.
    fn forget_bodies(&mut self, at: &Context<'_, Self>) {
        let is_open = |link, name, key| {
            at.messages
                .slots
                .open_request(link, Token(name), key)
                .is_some()
        };
        let bodies = &mut self.bodies.0;
        bodies.retain(|(link, name), body| is_open(*link, *name, body.key));
    }
}
