//! Requests of devices, whatever protocol carries them: their meaning to the dialect, and their answers.

mod waiting;

use std::borrow::Cow;
use std::sync::Arc;

use muster_model::Micros;
use muster_platform::{
    Field, Identity, Incoming, LateRefusal, Peer, Protocol, Question, Refusal, Requests, Status,
    Upload, Wanted,
};
use muster_protocol::mqtt::{Publish, Qos};

use self::waiting::observe;
pub(crate) use self::waiting::{give_up_queries, hand_over, query_due};

use crate::config::Role;
use crate::end::Work;
use crate::fault::Response;
use crate::lock::locked;
use crate::message::Parcel;
use crate::queries::Queries;
use crate::shared::Shared;
use crate::thread::Ctx;
use crate::uplink::{Alarm, Answer, Asker, Origin, Request, Sender};
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

/// An end whose devices send requests: what depends on the protocol that carries them.
pub(crate) trait RequestEnd {
    /// Name of a request that is to be answered.
    type Request: Copy;

    const PROTOCOL: Protocol;
    /// Longest wait for a command before the request is postponed; none if it need not be.
    const POSTPONED_AFTER: Option<Micros>;

    fn queries(&mut self) -> &mut Queries<Self::Request>;

    /// The sender of a request; none if it is gone.
    fn sender(&mut self, request: Self::Request) -> Option<Sender>;

    /// True if the sender waits for an answer.
    fn is_answered(request: Self::Request) -> bool;

    /// A request of this end among those of all.
    fn name(asking: Asking<Self::Request>) -> Request;

    /// Answers yes, as often as `copies` says.
    fn accept(&mut self, ctx: &mut Ctx<'_>, to: Self::Request, copies: u8);

    /// Prepares for an answer that comes later: the name of the request from then on; none if its sender
    /// is gone.
    fn postpone(&mut self, ctx: &mut Ctx<'_>, to: Self::Request) -> Option<Self::Request>;

    /// The request as notifications answer it; none if each request has one answer.
    fn observed(_to: Self::Request) -> Option<Self::Request> {
        None
    }

    /// Answers; false if that could not be sent.
    fn write(&mut self, ctx: &mut Ctx<'_>, to: Self::Request, content: &Content<'_>) -> bool;
}

/// A request that is to be answered, and may wait for a command.
#[derive(Debug, Clone)]
pub(crate) struct Asking<R> {
    pub(crate) request: R,
    pub(crate) query: Option<QueryRef>,
    /// The answer to its question, and the media type of that; none if it has no question.
    body: Option<(&'static str, Arc<[u8]>)>,
    /// Its answer beyond a limit of its device; none if it is refused at once.
    beyond_limit: Option<LateRefusal>,
}

impl<R> Asking<R> {
    const fn new(request: R) -> Self {
        Self {
            request,
            query: None,
            body: None,
            beyond_limit: None,
        }
    }
}

/// A request that came.
#[derive(Debug)]
pub(crate) struct Came<'a, R> {
    pub(crate) request: R,
    /// The name in the credentials of its sender; none without any.
    pub(crate) name: Option<&'a str>,
    /// None if its path or a parameter is no text.
    pub(crate) incoming: Option<Incoming<'a>>,
}

/// An answer of the dialect: its code, its fields and a body.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub(crate) status: Status,
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) body: &'a [u8],
    /// Number of times that it is sent: a misbehaviour answers twice.
    pub(crate) copies: u8,
    /// The number that it has as a notification; none if it is none.
    pub(crate) notification: Option<u32>,
}

/// A request, and the topic that it surfaces on.
struct Surfaced<'a, R> {
    request: R,
    incoming: &'a Incoming<'a>,
    topic: &'a str,
}

fn asker<E: RequestEnd>(asking: Asking<E::Request>) -> Asker {
    Asker {
        protocol: E::PROTOCOL,
        request: E::name(asking),
    }
}

/// Takes a request: a message of a device, its reply to a command, or nothing that can be taken.
pub(crate) fn take<E: RequestEnd>(end: &mut E, work: &mut Work<'_>, came: &Came<'_, E::Request>) {
    let ctx = &mut work.ctx;
    let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
    let token = requests
        .path_token
        .and_then(|token| token(came.incoming.as_ref()?));
    let owner = token.and_then(|token| owner_of(ctx.shared, token));
    let who = match requests.path_token {
        Some(_) => owner.as_deref().map(|device| Peer { tenant: "", device }),
        None => came.name.and_then(Identity::parse).map(|identity| Peer {
            tenant: identity.tenant,
            device: identity.auth_id,
        }),
    };
    let mut topic = std::mem::take(&mut ctx.scratch().topic);
    topic.clear();
    let Some(incoming) = &came.incoming else {
        refuse(end, ctx, came.request, &NO_TEXT);
        ctx.scratch().topic = topic;
        return;
    };
    let wanted = of_known(
        ctx.shared,
        (requests.read)(incoming, who.as_ref(), &mut topic),
    );
    let surfaced = Surfaced {
        request: came.request,
        incoming,
        topic: &topic,
    };
    match wanted {
        Wanted::Upload(wanted) => upload(end, work, &surfaced, &wanted),
        Wanted::Reply(_) => reply(end, work, &surfaced),
        Wanted::Observation(wanted) => observe(end, ctx, came.request, &wanted),
        Wanted::Ignored => ignore(end, ctx, came.request),
        Wanted::Refused(refusal) => {
            ctx.counts().refused_requests.more();
            decline(end, ctx, came.request, (&refusal, incoming.payload));
        }
    }
    work.ctx.scratch().topic = topic;
}

