//! The target of a request: the segments of its path and its parameters, decoded.

use std::ops::Range;

use muster_model::percent;

/// A target that was taken apart (RFC 9112 section 3.2, RFC 3986 section 2.1); used again for every request.
#[derive(Debug, Default)]
pub(super) struct Target {
    text: String,
    segments: Vec<Range<usize>>,
    parameters: Vec<Range<usize>>,
}

impl Target {
    /// Takes the path, without its first slash, and the query; false if a part of them is no text once it is
    /// decoded.
    pub(super) fn decode(&mut self, target: &str) -> bool {
        self.text.clear();
        self.segments.clear();
        self.parameters.clear();
        let target = path_and_query(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let Self {
            text,
            segments,
            parameters,
        } = self;
        let mut take = |part: &str, to: &mut Vec<Range<usize>>| {
            let decoded = decode_into(part, text);
            to.extend(decoded.clone());
            decoded.is_some()
        };
        path.split('/').all(|segment| take(segment, segments))
            && query
                .split('&')
                .filter(|parameter| !parameter.is_empty())
                .all(|parameter| take(parameter, parameters))
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(|part| &self.text[part.clone()])
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|part| &self.text[part.clone()])
    }
}

/// The path and query of a target that may name a scheme and an authority, as those to a proxy do (RFC 9112
/// section 3.2.2).
pub(super) fn path_and_query(target: &str) -> &str {
    let Some((_, rest)) = target
        .split_once("://")
        .filter(|_| !target.starts_with('/'))
    else {
        return target;
    };
    rest.find(['/', '?']).map_or("", |at| &rest[at..])
}

/// Appends a part without its percent-encoding: its place; none, and nothing is appended, if no text results.
fn decode_into(part: &str, text: &mut String) -> Option<Range<usize>> {
    let from = text.len();
    text.push_str(&percent::decode(part)?);
    Some(from..text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(target: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut decoded = Target::default();
        decoded.decode("/left/over?x=1");
        decoded.decode(target).then(|| {
            let owned = |text: &str| text.to_owned();
            (
                decoded.segments().map(owned).collect(),
                decoded.parameters().map(owned).collect(),
            )
        })
    }

    #[test]
    fn a_target_is_taken_apart_before_it_is_decoded() {
        for (target, segments, parameters) in [
            ("/telemetry", &["telemetry"][..], &[][..]),
            ("/t//d?hono-ttd=10", &["t", "", "d"], &["hono-ttd=10"]),
            (
                "/a%2fb/%c3%A4?x=1&&y=%26",
                &["a/b", "\u{e4}"],
                &["x=1", "y=&"],
            ),
            ("http://host:80/e?a", &["e"], &["a"]),
            ("http://host", &[""], &[]),
            ("http://host?a", &[""], &["a"]),
            ("/x?to=http://host/", &["x"], &["to=http://host/"]),
            ("*", &["*"], &[]),
        ] {
            let (got, with) = parts(target).expect(target);
            assert!(got.iter().eq(segments), "{target}: {got:?}");
            assert!(with.iter().eq(parameters), "{target}: {with:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for target in ["/%", "/%4", "/%zz", "/%+1", "/%ff", "/%c3/%a4", "/x?a=%80"] {
            assert_eq!(parts(target), None, "{target}");
        }
    }

    proptest! {
        /// Law: anything is taken apart without a panic.
        #[test]
        fn any_target_is_read(target in "[/?&%a-f0-9:\u{e4}]{0,40}") {
            parts(&target);
        }
    }
}
