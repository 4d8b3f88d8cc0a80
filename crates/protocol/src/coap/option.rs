//! Options: their numbers, the classes of numbers, and the values that each known one may have
//! (RFC 7252 sections 5.4 and 5.10).

use std::fmt;
use std::ops::Deref;

/// The number of an option (section 5.4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OptionNumber(pub u16);

impl OptionNumber {
    /// Uri-Host (section 5.10.1).
    pub const URI_HOST: Self = Self(3);
    /// `ETag` (section 5.10.6).
    pub const ETAG: Self = Self(4);
    /// Observe (RFC 7641 section 2).
    pub const OBSERVE: Self = Self(6);
    /// Location-Path (section 5.10.7).
    pub const LOCATION_PATH: Self = Self(8);
    /// Uri-Path (section 5.10.1).
    pub const URI_PATH: Self = Self(11);
    /// Content-Format (section 5.10.3).
    pub const CONTENT_FORMAT: Self = Self(12);
    /// Max-Age (section 5.10.5).
    pub const MAX_AGE: Self = Self(14);
    /// Uri-Query (section 5.10.1).
    pub const URI_QUERY: Self = Self(15);
    /// Location-Query (section 5.10.7).
    pub const LOCATION_QUERY: Self = Self(20);
    /// Block2: a block of a response's body (RFC 7959 section 2.1).
    pub const BLOCK2: Self = Self(23);
    /// Block1: a block of a request's body (RFC 7959 section 2.1).
    pub const BLOCK1: Self = Self(27);
    /// Size2: bytes of a response's body (RFC 7959 section 4).
    pub const SIZE2: Self = Self(28);
    /// Proxy-Uri (section 5.10.2).
    pub const PROXY_URI: Self = Self(35);
    /// Proxy-Scheme (section 5.10.2).
    pub const PROXY_SCHEME: Self = Self(39);
    /// Size1: bytes of a request's body (section 5.10.9, RFC 7959 section 4).
    pub const SIZE1: Self = Self(60);
    /// No-Response: classes of responses that the client does not want (RFC 7967 section 2).
    pub const NO_RESPONSE: Self = Self(258);

    /// Returns true if a receiver that does not know the option must reject the message (section
    /// 5.4.1).
    pub const fn is_critical(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns true if a proxy that does not know the option may not forward it (section 5.4.2).
    pub const fn is_unsafe(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns true if the option is no part of the cache key (section 5.4.2).
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1e == 0x1c
    }

    /// Returns its definition; none for an unknown option.
    pub fn definition(self) -> Option<&'static Definition> {
        let at = DEFINITIONS.binary_search_by_key(&self.0, |known| known.number.0);
        at.ok().map(|at| &DEFINITIONS[at])
    }
}

impl fmt::Display for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.definition() {
            Some(known) => write!(f, "{} ({})", self.0, known.name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Rules of an option: a row of table 4 (section 5.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Its number.
    pub number: OptionNumber,
    /// Its name in its standard.
    pub name: &'static str,
    /// True if it may be given more than once (section 5.4.5).
    pub is_repeatable: bool,
    /// Bytes of its shortest and longest value (section 5.4.3).
    pub length: (u16, u16),
}

const fn row(
    number: OptionNumber,
    name: &'static str,
    is_repeatable: bool,
    length: (u16, u16),
) -> Definition {
    Definition {
        number,
        name,
        is_repeatable,
        length,
    }
}

/// In the order of the numbers.
const DEFINITIONS: [Definition; 20] = [
    row(OptionNumber(1), "If-Match", true, (0, 8)),
    row(OptionNumber::URI_HOST, "Uri-Host", false, (1, 255)),
    row(OptionNumber::ETAG, "ETag", true, (1, 8)),
    row(OptionNumber(5), "If-None-Match", false, (0, 0)),
    row(OptionNumber::OBSERVE, "Observe", false, (0, 3)),
    row(OptionNumber(7), "Uri-Port", false, (0, 2)),
    row(OptionNumber::LOCATION_PATH, "Location-Path", true, (0, 255)),
    row(OptionNumber::URI_PATH, "Uri-Path", true, (0, 255)),
    row(
        OptionNumber::CONTENT_FORMAT,
        "Content-Format",
        false,
        (0, 2),
    ),
    row(OptionNumber::MAX_AGE, "Max-Age", false, (0, 4)),
    row(OptionNumber::URI_QUERY, "Uri-Query", true, (0, 255)),
    row(OptionNumber(17), "Accept", false, (0, 2)),
    row(
        OptionNumber::LOCATION_QUERY,
        "Location-Query",
        true,
        (0, 255),
    ),
    row(OptionNumber::BLOCK2, "Block2", false, (0, 3)),
    row(OptionNumber::BLOCK1, "Block1", false, (0, 3)),
    row(OptionNumber::SIZE2, "Size2", false, (0, 4)),
    row(OptionNumber::PROXY_URI, "Proxy-Uri", false, (1, 1034)),
    row(OptionNumber::PROXY_SCHEME, "Proxy-Scheme", false, (1, 255)),
    row(OptionNumber::SIZE1, "Size1", false, (0, 4)),
    row(OptionNumber::NO_RESPONSE, "No-Response", false, (0, 1)),
];

/// One option of a message: its number and its value, as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opt<'a> {
    /// Its number.
    pub number: OptionNumber,
    /// Its value; text is UTF-8, a number has the form of [`Uint`].
    pub value: &'a [u8],
}

impl<'a> Opt<'a> {
    /// An option with a value of bytes or of a [`Uint`].
    pub const fn new(number: OptionNumber, value: &'a [u8]) -> Self {
        Self { number, value }
    }

