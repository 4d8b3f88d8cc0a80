//! The protocol end of CoAP: what a request is to the dialect, and how it is answered.

pub(crate) mod bounds;
mod endpoint;
mod guard;
mod peers;
mod queries;
mod querying;
pub(crate) mod request;

use muster_model::mix;
use muster_net::{Io, Key};
use muster_platform::{
    Field, Identity, Incoming, Method, Protocol, Refusal, Status, Upload, Wanted,
};
use muster_protocol::coap::{
    self, Code, Opt, OptionNumber, Pending, Reply, ServerEvent, Uint, content_format,
};
use muster_protocol::mqtt::{Publish, Qos};

use self::endpoint::Endpoint;
use self::queries::Queries;
use self::request::{PeerRef, RequestRef};
use crate::broker::Broker;
use crate::config::GatewayConfig;
use crate::fault::Response;
use crate::lock::locked;
use crate::message::Parcel;
use crate::router::Router;
use crate::shared::Shared;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asker, Origin};

pub(crate) use self::endpoint::Datagram;
pub(crate) use self::guard::{Credentials, Secure};

/// A path or a parameter that is no text.
const NO_TEXT: Refusal = Refusal {
    status: Status::new(4, 0),
    why: "the path or a parameter is not UTF-8",
};
/// A device that the gateway was not told of.
const UNKNOWN: Refusal = Refusal {
    status: Status::new(4, 4),
    why: "the device is not registered",
};

/// State of one thread's devices over CoAP.
#[derive(Debug)]
pub(crate) struct Coap {
    endpoint: Endpoint,
    queries: Queries,
}

/// An answer of the dialect: its code, what stands beside it, and a body.
#[derive(Debug)]
struct Content<'a> {
    status: Status,
    fields: Vec<Field<'a>>,
    body: &'a [u8],
}

/// A request, and the topic that it surfaces on.
struct Request<'a> {
    from: PeerRef,
    incoming: &'a coap::Incoming<'a>,
    topic: &'a str,
}

