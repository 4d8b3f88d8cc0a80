//! PUBACK, PUBREC, PUBREL and PUBCOMP (sections 3.4 to 3.7), which share one form.

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::Place;
use crate::mqtt::wire::{Reader, put_word};
use crate::mqtt::{Malformed, Properties, Version, reason};

/// An answer to, or the release of, one publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledge<'a> {
    /// The publish.
    pub packet_id: u16,
    /// The reason code; always 0 in MQTT 3.1.1.
    pub reason: u8,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
}

impl<'a> Acknowledge<'a> {
    /// An answer without properties.
    pub const fn new(packet_id: u16, reason: u8) -> Self {
        Self {
            packet_id,
            reason,
            properties: Properties::NONE,
        }
    }

    #[inline]
    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        if let &[high, low] = body {
            let packet_id = u16::from_be_bytes([high, low]);
            return match packet_id {
                0 => Err(Malformed::PacketId),
                _ => Ok(Self::new(packet_id, reason::SUCCESS)),
            };
        }
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        if version == Version::V311 {
            return Err(Malformed::Trailing);
        }
        let reason = reader.byte()?;
        // The property length may be left out (section 3.4.2.2.1).
        let properties = if reader.is_empty() {
            Properties::NONE
        } else {
            Properties::read(&mut reader, Place::Ack)?
        };
        reader.end()?;
        Ok(Self {
            packet_id,
            reason,
            properties,
        })
    }

    #[inline]
    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        packet_kind: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        if version == Version::V5 && !self.properties.is_empty() {
            return self.write_long(packet_kind, out);
        }
        self.write_short(version, packet_kind, out);
        Ok(())
    }

    /// Writes packet id and reason, whatever the properties.
    #[inline]
    pub(in crate::mqtt) fn write_short(
        &self,
        version: Version,
        packet_kind: u8,
        out: &mut Vec<u8>,
    ) {
        let [high, low] = self.packet_id.to_be_bytes();
        let first = first(packet_kind);
        if version == Version::V311 || self.reason == reason::SUCCESS {
            out.extend_from_slice(&[first, 2, high, low]);
        } else {
            out.extend_from_slice(&[first, 3, high, low, self.reason]);
        }
    }

    fn write_long(&self, packet_kind: u8, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        if !self.properties.fits() {
            return Err(Unwritable::TextTooLong);
        }
        let remaining = 3 + properties_size(Version::V5, self.properties);
        header(first(packet_kind), remaining, out)?;
        put_word(out, self.packet_id);
        out.push(self.reason);
        self.properties.put(out);
        Ok(())
    }
}

/// The first byte; PUBREL alone has a flag set (section 3.6.1).
const fn first(packet_kind: u8) -> u8 {
    (packet_kind << 4)
        | if packet_kind == kind::PUBREL {
            0b0010
        } else {
            0
        }
}
