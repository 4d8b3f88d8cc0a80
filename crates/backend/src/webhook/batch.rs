//! The elements of a JSON array, where they lie (RFC 8259 section 5).

/// Deepest nesting that is followed; deeper text counts as no array.
const DEPTH_MAX: u32 = 128;

/// Calls `each` with every element of the array that a body is. Returns false, without a call, if the body is no
/// array; the elements are not checked further.
pub(super) fn elements(body: &[u8], mut each: impl FnMut(&[u8])) -> bool {
    if walk(body, |_| {}).is_none() {
        return false;
    }
    walk(body, &mut each).is_some()
}

/// Walks over an array once; none if the body is none.
fn walk(body: &[u8], mut each: impl FnMut(&[u8])) -> Option<()> {
    let inside = body.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    if inside.trim_ascii().is_empty() {
        return Some(());
    }
    let (mut start, mut depth, mut is_text, mut is_escaped) = (0, 0_u32, false, false);
    for (at, byte) in inside.iter().enumerate() {
        if is_text {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                each(element(&inside[start..at])?);
                start = at + 1;
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return None;
        }
    }
    let is_whole = depth == 0 && !is_text;
    is_whole
        .then(|| element(&inside[start..]))
        .flatten()
        .map(each)
}

/// An element without the white space around it; none if there is nothing else.
fn element(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> Option<Vec<String>> {
        let mut all = Vec::new();
        let mut add = |text: &[u8]| all.push(String::from_utf8_lossy(text).into_owned());
        elements(body.as_bytes(), &mut add).then_some(all)
    }

    #[test]
    fn each_element_is_found_where_it_lies() {
        for (body, wanted) in [
            ("[]", vec![]),
            (" [ 1 ] ", vec!["1"]),
            (
                r#"[{"a":[1,2]},{"b":"],[\","}]"#,
                vec![r#"{"a":[1,2]}"#, r#"{"b":"],[\","}"#],
            ),
            (r#"["a,b", [[]], null]"#, vec![r#""a,b""#, "[[]]", "null"]),
        ] {
            assert_eq!(
                found(body),
                Some(wanted.into_iter().map(str::to_owned).collect()),
                "{body}"
            );
        }
    }

    #[test]
    fn what_is_no_array_has_no_elements_and_calls_nobody() {
        for body in [
            "",
            "[",
            "{}",
            "[1",
            "1]",
            "[1,]",
            "[,1]",
            "[1}]",
            "[{]",
            "[\"a]",
            "[1,\"\\\"]",
        ] {
            assert_eq!(found(body), None, "{body}");
        }
        assert_eq!(found(&"[".repeat(500)), None);
        assert_eq!(
            found(&format!("{}{}", "[".repeat(500), "]".repeat(500))),
            None
        );
    }
}
