//! A PUBLISH as the dialect reads it, and its answer.

use std::sync::Arc;

use muster_net::{Key, ReadLimit};
use muster_platform::{Data, DevicePublish, Endpoint, PropertyBag, Published};
use muster_protocol::mqtt::{Incoming, Pending, Publish, Qos, reason};

use super::request::{Asked, PublishRef, Refusable, Said};
use super::{acknowledging, asker, objecting};
use crate::commands;
use crate::config::SlowReader;
use crate::end::Work;
use crate::fault::Response;
use crate::lock::locked;
use crate::message::{Message, Parcel, published};
use crate::routes::SessionRef;
use crate::thread::Ctx;
use crate::uplink::{Answer, Origin, Request, Sender};

/// The receive buffer of a slow reader: a few packets, so that the sender soon feels it.
const SLOW_BUFFER_BYTES: usize = 4 * 1024;

/// A PUBLISH, and who sent it.
#[derive(Debug)]
pub(super) struct Received<'a> {
    key: Key,
    from: SessionRef,
    name: Option<Arc<str>>,
    /// True if the sender may speak for other devices.
    is_gateway: bool,
    incoming: &'a Incoming<'a>,
}

impl<'a> Received<'a> {
    /// None if the link is gone.
    pub(super) fn new(work: &mut Work<'_>, key: Key, incoming: &'a Incoming<'a>) -> Option<Self> {
        let (ctx, broker) = (&mut work.ctx, work.router.broker());
        let link = broker.links().get(key)?;
        let from = link.session?;
        let (name, is_gateway) = (link.name.clone(), link.is_gateway);
        let slow = ctx.shared.config.slow_reader;
        if !std::mem::replace(&mut link.has_published, true)
            && let Some(SlowReader { bytes, every }) = slow
        {
            ctx.io.set_receive_buffer(key, SLOW_BUFFER_BYTES);
            ctx.io.set_read_limit(key, Some(ReadLimit { bytes, every }));
        }
        Some(Self {
            key,
            from,
            name,
            is_gateway,
            incoming,
        })
    }

