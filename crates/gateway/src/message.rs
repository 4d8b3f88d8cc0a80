//! A message that the gateway has to keep: queued, retained, in flight, or on its way to another
//! thread.

use std::sync::Arc;

use muster_model::Micros;
use muster_platform::Protocol;
use muster_protocol::mqtt::{Incoming, Properties, Property, Publish, Qos};

use crate::account::hash;
use crate::routes::SessionRef;

/// A message with its properties, which owns its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) topic: Box<str>,
    pub(crate) payload: Box<[u8]>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    /// Protocol that an uplink came by.
    pub(crate) via: Option<Protocol>,
    /// Its number, if it is a command that has one already.
    pub(crate) call: Option<u32>,
    /// True if the store never gets it.
    pub(crate) is_unstored: bool,
    /// Instant at which it is void.
    expires: Option<Micros>,
    extras: Option<Box<Extras>>,
}

/// Properties that few messages have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Extras {
    is_text: bool,
    content_type: Option<Box<str>>,
    response_topic: Option<Box<str>>,
    correlation: Option<Box<[u8]>>,
    user: Vec<(Box<str>, Box<str>)>,
}

impl Message {
    pub(crate) fn new(publish: &Publish<'_>, now: Micros) -> Self {
        let owned = |pair: &(&str, &str)| (pair.0.into(), pair.1.into());
        let extras = Extras {
            is_text: publish.is_text,
            content_type: publish.content_type.map(Into::into),
            response_topic: publish.response_topic.map(Into::into),
            correlation: publish.correlation.map(Into::into),
            user: publish.user_properties.iter().map(owned).collect(),
        };
        let lasts = |seconds: u32| now + Micros::from_secs(u64::from(seconds));
        Self {
            topic: publish.topic.into(),
            payload: publish.payload.into(),
            qos: publish.qos,
            retain: publish.retain,
            via: None,
            call: None,
            is_unstored: false,
            expires: publish.message_expiry.map(lasts),
            extras: (extras != Extras::default()).then(|| Box::new(extras)),
        }
    }

    /// The same message, which came by a protocol.
    pub(crate) fn by(self, via: Option<Protocol>) -> Self {
        Self { via, ..self }
    }

    /// The name of the message in the account.
    pub(crate) fn hash(&self) -> u64 {
        hash(&self.payload)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.extras.as_ref()?.content_type.as_deref()
    }

    pub(crate) fn user_properties(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.extras.iter().flat_map(|extras| &extras.user);
        all.map(|(name, value)| (&**name, &**value))
    }

    pub(crate) fn is_void(&self, now: Micros) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Calls `with` with the message as it was published, its expiry less the time it waited
    /// (MQTT-3.3.2-6).
    pub(crate) fn publish<T>(&self, now: Micros, with: impl FnOnce(&Publish<'_>) -> T) -> T {
        let seconds = |expires: Micros| ((expires - now).get().div_ceil(1_000_000)) as u32;
        let plain = Publish {
            qos: self.qos,
            retain: self.retain,
            message_expiry: self.expires.map(seconds),
            ..Publish::new(&self.topic, &self.payload)
        };
        let Some(extras) = &self.extras else {
            return with(&plain);
        };
        let user: Vec<(&str, &str)> = extras
            .user
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        with(&Publish {
            is_text: extras.is_text,
            content_type: extras.content_type.as_deref(),
            response_topic: extras.response_topic.as_deref(),
            correlation: extras.correlation.as_deref(),
            user_properties: &user,
            ..plain
        })
    }
}

/// A message on its way to subscribers. It is copied once somebody has to keep it.
#[derive(Debug)]
pub(crate) struct Parcel<'a> {
    pub(crate) publish: &'a Publish<'a>,
    /// Session that published it: its subscriptions with "no local" get no copy.
    pub(crate) from: Option<SessionRef>,
    /// The copy of the message, once there is one.
    pub(crate) kept: Option<Arc<Message>>,
    /// Protocol that an uplink came by.
    pub(crate) via: Option<Protocol>,
    /// True if a receiver over AMQP has it already.
    pub(crate) is_taken: bool,
}

impl<'a> Parcel<'a> {
    pub(crate) const fn new(publish: &'a Publish<'a>, from: Option<SessionRef>) -> Self {
        Self {
            publish,
            from,
            kept: None,
            via: None,
            is_taken: false,
        }
    }

    /// True if the message has waited too long to be sent to anybody (MQTT-3.3.2-5).
    pub(crate) fn is_void(&self, now: Micros) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|message| message.is_void(now))
    }

    pub(crate) fn keep(&mut self, now: Micros) -> Arc<Message> {
        let kept = || Arc::new(Message::new(self.publish, now).by(self.via));
        Arc::clone(self.kept.get_or_insert_with(kept))
    }
}

/// A PUBLISH as it came.
pub(crate) fn published<'a>(
    incoming: &'a Incoming<'_>,
    user: &'a mut Vec<(&'a str, &'a str)>,
) -> Publish<'a> {
    let plain = Publish {
        qos: incoming.qos,
        retain: incoming.retain,
        ..Publish::new(&incoming.topic, incoming.payload)
    };
    with_properties(plain, incoming.properties, user)
}

/// A publish with the properties that travel with a message (section 3.3.2.3); those that belong
/// to the connection stay behind. User properties need room, which the caller lends.
pub(crate) fn with_properties<'a>(
    plain: Publish<'a>,
    properties: Properties<'a>,
    user: &'a mut Vec<(&'a str, &'a str)>,
) -> Publish<'a> {
    let mut publish = plain;
    if properties.is_empty() {
        return publish;
    }
    user.extend(properties.user());
    publish.user_properties = user;
    properties.find(|property| {
        take(&mut publish, property);
        None::<()>
    });
    publish
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only the properties that travel with a message are of interest, and the enum is the \
              standard's closed table"
)]
fn take<'a>(publish: &mut Publish<'a>, property: Property<'a>) {
    match property {
        Property::PayloadFormat(is_text) => publish.is_text = is_text,
        Property::MessageExpiry(seconds) => publish.message_expiry = Some(seconds),
        Property::ContentType(text) => publish.content_type = Some(text),
        Property::ResponseTopic(topic) => publish.response_topic = Some(topic),
        Property::CorrelationData(data) => publish.correlation = Some(data),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MQTT-3.3.2-6.
    #[test]
    fn a_kept_message_is_published_as_it_came_but_for_the_time_it_waited() {
        let publish = Publish {
            qos: Qos::ExactlyOnce,
            retain: true,
            is_text: true,
            message_expiry: Some(10),
            content_type: Some("text/plain"),
            response_topic: Some("r"),
            correlation: Some(b"c"),
            user_properties: &[("a", "b"), ("a", "c")],
            ..Publish::new("t", b"p")
        };
        let kept = Message::new(&publish, Micros::from_secs(100));
        let later = Micros::from_secs(104);
        let expected = Publish {
            message_expiry: Some(6),
            ..publish
        };
        kept.publish(later, |got| assert_eq!(*got, expected));
        assert!(!kept.is_void(later) && kept.is_void(Micros::from_secs(110)));
    }
}
