//! The properties of MQTT 5 (section 2.2.2).

use std::{fmt, iter};

use super::wire::{
    Reader, TEXT_MAXIMUM, VARINT_MAXIMUM, put_binary, put_varint, put_word, varint_size,
};
use super::{Malformed, Qos, Version, topic};

/// One property with its value (section 2.2.2.2, table 2-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property<'a> {
    /// 1: whether the payload is UTF-8.
    PayloadFormat(bool),
    /// 2: seconds until the message is void.
    MessageExpiry(u32),
    /// 3: what the payload is.
    ContentType(&'a str),
    /// 8: where an answer goes.
    ResponseTopic(&'a str),
    /// 9: which request an answer belongs to.
    CorrelationData(&'a [u8]),
    /// 11: which subscription matched; from 1 to 268,435,455.
    SubscriptionId(u32),
    /// 17: seconds the session outlives the connection; all ones is for ever.
    SessionExpiry(u32),
    /// 18: the client id the server chose.
    AssignedClientId(&'a str),
    /// 19: seconds; holds instead of what the client asked for.
    ServerKeepAlive(u16),
    /// 21: name of the method of enhanced authentication.
    AuthenticationMethod(&'a str),
    /// 22: data of that method.
    AuthenticationData(&'a [u8]),
    /// 23: whether reason strings and user properties may come with refusals.
    RequestProblemInformation(bool),
    /// 24: seconds the will waits.
    WillDelay(u32),
    /// 25: whether the client wants response information.
    RequestResponseInformation(bool),
    /// 26: a base for response topics.
    ResponseInformation(&'a str),
    /// 28: another server to use.
    ServerReference(&'a str),
    /// 31: a reason for people.
    ReasonString(&'a str),
    /// 33: publishes that may wait for an answer at once; never zero.
    ReceiveMaximum(u16),
    /// 34: highest topic alias that is taken.
    TopicAliasMaximum(u16),
    /// 35: a number for a topic; never zero.
    TopicAlias(u16),
    /// 36: highest QoS the server serves; 0 or 1.
    MaximumQos(Qos),
    /// 37: whether the server retains.
    RetainAvailable(bool),
    /// 38: a name and a value.
    User(&'a str, &'a str),
    /// 39: bytes of the largest packet that is taken; never zero.
    MaximumPacketSize(u32),
    /// 40: whether the server serves wildcards.
    WildcardAvailable(bool),
    /// 41: whether the server knows subscription identifiers.
    SubscriptionIdAvailable(bool),
    /// 42: whether the server shares subscriptions.
    SharedAvailable(bool),
}

/// A property's value by its form on the wire.
enum Value<'a> {
    Byte(u8),
    Word(u16),
    Long(u32),
    Varint(u32),
    Binary(&'a [u8]),
    Pair(&'a str, &'a str),
}

impl<'a> Property<'a> {
    /// The property's number.
    pub const fn id(&self) -> u8 {
        self.split().0
    }

    #[inline]
    const fn split(&self) -> (u8, Value<'a>) {
        match *self {
            Self::PayloadFormat(is_text) => (1, Value::Byte(is_text as u8)),
            Self::MessageExpiry(seconds) => (2, Value::Long(seconds)),
            Self::ContentType(text) => (3, Value::Binary(text.as_bytes())),
            Self::ResponseTopic(text) => (8, Value::Binary(text.as_bytes())),
            Self::CorrelationData(data) => (9, Value::Binary(data)),
            Self::SubscriptionId(id) => (11, Value::Varint(id)),
            Self::SessionExpiry(seconds) => (17, Value::Long(seconds)),
            Self::AssignedClientId(text) => (18, Value::Binary(text.as_bytes())),
            Self::ServerKeepAlive(seconds) => (19, Value::Word(seconds)),
            Self::AuthenticationMethod(text) => (21, Value::Binary(text.as_bytes())),
            Self::AuthenticationData(data) => (22, Value::Binary(data)),
            Self::RequestProblemInformation(is_on) => (23, Value::Byte(is_on as u8)),
            Self::WillDelay(seconds) => (24, Value::Long(seconds)),
            Self::RequestResponseInformation(is_on) => (25, Value::Byte(is_on as u8)),
            Self::ResponseInformation(text) => (26, Value::Binary(text.as_bytes())),
            Self::ServerReference(text) => (28, Value::Binary(text.as_bytes())),
            Self::ReasonString(text) => (31, Value::Binary(text.as_bytes())),
            Self::ReceiveMaximum(count) => (33, Value::Word(count)),
            Self::TopicAliasMaximum(alias) => (34, Value::Word(alias)),
            Self::TopicAlias(alias) => (35, Value::Word(alias)),
            Self::MaximumQos(qos) => (36, Value::Byte(qos.bits())),
            Self::RetainAvailable(is_on) => (37, Value::Byte(is_on as u8)),
            Self::User(name, value) => (38, Value::Pair(name, value)),
            Self::MaximumPacketSize(bytes) => (39, Value::Long(bytes)),
            Self::WildcardAvailable(is_on) => (40, Value::Byte(is_on as u8)),
            Self::SubscriptionIdAvailable(is_on) => (41, Value::Byte(is_on as u8)),
            Self::SharedAvailable(is_on) => (42, Value::Byte(is_on as u8)),
        }
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        // All ids in use are below 128, where the variable byte integer is one byte.
        let id = reader.byte()?;
        let flag = |reader: &mut Reader<'a>| match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::PropertyValue(id)),
        };
        Ok(match id {
            1 => Self::PayloadFormat(flag(reader)?),
            2 => Self::MessageExpiry(reader.long()?),
            3 => Self::ContentType(reader.text()?),
            8 => Self::ResponseTopic(reader.text()?),
            9 => Self::CorrelationData(reader.binary()?),
            11 => Self::SubscriptionId(reader.varint()?),
            17 => Self::SessionExpiry(reader.long()?),
            18 => Self::AssignedClientId(reader.text()?),
            19 => Self::ServerKeepAlive(reader.word()?),
            21 => Self::AuthenticationMethod(reader.text()?),
            22 => Self::AuthenticationData(reader.binary()?),
            23 => Self::RequestProblemInformation(flag(reader)?),
            24 => Self::WillDelay(reader.long()?),
            25 => Self::RequestResponseInformation(flag(reader)?),
            26 => Self::ResponseInformation(reader.text()?),
            28 => Self::ServerReference(reader.text()?),
            31 => Self::ReasonString(reader.text()?),
            33 => Self::ReceiveMaximum(reader.word()?),
            34 => Self::TopicAliasMaximum(reader.word()?),
            35 => Self::TopicAlias(reader.word()?),
            36 if flag(reader)? => Self::MaximumQos(Qos::AtLeastOnce),
            36 => Self::MaximumQos(Qos::AtMostOnce),
            37 => Self::RetainAvailable(flag(reader)?),
            38 => Self::User(reader.text()?, reader.text()?),
            39 => Self::MaximumPacketSize(reader.long()?),
            40 => Self::WildcardAvailable(flag(reader)?),
            41 => Self::SubscriptionIdAvailable(flag(reader)?),
            42 => Self::SharedAvailable(flag(reader)?),
            _ => return Err(Malformed::PropertyPlace(id)),
        })
    }

    /// Bytes on the wire, with the id.
    #[inline]
    fn size(&self) -> usize {
        1 + match self.split().1 {
            Value::Byte(_) => 1,
            Value::Word(_) => 2,
            Value::Long(_) => 4,
            Value::Varint(value) => varint_size(value as usize),
            Value::Binary(data) => 2 + data.len(),
            Value::Pair(name, value) => 4 + name.len() + value.len(),
        }
    }

    /// Length of the longest text or data in it.
    #[inline]
    fn longest(&self) -> usize {
        match self.split().1 {
            Value::Byte(_) | Value::Word(_) | Value::Long(_) | Value::Varint(_) => 0,
            Value::Binary(data) => data.len(),
            Value::Pair(name, value) => name.len().max(value.len()),
        }
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        let (id, value) = self.split();
        out.push(id);
        match value {
            Value::Byte(byte) => out.push(byte),
            Value::Word(word) => put_word(out, word),
            Value::Long(long) => out.extend_from_slice(&long.to_be_bytes()),
            Value::Varint(value) => put_varint(out, value as usize),
            Value::Binary(data) => put_binary(out, data),
            Value::Pair(name, value) => {
                put_binary(out, name.as_bytes());
                put_binary(out, value.as_bytes());
            }
        }
    }

    /// Returns true if the standard forbids the value (section 2.2.2.2 and the packets' own
    /// sections).
    fn is_forbidden(&self) -> bool {
        let forbidden = [
            Self::ReceiveMaximum(0),
            Self::TopicAlias(0),
            Self::SubscriptionId(0),
            Self::MaximumPacketSize(0),
            Self::MaximumQos(Qos::ExactlyOnce),
        ];
        let is_too_large =
            matches!(self, Self::SubscriptionId(id) if *id as usize > VARINT_MAXIMUM);
        // A topic name, so without wildcards (MQTT-3.3.2-14).
        let is_no_name = matches!(self, Self::ResponseTopic(name) if !topic::is_name(name));
        forbidden.contains(self) || is_too_large || is_no_name
    }
}

/// The value of the first property of a kind in a list: `find!(properties, ReceiveMaximum)`.
macro_rules! find {
    ($properties:expr, $kind:ident) => {
        $properties.find(|property| {
            if let $crate::mqtt::Property::$kind(value) = property {
                Some(value)
            } else {
                None
            }
        })
    };
}

pub(super) use find;

/// Place of a list of properties, which decides its content (table 2-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Connect,
    Will,
    Connack,
    Publish,
    /// PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK allow the same.
    Ack,
    Subscribe,
    Unsubscribe,
    Disconnect,
    Auth,
}

impl Place {
    const fn allowed(self) -> u64 {
        match self {
            Self::Connect => bits(&[17, 21, 22, 23, 25, 33, 34, 38, 39]),
            Self::Will => bits(&[1, 2, 3, 8, 9, 24, 38]),
            Self::Connack => bits(&[
                17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 38, 39, 40, 41, 42,
            ]),
            Self::Publish => bits(&[1, 2, 3, 8, 9, 11, 35, 38]),
            Self::Ack => bits(&[31, 38]),
            Self::Subscribe => bits(&[11, 38]),
            Self::Unsubscribe => bits(&[38]),
            Self::Disconnect => bits(&[17, 28, 31, 38]),
            Self::Auth => bits(&[21, 22, 31, 38]),
        }
    }

    /// The ids that may come more than once here: user properties, and in a PUBLISH one
    /// subscription identifier for each subscription that matched (section 3.3.2.3.8).
    const fn repeated(self) -> u64 {
        if matches!(self, Self::Publish) {
            bits(&[11, 38])
        } else {
            bits(&[38])
        }
    }
}

const fn bits(ids: &[u8]) -> u64 {
    let mut bits = 0;
    let mut at = 0;
    while at < ids.len() {
        bits |= 1 << ids[at];
        at += 1;
    }
    bits
}

/// A list of properties: a view of checked bytes, or values to be written.
#[derive(Clone, Copy)]
pub struct Properties<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Wire(&'a [u8]),
    Values(&'a [Property<'a>], &'a [(&'a str, &'a str)]),
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Properties<'static> = Properties(Source::Wire(&[]));

    /// A list to be written, in this order.
    pub const fn new(values: &'a [Property<'a>]) -> Self {
        Self(Source::Values(values, &[]))
    }

    /// A list to be written, followed by user properties.
    pub const fn with_user(values: &'a [Property<'a>], user: &'a [(&'a str, &'a str)]) -> Self {
        Self(Source::Values(values, user))
    }

    /// The properties in their order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let mut source = self.0;
        iter::from_fn(move || source.next())
    }

    /// Returns true if there is none.
    pub const fn is_empty(&self) -> bool {
        match self.0 {
            Source::Wire(bytes) => bytes.is_empty(),
            Source::Values(values, user) => values.is_empty() && user.is_empty(),
        }
    }

    /// The first value that `pick` takes.
    pub fn find<T>(&self, pick: impl FnMut(Property<'a>) -> Option<T>) -> Option<T> {
        self.iter().find_map(pick)
    }

    /// The user properties in their order, names and values.
    pub fn user(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.iter().filter_map(|property| {
            if let Property::User(name, value) = property {
                Some((name, value))
            } else {
                None
            }
        })
    }

    /// The identifiers of the subscriptions that matched (section 3.3.2.3.8).
    pub fn subscription_ids(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.iter().filter_map(|property| {
            if let Property::SubscriptionId(id) = property {
                Some(id)
            } else {
                None
            }
        })
    }

    /// Reads and checks a list with its length.
    #[inline]
    pub(super) fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self, Malformed> {
        let length = reader.varint()?;
        let bytes = reader.take(length as usize)?;
        if !bytes.is_empty() {
            check(bytes, place)?;
        }
        Ok(Self(Source::Wire(bytes)))
    }

    /// Reads and checks a list with its length; MQTT 3.1.1 has none.
    #[inline]
    pub(super) fn read_in(
        version: Version,
        reader: &mut Reader<'a>,
        place: Place,
    ) -> Result<Self, Malformed> {
        match version {
            Version::V311 => Ok(Self::NONE),
            Version::V5 => Self::read(reader, place),
        }
    }

    /// Bytes of the list on the wire, without its length.
    #[inline]
    pub(super) fn size(&self) -> usize {
        match self.0 {
            Source::Wire(bytes) => bytes.len(),
            Source::Values(..) => self.iter().map(|property| property.size()).sum(),
        }
    }

    #[inline]
    pub(super) fn fits(&self) -> bool {
        match self.0 {
            Source::Wire(_) => true,
            Source::Values(..) => self
                .iter()
                .all(|property| property.longest() <= TEXT_MAXIMUM),
        }
    }

    /// Appends the list with its length.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.size());
        self.put_values(out);
    }

    #[inline]
    pub(super) fn put_values(&self, out: &mut Vec<u8>) {
        match self.0 {
            Source::Wire(bytes) => out.extend_from_slice(bytes),
            Source::Values(..) => self.iter().for_each(|property| property.put(out)),
        }
    }
}

/// The properties among `all` that are there, at the front of an array, and their number.
pub(super) fn present<const N: usize>(
    all: [Option<Property<'_>>; N],
) -> ([Property<'_>; N], usize) {
    let mut values = [Property::PayloadFormat(true); N];
    let mut count = 0;
    for property in all.into_iter().flatten() {
        values[count] = property;
        count += 1;
    }
    (values, count)
}

fn check(bytes: &[u8], place: Place) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    let mut seen = 0u64;
    while !reader.is_empty() {
        let property = Property::read(&mut reader)?;
        let id = property.id();
        let bit = 1 << id;
        if place.allowed() & bit == 0 {
            return Err(Malformed::PropertyPlace(id));
        }
        if seen & bit & !place.repeated() != 0 {
            return Err(Malformed::PropertyTwice(id));
        }
        if property == Property::TopicAlias(0) {
            return Err(Malformed::TopicAlias(0));
        }
        if property.is_forbidden() {
            return Err(Malformed::PropertyValue(id));
        }
        seen |= bit;
    }
    Ok(())
}

impl PartialEq for Properties<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Properties<'_> {}

impl fmt::Debug for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Source<'a> {
    #[inline]
    fn next(&mut self) -> Option<Property<'a>> {
        match self {
            Self::Wire(bytes) => {
                // The bytes were checked when they were read; an error can only be their end.
                let mut reader = Reader::new(bytes);
                let property = Property::read(&mut reader).ok()?;
                *bytes = reader.rest();
                Some(property)
            }
            Self::Values(values, user) => {
                if let Some((first, rest)) = values.split_first() {
                    *values = rest;
                    return Some(*first);
                }
                let ((name, value), rest) = user.split_first()?;
                *user = rest;
                Some(Property::User(name, value))
            }
        }
    }
}
