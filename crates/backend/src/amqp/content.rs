//! Reads a delivery: its topic at the platform, its body, and what it says of itself.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a property of another type than is expected is as good as none"
)]

use std::fmt::Write;

use fe2o3_amqp::types::messaging::{AmqpValue, Body, MessageId};
use fe2o3_amqp::types::primitives::{SimpleValue, Value};
use muster_plan::AmqpAddress;
use muster_platform::PROPERTY_NAME;

use super::news::Content;
use crate::intake::Surfaced;

/// Addresses on which deliveries surface, and buffers to read them.
pub(super) struct Surfaces {
    addresses: Vec<AmqpAddress>,
    /// The application property that names the device; empty where the dialect has none.
    device: &'static str,
    /// True if a stamp may be in an application property.
    reads_properties: bool,
    topic: String,
    body: Vec<u8>,
}

/// A reply to a command, by the names that Hono gives its parts.
pub(super) struct Reply<'a> {
    pub(super) correlation_id: &'a [u8],
    pub(super) status: String,
    pub(super) content_type: &'a str,
}

impl Surfaces {
    pub(super) fn new(
        addresses: &[AmqpAddress],
        device: &'static str,
        reads_properties: bool,
    ) -> Self {
        Self {
            addresses: addresses.to_vec(),
            device,
            reads_properties,
            topic: String::new(),
            body: Vec::new(),
        }
    }

    /// Returns true if a source brings replies: those follow the addresses of messages.
    pub(super) fn is_of_replies(&self, source: usize) -> bool {
        source >= self.addresses.len()
    }

    /// A delivery of a source as a copy of a message.
    pub(super) fn read<'a>(&'a mut self, source: usize, content: &'a Content) -> Surfaced<'a> {
        let address = self.addresses.get(source);
        let (name, surface) = address.map_or(("", ""), |it| (&it.name, &it.surface));
        let topic = if surface.is_empty() {
            let to = content.properties.as_ref().and_then(|it| it.to.as_deref());
            to.unwrap_or(name)
        } else {
            self.topic.clear();
            self.topic.push_str(surface);
            self.topic
                .push_str(text(content, self.device).unwrap_or_default());
            &self.topic
        };
        let property = match self.reads_properties {
            true => text(content, PROPERTY_NAME),
            false => None,
        };
        Surfaced {
            topic,
            payload: body(content, &mut self.body),
            property,
        }
    }

    /// A delivery that cannot be decoded, as a copy without a body.
    pub(super) fn unreadable(&self, source: usize) -> Surfaced<'_> {
        Surfaced {
            topic: self.addresses.get(source).map_or("", |it| &it.name),
            payload: &[],
            property: None,
        }
    }
}

impl<'a> Reply<'a> {
    /// Reads the parts of a reply that say which command it is about, and what became of it.
    pub(super) fn of(content: &'a Content) -> Self {
        let id = content
            .properties
            .as_ref()
            .and_then(|it| it.correlation_id.as_ref());
        let mut status = String::new();
        if let Some(code) = property(content, "status").and_then(number) {
            // Writing to a `String` cannot fail.
            let _ = write!(status, "{code}");
        }
        Self {
            correlation_id: match id {
                Some(MessageId::String(id)) => id.as_bytes(),
                Some(MessageId::Binary(id)) => id.as_slice(),
                Some(MessageId::Ulong(_) | MessageId::Uuid(_)) | None => &[],
            },
            status,
            content_type: media_type(content),
        }
    }
}

/// The media type; empty where there is none.
pub(super) fn media_type(content: &Content) -> &str {
    let properties = content.properties.as_ref();
    let symbol = properties.and_then(|it| it.content_type.as_ref());
    symbol.map_or("", |symbol| symbol.as_str())
}

/// The bytes of a body: its data, or the text or bytes of its value. Other values have none.
pub(super) fn body<'a>(content: &'a Content, joined: &'a mut Vec<u8>) -> &'a [u8] {
    match &content.body {
        Body::Data(sections) => {
            let mut all = sections.iter();
            match (all.next(), all.next()) {
                (None, _) => &[],
                (Some(only), None) => only.0.as_slice(),
                (Some(_), Some(_)) => {
                    joined.clear();
                    sections
                        .iter()
                        .for_each(|it| joined.extend_from_slice(&it.0));
                    joined
                }
            }
        }
        Body::Value(AmqpValue(Value::String(text))) => text.as_bytes(),
        Body::Value(AmqpValue(Value::Symbol(text))) => text.as_str().as_bytes(),
        Body::Value(AmqpValue(Value::Binary(bytes))) => bytes.as_slice(),
        Body::Value(_) | Body::Sequence(_) | Body::Empty => &[],
    }
}

