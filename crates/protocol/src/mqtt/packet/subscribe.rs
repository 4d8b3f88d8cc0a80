//! SUBSCRIBE and UNSUBSCRIBE (sections 3.8 and 3.10).

use std::fmt;

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::Place;
use crate::mqtt::wire::{Reader, TEXT_MAXIMUM, put_binary, put_word};
use crate::mqtt::{Malformed, Properties, Property, Qos, Version};

const SHARED_PREFIX: &str = "$share/";

/// When retained messages come with a subscription (section 3.8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetainHandling {
    /// 0: always.
    #[default]
    Send,
    /// 1: if the subscription is new.
    SendIfNew,
    /// 2: never.
    Keep,
}

/// One topic filter with its options (section 3.8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The topic filter, with `$share/group/` where it is shared.
    pub filter: &'a str,
    /// The highest QoS at which messages come.
    pub qos: Qos,
    /// Whether the subscriber's own messages stay away; MQTT 5 only.
    pub no_local: bool,
    /// Whether the retain flag comes as it was published; MQTT 5 only.
    pub retain_as_published: bool,
    /// When retained messages come; MQTT 5 only.
    pub retain_handling: RetainHandling,
}

impl<'a> Filter<'a> {
    /// A filter with the options that MQTT 3.1.1 has.
    #[must_use]
    pub const fn new(filter: &'a str, qos: Qos) -> Self {
        Self {
            filter,
            qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Send,
        }
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let filter = reader.text()?;
        let options = reader.byte()?;
        if options & 0xc0 != 0 {
            // MQTT-3.8.3-5.
            return Err(Malformed::Flags);
        }
        let qos = Qos::from_bits(options & 3).ok_or(Malformed::Qos)?;
        let retain_handling = match (options >> 4) & 3 {
            0 => RetainHandling::Send,
            1 => RetainHandling::SendIfNew,
            2 => RetainHandling::Keep,
            _ => return Err(Malformed::Subscription),
        };
        let no_local = options & 4 != 0;
        let retain_as_published = options & 8 != 0;
        Ok(Self {
            filter,
            qos,
            no_local,
            retain_as_published,
            retain_handling,
        })
    }

    /// That the options exist in this version; no own messages can be kept away from a shared
    /// subscription (MQTT-3.8.3-4).
    fn check(&self, version: Version) -> Result<(), Malformed> {
        let is_right = match version {
            Version::V311 => *self == Filter::new(self.filter, self.qos),
            Version::V5 => !(self.no_local && self.filter.starts_with(SHARED_PREFIX)),
        };
        if is_right && !self.filter.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Subscription)
        }
    }

    fn write(&self, version: Version, out: &mut Vec<u8>) {
        put_binary(out, self.filter.as_bytes());
        let handling = match self.retain_handling {
            RetainHandling::Send => 0,
            RetainHandling::SendIfNew => 0x10,
            RetainHandling::Keep => 0x20,
        };
        let flags = (u8::from(self.no_local) << 2) | (u8::from(self.retain_as_published) << 3);
        out.push(match version {
            Version::V311 => self.qos.bits(),
            Version::V5 => self.qos.bits() | flags | handling,
        });
    }
}

/// Topic filters with options: a view of checked bytes, or values to be written.
#[derive(Clone, Copy)]
pub struct Filters<'a>(FilterSource<'a>);

#[derive(Clone, Copy)]
enum FilterSource<'a> {
    Wire(&'a [u8]),
    Values(&'a [Filter<'a>]),
}

impl<'a> Filters<'a> {
    /// Filters to be written.
    #[must_use]
    pub const fn new(values: &'a [Filter<'a>]) -> Self {
        Self(FilterSource::Values(values))
    }

    /// The filters in their order.
    #[must_use]
    pub const fn iter(&self) -> FilterIter<'a> {
        FilterIter(self.0)
    }

    fn read(version: Version, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.is_empty() {
            // MQTT-3.8.3-2.
            return Err(Malformed::Subscription);
        }
        while !reader.is_empty() {
            Filter::read(&mut reader)?.check(version)?;
        }
        Ok(Self(FilterSource::Wire(bytes)))
    }
}

/// The filters of a SUBSCRIBE, in their order.
#[derive(Clone)]
pub struct FilterIter<'a>(FilterSource<'a>);

impl<'a> Iterator for FilterIter<'a> {
    type Item = Filter<'a>;

    fn next(&mut self) -> Option<Filter<'a>> {
        match &mut self.0 {
            FilterSource::Wire(bytes) => {
                let mut reader = Reader::new(bytes);
                let filter = Filter::read(&mut reader).ok()?;
                *bytes = reader.rest();
                Some(filter)
            }
            FilterSource::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(*first)
            }
        }
    }
}

impl<'a> IntoIterator for Filters<'a> {
    type Item = Filter<'a>;
    type IntoIter = FilterIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Filters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Filters<'_> {}

impl fmt::Debug for Filters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Topic filters without options: a view of checked bytes, or values to be written.
#[derive(Clone, Copy)]
pub struct Texts<'a>(TextSource<'a>);

