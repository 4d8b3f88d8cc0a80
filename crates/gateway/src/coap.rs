//! The protocol end of CoAP: what a request is to the dialect, and how it is answered.

pub(crate) mod bounds;
mod endpoint;
mod guard;
mod peers;
pub(crate) mod request;

use muster_model::Micros;
use muster_net::Key;
use muster_platform::{Field, Incoming, Method, Protocol};
use muster_protocol::coap::{
    self, Code, Opt, OptionNumber, Reply, ServerEvent, Uint, content_format,
};

use self::endpoint::Endpoint;
use self::guard::{Credentials, Secure};
use self::request::{PeerRef, RequestRef};
use crate::commands::{Handed, Outgoing};
use crate::config::GatewayConfig;
use crate::end::{Datagram, End, Factory, Work, choose};
use crate::listen_addresses::ListenAt;
use crate::queries::Queries;
use crate::requests::{self, Asking, Came, Content, RequestEnd};
use crate::start_error::StartError;
use crate::thread::Ctx;
use crate::uplink::{Answer, Request, Sender, Timer};
use crate::waiter::QueryRef;

/// Longest wait of an answer for a command before the request is acknowledged; Hono's own default
/// (`timeoutToAck`).
const ACKNOWLEDGED_AFTER: Micros = Micros::from_millis(500);

/// The ticket of notifications, whose observers end if they do not acknowledge.
const NOTIFICATION: u32 = 1;

/// State of one thread's devices over CoAP.
#[derive(Debug)]
struct Coap {
    endpoint: Endpoint,
    queries: Queries<RequestRef>,
    credentials: Credentials,
}

/// Reads the certificates that the ends of all threads share.
///
/// # Errors
/// [`StartError`] if a certificate or key cannot be used.
pub(crate) fn prepare(config: &GatewayConfig) -> Result<Factory, StartError> {
    let credentials = Credentials::new(config)?;
    Ok(Box::new(move |config| {
        Box::new(Coap::new(config, credentials.clone()))
    }))
}

/// The peer of a socket as the sender of messages.
fn sender(socket: Key, peer: PeerRef) -> Sender {
    let peer = peer.number();
    Sender { socket, peer }
}

impl End for Coap {
    fn listen(&mut self, ctx: &mut Ctx<'_>, at: &mut ListenAt<'_>) -> Result<(), StartError> {
        let config = &ctx.shared.config;
        let mut listen = |ctx: &mut Ctx<'_>, scheme| {
            at.listen(scheme, &config.listen, |at, port| ctx.io.bind_udp(at, port))
        };
        if let Some(socket) = listen(ctx, "coap")? {
            self.endpoint.add_socket(ctx, socket, None);
        }
        if let Some(dtls) = &config.coaps
            && let Some(socket) = listen(ctx, "coaps")?
        {
            let secure = Secure::new(dtls, &self.credentials).ok_or(StartError::Randomness)?;
            self.endpoint.add_socket(ctx, socket, Some(secure));
        }
        Ok(())
    }

    /// Takes a datagram, and the messages in it.
    fn datagram(&mut self, work: &mut Work<'_>, datagram: Datagram<'_>) {
        let ctx = &mut work.ctx;
        if let Some(peer) = self.endpoint.sender(ctx, &datagram) {
            if self.endpoint.is_secure(datagram.socket) {
                let mut records = self.endpoint.records(ctx, peer, datagram);
                while let Some(message) = self.endpoint.next_message(&mut work.ctx, &mut records) {
                    self.message(work, peer, message);
                }
            } else {
                self.message(work, peer, datagram.bytes);
            }
        }
        self.end_gone(&mut work.ctx);
    }

    fn due(&mut self, work: &mut Work<'_>, timer: Timer) {
        match timer {
            Timer::Peer(peer) => self.wake_peer(work, peer),
            Timer::Query(query) => requests::query_due(self, &mut work.ctx, query),
            Timer::Link(_) | Timer::Lifetime(_) | Timer::Batch(_) => {}
        }
    }

    fn respond(&mut self, work: &mut Work<'_>, request: Request, answer: Answer) {
        if let Request::Coap(request) = request {
            requests::answer(self, &mut work.ctx, request, answer);
        }
    }

    fn hand_over(&mut self, ctx: &mut Ctx<'_>, to: QueryRef, command: &Outgoing<'_>) -> Handed {
        requests::hand_over(self, ctx, to, command)
    }

    /// Closes a part of the sessions of DTLS; CoAP alone knows no links.
    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64) {
        let sessions = self.endpoint.sessions();
        for peer in choose(sessions, seed, share, |peer| peer.number()) {
            work.ctx.counts().closed_links.more();
            self.endpoint.close_session(&mut work.ctx, peer);
        }
        self.end_gone(&mut work.ctx);
    }

    fn turn(&mut self, work: &mut Work<'_>, is_last: bool) {
        self.endpoint.count_datagrams(&mut work.ctx, is_last);
        if is_last {
            requests::give_up_queries(self, &work.ctx);
        }
    }
}