/// The name of the device with this token; none if no device has it.
fn owner_of<'a>(shared: &Shared, token: &'a str) -> Option<Cow<'a, str>> {
    let has_login = shared.config.role(Some(token), None) == Some(Role::Device);
    let known = shared.registered_devices.as_ref();
    let is_known = known.is_none_or(|known| known.has("", token));
    (has_login && is_known)
        .then_some(token.into())
        .and_then(|token| Some(shared.link_owner(token)?.name))
}

/// A message that is taken and never answered.
fn ignore<E: RequestEnd>(end: &mut E, ctx: &mut Ctx<'_>, request: E::Request) {
    ctx.counts().received.more();
    if E::is_answered(request) && end.postpone(ctx, request).is_some() {
        ctx.counts().unanswered.more();
    }
}

/// Returns the request, or its refusal if the gateway does not know the device.
fn of_known<'a>(shared: &Shared, wanted: Wanted<'a>) -> Wanted<'a> {
    let (tenant, device) = match &wanted {
        Wanted::Upload(upload) | Wanted::Observation(upload) => (upload.tenant, upload.device),
        Wanted::Reply(reply) => (reply.tenant, reply.device),
        Wanted::Ignored | Wanted::Refused(_) => return wanted,
    };
    match &shared.registered_devices {
        Some(known) if !known.has(tenant, device) => Wanted::Refused(UNKNOWN),
        Some(_) | None => wanted,
    }
}

/// Answers no to what is neither a message nor a reply.
pub(crate) fn refuse<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    to: E::Request,
    refusal: &Refusal,
) {
    ctx.counts().refused_requests.more();
    decline(end, ctx, to, (refusal, &[]));
}

