//! SUBSCRIBE and UNSUBSCRIBE (sections 3.8 and 3.10).

use std::{fmt, iter};

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::{Place, find};
use crate::mqtt::wire::{Reader, TEXT_MAXIMUM, put_binary, put_word};
use crate::mqtt::{Malformed, Properties, Qos, Version};

const SHARED_PREFIX: &str = "$share/";

/// Delivery of retained messages with a subscription (section 3.8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetainHandling {
    /// At each subscription.
    #[default]
    Send,
    /// At a new subscription.
    SendIfNew,
    /// Never.
    Keep,
}

/// One topic filter with its options (section 3.8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The topic filter, with `$share/group/` where it is shared.
    pub filter: &'a str,
    /// The highest QoS at which messages come.
    pub qos: Qos,
    /// True to exclude the subscriber's own messages; MQTT 5 only.
    pub no_local: bool,
    /// True to keep the retain flag as published; MQTT 5 only.
    pub retain_as_published: bool,
    /// Delivery of retained messages; MQTT 5 only.
    pub retain_handling: RetainHandling,
}

impl<'a> Filter<'a> {
    /// A filter with the options that MQTT 3.1.1 has.
    pub const fn new(filter: &'a str, qos: Qos) -> Self {
        Self {
            filter,
            qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Send,
        }
    }
}

/// An entry in the list of a SUBSCRIBE or UNSUBSCRIBE.
pub trait Entry<'a>: Copy + PartialEq + fmt::Debug {
    /// The number of the packet (section 2.1.2).
    const PACKET_TYPE: u8;

    /// Takes one entry off the front of a list.
    ///
    /// # Errors
    /// [`Malformed`] names what is wrong.
    fn take(list: &mut &'a [u8]) -> Result<Self, Malformed>;

    /// Checks an entry by the rules of a version.
    ///
    /// # Errors
    /// [`Malformed::Subscription`].
    fn check(&self, version: Version) -> Result<(), Malformed>;

    /// The topic filter.
    fn text(&self) -> &'a str;

    /// The byte of options behind the filter, where there is one.
    fn options(&self, version: Version) -> Option<u8>;
}

impl<'a> Entry<'a> for Filter<'a> {
    const PACKET_TYPE: u8 = kind::SUBSCRIBE;

    fn take(list: &mut &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(list);
        let filter = reader.text()?;
        let options = reader.byte()?;
        *list = reader.rest();
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

    /// Checks that the options exist in this version; no own messages can be kept away from a
    /// shared subscription (MQTT-3.8.3-4).
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

    fn text(&self) -> &'a str {
        self.filter
    }

    fn options(&self, version: Version) -> Option<u8> {
        let handling = (self.retain_handling as u8) << 4;
        let flags = (u8::from(self.no_local) << 2) | (u8::from(self.retain_as_published) << 3);
        Some(match version {
            Version::V311 => self.qos.bits(),
            Version::V5 => self.qos.bits() | flags | handling,
        })
    }
}

impl<'a> Entry<'a> for &'a str {
    const PACKET_TYPE: u8 = kind::UNSUBSCRIBE;

    fn take(list: &mut &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(list);
        let text = reader.text()?;
        *list = reader.rest();
        Ok(text)
    }

    fn check(&self, _: Version) -> Result<(), Malformed> {
        match self.is_empty() {
            true => Err(Malformed::Subscription),
            false => Ok(()),
        }
    }

    fn text(&self) -> &'a str {
        self
    }

    fn options(&self, _: Version) -> Option<u8> {
        None
    }
}

/// A list: a view of checked bytes, or values to be written.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Source<'a, T>);

#[derive(Clone, Copy)]
enum Source<'a, T> {
    Wire(&'a [u8]),
    Values(&'a [T]),
}

/// Topic filters with options.
pub type Filters<'a> = List<'a, Filter<'a>>;

/// Topic filters without options.
pub type Texts<'a> = List<'a, &'a str>;

impl<'a, T> List<'a, T> {
    /// Values to be written.
    pub const fn new(values: &'a [T]) -> Self {
        Self(Source::Values(values))
    }
}

impl<'a, T: Entry<'a>> List<'a, T> {
    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut source = self.0;
        iter::from_fn(move || match &mut source {
            Source::Wire(bytes) => T::take(bytes).ok(),
            Source::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(*first)
            }
        })
    }

    fn read(version: Version, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        if rest.is_empty() {
            // MQTT-3.8.3-2 and MQTT-3.10.3-2.
            return Err(Malformed::Subscription);
        }
        while !rest.is_empty() {
            T::take(&mut rest)?.check(version)?;
        }
        Ok(Self(Source::Wire(bytes)))
    }
}

impl<'a, T: Entry<'a>> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Entry<'a>> Eq for List<'a, T> {}

impl<'a, T: Entry<'a>> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A request of the client for a list of topic filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a, T: Entry<'a>> {
    /// The request.
    pub packet_id: u16,
    /// A subscription identifier, user properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
    /// The topic filters; at least one.
    pub filters: List<'a, T>,
}

/// The client subscribes.
pub type Subscribe<'a> = Request<'a, Filter<'a>>;

/// The client ends subscriptions.
pub type Unsubscribe<'a> = Request<'a, &'a str>;

impl Subscribe<'_> {
    /// The number that messages of these subscriptions carry (section 3.8.2.1.2).
    pub fn subscription_id(&self) -> Option<u32> {
        find!(self.properties, SubscriptionId)
    }
}

impl<'a, T: Entry<'a>> Request<'a, T> {
    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let place = match T::PACKET_TYPE {
            kind::SUBSCRIBE => Place::Subscribe,
            _ => Place::Unsubscribe,
        };
        let properties = Properties::read_in(version, &mut reader, place)?;
        let filters = List::read(version, reader.rest())?;
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
        let mut entries = self.filters.iter();
        if entries.any(|entry| entry.text().len() > TEXT_MAXIMUM) {
            return Err(Unwritable::TextTooLong);
        }
        let first = (T::PACKET_TYPE << 4) | 0b0010;
        let head = (self.packet_id, self.properties);
        write_head(version, first, self.remaining(version), head, out)?;
        for entry in self.filters.iter() {
            put_binary(out, entry.text().as_bytes());
            out.extend(entry.options(version));
        }
        Ok(())
    }

    pub(in crate::mqtt) fn remaining(&self, version: Version) -> usize {
        let options = |entry: &T| usize::from(entry.options(version).is_some());
        let entries = self.filters.iter();
        let sizes = entries.map(|entry| 2 + entry.text().len() + options(&entry));
        2 + properties_size(version, self.properties) + sizes.sum::<usize>()
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
