//! CONNACK (section 3.2).

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::{Place, find};
use crate::mqtt::wire::Reader;
use crate::mqtt::{Malformed, Properties, Qos, Version, reason};

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
    /// Seconds the session outlives the connection, if the server decided (section 3.2.2.3.2).
    pub fn session_expiry(&self) -> Option<u32> {
        find!(self.properties, SessionExpiry)
    }

    /// Publishes the server takes before it has answered one (section 3.2.2.3.3).
    pub fn receive_maximum(&self) -> u16 {
        find!(self.properties, ReceiveMaximum).unwrap_or(u16::MAX)
    }

    /// Bytes of the largest packet the server takes (section 3.2.2.3.6).
    pub fn maximum_packet_size(&self) -> u32 {
        find!(self.properties, MaximumPacketSize).unwrap_or(u32::MAX)
    }

    /// Highest topic alias the server takes (section 3.2.2.3.8).
    pub fn topic_alias_maximum(&self) -> u16 {
        find!(self.properties, TopicAliasMaximum).unwrap_or(0)
    }

    /// Highest QoS the server serves (section 3.2.2.3.4).
    pub fn maximum_qos(&self) -> Qos {
        find!(self.properties, MaximumQos).unwrap_or(Qos::ExactlyOnce)
    }

    /// Returns true if the server retains (section 3.2.2.3.5).
    pub fn retain_available(&self) -> bool {
        find!(self.properties, RetainAvailable).unwrap_or(true)
    }

    /// Seconds of keep-alive that hold instead of the client's (section 3.2.2.3.14).
    pub fn server_keep_alive(&self) -> Option<u16> {
        find!(self.properties, ServerKeepAlive)
    }

    /// The method of enhanced authentication (section 3.2.2.3.17).
    pub fn authentication_method(&self) -> Option<&'a str> {
        find!(self.properties, AuthenticationMethod)
    }

    /// The client id the server chose (section 3.2.2.3.7).
    pub fn assigned_client_id(&self) -> Option<&'a str> {
        find!(self.properties, AssignedClientId)
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
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::read(&mut reader, Place::Connack)?,
        };
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

    /// The remaining length.
    pub(in crate::mqtt) fn remaining(&self, version: Version) -> usize {
        2 + properties_size(version, self.properties)
    }
}
