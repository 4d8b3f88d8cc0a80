//! DISCONNECT (section 3.14) and AUTH (section 3.15), which share one form.

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::{Place, find};
use crate::mqtt::wire::Reader;
use crate::mqtt::{Malformed, Properties, Version, reason};

/// The last packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Reason code; always 0 in MQTT 3.1.1.
    pub reason: u8,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
}

/// One step of enhanced authentication (section 4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Success, continue, or authenticate again.
    pub reason: u8,
    /// The method, its data, a reason string, user properties.
    pub properties: Properties<'a>,
}

impl<'a> Disconnect<'a> {
    /// A reason and no properties.
    pub const fn new(reason: u8) -> Self {
        Self {
            reason,
            properties: Properties::NONE,
        }
    }

    /// A new expiry of the session, if the client gives one (section 3.14.2.2.2).
    pub fn session_expiry(&self) -> Option<u32> {
        find!(self.properties, SessionExpiry)
    }

    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        if version == Version::V311 && !body.is_empty() {
            return Err(Malformed::Trailing);
        }
        let (reason, properties) = read(body, Place::Disconnect)?;
        Ok(Self { reason, properties })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        match version {
            Version::V311 => header(kind::DISCONNECT << 4, 0, out),
            Version::V5 => write(kind::DISCONNECT, self.reason, self.properties, out),
        }
    }
}

impl<'a> Auth<'a> {
    /// The name of the method (section 3.15.2.2.2).
    pub fn method(&self) -> Option<&'a str> {
        find!(self.properties, AuthenticationMethod)
    }

    /// The method's data (section 3.15.2.2.3).
    pub fn data(&self) -> Option<&'a [u8]> {
        find!(self.properties, AuthenticationData)
    }

    pub(in crate::mqtt) fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let (reason, properties) = read(body, Place::Auth)?;
        Ok(Self { reason, properties })
    }

    pub(in crate::mqtt) fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        write(kind::AUTH, self.reason, self.properties, out)
    }

    pub(in crate::mqtt) fn remaining(&self) -> usize {
        remaining(self.reason, self.properties)
    }
}

/// The reason and the property length may be left out (sections 3.14.2.1 and 3.15.2.1).
fn read(body: &[u8], place: Place) -> Result<(u8, Properties<'_>), Malformed> {
    let mut reader = Reader::new(body);
    if reader.is_empty() {
        return Ok((reason::SUCCESS, Properties::NONE));
    }
    let reason = reader.byte()?;
    if reader.is_empty() {
        return Ok((reason, Properties::NONE));
    }
    let properties = Properties::read(&mut reader, place)?;
    reader.end()?;
    Ok((reason, properties))
}

/// Bytes after the fixed header: what is success or empty at the end is left out.
fn remaining(reason: u8, properties: Properties<'_>) -> usize {
    match (properties.is_empty(), reason) {
        (true, reason::SUCCESS) => 0,
        (true, _) => 1,
        (false, _) => 1 + properties_size(Version::V5, properties),
    }
}

fn write(
    packet_kind: u8,
    reason: u8,
    properties: Properties<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    if !properties.fits() {
        return Err(Unwritable::TextTooLong);
    }
    let remaining = remaining(reason, properties);
    header(packet_kind << 4, remaining, out)?;
    if remaining > 0 {
        out.push(reason);
    }
    if remaining > 1 {
        properties.put(out);
    }
    Ok(())
}