fn property<'a>(content: &'a Content, name: &str) -> Option<&'a SimpleValue> {
    content.application_properties.as_ref()?.get(name)
}

fn text<'a>(content: &'a Content, name: &str) -> Option<&'a str> {
    match property(content, name)? {
        SimpleValue::String(text) => Some(text),
        SimpleValue::Symbol(text) => Some(text.as_str()),
        _ => None,
    }
}

fn number(value: &SimpleValue) -> Option<i64> {
    match value {
        SimpleValue::Ubyte(number) => Some((*number).into()),
        SimpleValue::Ushort(number) => Some((*number).into()),
        SimpleValue::Uint(number) => Some((*number).into()),
        SimpleValue::Ulong(number) => (*number).try_into().ok(),
        SimpleValue::Byte(number) => Some((*number).into()),
        SimpleValue::Short(number) => Some((*number).into()),
        SimpleValue::Int(number) => Some((*number).into()),
        SimpleValue::Long(number) => Some(*number),
        SimpleValue::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fe2o3_amqp::types::messaging::{
        AmqpSequence, ApplicationProperties, Batch, Data, Message, Properties,
    };

    use super::*;

    fn content(body: Body<Value>) -> Content {
        let properties = Properties::builder()
            .to("telemetry/t1")
            .content_type("application/json")
            .correlation_id("an-id".to_owned())
            .build();
        let further = ApplicationProperties::builder()
            .insert("device_id", "d-1")
            .insert("status", 201_i32)
            .insert(PROPERTY_NAME, "stamp")
            .build();
        Message {
            header: None,
            delivery_annotations: None,
            message_annotations: None,
            properties: Some(properties),
            application_properties: Some(further),
            body,
            footer: None,
        }
    }

    fn data(sections: &[&[u8]]) -> Body<Value> {
        let sections = sections.iter().map(|it| Data::from(*it));
        Body::Data(Batch::new(sections.collect::<Vec<_>>()))
    }

    fn surfaces(surface: &str) -> Surfaces {
        let address = AmqpAddress {
            name: "telemetry/t1".to_owned(),
            surface: surface.to_owned(),
        };
        Surfaces::new(&[address], "device_id", true)
    }

    #[test]
    fn a_delivery_of_hono_surfaces_on_the_topic_of_its_device() {
        let (mut surfaces, content) = (surfaces("telemetry/t1/"), content(data(&[b"x"])));
        let copy = surfaces.read(0, &content);
        assert_eq!((copy.topic, copy.payload), ("telemetry/t1/d-1", &b"x"[..]));
        assert_eq!(copy.property, Some("stamp"));
        assert_eq!(media_type(&content), "application/json");
    }

    #[test]
    fn a_delivery_of_another_broker_surfaces_on_its_address() {
        let (mut surfaces, content) = (surfaces(""), content(data(&[b"x"])));
        assert_eq!(surfaces.read(0, &content).topic, "telemetry/t1");
    }

    #[test]
    fn a_body_is_its_data_or_the_bytes_of_its_value() {
        let mut joined = Vec::new();
        let value = |value| Body::Value(AmqpValue(value));
        for (read, expected) in [
            (data(&[b"ab"]), &b"ab"[..]),
            (data(&[b"ab", b"", b"cd"]), b"abcd"),
            (data(&[]), b""),
            (value(Value::String("text".to_owned())), b"text"),
            (value(Value::Binary(vec![7].into())), b"\x07"),
            (value(Value::Bool(true)), b""),
            (
                Body::Sequence(Batch::new(vec![AmqpSequence(vec![Value::Null])])),
                b"",
            ),
            (Body::Empty, b""),
        ] {
            assert_eq!(body(&content(read), &mut joined), expected);
        }
    }

    #[test]
    fn a_reply_has_a_correlation_id_and_a_status() {
        let content = content(Body::Empty);
        let reply = Reply::of(&content);
        assert_eq!(reply.correlation_id, b"an-id");
        assert_eq!(reply.status, "201");
    }
}
