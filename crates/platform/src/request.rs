//! A device's request to a platform, and its answer.
//!
//! On platforms that are no brokers over CoAP or HTTP each message is a request with an answer. Nothing
//! here knows the bytes of either protocol: the driver of a session turns a [`Request`] into the
//! options of its protocol, and the answer's options into [`Field`]s.

use std::fmt;

use muster_model::Micros;

use crate::command::CommandCopy;

/// Bytes of one segment of a path, as of CoAP's Location-Path and Uri-Path (RFC 7252 section 5.10).
pub const SEGMENT_MAX: usize = 255;
/// Segments of a path at the most.
pub const SEGMENTS_MAX: usize = 21;
/// Most segments of the path of a reply.
const REPLY_SEGMENTS_MAX: usize = 8;

/// Limits of a platform's requests, as installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestLimits {
    /// The longest body, in bytes; a longer one is refused.
    pub body: u32,
    /// Code of that refusal, as the protocol writes it.
    pub body_code: &'static str,
    /// Key of that limit in the platform's settings.
    pub body_key: &'static str,
    /// Longest time that a device may wait for a command.
    pub ttd: Micros,
    /// Key of that limit in the platform's settings.
    pub ttd_key: &'static str,
}

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// Anything else, which no dialect asks for.
    Other,
}

/// Form of a stream's request, without its path and its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking<'a> {
    /// The rendered path, with slashes between its segments and none before the first.
    pub path: &'a str,
    /// The rendered payload.
    pub payload: &'a [u8],
    /// Its media type.
    pub content_type: Option<&'a str>,
    /// True if the protocol must send it until it is acknowledged.
    pub is_at_least_once: bool,
    /// The whole seconds for which the device waits for a command; none if it asks for none.
    pub ttd_s: Option<u32>,
    /// The user name, or the token, of the device's link, where requests name it in their path
    /// ([`Requests::path_token`](crate::Requests::path_token)); empty elsewhere.
    pub login: &'a str,
}

/// A reply to a command that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answering<'a> {
    /// The path that came with the command.
    pub to: &'a ReplyPath,
    /// The result of the command, as a status of HTTP.
    pub status: u16,
    /// The body.
    pub payload: &'a [u8],
    /// The same as [`Asking::login`].
    pub login: &'a str,
}

/// One request of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its method.
    pub method: Method,
    /// With what.
    pub path: Segments<'a>,
    /// The parameters, with an ampersand between two; [`Request::parameters`] parts them.
    pub query: &'a str,
    /// The payload's media type; none if the request names none.
    pub content_type: Option<&'a str>,
    /// Further headers, with names in lower case. They are for protocols that have headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// True if the protocol must send it until it is acknowledged.
    pub is_at_least_once: bool,
    /// The body.
    pub payload: &'a [u8],
}

impl<'a> Request<'a> {
    /// The parameters one by one, such as `hono-ttd=10`.
    pub fn parameters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let parameters = self.query.split('&');
        parameters.filter(|parameter| !parameter.is_empty())
    }
}

/// The segments of a path, one by one. A segment may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments<'a>(Form<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form<'a> {
    /// With slashes between them; none if there is no more.
    Text(Option<&'a str>),
    /// Each behind its length.
    Kept(&'a [u8]),
}

impl<'a> Segments<'a> {
    /// Splits a text with slashes between the segments, and none before the first.
    pub const fn of(path: &'a str) -> Self {
        Self(Form::Text(Some(path)))
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match &mut self.0 {
            Form::Text(left) => {
                let text = (*left)?;
                let (segment, rest) = match text.split_once('/') {
                    Some((segment, rest)) => (segment, Some(rest)),
                    None => (text, None),
                };
                *left = rest;
                Some(segment)
            }
            Form::Kept(left) => {
                let (length, rest) = left.split_first()?;
                let (segment, rest) = rest.split_at_checked(usize::from(*length))?;
                *left = rest;
                std::str::from_utf8(segment).ok()
            }
        }
    }
}

/// Path of the reply to a command: the segments that came with it, unchanged. Bounded, and used
/// again for other commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyPath {
    /// Each segment behind its length.
    segments: Vec<u8>,
    count: usize,
}

impl ReplyPath {
    /// Forgets all segments and keeps the memory.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.count = 0;
    }

    /// Appends a segment; false, and nothing is appended, if it is longer than a protocol can carry
    /// or there are too many.
    pub fn push(&mut self, segment: &str) -> bool {
        let fits = segment.len() <= SEGMENT_MAX && self.count < REPLY_SEGMENTS_MAX;
        if fits {
            self.segments.push(segment.len() as u8);
            self.segments.extend_from_slice(segment.as_bytes());
            self.count += 1;
        }
        fits
    }

    /// Returns true if no reply is wanted.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns how many segments it has.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// The segments.
    pub fn segments(&self) -> Segments<'_> {
        Segments(Form::Kept(&self.segments))
    }
}

/// A refusal that comes only after a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateRefusal {
    /// Seconds from the request.
    pub after_s: u8,
    /// Its code.
    pub status: Status,
}

/// The code of an answer, as of HTTP. A protocol with other codes has one that stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(pub u16);

impl Status {
    /// Returns true for success.
    pub const fn is_yes(self) -> bool {
        self.0 / 100 == 2
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A field of an answer, other than its code and its body. Only those that a dialect reads are
/// needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// A segment of the path that the answer names, in their order (CoAP's Location-Path).
    PathSegment(&'a str),
    /// A parameter that it names (CoAP's Location-Query).
    Parameter(&'a str),
    /// The media type of the body (CoAP's Content-Format).
    ContentType(&'a str),
    /// For how many seconds it stands (CoAP's Max-Age, HTTP's Retry-After): after a refusal for now the client
    /// is to be silent for as long.
    MaxAge(u32),
    /// A header of HTTP: its name in lower case, and its value.
    Header(&'a str, &'a str),
}

/// All fields of an answer.
pub type Fields<'i, 'a> = &'i mut dyn Iterator<Item = Field<'a>>;

/// Meaning of an answer for the device that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered<'a> {
    /// Taken. To a device that waits for a command: there is none.
    Accepted,
    /// Taken, and a command comes with it.
    Command(CommandCopy<'a>),
    /// Refused, with that code.
    Rejected(Status),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_its_segments_of_which_some_are_empty() {
        let segments = |path| Segments::of(path).collect::<Vec<_>>();
        assert_eq!(segments("t"), ["t"]);
        assert_eq!(segments("t//d-1"), ["t", "", "d-1"]);
        assert_eq!(segments("event/t1/"), ["event", "t1", ""]);
    }

    #[test]
    fn a_code_prints_as_http_does_and_200_to_299_are_a_yes() {
        assert_eq!(Status(503).to_string(), "503");
        for (code, is_yes) in [(199, false), (200, true), (299, true), (300, false)] {
            assert_eq!(Status(code).is_yes(), is_yes, "{code}");
        }
    }

    proptest! {
        /// Law: a reply path keeps the segments that came, within the bounds.
        #[test]
        fn a_reply_path_gives_back_what_it_was_given(came: Vec<String>) {
            let mut path = ReplyPath::default();
            let kept: Vec<&String> = came.iter().filter(|segment| path.push(segment)).collect();
            prop_assert!(path.segments().eq(kept.iter().map(|segment| segment.as_str())));
            prop_assert_eq!(path.len(), kept.len());
            path.clear();
            prop_assert!(path.is_empty() && path.segments().next().is_none());
        }
    }
}