/// A message of a device on its way to whoever subscribed to the topic that it surfaces on.
fn upload<E: RequestEnd>(
    end: &mut E,
    work: &mut Work<'_>,
    surfaced: &Surfaced<'_, E::Request>,
    upload: &Upload<'_>,
) {
    let ctx = &mut work.ctx;
    ctx.counts().received.more();
    if ctx.shared.is_used_up(ctx.now()) {
        let code = ctx.shared.config.dialect.server.refusal;
        let refusal = refused_on_purpose::<E>(ctx, code);
        return refuse_upload(end, ctx, surfaced.request, &refusal);
    }
    if let Some(gateway) = upload.gateway {
        let mut waiting = locked(&ctx.shared.waiting);
        waiting.speaks_for(upload.tenant, gateway, upload.device);
    }
    let Some(sender) = end.sender(surfaced.request) else {
        return;
    };
    let (mut asking, mut upload) = (Asking::new(surfaced.request), *upload);
    if let Some(question) = &upload.question {
        let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
        asking.body = answer_to(ctx.shared, requests, (upload.device, question));
        let is_for_values = matches!(question, Question::Values { .. });
        asking.beyond_limit = requests.values_beyond_limit.filter(|_| is_for_values);
        if asking.body.is_none() {
            upload = (requests.unanswered)(upload);
        }
    }
    let upload = &upload;
    if upload.ttd_s.is_some() {
        asking.query = end.queries().note(surfaced.request, sender, upload);
        if asking.query.is_none() {
            let code = ctx.shared.config.dialect.server.refusal;
            let refusal = refused_on_purpose::<E>(ctx, code);
            return refuse_upload(end, ctx, surfaced.request, &refusal);
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
        ..Publish::new(surfaced.topic, surfaced.incoming.payload)
    };
    let origin = Origin {
        asker: asker::<E>(asking.clone()),
        sender,
        is_answered: E::is_answered(surfaced.request),
        is_routed: upload.surfaces,
        session: None,
        is_again: false,
        wants_command: asking.query.is_some(),
    };
    if let Some(given) = work.router.uplink(ctx, &publish, origin) {
        answer(end, ctx, asking, given);
    }
}

/// The answer to a question of a device, and its media type; none if nobody answers.
fn answer_to(
    shared: &Shared,
    requests: &Requests,
    (device, question): (&str, &Question<'_>),
) -> Option<(&'static str, Arc<[u8]>)> {
    let mut body = Vec::new();
    let media_type = (requests.answer)(question, &mut body);
    if let Some(board) = &shared.managed.board {
        body = board.answer(device, question)?;
    }
    Some((media_type, body.into()))
}

/// A device's reply to a command: routed as any message, and never treated badly.
fn reply<E: RequestEnd>(end: &mut E, work: &mut Work<'_>, surfaced: &Surfaced<'_, E::Request>) {
    let ctx = &mut work.ctx;
    ctx.counts().replies.more();
    let incoming = surfaced.incoming;
    if let Some(board) = &ctx.shared.managed.board {
        let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
        (requests.reply_number)(incoming)
            .into_iter()
            .for_each(|number| board.reply(surfaced.topic, number, incoming.payload));
    }
    let publish = Publish {
        qos: Qos::AtLeastOnce,
        ..Publish::new(surfaced.topic, incoming.payload)
    };
    let parcel = Parcel::new(&publish, None);
    work.router.broker().publish(ctx, parcel);
    end.accept(ctx, surfaced.request, 1);
}

/// Answers an uplink.
pub(crate) fn answer<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    to: Asking<E::Request>,
    answer: Answer,
) {
    let Asking {
        request,
        query,
        body,
        beyond_limit,
    } = to;
    if let (Some(query), Response::Accept | Response::Garbled | Response::Misnamed) =
        (query, answer.response)
    {
        return end.queries().wait(ctx, query, E::POSTPONED_AFTER);
    }
    // It is answered otherwise.
    if let Some(query) = query {
        end.queries().forget(query);
    }
    match answer.response {
        Response::Accept | Response::Garbled | Response::Misnamed => {
            accept(end, ctx, (request, 1), body.as_ref());
        }
        Response::AcceptTwice => accept(end, ctx, (request, 2), body.as_ref()),
        Response::AcceptLate(by) => {
            if let Some(request) = end.postpone(ctx, request) {
                let asking = Asking {
                    body,
                    ..Asking::new(request)
                };
                let late = answer.late(asker::<E>(asking));
                ctx.set_alarm(ctx.now() + by, late);
            }
        }
        Response::Reject(code)
            if (ctx.shared.config.dialect.server.ends_link)(code) && beyond_limit.is_some() =>
        {
            let request = end.postpone(ctx, request);
            for (late, request) in beyond_limit.into_iter().zip(request) {
                let answer = Answer {
                    response: Response::Reject(late.status.0),
                    ..answer
                };
                let asker = asker::<E>(Asking::new(request));
                let at = ctx.now() + Micros::from_secs(u64::from(late.after_s));
                ctx.set_alarm(at, Alarm::Answer { asker, answer });
            }
        }
        Response::Reject(code) => {
            let refusal = refused_on_purpose::<E>(ctx, code);
            refuse_upload(end, ctx, request, &refusal);
        }
        Response::Unavailable => refuse_upload(end, ctx, request, &Refusal::UNAVAILABLE),
        Response::Silence if E::is_answered(request) => ctx.counts().unanswered.more(),
        Response::Silence => {}
    }
}

/// Answers yes, as often as `copies` says, with the answer to the request's question if it has one.
fn accept<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    (to, copies): (E::Request, u8),
    body: Option<&(&'static str, Arc<[u8]>)>,
) {
    let Some((media_type, body)) = body else {
        return end.accept(ctx, to, copies);
    };
    let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
    let content = Content {
        status: requests.commanded,
        fields: vec![Field::ContentType(media_type)],
        body,
        copies,
        notification: None,
    };
    if end.write(ctx, to, &content) {
        ctx.counts().accepted.more();
    }
}

/// The refusal of a misbehaviour. A code that is none of HTTP is one of MQTT, and another stands for it.
fn refused_on_purpose<E: RequestEnd>(ctx: &Ctx<'_>, code: u16) -> Refusal {
    let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
    Refusal {
        status: match code {
            300.. => Status(code),
            _ => requests.refused,
        },
        why: "refused on purpose",
    }
}

/// Answers no to an uplink.
fn refuse_upload<E: RequestEnd>(end: &mut E, ctx: &mut Ctx<'_>, to: E::Request, refusal: &Refusal) {
    if decline(end, ctx, to, (refusal, &[])) {
        ctx.counts().rejected.more();
    }
}

/// Answers no to a request, with the payload that the answer may show; false if that could not be sent.
fn decline<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    to: E::Request,
    (refusal, payload): (&Refusal, &[u8]),
) -> bool {
    let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
    let mut body = std::mem::take(&mut ctx.scratch().payload);
    body.clear();
    let media_type = (requests.explain)(refusal, payload, &mut body);
    let content = Content {
        status: refusal.status,
        fields: refusal.fields(media_type).collect(),
        body: &body,
        copies: 1,
        notification: None,
    };
    let is_written = end.write(ctx, to, &content);
    ctx.scratch().payload = body;
    is_written
}