impl Coap {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        Self {
            endpoint: Endpoint::new(config),
            queries: Queries::default(),
        }
    }

    /// Hears devices by a socket from now on.
    pub(crate) fn listen(&mut self, io: &mut Io, key: Key) {
        self.endpoint.add_socket(io, key);
    }

    /// The same over DTLS.
    pub(crate) fn listen_secure(&mut self, io: &mut Io, key: Key, secure: Secure) {
        self.endpoint.add_secure_socket(io, key, secure);
    }

    pub(crate) fn count_datagrams(&self, ctx: &mut Ctx<'_>, is_last: bool) {
        self.endpoint.count_datagrams(ctx, is_last);
    }

    /// Takes a datagram, and the messages in it.
    pub(crate) fn datagram(
        &mut self,
        ctx: &mut Ctx<'_>,
        router: &mut Router,
        datagram: Datagram<'_>,
    ) {
        let Some(peer) = self.endpoint.sender(ctx, &datagram) else {
            return self.end_gone(ctx);
        };
        if self.endpoint.is_secure(datagram.socket) {
            let mut records = self.endpoint.records(ctx, peer, datagram);
            while let Some(message) = self.endpoint.next_message(ctx, &mut records) {
                self.message(ctx, router, peer, message);
            }
        } else {
            self.message(ctx, router, peer, datagram.bytes);
        }
        self.end_gone(ctx);
    }

    fn message(&mut self, ctx: &mut Ctx<'_>, router: &mut Router, from: PeerRef, bytes: &[u8]) {
        let event = self.endpoint.drive(ctx, from, |session, now, out| {
            session.receive(now, bytes, out)
        });
        if let Some(event) = event {
            self.handle(ctx, router, from, &event);
        }
        self.endpoint.look_after(ctx, from);
    }

    /// Something is due of a peer.
    pub(crate) fn wake_peer(&mut self, ctx: &mut Ctx<'_>, router: &mut Router, of: PeerRef) {
        if let Some(peer) = self.endpoint.peer(of) {
            peer.alarm = None;
        }
        while let Some(event) = self
            .endpoint
            .drive(ctx, of, |session, now, out| session.wake(now, out))
        {
            self.handle(ctx, router, of, &event);
        }
        self.endpoint.expire_session(ctx, of);
        self.endpoint.look_after(ctx, of);
        self.end_gone(ctx);
    }

    /// Closes a part of the sessions of DTLS; CoAP alone knows no links.
    pub(crate) fn close_share(&mut self, ctx: &mut Ctx<'_>, seed: u64, share: f64) {
        let mut sessions = self.endpoint.sessions();
        sessions.sort_by_key(|peer| mix(seed, peer.number()));
        let count = (sessions.len() as f64 * share).round() as usize;
        for peer in sessions.into_iter().take(count) {
            ctx.counts().closed_links.more();
            self.endpoint.close_session(ctx, peer);
        }
        self.end_gone(ctx);
    }

    /// Ends the queries of peers that are gone: commands find nobody.
    fn end_gone(&mut self, ctx: &mut Ctx<'_>) {
        for peer in self.endpoint.take_gone() {
            self.end_queries(ctx, peer);
        }
    }

    /// Handles an event of a peer's session.
    fn handle(
        &mut self,
        ctx: &mut Ctx<'_>,
        router: &mut Router,
        of: PeerRef,
        event: &ServerEvent<'_>,
    ) {
        match event {
            ServerEvent::Request(incoming) => self.request(ctx, router, of, incoming),
            ServerEvent::Acknowledged { .. } => ctx.counts().separate_acknowledged.more(),
            ServerEvent::Reset { .. } | ServerEvent::TimedOut { .. } => {
                ctx.counts().separate_refused.more();
            }
            ServerEvent::Retransmitted => {}
        }
    }

    fn request(
        &mut self,
        ctx: &mut Ctx<'_>,
        router: &mut Router,
        from: PeerRef,
        incoming: &coap::Incoming<'_>,
    ) {
        let name = self.endpoint.peer(from).and_then(|peer| peer.name.clone());
        let identity = name.as_deref().and_then(Identity::parse);
        let who = identity.map(|identity| muster_platform::Peer {
            tenant: identity.tenant,
            device: identity.auth_id,
        });
        let hear = ctx.shared.config.dialect.requests(Protocol::Coap).hear;
        let mut topic = std::mem::take(&mut ctx.scratch().topic);
        topic.clear();
        let wanted = match read(incoming) {
            None => Wanted::Refused(NO_TEXT),
            Some(came) => of_known(ctx.shared, hear(&came, who.as_ref(), &mut topic)),
        };
        let request = Request {
            from,
            incoming,
            topic: &topic,
        };
        match wanted {
            Wanted::Upload(upload) => self.upload(ctx, router, &request, &upload),
            Wanted::Reply(_) => self.reply(ctx, router.broker(), &request),
            Wanted::Refused(refusal) => {
                ctx.counts().refused_requests.more();
                self.decline(ctx, from, incoming.pending, &refusal);
            }
        }
        ctx.scratch().topic = topic;
    }

    /// A message of a device on its way to whoever subscribed to the topic that it surfaces on.
    fn upload(
        &mut self,
        ctx: &mut Ctx<'_>,
        router: &mut Router,
        request: &Request<'_>,
        upload: &Upload<'_>,
    ) {
        let Request { from, incoming, .. } = *request;
        ctx.counts().received.more();
        if let Some(gateway) = upload.gateway {
            let mut waiting = locked(&ctx.shared.waiting);
            waiting.speaks_for(upload.tenant, gateway, upload.device);
        }
        let Some(socket) = self.endpoint.peer(from).map(|peer| peer.socket) else {
            return;
        };
        let mut asker = RequestRef {
            peer: from,
            pending: incoming.pending,
            query: None,
        };
        if upload.ttd_s.is_some() {
            asker.query = self.note_query(from, incoming.pending, upload);
            if asker.query.is_none() {
                let code = ctx.shared.config.dialect.server.refusal;
                return self.refuse_upload(ctx, asker, code);
            }
        }
        let ttd = upload.ttd_s.map(|ttd| ttd.to_string());
        let ttd = ttd.as_deref().map(|ttd| ("ttd", ttd));
        let publish = Publish {
            // What is confirmable travels on at least once.
            qos: match incoming.is_confirmable {
                true => Qos::AtLeastOnce,
                false => Qos::AtMostOnce,
            },
            content_type: upload.content_type,
            user_properties: ttd.as_slice(),
            ..Publish::new(request.topic, &incoming.payload)
        };
        let origin = Origin {
            asker: Asker::Request(asker),
            socket,
            session: None,
            is_again: false,
        };
        if let Some(answer) = router.uplink(ctx, &publish, origin) {
            self.respond(ctx, asker, answer);
        }
    }

    /// A device's reply to a command: routed as any message, and never treated badly.
    fn reply(&mut self, ctx: &mut Ctx<'_>, broker: &mut Broker, request: &Request<'_>) {
        ctx.counts().replies.more();
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(request.topic, &request.incoming.payload)
        };
        broker.publish(ctx, Parcel::new(&publish, None));
        self.endpoint
            .change(ctx, request.from, request.incoming.pending);
    }

    /// Answers an uplink.
    pub(crate) fn respond(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, answer: Answer) {
        let RequestRef { peer, pending, .. } = to;
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
                self.endpoint.change(ctx, peer, pending);
            }
            Response::AcceptTwice => self.endpoint.change_twice(ctx, peer, pending),
            // Who asked hears at once that the answer comes separately (RFC 7252 section 5.2.2).
            Response::AcceptLate(by) => {
                if let Some(pending) = self.endpoint.separate(ctx, peer, pending) {
                    let query = None;
                    let asker = RequestRef {
                        peer,
                        pending,
                        query,
                    };
                    let late = answer.late(Asker::Request(asker));
                    ctx.set_alarm(ctx.now() + by, late);
                }
            }
            Response::Reject(code) => self.refuse_upload(ctx, to, code),
            Response::Silence if pending.is_confirmable() => ctx.counts().unanswered.more(),
            Response::Silence => {}
        }
    }

    /// Answers no to an uplink, with a code as in HTTP.
    fn refuse_upload(&mut self, ctx: &mut Ctx<'_>, to: RequestRef, code: u16) {
        let status = Status::of_http(code).unwrap_or(Refusal::UNAVAILABLE.status);
        let why = "refused on purpose";
        if self.decline(ctx, to.peer, to.pending, &Refusal { status, why }) {
            ctx.counts().rejected.more();
        }
    }

    /// Answers no; whether that could be said.
    fn decline(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: PeerRef,
        pending: Pending,
        refusal: &Refusal,
    ) -> bool {
        let content = Content {
            status: refusal.status,
            fields: refusal.fields().collect(),
            body: refusal.why.as_bytes(),
        };
        self.respond_with(ctx, to, pending, &content)
    }

    /// Sends the answer; returns whether it could be sent.
    fn respond_with(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: PeerRef,
        pending: Pending,
        content: &Content<'_>,
    ) -> bool {
        let fields = &content.fields;
        let values: Vec<Uint> = fields.iter().map(number).collect();
        let options = fields.iter().zip(&values);
        let mut options: Vec<Opt<'_>> = options.filter_map(option).collect();
        options.sort_by_key(|option| option.number);
        let code = Code::new(content.status.class, content.status.detail);
        let reply = Reply::new(code, &options, content.body);
        self.endpoint.respond(ctx, to, pending, &reply)
    }
}

/// Returns the request, or its refusal if the device is not known.
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

/// The number that a field holds.
fn number(field: &Field<'_>) -> Uint {
    match field {
        Field::ContentType(media_type) => {
            let format = content_format::of_media_type(media_type);
            Uint::of(u32::from(format.unwrap_or(content_format::OCTET_STREAM)))
        }
        Field::MaxAge(seconds) => Uint::of(*seconds),
        Field::PathSegment(_) | Field::Parameter(_) => Uint::of(0),
    }
}

/// The option of a field; a media type that has no number is not told.
fn option<'a>((field, number): (&Field<'a>, &'a Uint)) -> Option<Opt<'a>> {
    Some(match field {
        Field::PathSegment(segment) => Opt::text(OptionNumber::LOCATION_PATH, segment),
        Field::Parameter(parameter) => Opt::text(OptionNumber::LOCATION_QUERY, parameter),
        Field::MaxAge(_) => Opt::new(OptionNumber::MAX_AGE, number),
        Field::ContentType(media_type) => {
            content_format::of_media_type(media_type)?;
            Opt::new(OptionNumber::CONTENT_FORMAT, number)
        }
    })
}

#[cfg(test)]
mod tests;
