//! The protocol end of HTTP/1.1: what a request is to the dialect, and how it is answered.
//!
//! A connection has one request at a time. Requests behind it wait in its input, so that answers keep their
//! order however late one of them comes.

mod credentials;
mod link;
mod reading;
mod target;

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Key, ListenerId};
use muster_platform::{Field, Protocol, Refusal, Status};
use muster_protocol::http::{Reply, ServerEvent, ServerRequest, write_field};
use muster_transport::{ServerSpec, Servers, TlsServer};

use self::credentials::user_of;
use self::link::{Link, Login, Open};
use self::reading::read;
use self::target::Target;
use crate::client_certificates::device_of;
use crate::commands::{Handed, Outgoing};
use crate::config::GatewayConfig;
use crate::connections::Connections;
use crate::end::{End, Factory, Work, choose};
use crate::listen_addresses::ListenAt;
use crate::queries::Queries;
use crate::requests::{self, Asking, Came, Content, RequestEnd};
use crate::start_error::StartError;
use crate::thread::{Ctx, Pause};
use crate::uplink::{Alarm, Answer, Request, Sender, Timer};
use crate::waiter::QueryRef;

/// Bytes of the longest body where the dialect knows no limit: with its path it fits into a packet of MQTT that
/// consumers take, of 1 MiB.
const BODY_MAX: u32 = 1_000_000;
/// Longest wait for a handshake, or for the rest of a request that has begun: what nginx waits.
const PATIENCE: Micros = Micros::from_secs(60);

const WRONG_CREDENTIALS: Refusal = refusal(401, "the credentials are not known");
const NO_SUCH_METHOD: Refusal = refusal(501, "there is no such method");
const REQUEST_TIMEOUT: u16 = 408;

/// The methods of RFC 9110 section 9 and RFC 5789; a server knows of no others (section 15.6.2).
const METHODS: [&str; 9] = [
    "POST", "PUT", "GET", "HEAD", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
];

const fn refusal(status: u16, why: &'static str) -> Refusal {
    let status = Status(status);
    Refusal { status, why }
}

/// State of one thread's devices over HTTP.
#[derive(Debug)]
struct Http {
    links: Connections<Link>,
    queries: Queries<Key>,
    /// Connections that end once their last bytes went out.
    done: Vec<Key>,
    plain: Servers,
    /// Source of the layers of a listener for TLS, if there is one.
    secure: Option<Servers>,
    secured: Option<ListenerId>,
    body_max: u32,
    /// Buffers of the request at work and of its answer.
    target: Target,
    fields: Vec<u8>,
}

/// Reads the certificates that the ends of all threads share.
///
/// # Errors
/// [`StartError`] if a certificate or key cannot be used.
pub(crate) fn prepare(config: &GatewayConfig) -> Result<Factory, StartError> {
    let layers = |tls| {
        Servers::new(&ServerSpec {
            tls,
            is_websocket: false,
        })
    };
    let plain = layers(None)?;
    let tls = config.https.as_ref().map(|tls| layers(Some(tls.server())));
    let secure = tls.transpose()?;
    Ok(Box::new(move |config| {
        Box::new(Http {
            links: Connections::default(),
            queries: Queries::new(Protocol::Http),
            done: Vec::new(),
            plain: plain.clone(),
            secure: secure.clone(),
            secured: None,
            body_max: config.max_payload(Protocol::Http).unwrap_or(BODY_MAX),
            target: Target::default(),
            fields: Vec::new(),
        })
    }))
}

impl End for Http {
    fn listen(&mut self, ctx: &mut Ctx<'_>, at: &mut ListenAt<'_>) -> Result<(), StartError> {
        ctx.listen(("http", Protocol::Http), at)?;
        if self.secure.is_some() {
            self.secured = ctx.listen(("https", Protocol::Http), at)?;
        }
        Ok(())
    }

