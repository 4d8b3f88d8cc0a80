//! JSON text read in place, token by token, without building a tree (RFC 8259).
//!
//! Only the grammar is checked; strings are given as they stand, with their escapes.

/// Deepest nesting of a value that is skipped: what platforms send has three or four levels, and
/// one bit distinguishes an array from an object.
const DEPTH_MAX: u32 = 64;

/// A place in JSON text. Every method is none once the text is not JSON.
#[derive(Debug, Clone)]
pub(crate) struct Json<'a> {
    text: &'a [u8],
    at: usize,
}

/// Open container while a value is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Array,
    Object,
}

impl<'a> Json<'a> {
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The first byte of the next token.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        let blanks = rest.iter().take_while(|byte| b" \t\r\n".contains(byte));
        self.at += blanks.count();
        self.text.get(self.at).copied()
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take(&mut self, token: u8) -> Option<()> {
        (self.peek()? == token).then(|| self.at += 1)
    }

    /// After an element or a member: whether another one follows, else the closing token is taken.
    pub(crate) fn goes_on(&mut self, close: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        match next {
            b',' => Some(true),
            _ if next == close => Some(false),
            _ => None,
        }
    }

    /// After an opening token: whether there is anything before the closing one, which is else
    /// taken.
    pub(crate) fn begins(&mut self, close: u8) -> Option<bool> {
        let is_empty = self.peek()? == close;
        self.at += usize::from(is_empty);
        Some(!is_empty)
    }

    /// The key of a member, as it stands between its quotes.
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.string()?;
        self.take(b':')?;
        Some(key)
    }

    /// A string, as it stands between its quotes (section 7).
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let byte = self.next()?;
            match byte {
                b'"' => return self.text.get(start..self.at - 1),
                b'\\' => self.escape()?,
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    /// Any value, as it stands.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// Reads the members of an object; `each` takes the value of a member.
    pub(crate) fn members(
        &mut self,
        mut each: impl FnMut(&'a [u8], &mut Self) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        let mut goes_on = self.begins(b'}')?;
        while goes_on {
            let key = self.key()?;
            each(key, self)?;
            goes_on = self.goes_on(b'}')?;
        }
        Some(())
    }

    /// Returns true if nothing but blanks is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Skips a value, however it nests.
    pub(crate) fn skip(&mut self) -> Option<()> {
        let mut open = Nesting::default();
        loop {
            if self.opens(&mut open)? {
                continue;
            }
            loop {
                let Some(inner) = open.innermost() else {
                    return Some(());
                };
                let close = if inner == Open::Array { b']' } else { b'}' };
                if !self.goes_on(close)? {
                    open.close();
                    continue;
                }
                if inner == Open::Object {
                    self.key()?;
                }
                break;
            }
        }
    }

    /// Takes a scalar, or goes into an array or object that is not empty, which is then true.
    fn opens(&mut self, open: &mut Nesting) -> Option<bool> {
        let (kind, close) = match self.peek()? {
            b'[' => (Open::Array, b']'),
            b'{' => (Open::Object, b'}'),
            b'"' => return self.string().map(|_| false),
            b't' => return self.word(b"true"),
            b'f' => return self.word(b"false"),
            b'n' => return self.word(b"null"),
            _ => return self.number().map(|()| false),
        };
        self.at += 1;
        if !self.begins(close)? {
            return Some(false);
        }
        open.open(kind)?;
        if kind == Open::Object {
            self.key()?;
        }
        Some(true)
    }

    fn word(&mut self, word: &[u8]) -> Option<bool> {
        let is_there = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        is_there.then_some(false)
    }

    /// A number (section 6).
    fn number(&mut self) -> Option<()> {
        self.take_if(|byte| byte == b'-');
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return None,
        }
        if self.take_if(|byte| byte == b'.') {
            self.digits().then_some(())?;
        }
        if self.take_if(|byte| matches!(byte, b'e' | b'E')) {
            self.take_if(|byte| matches!(byte, b'+' | b'-'));
            self.digits().then_some(())?;
        }
        Some(())
    }

    /// Takes digits; whether there was any.
    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.take_if(|byte| byte.is_ascii_digit()) {}
        self.at > start
    }

    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn take_if(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let is_there = self.text.get(self.at).is_some_and(|byte| wanted(*byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
}

/// The arrays and objects that are open, the innermost in the lowest bit.
#[derive(Debug, Default, Clone, Copy)]
struct Nesting {
    objects: u64,
    depth: u32,
}

impl Nesting {
    fn open(&mut self, kind: Open) -> Option<()> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.objects = self.objects << 1 | u64::from(kind == Open::Object);
        self.depth += 1;
        Some(())
    }

    fn close(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn innermost(self) -> Option<Open> {
        match (self.depth, self.objects & 1) {
            (0, _) => None,
            (_, 0) => Some(Open::Array),
            (_, _) => Some(Open::Object),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_json(text: &[u8]) -> bool {
        let mut json = Json::new(text);
        json.skip().is_some() && json.is_at_end()
    }

    #[test]
    fn what_is_json_is_skipped_whole() {
        for text in [
            "0",
            "-0.5e+10",
            "\"\\u00e9 \\\\ \\\"\"",
            "[]",
            "{}",
            " [ 1 , [ ] , { \"a\" : [ { } , null ] } ] ",
            "{\"a\":{\"b\":{\"c\":[true,false]}},\"d\":1}",
        ] {
            assert!(is_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_none() {
        for text in [
            "",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "1e",
            "tru",
            "\"open",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1 2]",
            "[}",
            "{]",
            "\"\n\"",
            "1 1",
        ] {
            assert!(!is_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_its_bound() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b'1'], vec![b']'; depth]].concat();
        assert!(is_json(&nested(64)));
        assert!(!is_json(&nested(65)));
    }

    proptest! {
        /// Law: this reader and another accept the same text as JSON, except for numbers and half
        /// characters that the other cannot hold.
        #[test]
        fn two_readers_agree(text in "[\\[\\]{}\",:0-9a\\-.eEtrufalsn\\\\ ]{0,24}") {
            let others = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            let ours = is_json(text.as_bytes());
            prop_assert!(ours || !others, "{text}");
            prop_assert!(others || !ours || text.contains(['e', 'E', 'u']), "{text}");
        }

        /// Law: for any bytes, reading ends and does not panic.
        #[test]
        fn any_bytes_are_survived(text: Vec<u8>) {
            is_json(&text);
        }
    }
}
