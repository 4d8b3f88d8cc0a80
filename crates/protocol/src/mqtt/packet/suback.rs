//! SUBACK and UNSUBACK (sections 3.9 and 3.11), which share one form.

use super::subscribe::write_head;
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
    /// UNSUBACK has no codes in MQTT 3.1.1 (section 3.11.3 there), all others at least one.
    pub(in crate::mqtt) fn read(
        version: Version,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let properties = Properties::read_in(version, &mut reader, Place::Ack)?;
        let codes = reader.rest();
        if !has_codes(version, packet_kind) {
            reader.end()?;
        } else if codes.is_empty() {
            return Err(Malformed::Truncated);
        }
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        packet_kind: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let remaining = self.remaining(version, packet_kind);
        let head = (self.packet_id, self.properties);
        write_head(version, packet_kind << 4, remaining, head, out)?;
        out.extend_from_slice(self.codes(version, packet_kind));
        Ok(())
    }

    pub(in crate::mqtt) fn remaining(&self, version: Version, packet_kind: u8) -> usize {
        let codes = self.codes(version, packet_kind);
        2 + properties_size(version, self.properties) + codes.len()
    }

    fn codes(&self, version: Version, packet_kind: u8) -> &'a [u8] {
        if has_codes(version, packet_kind) {
            self.codes
        } else {
            &[]
        }
    }
}

fn has_codes(version: Version, packet_kind: u8) -> bool {
    version == Version::V5 || packet_kind == kind::SUBACK
}
