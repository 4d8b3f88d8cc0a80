//! The one way in which text files are read: encoding, byte-order mark, line ends, blanks.

use thiserror::Error;

/// A reason why the bytes of a file are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// Bytes that are no UTF-8.
    #[error("line {line} is no UTF-8 text; save the file as UTF-8")]
    Encoding {
        /// The first line that is none, from 1.
        line: usize,
    },
    /// Text in UTF-16, by its byte-order mark or a zero byte in its first character.
    #[error("the file is UTF-16 text; save it as UTF-8")]
    Utf16,
    /// A carriage return within a line.
    #[error("line {line} has a carriage return that ends no line; save the file with LF or CRLF")]
    CarriageReturn {
        /// The line, from 1.
        line: usize,
    },
}

/// The bytes of a file as text, without a byte-order mark.
///
/// # Errors
/// [`TextError`] names the line.
pub fn text(bytes: &[u8]) -> Result<&str, TextError> {
    let has_mark = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let is_wide = matches!(bytes, [0, other, ..] | [other, 0, ..] if *other != 0);
    if has_mark || is_wide {
        return Err(TextError::Utf16);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        TextError::Encoding { line }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The lines of a text with their numbers from 1, without their ends (LF or CRLF); a last line may
/// have none.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lines<'a> {
    /// All lines of a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            line: 0,
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, Result<&'a str, TextError>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let line = line.strip_suffix('\r').unwrap_or(line);
        self.rest = rest;
        self.line += 1;
        let number = self.line;
        let whole = match line.contains('\r') {
            true => Err(TextError::CarriageReturn { line: number }),
            false => Ok(line),
        };
        Some((number, whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_end() {
        for file in ["a\nb\n", "a\r\nb\r\n", "a\nb", "a\r\nb\r", "\u{feff}a\nb"] {
            let lines: Vec<_> = Lines::new(text(file.as_bytes()).unwrap()).collect();
            assert_eq!(lines, [(1, Ok("a")), (2, Ok("b"))], "{file:?}");
        }
        assert_eq!(Lines::new("").count(), 0);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_by_line() {
        assert_eq!(text(b"a\nb\xff"), Err(TextError::Encoding { line: 2 }));
        for file in [b"\xff\xfea\0", b"\xfe\xff\0a", b"a\0\n\0", b"\0a\0\n"] {
            assert_eq!(text(file), Err(TextError::Utf16));
        }
        let lines: Vec<_> = Lines::new("a\nb\rc\n").collect();
        assert_eq!(lines[1], (2, Err(TextError::CarriageReturn { line: 2 })));
    }
}
