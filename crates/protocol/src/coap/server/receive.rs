//! Handles the client's datagrams.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use muster_model::Micros;

use super::bodies::{Joined, Joining};
use super::{Answered, Incoming, Pending, Server, ServerEvent, Turn};
use crate::coap::{
    Block, Class, Code, Header, Kind, Message, Opt, OptionNumber, Options, Reply, ReservedSize,
    Uint,
};

/// Block1 and Block2 of a request.
type Blocks = (Option<Block>, Option<Block>);

impl Server {
    /// Takes one datagram; returns its meaning, if it has one.
    #[inline]
    pub fn receive<'d>(
        &mut self,
        now: Micros,
        datagram: &'d [u8],
        out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'d>> {
        let message = Message::receive(datagram, &mut self.counts.malformed, out)?;
        match (message.kind, message.code.class()) {
            (Kind::Acknowledgement, Class::Empty) => {
                let ticket = self.answered(message.id)?;
                Some(ServerEvent::Acknowledged { ticket })
            }
            (Kind::Reset, _) => {
                let ticket = self.answered(message.id)?;
                Some(ServerEvent::Reset { ticket })
            }
            (Kind::Confirmable | Kind::NonConfirmable, Class::Request) => {
                self.request(&mut Turn { now, out }, &message)
            }
            (Kind::Confirmable, _) => {
                // A ping, or a response to nobody (section 4.2).
                let is_ping = message.is_empty();
                self.counts.pings += u32::from(is_ping);
                self.counts.stray += u32::from(!is_ping);
                Header::empty(Kind::Reset, message.id).write(out);
                None
            }
            (Kind::NonConfirmable | Kind::Acknowledgement, _) => {
                self.counts.stray += 1;
                None
            }
        }
    }

    /// The ticket of the message of ours that the peer answers.
    fn answered(&mut self, id: u16) -> Option<u32> {
        let ticket = self.waiting.answered(id);
        self.counts.stray += u32::from(ticket.is_none());
        ticket
    }

    /// A request, or a copy of one (section 4.5).
    #[inline]
    fn request<'d>(
        &mut self,
        turn: &mut Turn<'_>,
        message: &Message<'d>,
    ) -> Option<ServerEvent<'d>> {
        let now = turn.now;
        if let Some(answered) = self.seen.find(now, message.id).copied() {
            self.repeat(message.id, answered, turn.out);
            return None;
        }
        let expires = now + self.settings.transmission.exchange_lifetime;
        let number = self
            .seen
            .insert(now, expires, message.id, Answered::Silence);
        let bound = self.settings.remembered_max as usize;
        self.counts.evicted += self.seen.keep(bound);
        let blocks = blocks(&message.options);
        let pending = pending(message, number, blocks.unwrap_or_default());
        if let Some(number) = message.options.unacceptable() {
            self.bad_option(turn, &pending, number);
            return None;
        }
        if is_for_a_proxy(message) {
            let reply = Reply::new(Code::PROXYING_NOT_SUPPORTED, &[], b"");
            self.reject(turn, &pending, &reply);
            return None;
        }
        if blocks.is_err() {
            let reply = Reply::new(Code::BAD_REQUEST, &[], b"a block of the reserved size 7");
            self.reject(turn, &pending, &reply);
            return None;
        }
        self.whole_request(turn, message, pending)
    }

    fn repeat(&mut self, id: u16, answered: Answered, out: &mut Vec<u8>) {
        self.counts.duplicates += 1;
        let is_there = match answered {
            Answered::Silence => true,
            Answered::Acknowledgement => {
                Header::empty(Kind::Acknowledgement, id).write(out);
                true
            }
            Answered::Reply(place) => self.replies.repeat(place, out),
            Answered::Lost => false,
        };
        self.counts.unrepeatable += u32::from(!is_there);
    }

    /// Reports a request once its body is whole, unless it is for a block of an answer that is kept.
    #[inline]
    fn whole_request<'d>(
        &mut self,
        turn: &mut Turn<'_>,
        message: &Message<'d>,
        pending: Pending,
    ) -> Option<ServerEvent<'d>> {
        let payload = match pending.block1 {
            None if message.payload.len() > self.settings.body_max as usize => {
                self.refuse_body(turn, &pending, Code::REQUEST_ENTITY_TOO_LARGE);
                return None;
            }
            None => Cow::Borrowed(message.payload),
            Some(_) => Cow::Owned(self.join(turn, message, &pending)?),
        };
        let is_later = pending.block2.is_some_and(|block| block.number > 0);
        if is_later && self.later_block(turn, message.code, pending) {
            return None;
        }
        Some(ServerEvent::Request(Incoming {
            pending,
            method: message.code,
            options: message.options,
            payload,
            is_confirmable: pending.is_confirmable,
        }))
    }

    /// Takes a block of a body; none, and answered, unless it was the last (RFC 7959 section 2.5).
    fn join(
        &mut self,
        turn: &mut Turn<'_>,
        message: &Message<'_>,
        pending: &Pending,
    ) -> Option<Vec<u8>> {
        let block = pending.block1?;
        let joining = Joining {
            resource: pending.resource,
            expires: self.body_expires(turn.now),
            maximum: self.settings.body_max,
            bound: self.bound_of_bodies(),
        };
        let announced = message.options.uint(OptionNumber::SIZE1);
        let joined = self.coming.join(joining, block, announced, message.payload);
        self.counts.bodies_given_up += self.coming.take_given_up();
        match joined {
            Joined::Whole(body) => Some(body),
            Joined::Continue => {
                let size = block.size.min(self.settings.block_size);
                let pending = Pending {
                    block1: Some(Block { size, ..block }),
                    ..*pending
                };
                self.answer(turn, pending, &Reply::new(Code::CONTINUE, &[], b""));
                None
            }
            Joined::Refused(code) => {
                self.refuse_body(turn, pending, code);
                None
            }
        }
    }

    /// A body that cannot be taken; the answer to one that is too long says how long it may be
    /// (RFC 7959 section 2.9.3).
    fn refuse_body(&mut self, turn: &mut Turn<'_>, pending: &Pending, code: Code) {
        self.counts.rejected += 1;
        let maximum = Uint::of(self.settings.body_max);
        let size = [Opt::new(OptionNumber::SIZE1, &maximum)];
        let is_too_large = code == Code::REQUEST_ENTITY_TOO_LARGE;
        let options = if is_too_large { &size[..] } else { &[] };
        self.answer(turn, *pending, &Reply::new(code, options, b""));
    }

    /// Answers a request for a later block from the kept body, or, if the caller must not be asked
    /// twice, by an error (RFC 7959 section 2.9.2); false if neither applies.
    fn later_block(&mut self, turn: &mut Turn<'_>, method: Code, pending: Pending) -> bool {
        if self.write_kept(turn, pending) {
            return true;
        }
        let is_safe = matches!(method, Code::GET | Code::FETCH);
        if !is_safe {
            let reply = Reply::new(Code::REQUEST_ENTITY_INCOMPLETE, &[], b"");
            self.reject(turn, &pending, &reply);
        }
        !is_safe
    }

    /// A critical option that cannot be taken: 4.02 for a CON, and silence for a NON
    /// (section 5.4.1).
    fn bad_option(&mut self, turn: &mut Turn<'_>, pending: &Pending, number: OptionNumber) {
        if !pending.is_confirmable {
            self.counts.rejected += 1;
            return;
        }
        let pending = Pending {
            block1: None,
            ..*pending
        };
        let words = in_words(number);
        let reply = Reply::new(Code::BAD_OPTION, &[], &words);
        self.reject(turn, &pending, &reply);
    }

    fn reject(&mut self, turn: &mut Turn<'_>, pending: &Pending, reply: &Reply<'_>) {
        self.counts.rejected += 1;
        let pending = Pending {
            block2: None,
            ..*pending
        };
        self.answer(turn, pending, reply);
    }

    /// An answer of the session's own, which is never confirmable: where a message id is missing for
    /// it, the client asks again.
    fn answer(&mut self, turn: &mut Turn<'_>, pending: Pending, reply: &Reply<'_>) {
        let reply = Reply {
            is_confirmable: false,
            ..*reply
        };
        // Options are in order, and a NON needs no room: only an id can be missing.
        let _ = self.respond_in(turn, pending, &reply);
    }
}

