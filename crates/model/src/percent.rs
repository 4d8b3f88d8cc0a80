//! Percent-encoding of texts in addresses (RFC 3986 section 2.1), the same for every crate.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str};

const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const SEGMENT: &AsciiSet = &VALUE
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');
const PATH: &AsciiSet = &SEGMENT.remove(b'/');
const QUERY: &AsciiSet = &PATH.remove(b'?');
const TARGET: &AsciiSet = &CONTROLS.add(b' ').add(b'#');

/// Part of an address, each with the characters that it holds as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A value in a query, or a text among other marks: unreserved characters alone (section 2.3).
    Value,
    /// A segment of a path (section 3.3).
    Segment,
    /// A path with its slashes.
    Path,
    /// A query (section 3.4).
    Query,
    /// A path with its query that somebody has encoded: only what no line of a request can hold is encoded.
    Target,
}

impl Part {
    /// Appends a text in the encoding of this part.
    #[inline]
    pub fn encode(self, text: &str, out: &mut String) {
        let set = match self {
            Self::Value => VALUE,
            Self::Segment => SEGMENT,
            Self::Path => PATH,
            Self::Query => QUERY,
            Self::Target => TARGET,
        };
        out.extend(percent_encoding::utf8_percent_encode(text, set));
    }
}

/// Returns the text that was encoded; none if a `%` has no two hexadecimal digits behind it, or no text results.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let is_whole = |behind: &str| {
        let digits = behind.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_whole) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Part; 5] = [
        Part::Value,
        Part::Segment,
        Part::Path,
        Part::Query,
        Part::Target,
    ];

    fn encoded(part: Part, text: &str) -> String {
        let mut out = "before:".to_owned();
        part.encode(text, &mut out);
        out.split_off("before:".len())
    }

    #[test]
    fn each_part_keeps_its_own_marks() {
        let text = "a b/c?d&e%#\u{e4}";
        for (part, wanted) in [
            (Part::Value, "a%20b%2Fc%3Fd%26e%25%23%C3%A4"),
            (Part::Segment, "a%20b%2Fc%3Fd&e%25%23%C3%A4"),
            (Part::Path, "a%20b/c%3Fd&e%25%23%C3%A4"),
            (Part::Query, "a%20b/c?d&e%25%23%C3%A4"),
            (Part::Target, "a%20b/c?d&e%%23%C3%A4"),
        ] {
            assert_eq!(encoded(part, text), wanted, "{part:?}");
        }
        assert_eq!(encoded(Part::Target, "x[]=|%20\r\n"), "x[]=|%20%0D%0A");
        assert_eq!(
            encoded(Part::Segment, "-._~!$&'()*+,;=:@"),
            "-._~!$&'()*+,;=:@"
        );
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for wrong in ["%", "%4", "a%zz", "%+1", "%%41", "%4%1", "%ff", "%c3/%a4"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode("a+b%2f%C3%a4").as_deref(), Some("a+b/\u{e4}"));
        assert!(matches!(decode("plain"), Some(Cow::Borrowed("plain"))));
    }

    proptest! {
        /// Law: a text comes back as it was, and what goes over the wire is visible ASCII.
        #[test]
        fn decoding_inverts_encoding(text: String) {
            for part in ALL {
                let encoded = encoded(part, &text);
                prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
                if part != Part::Target {
                    let decoded = decode(&encoded);
                    prop_assert_eq!(decoded.as_deref(), Some(text.as_str()));
                }
            }
        }
    }
}