#[derive(Clone, Copy)]
enum TextSource<'a> {
    Wire(&'a [u8]),
    Values(&'a [&'a str]),
}

impl<'a> Texts<'a> {
    /// Filters to be written.
    #[must_use]
    pub const fn new(values: &'a [&'a str]) -> Self {
        Self(TextSource::Values(values))
    }

    /// The filters in their order.
    #[must_use]
    pub const fn iter(&self) -> TextIter<'a> {
        TextIter(self.0)
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.is_empty() {
            // MQTT-3.10.3-2.
            return Err(Malformed::Subscription);
        }
        while !reader.is_empty() {
            if reader.text()?.is_empty() {
                return Err(Malformed::Subscription);
            }
        }
        Ok(Self(TextSource::Wire(bytes)))
    }
}

/// The filters of an UNSUBSCRIBE, in their order.
#[derive(Clone)]
pub struct TextIter<'a>(TextSource<'a>);

impl<'a> Iterator for TextIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match &mut self.0 {
            TextSource::Wire(bytes) => {
                let mut reader = Reader::new(bytes);
                let text = reader.text().ok()?;
                *bytes = reader.rest();
                Some(text)
            }
            TextSource::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(first)
            }
        }
    }
}

impl<'a> IntoIterator for Texts<'a> {
    type Item = &'a str;
    type IntoIter = TextIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Texts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Texts<'_> {}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The client subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Which request.
    pub packet_id: u16,
    /// A subscription identifier, user properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
    /// To what; at least one.
    pub filters: Filters<'a>,
}

impl<'a> Subscribe<'a> {
    /// The number that messages of these subscriptions carry (section 3.8.2.1.2).
    #[must_use]
    pub fn subscription_id(&self) -> Option<u32> {
        self.properties.find(|property| {
            if let Property::SubscriptionId(id) = property {
                Some(id)
            } else {
                None
            }
        })
    }

    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let properties = read_properties(version, &mut reader, Place::Subscribe)?;
        let filters = Filters::read(version, reader.rest())?;
        Ok(Self {
            packet_id,
            properties,
            filters,
        })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        if self
            .filters
            .iter()
            .any(|filter| filter.filter.len() > TEXT_MAXIMUM)
        {
            return Err(Unwritable::TextTooLong);
        }
        let first = (kind::SUBSCRIBE << 4) | 0b0010;
        let head = (self.packet_id, self.properties);
        write_head(version, first, self.remaining(version), head, out)?;
        for filter in self.filters.iter() {
            filter.write(version, out);
        }
        Ok(())
    }

    /// The remaining length.
    pub(in crate::mqtt) fn remaining(&self, version: Version) -> usize {
        let sizes = self.filters.iter().map(|filter| 3 + filter.filter.len());
        2 + properties_size(version, self.properties) + sizes.sum::<usize>()
    }
}

/// The client ends subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Which request.
    pub packet_id: u16,
    /// User properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
    /// Which subscriptions; at least one.
    pub filters: Texts<'a>,
}

impl<'a> Unsubscribe<'a> {
    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let properties = read_properties(version, &mut reader, Place::Unsubscribe)?;
        let filters = Texts::read(reader.rest())?;
        Ok(Self {
            packet_id,
            properties,
            filters,
        })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        if self
            .filters
            .iter()
            .any(|filter| filter.len() > TEXT_MAXIMUM)
        {
            return Err(Unwritable::TextTooLong);
        }
        let first = (kind::UNSUBSCRIBE << 4) | 0b0010;
        let head = (self.packet_id, self.properties);
        write_head(version, first, self.remaining(version), head, out)?;
        for filter in self.filters.iter() {
            put_binary(out, filter.as_bytes());
        }
        Ok(())
    }

    /// The remaining length.
    pub(in crate::mqtt) fn remaining(&self, version: Version) -> usize {
        let sizes = self.filters.iter().map(|filter| 2 + filter.len());
        2 + properties_size(version, self.properties) + sizes.sum::<usize>()
    }
}

pub(super) fn read_properties<'a>(
    version: Version,
    reader: &mut Reader<'a>,
    place: Place,
) -> Result<Properties<'a>, Malformed> {
    match version {
        Version::V311 => Ok(Properties::NONE),
        Version::V5 => Properties::read(reader, place),
    }
}

/// Writes all before the payload: the fixed header, the packet id and the properties.
pub(super) fn write_head(
    version: Version,
    first: u8,
    remaining: usize,
    (packet_id, properties): (u16, Properties<'_>),
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    if !properties.fits() {
        return Err(Unwritable::TextTooLong);
    }
    header(first, remaining, out)?;
    put_word(out, packet_id);
    if version == Version::V5 {
        properties.put(out);
    }
    Ok(())
}
