//! Requests at the server end: their parts, their meaning, and their answers.

use crate::request::{Field, Method, ReplyPath, Status};

/// Segments of a path that are kept; a path with more is none that a dialect knows.
const SEGMENTS_MAX: usize = 5;
/// Parameters that are kept; what stands behind them is not looked at.
const PARAMETERS_MAX: usize = 8;
/// Headers that are kept. A client may send many more: pass those that a dialect reads.
const HEADERS_MAX: usize = 8;

/// A received request, put together from its parts. It borrows all of them.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// Its method.
    pub method: Method,
    /// True if its protocol wants it acknowledged.
    pub is_at_least_once: bool,
    /// True if its sender wants to be notified from now on (RFC 7641).
    pub observes: bool,
    /// The body.
    pub payload: &'a [u8],
    /// Its media type.
    pub content_type: Option<&'a str>,
    /// The path and the query as they came, where a protocol has them as one text; empty elsewhere.
    pub target: &'a str,
    segments: [&'a str; SEGMENTS_MAX],
    /// All that came, kept or not.
    count: usize,
    parameters: [&'a str; PARAMETERS_MAX],
    headers: [(&'a str, &'a str); HEADERS_MAX],
}

/// Sender of a request, by its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer<'a> {
    /// Its tenant.
    pub tenant: &'a str,
    /// The device, or the gateway.
    pub device: &'a str,
}

/// The meaning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// A message of a device, which surfaces northbound.
    Upload(Upload<'a>),
    /// The device's reply to a command, which surfaces too.
    Reply(Peer<'a>),
    /// The wish of a device to be notified of each command from now on.
    Observation(Upload<'a>),
    /// Something that the platform takes and never answers.
    Ignored,
    /// Nothing that can be taken; the answer says why.
    Refused(Refusal),
}

/// A message of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upload<'a> {
    /// The device's tenant.
    pub tenant: &'a str,
    /// The device.
    pub device: &'a str,
    /// The gateway that speaks for it, if one does.
    pub gateway: Option<&'a str>,
    /// The media type, as it surfaces.
    pub content_type: Option<&'a str>,
    /// True if it travels on at least once.
    pub is_at_least_once: bool,
    /// Whole seconds for which the device waits for a command; none if it wants none.
    pub ttd_s: Option<u32>,
    /// The manner in which a command is addressed in the answer.
    pub manner: Manner,
    /// True if it surfaces northbound; false if it is for the platform alone.
    pub surfaces: bool,
    /// The question that its answer answers, if it is one.
    pub question: Option<Question<'a>>,
    /// The answer if no command came in time; none if that is a yes like any other.
    pub over: Option<Refusal>,
}

/// A device's question to the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Values of attributes, by keys with commas between them: the device's own, and those that are shared with
    /// it. If both are none, all are wanted.
    Values {
        /// Keys of the ones that it sent.
        client: Option<&'a str>,
        /// Keys of shared ones.
        shared: Option<&'a str>,
    },
    /// The result of a method, by the whole call.
    Method(&'a [u8]),
    /// A device that is to be made, by the whole request.
    Device(&'a [u8]),
}

/// A refusal of the server end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// With what code.
    pub status: Status,
    /// The reason in words.
    pub why: &'static str,
}

/// The manner in which a device asked, which says how a command to it is addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    pub(crate) is_short: bool,
    pub(crate) asker: Asker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The device itself, by its credentials.
    Itself,
    /// Its gateway.
    Gateway,
    /// Somebody without credentials.
    Nobody,
}

impl Manner {
    /// The same, where who asked is called so, and the command is for a device that it may only speak for.
    pub fn towards(self, asker: &str, device: &str) -> Self {
        match self.asker {
            Asker::Itself if asker != device => Self {
                asker: Asker::Gateway,
                ..self
            },
            Asker::Itself | Asker::Gateway | Asker::Nobody => self,
        }
    }
}

/// The fields of an answer besides a command; used again for every answer.
#[derive(Debug, Default)]
pub struct HandedCommand {
    /// The parameter that names the command; empty where headers do.
    pub(crate) parameter: String,
    pub(crate) path: ReplyPath,
    pub(crate) content_type: &'static str,
    /// Headers by their names, in their order; one without a value is left out.
    pub(crate) headers: [(&'static str, String); HANDED_HEADERS],
}

/// Headers that a command may have: its name, its id and its device.
const HANDED_HEADERS: usize = 3;

impl HandedCommand {
    /// Returns the fields of an answer besides the code and the body, which is the command's.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let path = self.path.segments().map(Field::PathSegment);
        let parameter = (!self.parameter.is_empty()).then_some(Field::Parameter(&self.parameter));
        let headers = self.headers.iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| Field::Header(name, value));
        let content_type = Field::ContentType(self.content_type);
        path.chain(parameter).chain(headers).chain([content_type])
    }

    /// Forgets all fields and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.path.clear();
        self.parameter.clear();
        self.headers.iter_mut().for_each(|(_, value)| value.clear());
    }
}

