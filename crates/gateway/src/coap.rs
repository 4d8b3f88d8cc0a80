//! The protocol end of CoAP: what a request is to the dialect, and how it is answered.

pub(crate) mod bounds;
mod endpoint;
mod guard;
mod peers;
mod queries;
mod querying;
pub(crate) mod request;

use muster_model::mix;
use muster_net::{Key, PortUse};
use muster_platform::{
    Field, Identity, Incoming, Method, Protocol, Refusal, Status, Upload, Wanted,
};
use muster_protocol::coap::{
    self, Code, Opt, OptionNumber, Reply, ServerEvent, Uint, content_format,
};
use muster_protocol::mqtt::{Publish, Qos};

use self::endpoint::Endpoint;
use self::guard::{Credentials, Secure};
use self::queries::Queries;
use self::request::{PeerRef, RequestRef};
use crate::commands::{commanded, note_undelivered};
use crate::config::GatewayConfig;
use crate::end::{Datagram, End, Factory, Work};
use crate::fault::Response;
use crate::listen_addresses::ListenAddresses;
use crate::lock::locked;
use crate::message::{Message, Parcel};
use crate::shared::Shared;
use crate::start_error::StartError;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asker, Origin, Request, Sender, Timer};
use crate::waiter::QueryRef;

/// A path or a parameter that is no text.
const NO_TEXT: Refusal = Refusal {
    status: Status(400),
    why: "the path or a parameter is not UTF-8",
};
/// A device that the gateway does not know.
const UNKNOWN: Refusal = Refusal {
    status: Status(404),
    why: "the device is not registered",
};

/// State of one thread's devices over CoAP.
#[derive(Debug)]
struct Coap {
    endpoint: Endpoint,
    queries: Queries,
    credentials: Credentials,
}

/// An answer of the dialect: its code, its fields and a body.
#[derive(Debug)]
struct Content<'a> {
    status: Status,
    fields: Vec<Field<'a>>,
    body: &'a [u8],
}

/// A request, and the topic that it surfaces on.
struct Surfaced<'a> {
    from: PeerRef,
    incoming: &'a coap::Incoming<'a>,
    topic: &'a str,
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

const fn asker(request: RequestRef) -> Asker {
    let (protocol, request) = (Protocol::Coap, Request::Coap(request));
    Asker { protocol, request }
}

impl End for Coap {
    fn listen(
        &mut self,
        ctx: &mut Ctx<'_>,
        port: PortUse,
        addresses: &mut ListenAddresses,
    ) -> Result<(), StartError> {
        let config = &ctx.shared.config;
        let mut listen = |ctx: &mut Ctx<'_>, scheme| {
            addresses.listen(scheme, &config.listen, |at| ctx.io.bind_udp(at, port))
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
            Timer::Query(query) => self.query_due(&mut work.ctx, query),
            Timer::Link(_) | Timer::Batch(_) => {}
        }
    }

    fn respond(&mut self, work: &mut Work<'_>, request: Request, answer: Answer) {
        if let Request::Coap(request) = request {
            self.answer(&mut work.ctx, request, answer);
        }
    }

    fn deliver(&mut self, work: &mut Work<'_>, to: QueryRef, message: &Message) -> bool {
        let Some(command) = commanded(&work.ctx, message) else {
            return false;
        };
        let answered = self.answer_with(&mut work.ctx, to, &command, message);
        if let Err((status, why)) = answered {
            note_undelivered(work, &command, status, why);
        }
        answered.is_ok()
    }

    /// Closes a part of the sessions of DTLS; CoAP alone knows no links.
    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64) {
        let mut sessions = self.endpoint.sessions();
        sessions.sort_by_key(|peer| mix(seed, peer.number()));
        let count = (sessions.len() as f64 * share).round() as usize;
        for peer in sessions.into_iter().take(count) {
            work.ctx.counts().closed_links.more();
            self.endpoint.close_session(&mut work.ctx, peer);
        }
        self.end_gone(&mut work.ctx);
    }

    fn turn(&mut self, work: &mut Work<'_>, is_last: bool) {
        self.endpoint.count_datagrams(&mut work.ctx, is_last);
    }
}