    fn accepted(&mut self, work: &mut Work<'_>, key: Key, at: ListenerId) {
        let secure = self.secure.as_ref().filter(|_| self.secured == Some(at));
        let layer = secure.unwrap_or(&self.plain).layer();
        let link = Link::new(key, self.body_max, layer);
        let is_opening = !link.wire.is_open();
        work.ctx.counts().http_connections.more();
        self.links.insert(link);
        self.watch(&mut work.ctx, key, is_opening);
    }

    fn received(&mut self, work: &mut Work<'_>, key: Key, bytes: &mut [u8]) -> usize {
        let Some(link) = self.links.get(key) else {
            return bytes.len();
        };
        let fed = link.wire.receive(&work.ctx, bytes);
        if link.wire.is_open() {
            note_certificate(&work.ctx, link);
        }
        let mut input = &bytes[..fed.plain];
        self.take_requests(work, key, &mut input);
        let left = input.len();
        let ctx = &mut work.ctx;
        let Some(link) = self.links.get(key) else {
            return bytes.len();
        };
        let used = link.wire.keep(bytes, &fed, fed.plain - left);
        // A connection that is not read yet has more to say than its last word.
        let has_ended = link.wire.has_ended && !ctx.is_paused(key);
        let is_unanswered = link.open.is_some();
        let is_begun = !is_unanswered && !ctx.is_paused(key) && link.is_begun(left);
        self.links.mark_dirty(key);
        if has_ended {
            self.end(ctx, key);
        } else {
            // What is left is presented again once the request before it is answered.
            ctx.set_pause(key, Pause::Answer, is_unanswered && left > 0);
            self.watch(ctx, key, is_begun);
            self.links.throttle(ctx, key);
        }
        used
    }

    fn flushed(&mut self, work: &mut Work<'_>, key: Key) {
        if self.links.flushed(&mut work.ctx, key) {
            self.links.throttle(&mut work.ctx, key);
        }
    }

    fn closed(&mut self, work: &mut Work<'_>, key: Key) {
        self.end(&mut work.ctx, key);
    }

    fn hand_over(&mut self, ctx: &mut Ctx<'_>, to: QueryRef, command: &Outgoing<'_>) -> Handed {
        requests::hand_over(self, ctx, to, command)
    }

    fn due(&mut self, work: &mut Work<'_>, timer: Timer) {
        match timer {
            Timer::Link(key) => self.give_up(&mut work.ctx, key),
            Timer::Query(query) => requests::query_due(self, &mut work.ctx, query),
            Timer::Lifetime(_) | Timer::Batch(_) | Timer::Peer(_) => {}
        }
    }

    fn respond(&mut self, work: &mut Work<'_>, request: Request, answer: Answer) {
        if let Request::Http(request) = request {
            requests::answer(self, &mut work.ctx, request, answer);
        }
    }

    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64) {
        let links = self.links.iter().map(|link| link.key).collect();
        for key in choose(links, seed, share, |key: &Key| key.index() as u64) {
            work.ctx.counts().closed_links.more();
            self.end(&mut work.ctx, key);
        }
    }

    fn turn(&mut self, work: &mut Work<'_>, is_last: bool) {
        if is_last {
            return requests::give_up_queries(self, &work.ctx);
        }
        let ctx = &mut work.ctx;
        for exhausted in self.links.flush(ctx) {
            self.end(ctx, exhausted);
        }
        for key in std::mem::take(&mut self.done) {
            match self.links.get(key) {
                // The kernel has not taken what came before.
                Some(link) if !link.wire.out.is_empty() => self.done.push(key),
                Some(_) => self.end(ctx, key),
                None => {}
            }
        }
    }
}

/// Notes the certificate that a client showed, once its connection is open.
fn note_certificate(ctx: &Ctx<'_>, link: &mut Link) {
    if std::mem::replace(&mut link.has_opened, true) {
        return;
    }
    if let Some(peer) = link.wire.tls().and_then(TlsServer::peer) {
        let name = device_of(&peer.subject);
        let shown = name.as_deref().unwrap_or_default();
        ctx.shared.account.certificate(peer, shown);
        link.certified = name.map(Arc::from);
    }
}

