//! A message as a request of CoAP, and its copies.

use muster_model::Micros;
use muster_platform::{Asking, Method, OPTIONS_MAX, Protocol, Request, UplinkScratch};
use muster_protocol::coap::{
    self, Again, Code, ExchangeKey, Message, Opt, OptionNumber, Refused, Ticket, Uint,
    content_format,
};
use muster_protocol::mqtt::Token;

use crate::class::{Class, Kind};
use crate::protocols::Unfit;
use crate::render::Unsent;
use crate::reply_paths::ReplyPaths;
use crate::slots::{SlotId, Stage};
use crate::sockets::exchanges;
use crate::token::{stream_of, unawaited};
use crate::{Shard, Sink};

/// For so long it is known whose a refusal is that nobody waits for.
const UNAWAITED: Micros = Micros::from_secs(5);

/// What the session wants rendered again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub(crate) ticket: Ticket,
    pub(crate) key: ExchangeKey,
    pub(crate) cause: Again,
}

/// A datagram of a request that is not its first: a copy, or a further block.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Further {
    link: u32,
    token: Token,
    key: ExchangeKey,
    is_copy: bool,
    /// Whether a block of the message's body is in it for the first time.
    is_block: bool,
    /// Bytes of the datagram, and of payload in it.
    wire: u32,
    payload: u32,
}

impl<S: Sink> Shard<S> {
    /// Sends the message in the scratch buffers for the first time. Where nobody waits for the
    /// answer, the session gives it up at once, and knows a refusal for a while.
    pub(crate) fn request(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        let (stream, due) = (self.slots.get(id).stream, self.slots.get(id).due);
        let is_tracked = self.stream(stream).is_tracked();
        let name = match is_tracked {
            true => self.token(id).0,
            false => unawaited(stream, due).0,
        };
        let (place, at) = (self.place(stream), self.slots.get(id).request);
        let class = &self.classes[place.class as usize];
        let exchanges = exchanges(&mut self.links, &mut self.sockets, link);
        let mut exchanges = exchanges.ok_or(Unsent::SessionLost)?;
        let scratch = (&self.scratch.uplink, &mut self.scratch.query);
        let paths = (&self.reply_paths, at);
        let sent = class.ask(place.lane, scratch, paths, |request| {
            exchanges.request(now, name, request, out)
        });
        match sent {
            Ok(key) if is_tracked => self.slots.get_mut(id).exchange = Some(key),
            Ok(key) => exchanges.leave(key, now + UNAWAITED),
            Err(why) => return Err(self.refused(link, why)),
        }
        Ok(())
    }

    /// The session wants a request rendered again: for a copy of it, or for the next block.
    pub(crate) fn request_again(&mut self, link: u32, now: Micros, due: &Due, out: &mut Vec<u8>) {
        let Due { ticket, key, cause } = *due;
        let Some(id) = self.open_request(link, Token(ticket.name), key) else {
            if let Some(mut exchanges) = self.exchanges(link) {
                exchanges.abandon(key);
            }
            return;
        };
        self.render_body(id);
        let stream = self.slots.get(id).stream;
        let (place, at) = (self.place(stream), self.slots.get(id).request);
        let class = &self.classes[place.class as usize];
        let Some(mut exchanges) = exchanges(&mut self.links, &mut self.sockets, link) else {
            return;
        };
        let before = out.len();
        let scratch = (&self.scratch.uplink, &mut self.scratch.query);
        let paths = (&self.reply_paths, at);
        let sent = class.ask(place.lane, scratch, paths, |request| {
            exchanges.again(now, key, request, out)
        });
        // An exchange that cannot go on ends with its lifetime.
        if sent.is_err() {
            return;
        }
        let written = &out[before..];
        let is_copy = cause == Again::Retransmission;
        let message = Message::decode(written).ok();
        let is_block = !is_copy && message.as_ref().is_some_and(has_block);
        // Of a body in blocks a copy is of one of them, and a further block was counted with the first.
        let of = message.filter(|_| is_copy);
        self.further = Some(Further {
            link,
            token: Token(ticket.name),
            key,
            is_copy,
            is_block,
            wire: written.len() as u32,
            payload: of.map_or(0, |message| message.payload.len() as u32),
        });
    }

    /// What was appended last to an output, if it is a datagram of a request that is not its first, once.
    /// A driver that can write it says so by [`Shard::leaves_again`] or [`Shard::written_again`].
    #[inline]
    pub fn take_further(&mut self) -> Option<Further> {
        match self.further {
            None => None,
            Some(_) => self.further.take(),
        }
    }

