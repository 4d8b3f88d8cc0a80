//! The protocol end of MQTT: what a PUBLISH of a device is to the dialect, and how it is answered.

pub(crate) mod acknowledging;

use std::sync::Arc;

use muster_net::{Key, ReadLimit};
use muster_platform::{Data, Heard};
use muster_protocol::mqtt::{Incoming, Pending, Publish, reason};

use crate::broker::Broker;
use crate::config::SlowReader;
use crate::fault::Response;
use crate::message::{Parcel, published};
use crate::router::Router;
use crate::routes::SessionRef;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asked, Asker, Origin, PublishRef};

/// The receive buffer of a slow reader: a few packets, so that the sender soon feels it.
const SLOW_BUFFER_BYTES: usize = 4 * 1024;

/// A PUBLISH, and who sent it.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    pub(crate) key: Key,
    pub(crate) from: SessionRef,
    name: Option<Arc<str>>,
    pub(crate) incoming: &'a Incoming<'a>,
}

impl<'a> Received<'a> {
    /// None if the link is gone.
    pub(crate) fn new(
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        key: Key,
        incoming: &'a Incoming<'a>,
    ) -> Option<Self> {
        let link = broker.links().get(key)?;
        let from = link.session?;
        let name = link.name.clone();
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
            incoming,
        })
    }

    /// The PUBLISH as what is to be answered.
    pub(crate) const fn asker(&self) -> PublishRef {
        PublishRef {
            key: self.key,
            pending: self.incoming.pending,
        }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Takes a reply to a command, or an uplink as the dialect reads it.
    pub(crate) fn take(&self, ctx: &mut Ctx<'_>, router: &mut Router) {
        let (server, incoming) = (&ctx.shared.config.dialect.spec().server, self.incoming);
        let mut topic = String::new();
        let (name, came) = (self.name(), &incoming.topic);
        match (server.surfaced_reply)(name, came, incoming.payload, &mut topic) {
            Some(payload) => self.reply(ctx, router.broker(), &topic, payload),
            None => self.uplink(ctx, router),
        }
    }

    /// A reply to a command, with what it surfaces as: routed as any message, and never treated badly.
    fn reply(&self, ctx: &mut Ctx<'_>, broker: &mut Broker, topic: &str, payload: &[u8]) {
        ctx.counts().replies.more();
        let mut user = Vec::new();
        let publish = Publish {
            topic,
            payload,
            ..published(self.incoming, &mut user)
        };
        let routed = broker.publish(ctx, Parcel::new(&publish, Some(self.from)));
        if routed.is_congested {
            ctx.hold_back(self.key);
        }
        let code = acceptance(ctx, routed.copies);
        broker.links().ack(ctx, self.asker(), code);
    }

    fn uplink(&self, ctx: &mut Ctx<'_>, router: &mut Router) {
        let (dialect, incoming) = (ctx.shared.config.dialect, self.incoming);
        let limit = dialect.publishing().payload_limit;
        if limit.is_some_and(|limit| incoming.payload.len() > limit) {
            self.count(ctx);
            ctx.counts().unreadable.more();
            return router
                .broker()
                .expel(ctx, self.key, reason::MALFORMED_PACKET);
        }
        let heard = if self.is_silent(ctx) {
            Heard::Ignored
        } else {
            (dialect.server.hear)(self.name(), &incoming.topic, incoming.payload)
        };
        if !matches!(heard, Heard::Announced { .. }) {
            self.count(ctx);
        }
        match heard {
            Heard::Ignored => ctx.counts().unanswered.more(),
            Heard::Other => self.put(ctx, router, &incoming.topic, incoming.pending),
            Heard::Message { device, id } => self.ask(ctx, router, device, id),
            Heard::Unreadable { device } => {
                let asked = self.asked(device, None);
                acknowledging::unreadable(ctx, router.broker(), self.asker(), &asked);
            }
            Heard::Announced { device, is_there } => {
                self.note_announced(ctx, router.broker(), device, is_there);
            }
            Heard::Taken => {
                let mut topic = String::new();
                (dialect.server.route)(self.name(), &incoming.topic, &mut topic);
                self.put(ctx, router, &topic, incoming.pending);
            }
            Heard::Data(data) => self.put_data(ctx, router, &data),
            // Not what the topic is for: the link ends, and MQTT 5 says why.
            Heard::Invalid => {
                ctx.counts().unreadable.more();
                router
                    .broker()
                    .expel(ctx, self.key, reason::PAYLOAD_FORMAT_INVALID);
            }
            Heard::Unknown => self.note_unknown(ctx, router.broker()),
        }
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
        let config = &ctx.shared.config;
        config.behaviour.no_gateways
            && (config.dialect.topic)(&self.incoming.topic).is_for_gateways == Some(true)
    }

    /// An uplink on its way to whoever subscribed to the topic that it surfaces on.
    fn put(&self, ctx: &mut Ctx<'_>, router: &mut Router, topic: &str, pending: Option<Pending>) {
        let mut user = Vec::new();
        let publish = Publish {
            topic,
            retain: self.incoming.retain && ctx.shared.config.dialect.is_broker,
            ..published(self.incoming, &mut user)
        };
        let key = self.key;
        let asker = PublishRef { key, pending };
        let answer = router.uplink(ctx, &publish, self.origin(Asker::Publish(asker)));
        if let Some(answer) = answer {
            respond(ctx, router.broker(), asker, answer);
        }
    }

    /// Data go on once for each device that they are of, all as they came; the answer is that to
    /// the first.
    fn put_data(&self, ctx: &mut Ctx<'_>, router: &mut Router, data: &Data<'_>) {
        let mut pending = self.incoming.pending;
        let mut topic = std::mem::take(&mut ctx.scratch().topic);
        for device in data.devices() {
            topic.clear();
            data.write_surface(device, &mut topic);
            self.put(ctx, router, &topic, pending.take());
        }
        ctx.scratch().topic = topic;
    }

    /// An uplink that the application acknowledges: the transport's answer says only that it came.
    fn ask(&self, ctx: &mut Ctx<'_>, router: &mut Router, device: &str, id: Option<&[u8]>) {
        acknowledging::acknowledge_transport(ctx, router.broker(), self.asker());
        let asked = self.asked(device, id);
        let mut user = Vec::new();
        let publish = published(self.incoming, &mut user);
        let origin = self.origin(Asker::Application(asked.clone()));
        if let Some(answer) = router.uplink(ctx, &publish, origin) {
            acknowledging::respond(ctx, router.broker(), asked, answer);
        }
    }

    fn asked(&self, device: &str, id: Option<&[u8]>) -> Asked {
        Asked {
            key: self.key,
            device: device.into(),
            id: id.map(Into::into),
        }
    }

    fn origin(&self, asker: Asker) -> Origin {
        Origin {
            asker,
            socket: self.key,
            session: Some(self.from),
            is_again: self.incoming.dup,
        }
    }

    /// A gateway's device came or went: only commands to it depend on that, as its data name it
    /// too.
    fn note_announced(&self, ctx: &Ctx<'_>, broker: &mut Broker, device: &str, is_there: bool) {
        let gateway = self.name.clone();
        ctx.shared.announce(device, gateway.filter(|_| is_there));
        if is_there {
            ctx.counts().announced.more();
        } else {
            ctx.counts().announced_gone.more();
        }
        broker.links().ack_uncounted(self.asker(), reason::SUCCESS);
    }

    /// A topic that the platform does not know: only MQTT 5 can say so.
    fn note_unknown(&self, ctx: &mut Ctx<'_>, broker: &mut Broker) {
        ctx.counts().unknown_topics.more();
        let link = broker.links().get(self.key);
        if link.is_some_and(|link| link.is_v5()) {
            let code = u16::from(reason::TOPIC_NAME_INVALID);
            reject(ctx, broker, self.asker(), code);
        } else {
            broker.links().ack(ctx, self.asker(), reason::SUCCESS);
        }
    }
}

