//! A JSON pointer followed through JSON text without building a tree (RFC 6901, RFC 8259).

use crate::json::Json;

/// The raw bytes between the quotes of the string that `pointer` leads to; none if it leads
/// nowhere, or to something else. Escapes are left as they are: a stamp has none.
pub(crate) fn string_at<'a>(json: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    follow(json, pointer)?.string()
}

/// The same for a string or another value, which is given as it stands.
pub(crate) fn scalar_at<'a>(json: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut json = follow(json, pointer)?;
    if json.peek()? == b'"' {
        return json.string();
    }
    json.value()
}

/// The string or number that a JSON pointer leads to (RFC 6901), as it stands, without quotes; none if it
/// leads nowhere, or to something else.
pub fn id_at<'a>(json: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut json = follow(json, pointer)?;
    match json.peek()? {
        b'"' => json.string(),
        b'-' | b'0'..=b'9' => json.value(),
        _ => None,
    }
}

fn follow<'a>(json: &'a [u8], pointer: &str) -> Option<Json<'a>> {
    let mut json = Json::new(json);
    for step in pointer.strip_prefix('/')?.split('/') {
        descend(&mut json, step)?;
    }
    Some(json)
}

/// Goes to the member or element that one step names.
fn descend(json: &mut Json<'_>, step: &str) -> Option<()> {
    match json.peek()? {
        b'{' => member(json, step),
        b'[' => element(json, step.parse().ok()?),
        _ => None,
    }
}

fn member(json: &mut Json<'_>, name: &str) -> Option<()> {
    json.take(b'{')?;
    let mut goes_on = json.begins(b'}')?;
    while goes_on {
        if is_key(json.key()?, name) {
            return Some(());
        }
        json.skip()?;
        goes_on = json.goes_on(b'}')?;
    }
    None
}

fn element(json: &mut Json<'_>, index: usize) -> Option<()> {
    json.take(b'[')?;
    let mut goes_on = json.begins(b']')?;
    for _ in 0..index {
        goes_on.then_some(())?;
        json.skip()?;
        goes_on = json.goes_on(b']')?;
    }
    goes_on.then_some(())
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

    #[test]
    fn an_id_is_a_string_or_a_number() {
        let json = br#"{"a": "x-1", "b": 41, "c": true, "d": {"e": -7}, "f": [null]}"#;
        let ids = ["/a", "/b", "/c", "/d", "/d/e", "/f/0", "/g"].map(|at| id_at(json, at));
        assert_eq!(
            ids,
            [
                Some(&b"x-1"[..]),
                Some(b"41"),
                None,
                None,
                Some(b"-7"),
                None,
                None
            ]
        );
    }

    proptest! {
        /// Law: for any bytes, following a pointer ends and does not panic.
        #[test]
        fn any_bytes_are_survived(json: Vec<u8>, braces in "[{}\\[\\]\",:a\\\\ 0]{0,40}") {
            string_at(&json, "/a/0");
            string_at(braces.as_bytes(), "/a/0");
        }
    }
}