    /// It is on its way to the kernel: from now on its message may be there twice.
    pub fn leaves_again(&mut self, further: &Further) {
        if let Some(id) = self.open_request(further.link, further.token, further.key) {
            self.slots.get_mut(id).resent |= further.is_copy;
        }
    }

    /// The kernel took it, at `at`.
    pub fn written_again(&mut self, further: &Further, at: Micros) {
        self.leaves_again(further);
        let of_block = || self.open_request(further.link, further.token, further.key);
        if let Some(id) = further.is_block.then(of_block).flatten() {
            self.sent_further(id, at);
        }
        let counts = self.sink.counts(stream_of(further.token), at);
        counts.bytes_wire += u64::from(further.wire);
        counts.bytes_payload += u64::from(further.payload);
        counts.retransmitted += u64::from(further.is_copy);
    }

    /// The attempt of an exchange, if it still waits for its answer.
    pub(crate) fn open_request(&self, link: u32, token: Token, key: ExchangeKey) -> Option<SlotId> {
        let id = self.open_attempt(link, token)?;
        let slot = self.slots.get(id);
        (slot.stage == Stage::Flying && slot.exchange == Some(key)).then_some(id)
    }

    /// What a refusal of the session means for the message.
    fn refused(&mut self, link: u32, why: Refused) -> Unsent {
        match why {
            Refused::Held { .. } => {
                self.links[link as usize].waits_for_silence = true;
                Unsent::Waits
            }
            Refused::Window => Unsent::Waits,
            Refused::NoMessageId { .. } | Refused::Full => Unsent::Limit,
            Refused::Lane(_)
            | Refused::NothingDue
            | Refused::Method(_)
            | Refused::OptionOrder(_)
            | Refused::BodyTooLarge { .. } => Unsent::Never(Unfit::Coap(why)),
        }
    }
}

impl Class {
    /// Hands the message in the scratch buffers to a session as a request of the dialect: a reply on
    /// the path at its place.
    fn ask<T>(
        &self,
        lane: u8,
        (uplink, query): (&UplinkScratch, &mut String),
        (paths, at): (&ReplyPaths, u32),
        submit: impl FnOnce(&coap::Request<'_>) -> T,
    ) -> T {
        let stream = &self.streams[lane as usize];
        let requests = self.dialect.requests(Protocol::Coap);
        if let Kind::Command { status, .. } = stream.kind {
            let (to, payload) = (paths.get(at), &uplink.payload);
            let request = (requests.reply)(to, status, payload, query);
            return with_options(&request, submit);
        }
        let asking = Asking {
            path: uplink.topic(),
            payload: &uplink.payload,
            content_type: stream.content_type.as_deref(),
            is_at_least_once: stream.is_confirmable,
            ttd_s: stream.ttd().map(whole_seconds),
        };
        with_options(&(requests.uplink)(&asking, query), submit)
    }
}

/// Whether it carries a block of its body, and does not ask for one of the answer's.
fn has_block(request: &Message<'_>) -> bool {
    request
        .options
        .block(OptionNumber::BLOCK1)
        .is_ok_and(|block| block.is_some())
}

/// A plan over CoAP has whole seconds.
fn whole_seconds(ttd: Micros) -> u32 {
    u32::try_from(ttd.get() / 1_000_000).unwrap_or(u32::MAX)
}

/// Lends a request in the form of CoAP.
fn with_options<T>(request: &Request<'_>, submit: impl FnOnce(&coap::Request<'_>) -> T) -> T {
    let format = request.content_type.and_then(content_format::of_media_type);
    let format = format.map(|number| Uint::of(u32::from(number)));
    let path = request.path;
    let path = path.map(|segment| Opt::text(OptionNumber::URI_PATH, segment));
    let format = format.iter();
    let format = format.map(|number| Opt::new(OptionNumber::CONTENT_FORMAT, number));
    let query = request.parameters();
    let query = query.map(|parameter| Opt::text(OptionNumber::URI_QUERY, parameter));
    let mut options = [Opt::new(OptionNumber(0), &[]); OPTIONS_MAX];
    let mut count = 0;
    // Options stand in the order of their numbers.
    for (place, option) in options.iter_mut().zip(path.chain(format).chain(query)) {
        *place = option;
        count += 1;
    }
    let method = match request.method {
        Method::Post => Code::POST,
        Method::Put => Code::PUT,
        Method::Other => Code::GET,
    };
    submit(&coap::Request {
        is_confirmable: request.is_at_least_once,
        ..coap::Request::new(method, &options[..count], request.payload)
    })
}