impl Http {
    /// Takes requests as long as the connection may be read, each once that before it is answered.
    fn take_requests(&mut self, work: &mut Work<'_>, key: Key, input: &mut &[u8]) {
        while !work.ctx.is_paused(key)
            && let Some(link) = self.links.get(key)
            && link.open.is_none()
            && let Some(event) = link.server.poll(input, &mut link.wire.out)
        {
            match event {
                ServerEvent::Request(request) => {
                    link.open = Some(Open {
                        is_last: request.is_last,
                        is_head: request.method() == "HEAD",
                    });
                    self.request(work, key, &request);
                }
                ServerEvent::Malformed(malformed) => {
                    let counts = work.ctx.counts();
                    // A body that is too long has been understood.
                    match malformed.status() {
                        413 => counts.refused_requests.more(),
                        _ => counts.malformed.more(),
                    }
                    self.done.push(key);
                }
            }
        }
    }

    fn request(&mut self, work: &mut Work<'_>, key: Key, request: &ServerRequest<'_>) {
        let ctx = &mut work.ctx;
        if !METHODS.contains(&request.method()) {
            return requests::refuse(self, ctx, key, &NO_SUCH_METHOD);
        }
        let requests = ctx.shared.config.dialect.requests(Protocol::Http);
        let name = match requests.path_token {
            Some(_) => Ok(None),
            None => self.log_in(ctx, key, request),
        };
        let Ok(name) = name else {
            return requests::refuse(self, ctx, key, &WRONG_CREDENTIALS);
        };
        let mut target = std::mem::take(&mut self.target);
        let came = Came {
            request: key,
            name: name.as_deref(),
            incoming: read(request, &mut target),
        };
        requests::take(self, work, &came);
        self.target = target;
    }

    /// The name in the credentials of a request; none without any.
    ///
    /// # Errors
    /// The gateway does not know them.
    fn log_in(
        &mut self,
        ctx: &Ctx<'_>,
        key: Key,
        request: &ServerRequest<'_>,
    ) -> Result<Option<Arc<str>>, ()> {
        let Some(link) = self.links.get(key) else {
            return Err(());
        };
        let Some(shown) = request.head.field("authorization") else {
            let config = &ctx.shared.config;
            let is_known = link.certified.is_some() || config.role(None, None).is_some();
            return is_known.then(|| link.certified.clone()).ok_or(());
        };
        if let Some(login) = &link.login
            && *login.shown == *shown
        {
            return Ok(Some(Arc::clone(&login.name)));
        }
        let user = user_of(shown).ok_or(())?;
        let role = ctx
            .shared
            .config
            .role(Some(&user.name), Some(&user.password));
        role.ok_or(())?;
        let name: Arc<str> = user.name.into();
        link.login = Some(Login {
            shown: shown.into(),
            name: Arc::clone(&name),
        });
        Ok(Some(name))
    }

    /// Answers the open request of a connection, as often as `copies` says; false if it is gone.
    fn reply(&mut self, ctx: &mut Ctx<'_>, to: Key, reply: &Reply<'_>, copies: u8) -> bool {
        let link = self.links.get(to);
        let Some((open, link)) = link.and_then(|link| Some((link.open.take()?, link))) else {
            ctx.counts().unanswerable.more();
            return false;
        };
        let requests = ctx.shared.config.dialect.requests(Protocol::Http);
        let is_last = open.is_last || (requests.closes)(Status(reply.status));
        let reply = Reply {
            is_last,
            // RFC 9110 section 9.3.2.
            body: if open.is_head { &[] } else { reply.body },
            ..*reply
        };
        for _ in 0..copies {
            reply.write(&mut link.wire.out);
        }
        self.links.mark_dirty(to);
        if is_last {
            self.done.push(to);
        } else {
            ctx.resume(to, Pause::Answer);
        }
        true
    }