/// Seconds that a device must stay silent after a refusal for now.
const RETRY_AFTER_S: u32 = 2;

impl Refusal {
    /// Returns a refusal with this code for this reason.
    pub const fn new(status: Status, why: &'static str) -> Self {
        Self { status, why }
    }

    /// No message is taken for now; the device is to be silent for two seconds.
    pub const UNAVAILABLE: Self = Self {
        status: Status(503),
        why: "no credit available",
    };

    /// Returns the fields of the answer besides the code, for a body of that media type; none if it has no
    /// body.
    pub fn fields(
        &self,
        media_type: Option<&'static str>,
    ) -> impl Iterator<Item = Field<'static>> + use<> {
        let is_for_now = self.status == Self::UNAVAILABLE.status;
        let silence = is_for_now.then_some(Field::MaxAge(RETRY_AFTER_S));
        let media_type = media_type.map(Field::ContentType);
        media_type.into_iter().chain(silence)
    }
}

impl<'a> Incoming<'a> {
    /// A request without a path, parameters and headers.
    pub const fn new(method: Method, is_at_least_once: bool, payload: &'a [u8]) -> Self {
        Self {
            method,
            is_at_least_once,
            observes: false,
            payload,
            content_type: None,
            target: "",
            segments: [""; SEGMENTS_MAX],
            count: 0,
            parameters: [""; PARAMETERS_MAX],
            headers: [("", ""); HEADERS_MAX],
        }
    }

    /// Appends a segment of its path.
    pub fn segment(&mut self, segment: &'a str) {
        if let Some(place) = self.segments.get_mut(self.count) {
            *place = segment;
        }
        self.count += 1;
    }

    /// Appends a parameter, such as `hono-ttd=10`.
    pub fn parameter(&mut self, parameter: &'a str) {
        let free = self.parameters.iter_mut().find(|place| place.is_empty());
        if let Some(place) = free {
            *place = parameter;
        }
    }

    /// Appends a header, whose name may have letters of any case.
    pub fn header(&mut self, name: &'a str, value: &'a str) {
        let mut places = self.headers.iter_mut();
        if let Some(place) = places.find(|(name, _)| name.is_empty()) {
            *place = (name, value);
        }
    }

    /// Returns how many segments its path has.
    pub const fn segments(&self) -> usize {
        self.count
    }

    /// A segment of its path by its place; none if it is empty or not there.
    pub(crate) fn at(&self, place: usize) -> Option<&'a str> {
        let segment = self.segments.get(place).copied();
        segment.filter(|segment| !segment.is_empty())
    }

    /// Returns the value of a header.
    pub(crate) fn header_value(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    /// Returns the value of a parameter, or nothing where it stands alone.
    pub(crate) fn parameter_value(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find_map(|parameter| {
            let rest = parameter.strip_prefix(name)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None => rest.is_empty().then_some(rest),
            }
        })
    }
}

/// The end of a question that nobody answers.
#[derive(Debug, Clone, Copy)]
pub struct Unanswered {
    /// Seconds until then.
    pub after_s: u32,
    /// The code under which it counts.
    pub code: u16,
    /// The answer.
    pub body: &'static [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_now_asks_for_two_seconds_of_silence() {
        let text = Field::ContentType("text/plain");
        let fields = |refusal: Refusal, of| refusal.fields(of).collect::<Vec<_>>();
        let (status, why) = (Status(404), "");
        let of_text = Some("text/plain");
        assert_eq!(
            fields(Refusal::UNAVAILABLE, of_text),
            [text, Field::MaxAge(2)]
        );
        assert_eq!(fields(Refusal { status, why }, of_text), [text]);
        assert_eq!(fields(Refusal { status, why }, None), []);
    }

    #[test]
    fn parts_are_found_and_what_is_too_much_is_counted() {
        let mut came = Incoming::new(Method::Put, true, b"");
        for segment in ["t", "", "d", "x", "y", "z"] {
            came.segment(segment);
        }
        assert_eq!(
            (came.segments(), came.at(0), came.at(1)),
            (6, Some("t"), None)
        );
        assert_eq!((came.at(2), came.at(5)), (Some("d"), None));
        for parameter in ["hono-ttd=10", "empty", "a=b=c"] {
            came.parameter(parameter);
        }
        assert_eq!(came.parameter_value("hono-ttd"), Some("10"));
        assert_eq!(came.parameter_value("empty"), Some(""));
        assert_eq!(came.parameter_value("a"), Some("b=c"));
        assert_eq!(
            (came.parameter_value("hono"), came.parameter_value("b")),
            (None, None)
        );
        (0..99).for_each(|_| came.parameter("more"));
        came.header("QoS-Level", "1");
        (0..99).for_each(|_| came.header("more", "2"));
        assert_eq!(came.header_value("qos-level"), Some("1"));
        assert_eq!(came.header_value("more"), Some("2"));
        assert_eq!(came.header_value("hono-ttd"), None);
    }
}
