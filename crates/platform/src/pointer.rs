//! A JSON pointer followed through JSON text without building a tree (RFC 6901, RFC 8259).

/// The raw bytes between the quotes of the string that `pointer` leads to; none if it leads
/// nowhere, or to something else. Escapes are left as they are: a stamp has none.
pub(crate) fn string_at<'a>(json: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut text = Text { json, at: 0 };
    for step in pointer.strip_prefix('/')?.split('/') {
        text.descend(step)?;
    }
    text.skip_space();
    text.string()
}

struct Text<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    /// Goes to the member or element that one step names.
    fn descend(&mut self, step: &str) -> Option<()> {
        self.skip_space();
        match self.next()? {
            b'{' => self.member(step),
            b'[' => self.element(step.parse().ok()?),
            _ => None,
        }
    }

    fn member(&mut self, name: &str) -> Option<()> {
        loop {
            self.skip_space();
            let key = self.string()?;
            self.skip_space();
            if self.next()? != b':' {
                return None;
            }
            if is_key(key, name) {
                return Some(());
            }
            self.skip_value()?;
            self.skip_space();
            if self.next()? != b',' {
                return None;
            }
        }
    }

    fn element(&mut self, index: usize) -> Option<()> {
        for _ in 0..index {
            self.skip_value()?;
            self.skip_space();
            if self.next()? != b',' {
                return None;
            }
        }
        Some(())
    }

    fn skip_value(&mut self) -> Option<()> {
        self.skip_space();
        match self.json.get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let rest = &self.json[self.at..];
                self.at += rest.iter().position(|byte| b",]}".contains(byte))?;
                Some(())
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match *self.json.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        if self.next()? != b'"' {
            return None;
        }
        let start = self.at;
        loop {
            match self.next()? {
                b'"' => return Some(&self.json[start..self.at - 1]),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    fn skip_space(&mut self) {
        while self.json.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.json.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
}

/// A key against a step of a pointer, in which `~1` is a slash and `~0` a tilde (RFC 6901
/// section 4).
fn is_key(key: &[u8], step: &str) -> bool {
    if step.contains('~') {
        return key == step.replace("~1", "/").replace("~0", "~").as_bytes();
    }
    key == step.as_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(json: &str, pointer: &str, expected: Option<&str>) {
        let found = string_at(json.as_bytes(), pointer);
        assert_eq!(found, expected.map(str::as_bytes), "{pointer} in {json}");
    }

    #[test]
    fn a_pointer_leads_through_members_and_elements() {
        let json = r#" {"a": {"x": [1, "two", {"}": "]"}], "b" : "here"}, "c/d": "slash"} "#;
        check(json, "/a/b", Some("here"));
        check(json, "/a/x/1", Some("two"));
        check(json, "/a/x/2/}", Some("]"));
        check(json, "/c~1d", Some("slash"));
        check(json, "/a/x/0", None);
        check(json, "/a/nowhere", None);
        check(json, "/a/x/9", None);
        check("", "/a", None);
        check(r#"{"a":"open"#, "/a", None);
    }

    proptest! {
        /// Whatever the bytes, following a pointer ends and does not panic.
        #[test]
        fn any_bytes_are_survived(json: Vec<u8>, braces in "[{}\\[\\]\",:a\\\\ 0]{0,40}") {
            string_at(&json, "/a/0");
            string_at(braces.as_bytes(), "/a/0");
        }
    }
}