    /// Has a connection looked after while something of it is awaited, and no longer.
    fn watch(&mut self, ctx: &mut Ctx<'_>, key: Key, is_awaited: bool) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        match (is_awaited, link.alarm.is_some()) {
            (true, false) => {
                let alarm = Alarm::End(Protocol::Http, Timer::Link(key));
                link.alarm = Some(ctx.set_alarm(ctx.now() + PATIENCE, alarm));
            }
            (false, true) => ctx.cancel_alarm(link.alarm.take()),
            (true, true) | (false, false) => {}
        }
    }

    /// A handshake or a request has taken too long.
    fn give_up(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        link.alarm = None;
        ctx.counts().requests_timed_out.more();
        let reply = Reply {
            is_last: true,
            ..Reply::new(REQUEST_TIMEOUT)
        };
        if link.wire.is_open() {
            reply.write(&mut link.wire.out);
        }
        self.end(ctx, key);
    }

    fn end(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(mut link) = self.links.take(key) else {
            return;
        };
        ctx.cancel_alarm(link.alarm.take());
        link.wire.close(ctx.io, key);
        ctx.forget_socket(key);
        let sender = Sender::link(key);
        ctx.note_gone(sender);
        self.queries.end_of(ctx, sender);
    }
}

impl RequestEnd for Http {
    type Request = Key;

    const PROTOCOL: Protocol = Protocol::Http;
    const POSTPONED_AFTER: Option<Micros> = None;

    fn queries(&mut self) -> &mut Queries<Key> {
        &mut self.queries
    }

    fn sender(&mut self, request: Key) -> Option<Sender> {
        self.links.get(request).map(|link| Sender::link(link.key))
    }

    fn is_answered(_request: Key) -> bool {
        true
    }

    fn name(asking: Asking<Key>) -> Request {
        Request::Http(asking)
    }

    fn accept(&mut self, ctx: &mut Ctx<'_>, to: Key, copies: u8) {
        let requests = ctx.shared.config.dialect.requests(Protocol::Http);
        if self.reply(ctx, to, &Reply::new(requests.accepted.0), copies) {
            ctx.counts().accepted.more();
        }
    }

    /// An answer may come at any time.
    fn postpone(&mut self, ctx: &mut Ctx<'_>, to: Key) -> Option<Key> {
        let link = self.links.get(to).map(|link| link.key);
        if link.is_none() {
            ctx.counts().unanswerable.more();
        }
        link
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, to: Key, content: &Content<'_>) -> bool {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        let requests = ctx.shared.config.dialect.requests(Protocol::Http);
        let are_written = write_fields(content, requests.methods, &mut fields);
        let is_written = if are_written {
            let reply = Reply {
                fields: &fields,
                body: content.body,
                ..Reply::new(content.status.0)
            };
            self.reply(ctx, to, &reply, content.copies)
        } else {
            self.accept(ctx, to, content.copies);
            false
        };
        self.fields = fields;
        is_written
    }
}

/// Writes the fields of an answer; false if one of them is none that HTTP can carry. `methods` are those that paths
/// take.
fn write_fields(content: &Content<'_>, methods: &str, out: &mut Vec<u8>) -> bool {
    let mut write = |name: &str, value: &[u8]| write_field(out, name, value).is_ok();
    let own = match content.status.0 {
        // RFC 9110 sections 11.6.1 and 15.5.6.
        401 => write(
            "WWW-Authenticate",
            b"Basic realm=\"gateway\", charset=\"UTF-8\"",
        ),
        405 => write("Allow", methods.as_bytes()),
        _ => true,
    };
    let mut fields = content.fields.iter();
    own && fields.all(|field| match field {
        Field::ContentType(media_type) => write("Content-Type", media_type.as_bytes()),
        Field::MaxAge(seconds) => write("Retry-After", seconds.to_string().as_bytes()),
        Field::Header(name, value) => write(name, value.as_bytes()),
        Field::PathSegment(_) | Field::Parameter(_) => true,
    })
}