    /// An option with text.
    pub const fn text(number: OptionNumber, value: &'a str) -> Self {
        Self::new(number, value.as_bytes())
    }

    /// The value as a number, where it is no longer than a number may be (section 3.2).
    pub fn uint(&self) -> Option<u32> {
        let fits = self.value.len() <= 4;
        let number = |value: &[u8]| {
            value
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
        };
        fits.then(|| number(self.value))
    }
}

/// A number as the value of an option: its bytes without leading zeros (section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uint {
    bytes: [u8; 4],
    skipped: u8,
}

impl Uint {
    /// The shortest form of a number; zero is no bytes.
    pub const fn of(value: u32) -> Self {
        Self {
            bytes: value.to_be_bytes(),
            skipped: (value.leading_zeros() / 8) as u8,
        }
    }
}

impl Deref for Uint {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[usize::from(self.skipped)..]
    }
}

/// Content formats that platforms of this project name (section 12.3).
pub mod content_format {
    /// text/plain; charset=utf-8.
    pub const TEXT: u16 = 0;
    /// application/octet-stream.
    pub const OCTET_STREAM: u16 = 42;
    /// application/json.
    pub const JSON: u16 = 50;

    const MEDIA_TYPES: [(u16, &str); 6] = [
        (TEXT, "text/plain"),
        (40, "application/link-format"),
        (41, "application/xml"),
        (OCTET_STREAM, "application/octet-stream"),
        (JSON, "application/json"),
        (60, "application/cbor"),
    ];

    /// The media type of a number, without parameters; none if it is none of these.
    pub fn media_type(number: u32) -> Option<&'static str> {
        let mut all = MEDIA_TYPES.into_iter();
        let found = all.find(|(known, _)| u32::from(*known) == number);
        found.map(|(_, media_type)| media_type)
    }

    /// The number of a media type, whatever its parameters; none if it is none of these.
    pub fn of_media_type(media_type: &str) -> Option<u16> {
        let bare = media_type.split(';').next()?.trim();
        let mut all = MEDIA_TYPES.into_iter();
        let found = all.find(|(_, known)| known.eq_ignore_ascii_case(bare));
        found.map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_has_a_number_and_a_number_a_media_type() {
        for (number, text) in [
            (0, "text/plain"),
            (50, "application/json"),
            (60, "application/cbor"),
        ] {
            assert_eq!(content_format::media_type(number), Some(text));
            assert_eq!(
                content_format::of_media_type(text).map(u32::from),
                Some(number)
            );
        }
        let text = content_format::of_media_type("Text/Plain; charset=utf-8");
        assert_eq!(text, Some(content_format::TEXT));
        assert_eq!(content_format::media_type(51), None);
        assert_eq!(content_format::of_media_type("image/png"), None);
    }

    /// RFC 7252 section 5.10, table 4: the columns C, U and N of every option there, and those of
    /// RFC 7641 section 2 and RFC 7959 section 2.1.
    #[test]
    fn a_number_tells_critical_unsafe_and_no_cache_key() {
        for known in DEFINITIONS {
            let number = known.number;
            let told = (
                number.is_critical(),
                number.is_unsafe(),
                number.is_no_cache_key(),
            );
            let wanted = match number.0 {
                1 | 5 => (true, false, false),
                3 | 7 | 11 | 15 | 35 | 39 | 23 | 27 => (true, true, false),
                4 | 8 | 12 | 20 => (false, false, false),
                6 | 14 => (false, true, false),
                17 => (true, false, false),
                28 | 60 => (false, false, true),
                258 => (false, true, false),
                other => panic!("no row for {other}"),
            };
            assert_eq!(told, wanted, "{number}");
        }
    }

    #[test]
    fn definitions_stand_in_order_so_that_they_are_found() {
        for known in &DEFINITIONS {
            assert_eq!(known.number.definition(), Some(known));
        }
        assert_eq!(OptionNumber(9).definition(), None);
        assert_eq!(OptionNumber(65_000).to_string(), "65000");
        assert_eq!(OptionNumber::URI_PATH.to_string(), "11 (Uri-Path)");
    }

    /// RFC 7252 section 3.2: a number has no leading zeros, and zero no bytes at all.
    #[test]
    fn numbers_take_the_fewest_bytes() {
        for (value, bytes) in [
            (0, &[][..]),
            (1, &[1]),
            (255, &[255]),
            (256, &[1, 0]),
            (65_536, &[1, 0, 0]),
            (u32::MAX, &[255; 4]),
        ] {
            assert_eq!(&*Uint::of(value), bytes);
            assert_eq!(Opt::new(OptionNumber::MAX_AGE, bytes).uint(), Some(value));
        }
        assert_eq!(Opt::new(OptionNumber::MAX_AGE, &[0; 5]).uint(), None);
        assert_eq!(Opt::new(OptionNumber::MAX_AGE, &[0, 7]).uint(), Some(7));
    }
}
