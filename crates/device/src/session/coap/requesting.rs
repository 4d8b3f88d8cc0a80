//! A message as a request of CoAP, and its copies.

use muster_model::Micros;
use muster_platform::{Method, Protocol, Request, SEGMENTS_MAX};
use muster_protocol::coap::{
    self, Again, Code, ExchangeKey, Message, Opt, OptionNumber, Refused, Uint, content_format,
};

use super::blocks::BlockDue;
use super::{Coap, CoapSettings};
use crate::class::Class;
use crate::reply_paths::ReplyPaths;
use crate::session::{Context, Further, Outgoing, Scratch, Unsent};
use crate::token::{Token, unawaited};

/// Options of a request at the most: Observe, the segments of its path, its content's type and two parameters.
const OPTIONS_MAX: usize = SEGMENTS_MAX + 4;
/// For so long it is known whose a refusal is that nobody waits for.
const UNAWAITED: Micros = Micros::from_secs(5);

impl Coap {
    /// Sends the message in the scratch buffers for the first time. Where nobody waits for the
    /// answer, the session gives it up at once, and knows a refusal for a while.
    pub(super) fn request(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Option<ExchangeKey>, Unsent<Refused>> {
        let now = at.now;
        let slot = at.messages.slots.get(message.slot);
        let name = match message.is_tracked {
            true => at.messages.slots.token(message.slot).0,
            false => unawaited(slot.stream, slot.due).0,
        };
        let paths = (at.messages.paths, slot.request);
        let scratch = &mut *at.messages.scratch;
        scratch.render_login::<Self>(at.class, at.id);
        let exchanges = self.sockets.exchanges(at.state);
        let mut exchanges = exchanges.ok_or(Unsent::SessionLost)?;
        let sent = at
            .class
            .ask(message.stream_index, scratch, paths, |request| {
                exchanges.request(now, name, request, out)
            });
        let key = sent?;
        if message.is_tracked {
            return Ok(Some(key));
        }
        exchanges.leave(key, now + UNAWAITED);
        Ok(None)
    }

    /// Renders a request again: for a copy of it, or for the next block.
    pub(super) fn request_again(
        &mut self,
        at: &mut Context<'_, Self>,
        due: &BlockDue,
        out: &mut Vec<u8>,
    ) {
        let BlockDue { ticket, key, cause } = *due;
        let token = Token(ticket.name);
        let id = at.messages.slots.open_request(at.link, token, key);
        let Some(mut exchanges) = self.sockets.exchanges(at.state) else {
            return;
        };
        let Some(id) = id else {
            return exchanges.abandon(key);
        };
        let stream_index = at.messages.render_body(id);
        let paths = (at.messages.paths, at.messages.slots.get(id).request);
        let before = out.len();
        let scratch = &mut *at.messages.scratch;
        scratch.render_login::<Self>(at.class, at.id);
        let now = at.now;
        let sent = at.class.ask(stream_index, scratch, paths, |request| {
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
            link: at.link,
            token,
            key,
            is_copy,
            is_block,
            wire: written.len() as u32,
            payload: of.map_or(0, |message| message.payload.len() as u32),
        });
    }
}

impl From<Refused> for Unsent<Refused> {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Held { .. } => Self::Silence,
            Refused::Window => Self::Waits,
            Refused::NoMessageId { .. } | Refused::Full => Self::Limit,
            Refused::NoSlot(_)
            | Refused::NothingDue
            | Refused::Method(_)
            | Refused::OptionOrder(_)
            | Refused::BodyTooLarge { .. } => Self::Never(why),
        }
    }
}

impl Class<CoapSettings> {
    /// Hands the message in the scratch buffers to a session as a request of the dialect: a reply on
    /// the path at its place.
    fn ask<T>(
        &self,
        stream_index: u8,
        scratch: &mut Scratch,
        (paths, at): (&ReplyPaths, u32),
        submit: impl FnOnce(&coap::Request<'_>) -> T,
    ) -> T {
        let stream = &self.streams[stream_index as usize];
        let requests = self.dialect.requests(Protocol::Coap);
        let request = stream.request(requests, scratch.parts(), || paths.get(at));
        with_options(&request, None, submit)
    }
}

/// True if it carries a block of its body, and does not ask for one of the answer's.
fn has_block(request: &Message<'_>) -> bool {
    request
        .options
        .block(OptionNumber::BLOCK1)
        .is_ok_and(|block| block.is_some())
}

/// Lends a request in the form of CoAP, with an option in front of its path if there is one.
pub(super) fn with_options<T>(
    request: &Request<'_>,
    first: Option<Opt<'_>>,
    submit: impl FnOnce(&coap::Request<'_>) -> T,
) -> T {
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
    let all = first.into_iter().chain(path).chain(format).chain(query);
    for (place, option) in options.iter_mut().zip(all) {
        *place = option;
        count += 1;
    }
    let method = match request.method {
        Method::Get | Method::Other => Code::GET,
        Method::Post => Code::POST,
        Method::Put => Code::PUT,
    };
    submit(&coap::Request {
        is_confirmable: request.is_at_least_once,
        ..coap::Request::new(method, &options[..count], request.payload)
    })
}
