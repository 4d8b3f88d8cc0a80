//! Writes answers to the client, in one message or block by block.

use muster_model::Micros;

use super::bodies::Underway;
use super::{Answered, Pending, Server, Turn};
use crate::coap::message::write_merged;
use crate::coap::request::out_of_order;
use crate::coap::{
    Block, Code, Header, Kind, Opt, OptionIter, OptionNumber, Options, Refused, Reply, Uint,
};

/// The answer to a request for a block that the body does not have.
const BEYOND_THE_END: (Code, OptionIter<'static>, &[u8]) =
    (Code::BAD_REQUEST, OptionIter::NONE, b"");

/// A body that is kept until its blocks were fetched.
#[derive(Debug, Default)]
pub(super) struct Kept {
    code: Code,
    /// The reply's options, as they are on the wire.
    options: Vec<u8>,
    body: Vec<u8>,
    /// True if the last block was requested.
    is_fetched: bool,
}

impl Underway for Kept {
    fn bytes(&self) -> usize {
        self.options.len() + self.body.len()
    }

    fn is_through(&self) -> bool {
        self.is_fetched
    }
}

/// A message that answers a request.
#[derive(Debug, Clone, Copy)]
struct Writing {
    kind: Kind,
    id: u16,
    ticket: u32,
    /// The request, with the blocks that the answer has.
    pending: Pending,
}

impl Server {
    /// Says that a confirmable request was taken and is answered later (section 5.2.2). What is
    /// returned is to be answered. Once is enough; a NON is not acknowledged.
    pub fn acknowledge(&mut self, pending: Pending, out: &mut Vec<u8>) -> Pending {
        if !pending.is_confirmable || pending.is_separate {
            return pending;
        }
        Header::empty(Kind::Acknowledgement, pending.id).write(out);
        self.remember(&pending, Answered::Acknowledgement);
        Pending {
            is_separate: true,
            ..pending
        }
    }

    /// Answers a request: in its acknowledgement, or, where that was sent or the request is NON,
    /// in a separate message.
    ///
    /// # Errors
    /// [`Refused::OptionOrder`]; [`Refused::NoMessageId`] and [`Refused::Full`] for a separate
    /// message.
    #[inline]
    pub fn respond(
        &mut self,
        now: Micros,
        pending: Pending,
        reply: &Reply<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.respond_in(&mut Turn { now, out }, pending, reply)
    }

    #[inline]
    pub(super) fn respond_in(
        &mut self,
        turn: &mut Turn<'_>,
        pending: Pending,
        reply: &Reply<'_>,
    ) -> Result<(), Refused> {
        if let Some(number) = out_of_order(reply.options) {
            return Err(Refused::OptionOrder(number));
        }
        if pending.unwanted & unwanted_bit(reply.code) != 0 {
            self.acknowledge(pending, turn.out);
            return Ok(());
        }
        let (kind, id) = self.address(turn.now, &pending, reply.is_confirmable)?;
        let writing = Writing {
            kind,
            id,
            ticket: reply.ticket,
            pending,
        };
        let from = turn.out.len();
        self.write(turn, writing, reply);
        self.keep_reply(&writing, &turn.out[from..]);
        Ok(())
    }

    /// The type and message id of an answer.
    #[inline]
    fn address(
        &mut self,
        now: Micros,
        pending: &Pending,
        is_confirmable: bool,
    ) -> Result<(Kind, u16), Refused> {
        if pending.is_confirmable && !pending.is_separate {
            return Ok((Kind::Acknowledgement, pending.id));
        }
        let most = usize::from(self.settings.transmissions_max);
        if is_confirmable && self.waiting.len() >= most {
            return Err(Refused::Full);
        }
        let lifetime = self.settings.transmission.exchange_lifetime;
        let id = self.ids.take(now, lifetime)?;
        Ok((Kind::of(is_confirmable), id))
    }

    /// Writes a reply, or the block of it that is wanted, and keeps what has to be sent or fetched
    /// again.
    #[inline]
    fn write(&mut self, turn: &mut Turn<'_>, mut writing: Writing, reply: &Reply<'_>) {
        let body = reply.payload;
        let size = self.settings.block_size;
        let asked = writing
            .pending
            .block2
            .filter(|_| reply.code.is_success() && !body.is_empty());
        let size = asked.map_or(size, |asked| asked.size.min(size));
        let is_in_blocks = asked.is_some() || body.len() > size.bytes();
        let offset = asked.map_or(0, Block::offset);
        if offset > 0 && offset >= body.len() {
            writing.pending.block2 = None;
            return self.put(turn, &writing, BEYOND_THE_END);
        }
        writing.pending.block2 = is_in_blocks
            .then(|| Block::at(offset, false, size))
            .flatten();
        if body.len() > size.bytes() {
            self.keep_body(turn.now, writing.pending.resource, reply);
        }
        let options = reply.options.iter().copied();
        self.put(turn, &writing, (reply.code, options, body));
    }

    /// Answers a request for a later block out of a body that is kept; whether there is one.
    pub(super) fn write_kept(&mut self, turn: &mut Turn<'_>, pending: Pending) -> bool {
        let expires = self.body_expires(turn.now);
        let Some((mut kept, wanted)) = self.going.take(pending.resource).zip(pending.block2) else {
            return false;
        };
        if let Ok((kind, id)) = self.address(turn.now, &pending, false) {
            let size = wanted.size.min(self.settings.block_size);
            let is_there = wanted.offset() < kept.body.len();
            let block2 = Block::at(wanted.offset(), false, size).filter(|_| is_there);
            kept.is_fetched |=
                block2.is_some_and(|block| !block.is_before_the_end(kept.body.len()));
            let writing = Writing {
                kind,
                id,
                ticket: 0,
                pending: Pending {
                    block1: None,
                    block2,
                    ..pending
                },
            };
            let from = turn.out.len();
            if is_there {
                let options = Options::of_bytes(&kept.options).iter();
                self.put(turn, &writing, (kept.code, options, &kept.body));
            } else {
                self.put(turn, &writing, BEYOND_THE_END);
            }
            self.keep_reply(&writing, &turn.out[from..]);
        }
        self.keep_going(pending.resource, expires, kept);
        true
    }

    /// Appends the message; a confirmable one waits from now on.
    #[inline]
    fn put<'a>(
        &mut self,
        turn: &mut Turn<'_>,
        writing: &Writing,
        (code, options, body): (Code, impl Iterator<Item = Opt<'a>>, &[u8]),
    ) {
        let from = turn.out.len();
        let Writing {
            kind, id, ticket, ..
        } = *writing;
        let pending = &writing.pending;
        let block2 = pending.block2.map(|block| Block {
            more: block.is_before_the_end(body.len()),
            ..block
        });
        let token = pending.token;
        Header {
            kind,
            code,
            id,
            token,
        }
        .write(turn.out);
        let [block2_value, block1] = [block2, pending.block1].map(|block| block.map(Block::uint));
        let size = (pending.wants_size && block2.is_some()).then(|| Uint::of(body.len() as u32));
        let own = [
            (OptionNumber::BLOCK2, &block2_value),
            (OptionNumber::BLOCK1, &block1),
            (OptionNumber::SIZE2, &size),
        ];
        let own = own
            .iter()
            .filter_map(|(number, value)| value.as_ref().map(|value| Opt::new(*number, value)));
        let payload = block2.map_or(body, |block| block.of(body));
        write_merged(options, own, payload, turn.out);
        if kind == Kind::Confirmable {
            let times = (&self.settings.transmission, &mut self.random);
            self.waiting
                .sent(turn.now, (id, ticket), &turn.out[from..], times);
        }
    }

    fn keep_body(&mut self, now: Micros, resource: u64, reply: &Reply<'_>) {
        let mut options = Vec::new();
        write_merged(
            reply.options.iter().copied(),
            std::iter::empty(),
            b"",
            &mut options,
        );
        let kept = Kept {
            code: reply.code,
            options,
            body: reply.payload.to_vec(),
            is_fetched: false,
        };
        self.keep_going(resource, self.body_expires(now), kept);
    }

    fn keep_going(&mut self, resource: u64, expires: Micros, kept: Kept) {
        let bound = self.bound_of_bodies();
        self.going.begin(resource, expires, kept, bound);
        self.counts.bodies_given_up += self.going.take_given_up();
    }

    #[inline]
    fn keep_reply(&mut self, writing: &Writing, reply: &[u8]) {
        if writing.kind != Kind::Acknowledgement {
            return;
        }
        let pending = &writing.pending;
        let bound = self.settings.replies_max;
        let seen = &mut self.seen;
        let is_known = |request| seen.get(request).is_some();
        let place = self.replies.keep(pending.number, reply, bound, is_known);
        self.remember(pending, place.map_or(Answered::Lost, Answered::Reply));
    }

    #[inline]
    pub(super) fn remember(&mut self, pending: &Pending, answered: Answered) {
        if let Some(known) = self.seen.get(pending.number) {
            *known = answered;
        }
    }
}

/// The bit of No-Response that a code's class has (RFC 7967 section 2.1).
const fn unwanted_bit(code: Code) -> u8 {
    match code.digit() {
        0 => 0,
        class => 1 << (class - 1),
    }
}
