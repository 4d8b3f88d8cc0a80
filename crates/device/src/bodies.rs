//! Bodies of answers that come in blocks (RFC 7959), put together.

use muster_model::Micros;
use muster_protocol::coap::{Again, ExchangeKey, Failure, Response};
use muster_protocol::mqtt::Token;
use rustc_hash::FxHashMap;

use crate::requesting::Due;
use crate::{Shard, Sink};

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

impl<S: Sink> Shard<S> {
    /// A block of an answer that is not the last.
    pub(crate) fn heard_part(
        &mut self,
        link: u32,
        now: Micros,
        part: &Response<'_>,
        out: &mut Vec<u8>,
    ) {
        if self.bodies.0.len() >= BODIES_MAX {
            self.forget_bodies();
        }
        if self.bodies.take(link, part) {
            let due = Due {
                ticket: part.ticket,
                key: part.key,
                cause: Again::Block,
            };
            return self.request_block(link, now, due, out);
        }
        if let Some(mut exchanges) = self.exchanges(link) {
            exchanges.abandon(part.key);
        }
        let token = Token(part.ticket.name);
        self.request_failed(link, now, token, Failure::BodyTooLarge);
    }

    /// An answer, or the last block of it.
    pub(crate) fn heard_answer(&mut self, link: u32, now: Micros, last: &Response<'_>) {
        if last.block.is_none_or(|block| block.number == 0) {
            return self.responded(link, now, last);
        }
        let Some(body) = self.bodies.whole(link, last) else {
            let token = Token(last.ticket.name);
            return self.request_failed(link, now, token, Failure::Block);
        };
        let whole = Response {
            payload: &body,
            ..*last
        };
        self.responded(link, now, &whole);
    }

    /// Asks for the next block of an answer, or sends that of a body. What came may have been
    /// acknowledged, which is a datagram of its own: then the block goes with the next call.
    pub(crate) fn request_block(&mut self, link: u32, now: Micros, due: Due, out: &mut Vec<u8>) {
        if out.is_empty() {
            self.request_again(link, now, &due, out);
        } else {
            self.blocks_due.push((link, due));
        }
    }

    /// Renders a block of a link that is due, if one is; whether something is to be written.
    pub(crate) fn render_block(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> bool {
        let mut due = self.blocks_due.iter();
        let Some(place) = due.position(|(of, _)| *of == link) else {
            return false;
        };
        let (_, due) = self.blocks_due.swap_remove(place);
        self.request_again(link, now, &due, out);
        !out.is_empty()
    }

    /// Forgets what came of answers that nobody waits for any more.
    fn forget_bodies(&mut self) {
        let mut bodies = std::mem::take(&mut self.bodies);
        let is_open = |link, name, key| self.open_request(link, Token(name), key).is_some();
        bodies
            .0
            .retain(|(link, name), body| is_open(*link, *name, body.key));
        self.bodies = bodies;
    }
}
