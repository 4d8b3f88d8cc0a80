//! SUBACK and UNSUBACK (sections 3.9 and 3.11), which share one form.

use super::subscribe::{read_properties, write_head};
use super::{Unwritable, kind, properties_size};
use crate::mqtt::property::Place;
use crate::mqtt::wire::Reader;
use crate::mqtt::{Malformed, Properties, Version};

/// The server's answer to a SUBSCRIBE or an UNSUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suback<'a> {
    /// The request.
    pub packet_id: u16,
    /// A reason string, user properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
    /// One code for each filter, in their order.
    pub codes: &'a [u8],
}

impl<'a> Suback<'a> {
    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let properties = read_properties(version, &mut reader, Place::Ack)?;
        let codes = reader.rest();
        if codes.is_empty() {
            Err(Malformed::Truncated)
        } else {
            Ok(Self {
                packet_id,
                properties,
                codes,
            })
        }
    }

    /// UNSUBACK has no codes in MQTT 3.1.1 (section 3.11.3 there).
    pub(in crate::mqtt) fn read_unsuback(
        version: Version,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        if version == Version::V5 {
            return Self::read(version, body);
        }
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        reader.end()?;
        Ok(Self {
            packet_id,
            properties: Properties::NONE,
            codes: &[],
        })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        self.write_codes(version, kind::SUBACK, self.codes, out)
    }

    pub(in crate::mqtt) fn write_unsuback(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let codes = if version == Version::V5 {
            self.codes
        } else {
            &[]
        };
        self.write_codes(version, kind::UNSUBACK, codes, out)
    }

    fn write_codes(
        &self,
        version: Version,
        packet_kind: u8,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let remaining = self.remaining(version, codes);
        let head = (self.packet_id, self.properties);
        write_head(version, packet_kind << 4, remaining, head, out)?;
        out.extend_from_slice(codes);
        Ok(())
    }

    /// The remaining length with these codes.
    pub(in crate::mqtt) fn remaining(&self, version: Version, codes: &[u8]) -> usize {
        2 + properties_size(version, self.properties) + codes.len()
    }
}