impl Coap {
    fn new(config: &GatewayConfig, credentials: Credentials) -> Self {
        Self {
            endpoint: Endpoint::new(config),
            queries: Queries::new(Protocol::Coap),
            credentials,
        }
    }

    fn message(&mut self, work: &mut Work<'_>, from: PeerRef, bytes: &[u8]) {
        let receive =
            |session: &mut coap::Server, now, out: &mut Vec<u8>| session.receive(now, bytes, out);
        if let Some(event) = self.endpoint.drive(&mut work.ctx, from, receive) {
            self.handle(work, from, &event);
        }
        self.endpoint.look_after(&mut work.ctx, from);
    }

    fn wake_peer(&mut self, work: &mut Work<'_>, of: PeerRef) {
        if let Some(peer) = self.endpoint.peer(of) {
            peer.alarm = None;
        }
        while let Some(event) = self.endpoint.drive(&mut work.ctx, of, |session, now, out| {
            session.wake(now, out)
        }) {
            self.handle(work, of, &event);
        }
        self.endpoint.expire_session(&mut work.ctx, of);
        self.endpoint.look_after(&mut work.ctx, of);
        self.end_gone(&mut work.ctx);
    }

    /// Ends the queries of peers that are gone: commands find nobody.
    fn end_gone(&mut self, ctx: &mut Ctx<'_>) {
        for peer in self.endpoint.take_gone() {
            self.queries.end_of(ctx, peer);
        }
    }

    fn handle(&mut self, work: &mut Work<'_>, of: PeerRef, event: &ServerEvent<'_>) {
        match event {
            ServerEvent::Request(incoming) => self.request(work, of, incoming),
            ServerEvent::Acknowledged { .. } => work.ctx.counts().separate_acknowledged.more(),
            ServerEvent::Reset { ticket } | ServerEvent::TimedOut { ticket } => {
                work.ctx.counts().separate_refused.more();
                if *ticket == NOTIFICATION
                    && let Some(peer) = self.endpoint.peer(of)
                {
                    // RFC 7641 section 4.5.
                    let sender = sender(peer.socket, of);
                    self.queries.end_observations_of(&work.ctx, sender);
                }
            }
            ServerEvent::Retransmitted => {}
        }
    }

    fn request(&mut self, work: &mut Work<'_>, from: PeerRef, incoming: &coap::Incoming<'_>) {
        let name = self.endpoint.peer(from).and_then(|peer| peer.name.clone());
        let came = Came {
            request: RequestRef {
                peer: from,
                pending: incoming.pending,
            },
            name: name.as_deref(),
            incoming: read(incoming),
        };
        requests::take(self, work, &came);
    }
}

impl RequestEnd for Coap {
    type Request = RequestRef;

    const PROTOCOL: Protocol = Protocol::Coap;
    const POSTPONED_AFTER: Option<Micros> = Some(ACKNOWLEDGED_AFTER);

    fn queries(&mut self) -> &mut Queries<RequestRef> {
        &mut self.queries
    }

    fn sender(&mut self, request: RequestRef) -> Option<Sender> {
        let peer = self.endpoint.peer(request.peer)?;
        Some(sender(peer.socket, request.peer))
    }

    fn is_answered(request: RequestRef) -> bool {
        request.pending.is_confirmable()
    }