/// Answers an uplink.
pub(crate) fn respond(ctx: &mut Ctx<'_>, broker: &mut Broker, publish: PublishRef, answer: Answer) {
    let code = acceptance(ctx, answer.copies);
    match answer.response {
        Response::Accept | Response::Garbled | Response::Misnamed => {
            broker.links().ack(ctx, publish, code);
        }
        Response::AcceptTwice => {
            broker.links().ack(ctx, publish, code);
            broker.links().ack_uncounted(publish, code);
        }
        Response::AcceptLate(by) if publish.pending.is_some() => {
            let asker = Asker::Publish(publish);
            ctx.set_alarm(ctx.now() + by, answer.late(asker));
        }
        Response::AcceptLate(_) => {}
        Response::Reject(code) => reject(ctx, broker, publish, code),
        Response::Silence if publish.pending.is_some() => ctx.counts().unanswered.more(),
        Response::Silence => {}
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
pub(crate) fn reject(ctx: &mut Ctx<'_>, broker: &mut Broker, publish: PublishRef, code: u16) {
    let code = u8::try_from(code).unwrap_or(reason::UNSPECIFIED_ERROR);
    if publish.pending.is_none() {
        return;
    }
    match broker.links().get(publish.key) {
        None => ctx.counts().unanswerable.more(),
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