impl Coap {
    fn new(config: &GatewayConfig, credentials: Credentials) -> Self {
        Self {
            endpoint: Endpoint::new(config),
            queries: Queries::default(),
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
            self.end_queries(ctx, peer);
        }
    }

    fn handle(&mut self, work: &mut Work<'_>, of: PeerRef, event: &ServerEvent<'_>) {
        match event {
            ServerEvent::Request(incoming) => self.request(work, of, incoming),
            ServerEvent::Acknowledged { .. } => work.ctx.counts().separate_acknowledged.more(),
            ServerEvent::Reset { .. } | ServerEvent::TimedOut { .. } => {
                work.ctx.counts().separate_refused.more();
            }
            ServerEvent::Retransmitted => {}
        }
    }

    fn request(&mut self, work: &mut Work<'_>, from: PeerRef, incoming: &coap::Incoming<'_>) {
        let ctx = &mut work.ctx;
        let name = self.endpoint.peer(from).and_then(|peer| peer.name.clone());
        let identity = name.as_deref().and_then(Identity::parse);
        let who = identity.map(|identity| muster_platform::Peer {
            tenant: identity.tenant,
            device: identity.auth_id,
        });
        let requests = ctx.shared.config.dialect.requests(Protocol::Coap);
        let mut topic = std::mem::take(&mut ctx.scratch().topic);
        topic.clear();
        let wanted = match read(incoming) {
            None => Wanted::Refused(NO_TEXT),
            Some(came) => of_known(ctx.shared, (requests.read)(&came, who.as_ref(), &mut topic)),
        };
        let request = Surfaced {
            from,
            incoming,
            topic: &topic,
        };
        match wanted {
            Wanted::Upload(upload) => self.upload(work, &request, &upload),
            Wanted::Reply(_) => self.reply(work, &request),
            Wanted::Refused(refusal) => {
                ctx.counts().refused_requests.more();
                let to = RequestRef::new(from, incoming.pending);
                self.decline(ctx, to, &refusal);
            }
        }
        work.ctx.scratch().topic = topic;
    }

    /// A message of a device on its way to whoever subscribed to the topic that it surfaces on.
    fn upload(&mut self, work: &mut Work<'_>, request: &Surfaced<'_>, upload: &Upload<'_>) {
        let Surfaced { from, incoming, .. } = *request;
        let ctx = &mut work.ctx;
        ctx.counts().received.more();
        if let Some(gateway) = upload.gateway {
            let mut waiting = locked(&ctx.shared.waiting);
            waiting.speaks_for(upload.tenant, gateway, upload.device);
        }
        let Some(socket) = self.endpoint.peer(from).map(|peer| peer.socket) else {
            return;
        };
        let mut sent = RequestRef::new(from, incoming.pending);
        if upload.ttd_s.is_some() {
            sent.query = self.note_query(sent, upload);
            if sent.query.is_none() {
                let code = ctx.shared.config.dialect.server.refusal;
                return self.refuse_upload(ctx, sent, code);
            }
        }
        let ttd = upload.ttd_s.map(|ttd| ttd.to_string());
        let ttd = ttd.as_deref().map(|ttd| ("ttd", ttd));
        let publish = Publish {
            qos: match upload.is_at_least_once {
                true => Qos::AtLeastOnce,
                false => Qos::AtMostOnce,
            },
            content_type: upload.content_type,
            user_properties: ttd.as_slice(),
            ..Publish::new(request.topic, &incoming.payload)
        };
        let origin = Origin {
            asker: asker(sent),
            sender: sender(socket, from),
            is_answered: incoming.pending.is_confirmable(),
            is_routed: true,
            session: None,
            is_again: false,
        };
        if let Some(answer) = work.router.uplink(ctx, &publish, origin) {
            self.answer(ctx, sent, answer);
        }
    }

