//! PUBLISH (section 3.3).

use super::{Unwritable, kind};
use crate::mqtt::property::Place;
use crate::mqtt::wire::{
    Reader, TEXT_MAXIMUM, VARINT_MAXIMUM, put_binary, put_varint, put_word, varint_size,
};
use crate::mqtt::{Malformed, Properties, Qos, Version, topic};

/// A message on its way, as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// True if it was sent before (section 3.3.1.1).
    pub dup: bool,
    /// Quality of service of its delivery.
    pub qos: Qos,
    /// True if the server keeps it, or kept it.
    pub retain: bool,
    /// Its topic; empty where a topic alias stands for it.
    pub topic: &'a str,
    /// Its packet id; none at QoS 0 only.
    pub packet_id: Option<u16>,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
    /// Its payload.
    pub payload: &'a [u8],
}

impl<'a> Publish<'a> {
    #[inline]
    pub(in crate::mqtt) fn read(
        version: Version,
        first: u8,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        let qos = Qos::from_bits((first >> 1) & 3).ok_or(Malformed::Qos)?;
        let dup = first & 0b1000 != 0;
        if dup && qos == Qos::AtMostOnce {
            // MQTT-3.3.1-2.
            return Err(Malformed::Flags);
        }
        let mut reader = Reader::new(body);
        let name = read_topic(version, &mut reader)?;
        let packet_id = match qos {
            Qos::AtMostOnce => None,
            Qos::AtLeastOnce | Qos::ExactlyOnce => Some(reader.packet_id()?),
        };
        let properties = Properties::read_in(version, &mut reader, Place::Publish)?;
        let retain = first & 1 != 0;
        let payload = reader.rest();
        Ok(Self {
            dup,
            qos,
            retain,
            topic: name,
            packet_id,
            properties,
            payload,
        })
    }

    /// Writes the packet; at QoS 1 and 2 without a packet id it is written with id 0.
    #[inline]
    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let size = self.measure(version)?;
        if size.remaining > VARINT_MAXIMUM {
            return Err(Unwritable::TooLarge(size.remaining));
        }
        self.write_measured(version, size, out);
        Ok(())
    }

    /// Computes the sizes, once and before anything is written.
    #[inline]
    pub(in crate::mqtt) fn measure(&self, version: Version) -> Result<Size, Unwritable> {
        if self.topic.len() > TEXT_MAXIMUM || !self.properties.fits() {
            return Err(Unwritable::TextTooLong);
        }
        let id = if self.qos == Qos::AtMostOnce { 0 } else { 2 };
        let (properties, length) = match version {
            Version::V311 => (0, 0),
            Version::V5 => {
                let size = self.properties.size();
                (size, varint_size(size))
            }
        };
        let remaining = 2 + self.topic.len() + id + length + properties + self.payload.len();
        Ok(Size {
            remaining,
            properties,
        })
    }

    /// Writes the packet; the caller has checked its size.
    #[inline]
    pub(in crate::mqtt) fn write_measured(&self, version: Version, size: Size, out: &mut Vec<u8>) {
        out.reserve(1 + varint_size(size.remaining) + size.remaining);
        out.push(self.first());
        put_varint(out, size.remaining);
        put_binary(out, self.topic.as_bytes());
        if self.qos != Qos::AtMostOnce {
            put_word(out, self.packet_id.unwrap_or_default());
        }
        if version == Version::V5 {
            put_varint(out, size.properties);
            self.properties.put_values(out);
        }
        out.extend_from_slice(self.payload);
    }

    #[inline]
    const fn first(&self) -> u8 {
        (kind::PUBLISH << 4) | ((self.dup as u8) << 3) | (self.qos.bits() << 1) | self.retain as u8
    }
}

/// The lengths that stand before what they count.
#[derive(Debug, Clone, Copy)]
pub(in crate::mqtt) struct Size {
    /// All after the fixed header.
    pub(in crate::mqtt) remaining: usize,
    properties: usize,
}

/// A topic name; in MQTT 5 it may be empty, which a topic alias has to explain.
#[inline]
fn read_topic<'a>(version: Version, reader: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let name = reader.text()?;
    let is_absent = name.is_empty() && version == Version::V5;
    if is_absent || topic::is_name(name) {
        Ok(name)
    } else {
        Err(Malformed::TopicName)
    }
}
