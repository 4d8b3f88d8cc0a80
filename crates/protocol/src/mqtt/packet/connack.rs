//! CONNACK (section 3.2).

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::{Place, find};
use crate::mqtt::wire::Reader;
use crate::mqtt::{Malformed, Properties, Version, reason};

/// Refusal of a newer client by a server that has MQTT 3.1.1 alone: without properties, return code
/// "unacceptable protocol version" (MQTT 3.1.1 section 3.2.2.3).
const OLDER_SERVER: [u8; 2] = [0, 1];

/// The server's answer to a CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connack<'a> {
    /// True if the server continues a session it kept.
    pub session_present: bool,
    /// 0, or why not: a reason code, in MQTT 3.1.1 a return code.
    pub code: u8,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
}

impl<'a> Connack<'a> {
    /// Seconds of keep-alive that hold instead of the client's (section 3.2.2.3.14).
    pub fn server_keep_alive(&self) -> Option<u16> {
        find!(self.properties, ServerKeepAlive)
    }

    /// The method of enhanced authentication (section 3.2.2.3.17).
    pub fn authentication_method(&self) -> Option<&'a str> {
        find!(self.properties, AuthenticationMethod)
    }

    pub(in crate::mqtt) fn read(version: Version, body: &'a [u8]) -> Result<Self, Malformed> {
        if version == Version::V5 && body == OLDER_SERVER {
            return Ok(Self {
                session_present: false,
                code: reason::UNSUPPORTED_PROTOCOL_VERSION,
                properties: Properties::NONE,
            });
        }
        let mut reader = Reader::new(body);
        let flags = reader.byte()?;
        let code = reader.byte()?;
        let properties = Properties::read_in(version, &mut reader, Place::Connack)?;
        reader.end()?;
        if flags > 1 {
            return Err(Malformed::Flags);
        }
        let session_present = flags == 1;
        if session_present && code != reason::SUCCESS {
            return Err(Malformed::SessionPresent);
        }
        Ok(Self {
            session_present,
            code,
            properties,
        })
    }

    pub(in crate::mqtt) fn write(
        &self,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        if !self.properties.fits() {
            return Err(Unwritable::TextTooLong);
        }
        header(kind::CONNACK << 4, self.remaining(version), out)?;
        out.extend_from_slice(&[u8::from(self.session_present), self.code]);
        if version == Version::V5 {
            self.properties.put(out);
        }
        Ok(())
    }

    pub(in crate::mqtt) fn remaining(&self, version: Version) -> usize {
        2 + properties_size(version, self.properties)
    }
}