    fn name(asking: Asking<RequestRef>) -> Request {
        Request::Coap(asking)
    }

    fn accept(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, copies: u8) {
        let accepted = ctx.shared.config.dialect.requests(Protocol::Coap).accepted;
        let code = Code::of_status(accepted.0).unwrap_or(Code::CHANGED);
        let reply = Reply::new(code, &[], b"");
        if self.endpoint.respond(ctx, to, &reply, copies) {
            ctx.counts().accepted.more();
        }
    }

    /// An empty ACK announces a separate answer (RFC 7252 section 5.2.2).
    fn postpone(&mut self, ctx: &mut Ctx<'_>, to: RequestRef) -> Option<RequestRef> {
        let pending = self.endpoint.separate(ctx, to)?;
        Some(RequestRef { pending, ..to })
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, content: &Content<'_>) -> bool {
        let fields = &content.fields;
        let values: Vec<Uint> = fields.iter().map(number).collect();
        let options = fields.iter().zip(&values);
        let number = content.notification.map(Uint::of);
        let observe = number.iter();
        let observe = observe.map(|number| Opt::new(OptionNumber::OBSERVE, number));
        let options = options.filter_map(option).chain(observe);
        let mut options: Vec<Opt<'_>> = options.collect();
        options.sort_by_key(|option| option.number);
        // A misbehaviour may have a code that CoAP has no room for.
        let code = Code::of_status(content.status.0).unwrap_or(Code::SERVICE_UNAVAILABLE);
        let reply = Reply {
            ticket: content.notification.map_or(0, |_| NOTIFICATION),
            ..Reply::new(code, &options, content.body)
        };
        self.endpoint.respond(ctx, to, &reply, content.copies)
    }

    fn observed(to: RequestRef) -> Option<RequestRef> {
        let pending = to.pending.observed();
        Some(RequestRef { pending, ..to })
    }
}

/// The request as the dialect reads it; none if its path or a parameter is no text.
fn read<'a>(incoming: &'a coap::Incoming<'_>) -> Option<Incoming<'a>> {
    let method = match incoming.method {
        Code::GET => Method::Get,
        Code::POST => Method::Post,
        Code::PUT => Method::Put,
        _ => Method::Other,
    };
    let mut came = Incoming::new(method, incoming.is_confirmable, &incoming.payload);
    let format = incoming.options.uint(OptionNumber::CONTENT_FORMAT);
    came.content_type = format.and_then(content_format::media_type);
    // 0 asks for notifications, 1 wants no more of them (RFC 7641 section 2).
    came.observes = incoming.options.uint(OptionNumber::OBSERVE) == Some(0);
    for segment in incoming.options.all(OptionNumber::URI_PATH) {
        came.segment(std::str::from_utf8(segment).ok()?);
    }
    for parameter in incoming.options.all(OptionNumber::URI_QUERY) {
        came.parameter(std::str::from_utf8(parameter).ok()?);
    }
    Some(came)
}

fn number(field: &Field<'_>) -> Uint {
    match field {
        Field::ContentType(media_type) => {
            let format = content_format::of_media_type(media_type);
            Uint::of(u32::from(format.unwrap_or(content_format::OCTET_STREAM)))
        }
        Field::MaxAge(seconds) => Uint::of(*seconds),
        Field::PathSegment(_) | Field::Parameter(_) | Field::Header(..) => Uint::of(0),
    }
}

/// The option of a field; none for a media type that has no number.
fn option<'a>((field, number): (&Field<'a>, &'a Uint)) -> Option<Opt<'a>> {
    Some(match field {
        Field::PathSegment(segment) => Opt::text(OptionNumber::LOCATION_PATH, segment),
        Field::Parameter(parameter) => Opt::text(OptionNumber::LOCATION_QUERY, parameter),
        Field::MaxAge(_) => Opt::new(OptionNumber::MAX_AGE, number),
        Field::ContentType(media_type) => {
            content_format::of_media_type(media_type)?;
            Opt::new(OptionNumber::CONTENT_FORMAT, number)
        }
        Field::Header(..) => return None,
    })
}

#[cfg(test)]
mod tests;
