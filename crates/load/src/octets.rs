//! Bytes that may differ from device to device and need not be text: keys, passwords, identities.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::names::NameList;
use crate::template::{Scope, Template};

/// The way in which text stands for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// The bytes of its UTF-8.
    Text,
    /// Two hexadecimal digits a byte.
    Hex,
    /// Base64, with the symbols of either alphabet of RFC 4648, padded or not.
    Base64,
}

/// Bytes by device: a template whose text is decoded, or a list with a text for each device.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Octets {
    source: Source,
    encoding: Encoding,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum Source {
    Template(Template),
    Listed(Arc<NameList>),
}

/// A text that stands for no bytes; it is not shown, since it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OctetsError {
    /// Something else than pairs of hexadecimal digits.
    #[error("it is no hexadecimal text: two digits of 0 to 9 and a to f for each byte")]
    Hex,
    /// Something else than Base64.
    #[error("it is no Base64 text (RFC 4648)")]
    Base64,
}

impl Octets {
    /// The bytes that the template's text stands for.
    pub fn new(template: Template, encoding: Encoding) -> Self {
        Self {
            source: Source::Template(template),
            encoding,
        }
    }

    /// The bytes of the template's text itself.
    pub fn text(template: Template) -> Self {
        Self::new(template, Encoding::Text)
    }

    /// The same bytes for all devices.
    pub fn fixed(bytes: &[u8]) -> Self {
        let mut text = String::new();
        bytes.iter().for_each(|byte| push_hex(*byte, &mut text));
        Self::new(Template::literal(&text), Encoding::Hex)
    }

    /// A list with the bytes of each device.
    pub fn listed<'a>(bytes: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut list = NameList::default();
        let mut text = String::new();
        for bytes in bytes {
            text.clear();
            bytes.iter().for_each(|byte| push_hex(*byte, &mut text));
            list.push(&text);
        }
        Self {
            source: Source::Listed(Arc::new(list)),
            encoding: Encoding::Hex,
        }
    }

    /// The template, if its text is the bytes; none if they are decoded.
    pub fn template(&self) -> Option<&Template> {
        match (&self.source, self.encoding) {
            (Source::Template(template), Encoding::Text) => Some(template),
            (Source::Template(_) | Source::Listed(_), _) => None,
        }
    }

    /// The template whose text stands for the bytes; none where each device's are listed.
    pub fn source_template(&self) -> Option<&Template> {
        match &self.source {
            Source::Template(template) => Some(template),
            Source::Listed(_) => None,
        }
    }

    /// Puts the bytes of the device at `place` of its fleet into `out`, which is emptied first.
    ///
    /// # Errors
    /// [`OctetsError`] if its text cannot be decoded.
    pub fn render(
        &self,
        scope: &Scope<'_>,
        place: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OctetsError> {
        out.clear();
        match &self.source {
            Source::Template(template) => {
                template.render(scope, out);
            }
            Source::Listed(list) => out.extend(list.get(place).unwrap_or_default().as_bytes()),
        }
        self.encoding.decode_in_place(out)
    }
}

impl Encoding {
    /// The bytes that a text stands for.
    ///
    /// # Errors
    /// [`OctetsError`] if it cannot be decoded.
    pub fn decode(self, mut text: Vec<u8>) -> Result<Vec<u8>, OctetsError> {
        self.decode_in_place(&mut text)?;
        Ok(text)
    }

    fn decode_in_place(self, text: &mut Vec<u8>) -> Result<(), OctetsError> {
        match self {
            Self::Text => Ok(()),
            Self::Hex => unhex(text).ok_or(OctetsError::Hex),
            Self::Base64 => unbase64(text).ok_or(OctetsError::Base64),
        }
    }
}

/// Bytes may be a secret: they are not shown.
impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Octets")
            .field("encoding", &self.encoding)
            .finish_non_exhaustive()
    }
}

fn push_hex(byte: u8, text: &mut String) {
    for half in [byte >> 4, byte & 15] {
        text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
    }
}

fn unhex(text: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.len() / 2;
    (text.len() == 2 * pairs).then_some(())?;
    for at in 0..pairs {
        let byte = digit(text[2 * at])? << 4 | digit(text[2 * at + 1])?;
        text[at] = byte as u8;
    }
    text.truncate(pairs);
    Some(())
}

fn unbase64(text: &mut Vec<u8>) -> Option<()> {
    let is_url = text.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let alphabet = if is_url {
        alphabet::URL_SAFE
    } else {
        alphabet::STANDARD
    };
    let padding =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    *text = GeneralPurpose::new(&alphabet, padding)
        .decode(&*text)
        .ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;

    fn rendered(octets: &Octets, place: u32) -> Result<Vec<u8>, OctetsError> {
        let id = MessageId {
            run: RunId(0),
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 0,
        };
        let scope = Scope {
            seed: 0,
            id,
            due: Micros::ZERO,
            wall_ms_at_t0: 0,
            name: "6d",
            index: 0,
            tenant: "",
            columns: None,
            unique: None,
        };
        let mut out = vec![1];
        octets.render(&scope, place, &mut out).map(|()| out)
    }

    fn decoded(text: &str, encoding: Encoding) -> Result<Vec<u8>, OctetsError> {
        rendered(&Octets::new(Template::parse(text).unwrap(), encoding), 0)
    }

    proptest! {
        /// Bytes that were listed read back.
        #[test]
        fn listed_bytes_read_back(all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 1..9)) {
            let octets = Octets::listed(all.iter().map(Vec::as_slice));
            for (place, bytes) in (0..).zip(&all) {
                prop_assert_eq!(&rendered(&octets, place).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn text_stands_for_bytes() {
        for (text, encoding, bytes) in [
            ("${id}", Encoding::Text, &b"6d"[..]),
            ("${id}00fFC3", Encoding::Hex, b"m\0\xff\xc3"),
            ("", Encoding::Hex, b""),
            ("+/8=", Encoding::Base64, b"\xfb\xff"),
            ("-_8", Encoding::Base64, b"\xfb\xff"),
        ] {
            assert_eq!(decoded(text, encoding).as_deref(), Ok(bytes), "{text}");
        }
        for text in ["abc", "0x00", "zz", "00 11"] {
            assert_eq!(
                decoded(text, Encoding::Hex),
                Err(OctetsError::Hex),
                "{text}"
            );
        }
        for text in ["a", "a b=", "+-8="] {
            assert_eq!(
                decoded(text, Encoding::Base64),
                Err(OctetsError::Base64),
                "{text}"
            );
        }
    }
}
