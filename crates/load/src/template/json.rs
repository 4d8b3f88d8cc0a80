//! Values within the strings of a JSON template (RFC 8259 section 7).

use super::parse::{close_of, is_escapable};

/// Bytes of a text in a string of JSON.
pub fn escaped_length(text: &[u8]) -> usize {
    text.len() + text.iter().map(|byte| longer(*byte)).sum::<usize>()
}

/// Returns true if a text must be escaped in a JSON string.
pub fn needs_escapes(text: &str) -> bool {
    escaped_length(text.as_bytes()) > text.len()
}

/// The same template with each `${id}`, `${tenant}` and column inside a string literal written
/// `${json:...}` if a value of it `needs` that, so that none can end the literal. `is_inside` is
/// true if the text begins inside one.
pub fn escape_json(source: &str, mut is_inside: bool, needs: &dyn Fn(&str) -> bool) -> String {
    let mut escaped = String::new();
    let mut rest = source;
    while let Some(open) = rest.find("${") {
        let before = &rest[..open];
        is_inside = after(before, is_inside);
        escaped.push_str(before);
        rest = &rest[open..];
        let close = close_of(rest).filter(|_| !before.ends_with('$'));
        let Some(close) = close else {
            escaped.push_str("${");
            rest = &rest[2..];
            continue;
        };
        let name = &rest[2..close];
        if is_inside && is_escapable(name) && needs(name) {
            escaped.push_str("${json:");
            escaped.push_str(&rest[2..=close]);
        } else {
            escaped.push_str(&rest[..=close]);
        }
        rest = &rest[close + 1..];
    }
    escaped.push_str(rest);
    escaped
}

/// A text as a string of JSON holds it.
pub fn escaped_for_json(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    escape(&mut out, 0);
    String::from_utf8(out).unwrap_or_default()
}

/// Returns true if the text of a JSON template ends inside a string literal.
pub fn is_inside_string(text: &str) -> bool {
    after(text, false)
}

/// Returns true if a string literal is open after a text.
fn after(text: &str, is_inside: bool) -> bool {
    let mut is_escaped = false;
    text.bytes().fold(is_inside, |is_inside, byte| {
        let is_quote = byte == b'"' && !is_escaped;
        is_escaped = is_inside && byte == b'\\' && !is_escaped;
        is_inside ^ is_quote
    })
}

/// Escapes the bytes of `out` from `start` on, in place.
pub(super) fn escape(out: &mut Vec<u8>, start: usize) {
    let end = out.len();
    let length = escaped_length(&out[start..]);
    if start + length == end {
        return;
    }
    out.resize(start + length, 0);
    let (mut from, mut to) = (end, out.len());
    while from < to {
        from -= 1;
        let byte = out[from];
        let mut written = [b'\\', b'u', b'0', b'0', 0, 0];
        let written: &[u8] = match (longer(byte), short(byte)) {
            (0, _) => &[byte],
            (1, letter) => {
                written[1] = letter;
                &written[..2]
            }
            (_, _) => {
                let digits = b"0123456789abcdef";
                written[4] = digits[usize::from(byte >> 4)];
                written[5] = digits[usize::from(byte & 15)];
                &written
            }
        };
        to -= written.len();
        out[to..to + written.len()].copy_from_slice(written);
    }
}

/// Bytes that one becomes longer by its escape.
fn longer(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

/// The letter of a short escape.
fn short(byte: u8) -> u8 {
    match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 => b'b',
        12 => b'f',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// An escaped text between quotes is JSON of that text, whatever stands before it.
        #[test]
        fn an_escaped_text_reads_back(text in "(\\PC|[\\x00-\\x1f\"\\\\]){0,30}", before in "\\PC{0,5}") {
            let mut out = format!("{before}\"{text}").into_bytes();
            escape(&mut out, before.len() + 1);
            prop_assert_eq!(out.len(), before.len() + 1 + escaped_length(text.as_bytes()));
            out.push(b'"');
            let read: String = serde_json::from_slice(&out[before.len()..]).unwrap();
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn values_within_string_literals_alone_are_escaped() {
        for (source, expected) in [
            (r#"{"a":"${x}","b":${x}}"#, r#"{"a":"${json:x}","b":${x}}"#),
            (
                r#"{"a":"\"${id}-${seq}"}"#,
                r#"{"a":"\"${json:id}-${seq}"}"#,
            ),
            (r#"{"a\\":${x}}"#, r#"{"a\\":${x}}"#),
            (
                r#"{"${x}":"${tenant}${stamp}"}"#,
                r#"{"${json:x}":"${json:tenant}${stamp}"}"#,
            ),
            (
                r#"{"a":"${choice:x"y|z}","b":"${c}"}"#,
                r#"{"a":"${choice:x"y|z}","b":"${json:c}"}"#,
            ),
            (r#"{"a":"$${x}${json:y}"}"#, r#"{"a":"$${x}${json:y}"}"#),
            (r#"{"a":"${open"#, r#"{"a":"${open"#),
        ] {
            assert_eq!(escape_json(source, false, &|_| true), expected);
            assert_eq!(escape_json(source, false, &|_| false), source);
        }
        let inside = escape_json("${id}-${seq}", true, &|name| name == "id");
        assert_eq!(inside, "${json:id}-${seq}");
    }
}
