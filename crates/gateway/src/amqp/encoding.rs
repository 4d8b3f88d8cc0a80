//! Messages of the gateway as messages of AMQP 1.0 (sections 3.2.1 to 3.2.8), and back.

use fe2o3_amqp::Sendable;
use fe2o3_amqp::types::messaging::{
    AmqpValue as AnyValue, ApplicationProperties, Body, Data, Header, Message as AmqpMessage,
    MessageId, Properties,
};
use fe2o3_amqp::types::primitives::{SimpleValue, Symbol, Timestamp, Value};
use muster_model::Micros;
use muster_net::Clock;
use muster_platform::{AmqpSent, AmqpServer, AmqpSurface, AmqpValue, AmqpWay};
use muster_protocol::mqtt::{Publish, Qos};

use crate::message::Message;

/// The kind of body that commands have, as the library reads it.
pub(super) type AnyBody = Body<Value>;

/// Writes a message for the receivers of an address.
pub(super) fn encode(
    server: &AmqpServer,
    clock: Clock,
    message: &Message,
    address: &str,
) -> Sendable<Data> {
    let now = clock.now();
    message.publish(now, |publish| {
        let surface = (server.surface)(publish.topic);
        let mut properties = Properties::builder()
            .to(destination(surface.as_ref(), publish.topic, address))
            .creation_time(wall_clock(clock, now));
        if let Some(media_type) = publish.content_type {
            properties = properties.content_type(Symbol::from(media_type));
        }
        if let Some(id) = surface.and_then(|surface| surface.correlation_id) {
            properties = properties.correlation_id(MessageId::String(id.to_owned()));
        }
        let header = Header {
            durable: publish.qos != Qos::AtMostOnce,
            ttl: publish
                .message_expiry
                .map(|seconds| seconds.saturating_mul(1_000)),
            ..Header::default()
        };
        let message = AmqpMessage::builder()
            .header(header)
            .properties(properties.build())
            .application_properties(application_properties(server, message, publish))
            .data(publish.payload)
            .build();
        Sendable::builder().message(message).build()
    })
}

/// The destination of a message: the address that it surfaces on. At a broker that is the topic, whatever filter
/// its receiver attached to.
fn destination(surface: Option<&AmqpSurface<'_>>, topic: &str, address: &str) -> String {
    let is_published = surface.is_some_and(|surface| surface.way == AmqpWay::Published);
    let to = if is_published { topic } else { address };
    to.to_owned()
}

fn application_properties(
    server: &AmqpServer,
    message: &Message,
    publish: &Publish<'_>,
) -> ApplicationProperties {
    let mut all = ApplicationProperties::builder();
    let surface = (server.surface)(publish.topic);
    for (name, value) in surface.iter().flat_map(AmqpSurface::properties) {
        all = all.insert(*name, simple(*value));
    }
    for (name, value) in publish.user_properties {
        all = all.insert(*name, simple((server.property)(name, value)));
    }
    if let Some((name, value)) = message.via.and_then(server.origin) {
        all = all.insert(name, value);
    }
    all.build()
}

fn simple(value: AmqpValue<'_>) -> SimpleValue {
    match value {
        AmqpValue::Text(text) => SimpleValue::from(text),
        AmqpValue::Int(number) => SimpleValue::from(number),
    }
}

fn wall_clock(clock: Clock, now: Micros) -> Timestamp {
    let at_ms = clock.wall_ms_at_t0() + now.get() / 1_000;
    Timestamp::from(i64::try_from(at_ms).unwrap_or(i64::MAX))
}

/// Fields of a message that an application sent.
#[derive(Debug, Default)]
pub(super) struct Fields {
    to: Option<String>,
    subject: Option<String>,
    id: Option<String>,
    pub(super) reply_to: Option<String>,
    pub(super) content_type: Option<String>,
}

impl Fields {
    pub(super) fn new(properties: Option<Properties>) -> Self {
        let Some(properties) = properties else {
            return Self::default();
        };
        let text = |id: MessageId| match id {
            MessageId::String(text) => Some(text),
            MessageId::Ulong(_) | MessageId::Uuid(_) | MessageId::Binary(_) => None,
        };
        let id = properties.correlation_id.or(properties.message_id);
        Self {
            to: properties.to,
            subject: properties.subject,
            id: id.and_then(text),
            reply_to: properties.reply_to,
            content_type: properties.content_type.map(|it| it.0),
        }
    }

    pub(super) fn sent(&self) -> AmqpSent<'_> {
        AmqpSent {
            to: self.to.as_deref(),
            subject: self.subject.as_deref(),
            correlation_id: self.id.as_deref(),
            reply_to: self.reply_to.as_deref(),
        }
    }
}

/// The bytes of a body: those of its data sections, or a single binary or text.
pub(super) fn bytes(body: AnyBody) -> Option<Vec<u8>> {
    match body {
        Body::Data(sections) => {
            let sections = sections.into_iter();
            Some(sections.flat_map(|Data(bytes)| bytes.into_vec()).collect())
        }
        Body::Value(AnyValue(Value::Binary(bytes))) => Some(bytes.into_vec()),
        Body::Value(AnyValue(Value::String(text))) => Some(text.into_bytes()),
        Body::Value(AnyValue(Value::Null)) | Body::Empty => Some(Vec::new()),
        Body::Value(_) | Body::Sequence(_) => None,
    }
}