    /// A device's reply to a command: routed as any message, and never treated badly.
    fn reply(&mut self, work: &mut Work<'_>, request: &Surfaced<'_>) {
        let ctx = &mut work.ctx;
        ctx.counts().replies.more();
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(request.topic, &request.incoming.payload)
        };
        let parcel = Parcel::new(&publish, None);
        work.router.broker().publish(ctx, parcel);
        let to = RequestRef::new(request.from, request.incoming.pending);
        self.endpoint.change(ctx, to, 1);
    }

    /// Answers an uplink.
    fn answer(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, answer: Answer) {
        if let (Some(query), Response::Accept | Response::Garbled | Response::Misnamed) =
            (to.query, answer.response)
        {
            return self.wait_for_command(ctx, query);
        }
        // It is answered otherwise.
        if let Some(query) = to.query {
            self.queries.remove(query);
        }
        match answer.response {
            Response::Accept | Response::Garbled | Response::Misnamed => {
                self.endpoint.change(ctx, to, 1);
            }
            Response::AcceptTwice => self.endpoint.change(ctx, to, 2),
            // An empty ACK announces a separate answer (RFC 7252 section 5.2.2).
            Response::AcceptLate(by) => {
                if let Some(pending) = self.endpoint.separate(ctx, to) {
                    let late = answer.late(asker(RequestRef::new(to.peer, pending)));
                    ctx.set_alarm(ctx.now() + by, late);
                }
            }
            Response::Reject(code) => self.refuse_upload(ctx, to, code),
            Response::Silence if to.pending.is_confirmable() => ctx.counts().unanswered.more(),
            Response::Silence => {}
        }
    }

    /// Answers no to an uplink, with a code as in HTTP.
    fn refuse_upload(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, code: u16) {
        // A misbehaviour may have a code that CoAP has no room for.
        let status = Code::of_status(code).map_or(Refusal::UNAVAILABLE.status, |_| Status(code));
        let why = "refused on purpose";
        if self.decline(ctx, to, &Refusal { status, why }) {
            ctx.counts().rejected.more();
        }
    }

    /// Answers no; false if that could not be sent.
    fn decline(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, refusal: &Refusal) -> bool {
        let content = Content {
            status: refusal.status,
            fields: refusal.fields().collect(),
            body: refusal.why.as_bytes(),
        };
        self.respond_with(ctx, to, &content)
    }

    /// Sends the answer; returns whether it could be sent.
    fn respond_with(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, content: &Content<'_>) -> bool {
        let fields = &content.fields;
        let values: Vec<Uint> = fields.iter().map(number).collect();
        let options = fields.iter().zip(&values);
        let mut options: Vec<Opt<'_>> = options.filter_map(option).collect();
        options.sort_by_key(|option| option.number);
        let code = Code::of_status(content.status.0).unwrap_or(Code::SERVICE_UNAVAILABLE);
        let reply = Reply::new(code, &options, content.body);
        self.endpoint.respond(ctx, to, &reply, 1)
    }
}

/// Returns the request, or its refusal if the gateway does not know the device.
fn of_known<'a>(shared: &Shared, wanted: Wanted<'a>) -> Wanted<'a> {
    let (tenant, device) = match &wanted {
        Wanted::Upload(upload) => (upload.tenant, upload.device),
        Wanted::Reply(reply) => (reply.tenant, reply.device),
        Wanted::Refused(_) => return wanted,
    };
    match &shared.registered_devices {
        Some(known) if !known.has(tenant, device) => Wanted::Refused(UNKNOWN),
        Some(_) | None => wanted,
    }
}

/// The request as the dialect reads it; none if its path or a parameter is no text.
fn read<'a>(incoming: &'a coap::Incoming<'_>) -> Option<Incoming<'a>> {
    let method = match incoming.method {
        Code::POST => Method::Post,
        Code::PUT => Method::Put,
        _ => Method::Other,
    };
    let mut came = Incoming::new(method, incoming.is_confirmable, &incoming.payload);
    let format = incoming.options.uint(OptionNumber::CONTENT_FORMAT);
    came.content_type = format.and_then(content_format::media_type);
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
