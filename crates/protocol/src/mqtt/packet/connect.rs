//! CONNECT (section 3.1).

use super::{Unwritable, header, kind, properties_size};
use crate::mqtt::property::{Place, find};
use crate::mqtt::wire::{Reader, TEXT_MAXIMUM, put_binary, put_word};
use crate::mqtt::{Malformed, Properties, Qos, Version, topic};

const PROTOCOL_NAME: &[u8] = b"MQTT";
/// Protocol name, level, flags and keep-alive.
const VARIABLE_HEADER: usize = 10;

const CLEAN_START: u8 = 0x02;
const WILL: u8 = 0x04;
const WILL_RETAIN: u8 = 0x20;
const PASSWORD: u8 = 0x40;
const USER: u8 = 0x80;

/// The first packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Version of the standard.
    pub version: Version,
    /// Client id; empty if the server chooses.
    pub client_id: &'a str,
    /// True to discard an existing session.
    pub clean_start: bool,
    /// Seconds; 0 switches it off.
    pub keep_alive: u16,
    /// Message that the server publishes when the connection ends without a DISCONNECT.
    pub will: Option<Will<'a>>,
    /// The user's name.
    pub user: Option<&'a str>,
    /// The password.
    pub password: Option<&'a [u8]>,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
}

/// A message left with the server (section 3.1.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Will<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its payload.
    pub payload: &'a [u8],
    /// Quality of service of its delivery.
    pub qos: Qos,
    /// True if the server keeps it.
    pub retain: bool,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: Properties<'a>,
}

impl<'a> Connect<'a> {
    /// Seconds the session outlives the connection (section 3.1.2.11.2).
    ///
    /// In MQTT 3.1.1 a session without the clean flag has no end (section 3.1.2.4 there).
    pub fn session_expiry(&self) -> u32 {
        match self.version {
            Version::V311 if self.clean_start => 0,
            Version::V311 => u32::MAX,
            Version::V5 => find!(self.properties, SessionExpiry).unwrap_or(0),
        }
    }

    /// The method of enhanced authentication (section 3.1.2.11.9).
    pub fn authentication_method(&self) -> Option<&'a str> {
        find!(self.properties, AuthenticationMethod)
    }

    pub(in crate::mqtt) fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let version = read_version(&mut reader)?;
        let flags = reader.byte()?;
        check_flags(version, flags)?;
        let keep_alive = reader.word()?;
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => read_properties(&mut reader)?,
        };
        let client_id = reader.text()?;
        let has_will = flags & WILL != 0;
        let will = has_will
            .then(|| Will::read(version, flags, &mut reader))
            .transpose()?;
        let user = (flags & USER != 0).then(|| reader.text()).transpose()?;
        let password = (flags & PASSWORD != 0)
            .then(|| reader.binary())
            .transpose()?;
        reader.end()?;
        let clean_start = flags & CLEAN_START != 0;
        Ok(Self {
            version,
            client_id,
            clean_start,
            keep_alive,
            will,
            user,
            password,
            properties,
        })
    }

    pub(in crate::mqtt) fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.check()?;
        header(kind::CONNECT << 4, self.remaining(), out)?;
        put_binary(out, PROTOCOL_NAME);
        out.push(match self.version {
            Version::V311 => 4,
            Version::V5 => 5,
        });
        out.push(self.flags());
        put_word(out, self.keep_alive);
        if self.version == Version::V5 {
            self.properties.put(out);
        }
        put_binary(out, self.client_id.as_bytes());
        if let Some(will) = &self.will {
            will.write(self.version, out);
        }
        if let Some(user) = self.user {
            put_binary(out, user.as_bytes());
        }
        if let Some(password) = self.password {
            put_binary(out, password);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Unwritable> {
        let will = self.will.as_ref();
        let lengths = [
            self.client_id.len(),
            self.user.map_or(0, str::len),
            self.password.map_or(0, <[u8]>::len),
            will.map_or(0, |will| will.topic.len()),
            will.map_or(0, |will| will.payload.len()),
        ];
        let fits = lengths.iter().all(|length| *length <= TEXT_MAXIMUM)
            && self.properties.fits()
            && will.is_none_or(|will| will.properties.fits());
        if fits {
            Ok(())
        } else {
            Err(Unwritable::TextTooLong)
        }
    }

    fn remaining(&self) -> usize {
        VARIABLE_HEADER
            + properties_size(self.version, self.properties)
            + 2
            + self.client_id.len()
            + self.will.as_ref().map_or(0, |will| will.size(self.version))
            + self.user.map_or(0, |user| 2 + user.len())
            + self.password.map_or(0, |password| 2 + password.len())
    }

    fn flags(&self) -> u8 {
        let will = self.will.as_ref().map_or(0, |will| {
            WILL | (will.qos.bits() << 3) | if will.retain { WILL_RETAIN } else { 0 }
        });
        will | if self.clean_start { CLEAN_START } else { 0 }
            | if self.user.is_some() { USER } else { 0 }
            | if self.password.is_some() { PASSWORD } else { 0 }
    }
}

impl<'a> Will<'a> {
    fn read(version: Version, flags: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let qos = Qos::from_bits((flags >> 3) & 3).ok_or(Malformed::Qos)?;
        let properties = Properties::read_in(version, reader, Place::Will)?;
        let name = reader.text()?;
        if !topic::is_name(name) {
            return Err(Malformed::TopicName);
        }
        let payload = reader.binary()?;
        Ok(Self {
            topic: name,
            payload,
            qos,
            retain: flags & WILL_RETAIN != 0,
            properties,
        })
    }

    fn size(&self, version: Version) -> usize {
        properties_size(version, self.properties) + 4 + self.topic.len() + self.payload.len()
    }

    fn write(&self, version: Version, out: &mut Vec<u8>) {
        if version == Version::V5 {
            self.properties.put(out);
        }
        put_binary(out, self.topic.as_bytes());
        put_binary(out, self.payload);
    }
}

fn read_version(reader: &mut Reader<'_>) -> Result<Version, Malformed> {
    if reader.binary()? != PROTOCOL_NAME {
        return Err(Malformed::ProtocolVersion);
    }
    match reader.byte()? {
        4 => Ok(Version::V311),
        5 => Ok(Version::V5),
        _ => Err(Malformed::ProtocolVersion),
    }
}

fn check_flags(version: Version, flags: u8) -> Result<(), Malformed> {
    // MQTT-3.1.2-3: the lowest bit is reserved; MQTT-3.1.2-11 and -13: no QoS or retain without
    // a will; MQTT 3.1.1 section 3.1.2.9: no password without a user name.
    let is_reserved = flags & 1 != 0;
    let has_stray_will = flags & WILL == 0 && flags & (0x18 | WILL_RETAIN) != 0;
    let has_stray_password = version == Version::V311 && flags & (USER | PASSWORD) == PASSWORD;
    let is_wrong = is_reserved || has_stray_will || has_stray_password;
    if is_wrong {
        Err(Malformed::Flags)
    } else {
        Ok(())
    }
}

/// The properties; data of a method need its name (section 3.1.2.11.10).
fn read_properties<'a>(reader: &mut Reader<'a>) -> Result<Properties<'a>, Malformed> {
    let properties = Properties::read(reader, Place::Connect)?;
    let has_method = find!(properties, AuthenticationMethod).is_some();
    let has_data = find!(properties, AuthenticationData).is_some();
    if has_data && !has_method {
        Err(Malformed::PropertyPlace(22))
    } else {
        Ok(properties)
    }
}