    /// The PUBLISH as what is to be answered.
    const fn publish(&self) -> PublishRef {
        PublishRef {
            key: self.key,
            pending: self.incoming.pending,
        }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Takes a command, a reply to one, or an uplink, as the dialect reads it.
    pub(super) fn take(&self, work: &mut Work<'_>) {
        let server = &work.ctx.shared.config.dialect.spec().server;
        let (name, came, payload) = (self.name(), &self.incoming.topic, self.incoming.payload);
        if (server.command)(came).is_some() {
            return self.command(work);
        }
        let mut topic = String::new();
        match (server.surfaced_reply)(name, came, payload, &mut topic) {
            Some(payload) => self.reply(work, &topic, payload),
            None => self.uplink(work),
        }
    }

    /// A command: routed as any message, and treated badly by the counts for commands. If no device
    /// takes it, the answer says so, also in dialects that do not say so to devices.
    fn command(&self, work: &mut Work<'_>) {
        let (ctx, incoming, from) = (&mut work.ctx, self.incoming, self.from);
        let mut user = Vec::new();
        let message = Arc::new(Message::new(&published(incoming, &mut user), ctx.now()));
        let copies = commands::take(work, &message, Some(from), incoming.dup);
        let Some(copies) = copies else {
            let code = u16::from(reason::PAYLOAD_FORMAT_INVALID);
            return reject(work, self.publish(), code);
        };
        let code = match copies {
            0 => reason::NO_MATCHING_SUBSCRIBERS,
            _ => reason::SUCCESS,
        };
        acknowledge(work, self.publish(), code);
    }

    /// A reply to a command, with what it surfaces as: routed as any message, and never treated badly.
    fn reply(&self, work: &mut Work<'_>, topic: &str, payload: &[u8]) {
        let ctx = &mut work.ctx;
        ctx.counts().replies.more();
        if let Some(board) = &ctx.shared.managed.board {
            let server = &ctx.shared.config.dialect.server;
            let number = (server.reply_number)(&self.incoming.topic, self.incoming.payload);
            number
                .into_iter()
                .for_each(|number| board.reply(topic, number, payload));
        }
        let mut user = Vec::new();
        let publish = Publish {
            topic,
            payload,
            ..published(self.incoming, &mut user)
        };
        let parcel = Parcel::new(&publish, Some(self.from));
        let routed = work.router.broker().publish(ctx, parcel);
        if routed.is_congested {
            ctx.hold_back(self.key);
        }
        let code = acceptance(ctx, routed.copies);
        acknowledge(work, self.publish(), code);
    }

    fn uplink(&self, work: &mut Work<'_>) {
        let (ctx, incoming) = (&work.ctx, self.incoming);
        let dialect = ctx.shared.config.dialect;
        let limit = dialect.publishing().payload_limit;
        if limit.is_some_and(|limit| incoming.payload.len() > limit) {
            self.count(ctx);
            ctx.counts().unreadable.more();
            return self.expel(work, reason::MALFORMED_PACKET);
        }
        let device_publish = if self.is_silent(ctx) {
            DevicePublish::Ignored
        } else {
            (dialect.server.read)(self.name(), &incoming.topic, incoming.payload)
        };
        if !matches!(device_publish, DevicePublish::Announced { .. }) {
            self.count(ctx);
        }
        match device_publish {
            DevicePublish::Ignored => ctx.counts().unanswered.more(),
            DevicePublish::Other => self.put(work, &incoming.topic, incoming.pending),
            DevicePublish::Message { device, id } => self.ask(work, device, id),
            DevicePublish::Unreadable { device } => {
                acknowledging::unreadable(work, self.publish(), &self.asked(device, None));
            }
            DevicePublish::Announced { device, is_there } => {
                self.note_announced(work, device, is_there);
            }
            DevicePublish::Taken => {
                let mut topic = String::new();
                (dialect.server.route)(self.name(), &incoming.topic, &mut topic);
                self.put(work, &topic, incoming.pending);
            }
            DevicePublish::Data(data) => self.put_data(work, &data),
            DevicePublish::Published(published) => self.put_published(work, &published),
            DevicePublish::Refused(status) => self.refuse(work, status),
            // Not what the topic is for: the link ends, and MQTT 5 says why.
            DevicePublish::Invalid => {
                ctx.counts().unreadable.more();
                self.expel(work, reason::PAYLOAD_FORMAT_INVALID);
            }
            DevicePublish::Unknown => self.note_unknown(work),
            DevicePublish::Foreign => {
                ctx.counts().unknown_topics.more();
                let links = work.router.broker().links();
                links.ack_uncounted(self.publish(), reason::TOPIC_NAME_INVALID);
                self.expel(work, reason::TOPIC_NAME_INVALID);
            }
        }
    }

    fn expel(&self, work: &mut Work<'_>, code: u8) {
        work.router.broker().expel(&mut work.ctx, self.key, code);
    }

    fn count(&self, ctx: &Ctx<'_>) {
        if self.incoming.dup {
            ctx.counts().received_again.more();
        } else {
            ctx.counts().received.more();
        }
    }

    /// True if a link that is no gateway's speaks for other devices.
    fn is_silent(&self, ctx: &Ctx<'_>) -> bool {
        let topic = ctx.shared.config.dialect.topic;
        !self.is_gateway && topic(&self.incoming.topic).is_for_gateways == Some(true)
    }

    /// An uplink on its way to whoever subscribed to the topic that it surfaces on.
    fn put(&self, work: &mut Work<'_>, topic: &str, pending: Option<Pending>) {
        let (ctx, mut user) = (&mut work.ctx, Vec::new());
        let publish = Publish {
            topic,
            retain: self.incoming.retain && ctx.shared.config.dialect.is_broker,
            ..published(self.incoming, &mut user)
        };
        let key = self.key;
        let asker = PublishRef { key, pending };
        let origin = Origin {
            is_answered: pending.is_some(),
            ..self.origin(Request::Publish(asker))
        };
        if let Some(answer) = work.router.uplink(ctx, &publish, origin) {
            respond(work, asker, answer);
        }
    }

    /// A message of one device, on its way to whoever subscribed to that device's topic.
    fn put_published(&self, work: &mut Work<'_>, of: &Published<'_>) {
        let (ctx, incoming) = (&mut work.ctx, self.incoming);
        if let Some(status) = self.refusal(ctx, of) {
            return self.refuse(work, status);
        }
        if let Some(gateway) = of.gateway {
            let mut waiting = locked(&ctx.shared.waiting);
            waiting.speaks_for(of.tenant, gateway, of.device);
        }
        let (mut topic, mut media_type) = (String::new(), String::new());
        of.write_surface(&mut topic);
        let has_type = of
            .properties
            .read(PropertyBag::CONTENT_TYPE, &mut media_type);
        let ttl_s = of.ttl_s().filter(|_| of.endpoint == Endpoint::Event);
        let mut user = Vec::new();
        let plain = published(incoming, &mut user);
        let publish = Publish {
            topic: &topic,
            retain: false,
            content_type: has_type.then_some(&*media_type).or(plain.content_type),
            message_expiry: ttl_s.or(plain.message_expiry),
            ..plain
        };
        let refusable = self.refusable();
        let origin = Origin {
            is_answered: incoming.pending.is_some(),
            ..self.origin(Request::Refusable(refusable.clone()))
        };
        if let Some(answer) = work.router.uplink(ctx, &publish, origin) {
            respond_to_device(work, &refusable, answer);
        }
    }

    /// The status with which a readable message is refused, if it is.
    fn refusal(&self, ctx: &Ctx<'_>, of: &Published<'_>) -> Option<u16> {
        let known = ctx.shared.registered_devices.as_ref();
        if known.is_some_and(|known| !known.has(of.tenant, of.device)) {
            return Some(objecting::UNKNOWN_DEVICE);
        }
        let is_unsafe = self.incoming.qos == Qos::AtMostOnce;
        (is_unsafe && of.endpoint == Endpoint::Event).then_some(objecting::UNACKNOWLEDGED_EVENT)
    }

    fn refuse(&self, work: &mut Work<'_>, status: u16) {
        work.ctx.counts().refused_requests.more();
        objecting::object(work, &self.refusable(), status);
    }

    fn refusable(&self) -> Refusable {
        Refusable {
            publish: self.publish(),
            topic: (*self.incoming.topic).into(),
        }
    }

    /// Data go on once for each device that they are of, all as they came; the answer is that to
    /// the first.
    fn put_data(&self, work: &mut Work<'_>, data: &Data<'_>) {
        let mut pending = self.incoming.pending;
        let mut topic = std::mem::take(&mut work.ctx.scratch().topic);
        for device in data.devices() {
            topic.clear();
            data.write_surface(device, &mut topic);
            self.put(work, &topic, pending.take());
        }
        work.ctx.scratch().topic = topic;
    }

    /// An uplink that the application acknowledges: the transport's answer says only that it came.
    fn ask(&self, work: &mut Work<'_>, device: &str, id: Option<&[u8]>) {
        acknowledging::acknowledge_transport(work, self.publish());
        let mut asked = self.asked(device, id);
        let (shared, incoming) = (&work.ctx.shared, self.incoming);
        let server = &shared.config.dialect.spec().server;
        let question = (server.question)(&incoming.topic, incoming.payload);
        if let (Some(board), Some(question)) = (&shared.managed.board, question) {
            let Some(body) = board.answer(device, &question) else {
                return acknowledging::time_out(work, asked);
            };
            let code = server.acceptance;
            asked.said = Some(Arc::new(Said { code, body }));
        }
        let mut user = Vec::new();
        let publish = published(self.incoming, &mut user);
        let origin = Origin {
            is_routed: false,
            ..self.origin(Request::Application(asked.clone()))
        };
        if let Some(answer) = work.router.uplink(&mut work.ctx, &publish, origin) {
            acknowledging::respond(work, asked, answer);
        }
    }

    fn asked(&self, device: &str, id: Option<&[u8]>) -> Asked {
        Asked {
            key: self.key,
            device: device.into(),
            id: id.map(Into::into),
            said: None,
        }
    }

    fn origin(&self, request: Request) -> Origin {
        Origin {
            asker: asker(request),
            sender: Sender::link(self.key),
            is_answered: true,
            is_routed: true,
            session: Some(self.from),
            is_again: self.incoming.dup,
            wants_command: false,
        }
    }

    /// A gateway's device came or went: only commands to it depend on that, as its data name it
    /// too.
    fn note_announced(&self, work: &mut Work<'_>, device: &str, is_there: bool) {
        let ctx = &work.ctx;
        let gateway = self.name.clone();
        ctx.shared.announce(device, gateway.filter(|_| is_there));
        if is_there {
            ctx.counts().announced.more();
        } else {
            ctx.counts().announced_gone.more();
        }
        let links = work.router.broker().links();
        links.ack_uncounted(self.publish(), reason::SUCCESS);
    }

    /// A topic that the platform does not know: only MQTT 5 can say so.
    fn note_unknown(&self, work: &mut Work<'_>) {
        work.ctx.counts().unknown_topics.more();
        let link = work.router.broker().links().get(self.key);
        if link.is_some_and(|link| link.is_v5()) {
            let code = u16::from(reason::TOPIC_NAME_INVALID);
            reject(work, self.publish(), code);
        } else {
            acknowledge(work, self.publish(), reason::SUCCESS);
        }
    }
}

fn acknowledge(work: &mut Work<'_>, publish: PublishRef, code: u8) {
    let links = work.router.broker().links();
    links.ack(&work.ctx, publish, code);
}

/// Answers a PUBLISH whose refusal may be a message.
pub(super) fn respond_to_device(work: &mut Work<'_>, refusable: &Refusable, answer: Answer) {
    match answer.response {
        Response::Reject(status) => objecting::object(work, refusable, status),
        Response::Unavailable => {
            let status = work.ctx.shared.config.dialect.server.refusal;
            objecting::object(work, refusable, status);
        }
        Response::Accept
        | Response::AcceptTwice
        | Response::AcceptLate(_)
        | Response::Garbled
        | Response::Misnamed
        | Response::Silence => respond(work, refusable.publish, answer),
    }
}

/// Answers an uplink.
pub(super) fn respond(work: &mut Work<'_>, publish: PublishRef, answer: Answer) {
    let ctx = &mut work.ctx;
    let code = acceptance(ctx, answer.copies);
    match answer.response {
        Response::Accept | Response::Garbled | Response::Misnamed => {
            acknowledge(work, publish, code);
        }
        Response::AcceptTwice => {
            acknowledge(work, publish, code);
            work.router.broker().links().ack_uncounted(publish, code);
        }
        Response::AcceptLate(by) if publish.pending.is_some() => {
            let late = answer.late(asker(Request::Publish(publish)));
            ctx.set_alarm(ctx.now() + by, late);
        }
        Response::Reject(code) => reject(work, publish, code),
        Response::Unavailable => {
            let refusal = ctx.shared.config.dialect.server.refusal;
            reject(work, publish, refusal);
        }
        Response::Silence if publish.pending.is_some() => ctx.counts().unanswered.more(),
        Response::AcceptLate(_) | Response::Silence => {}
    }
}

/// The positive answer: with no subscriber a broker says so (MQTT 5 section 3.4.2.1).
fn acceptance(ctx: &Ctx<'_>, copies: usize) -> u8 {
    if copies == 0 && ctx.shared.config.dialect.is_broker {
        reason::NO_MATCHING_SUBSCRIBERS
    } else {
        reason::SUCCESS
    }
}

/// Answers no. MQTT 3.1.1 has no way to say it but to close the connection (section 3.3.5
/// there), and QoS 0 has no answer at all.
fn reject(work: &mut Work<'_>, publish: PublishRef, code: u16) {
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
    let code = u8::try_from(code).unwrap_or(reason::UNSPECIFIED_ERROR);
    if publish.pending.is_none() {
        return;
    }
    let ends_link = ctx.shared.config.dialect.server.ends_link;
    match broker.links().get(publish.key) {
        None => ctx.counts().unanswerable.more(),
        Some(_) if ends_link(code.into()) => {
            ctx.counts().closed_links.more();
            broker.expel(ctx, publish.key, code);
        }
        Some(link) if !link.is_v5() => {
            ctx.counts().closed_links.more();
            broker.end(ctx, publish.key, true);
        }
        Some(_) => {
            broker.links().ack_uncounted(publish, code);
            ctx.counts().rejected.more();
        }
    }
}