#[inline]
fn pending(message: &Message<'_>, number: u32, (block1, block2): Blocks) -> Pending {
    let options = &message.options;
    let unwanted = options.uint(OptionNumber::NO_RESPONSE).unwrap_or(0);
    Pending {
        token: message.token,
        resource: resource(message),
        number,
        id: message.id,
        is_confirmable: message.kind == Kind::Confirmable,
        is_separate: false,
        wants_size: options.first(OptionNumber::SIZE2).is_some(),
        unwanted: unwanted as u8,
        block1,
        block2,
    }
}

#[inline]
fn blocks(options: &Options<'_>) -> Result<Blocks, ReservedSize> {
    let block1 = options.block(OptionNumber::BLOCK1)?;
    Ok((block1, options.block(OptionNumber::BLOCK2)?))
}

/// A number for the method and all options that distinguish resources: those of the cache key
/// (section 5.6), less the ones that only say how it travels (RFC 7959 section 2.4).
#[inline]
fn resource(message: &Message<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.code.hash(&mut hasher);
    let travels = |number| {
        matches!(
            number,
            OptionNumber::OBSERVE | OptionNumber::BLOCK1 | OptionNumber::BLOCK2
        )
    };
    for option in message.options.iter() {
        if !option.number.is_no_cache_key() && !travels(option.number) {
            option.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Returns true if a request is for another server (section 5.7.2).
fn is_for_a_proxy(message: &Message<'_>) -> bool {
    let options = &message.options;
    let names = [OptionNumber::PROXY_URI, OptionNumber::PROXY_SCHEME];
    names.into_iter().any(|name| options.first(name).is_some())
}

/// The diagnostic payload that names an option (section 5.5.2), in hexadecimal.
fn in_words(number: OptionNumber) -> [u8; 17] {
    let mut words = *b"bad option 0x0000";
    let digits = [12, 8, 4, 0].map(|shift| number.0 >> shift & 0x0f);
    for (word, digit) in words[13..].iter_mut().zip(digits) {
        *word = b"0123456789abcdef"[usize::from(digit)];
    }
    words
}
