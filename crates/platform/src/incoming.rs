//! A request as the server end of a dialect has it.

use crate::request::{Method, Status};

/// Segments of a path that are kept; a path with more is none that a dialect knows.
const SEGMENTS_MAX: usize = 5;
/// Parameters that are kept; what stands behind them is not looked at.
const PARAMETERS_MAX: usize = 8;

/// A request that came, put together from its parts. Holds no memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// What is to be done.
    pub method: Method,
    /// Whether its protocol wants it acknowledged.
    pub is_confirmable: bool,
    /// The body.
    pub payload: &'a [u8],
    /// Its media type.
    pub content_type: Option<&'a str>,
    segments: [&'a str; SEGMENTS_MAX],
    /// All that came, kept or not.
    count: usize,
    parameters: [&'a str; PARAMETERS_MAX],
}

/// Who sent a request, as far as its credentials tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer<'a> {
    /// Whose.
    pub tenant: &'a str,
    /// The device, or the gateway.
    pub device: &'a str,
}

/// A refusal of the server end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// With what code.
    pub status: Status,
    /// Why, in words.
    pub why: &'static str,
}

impl<'a> Incoming<'a> {
    /// A request without a path and without parameters.
    #[must_use]
    pub const fn new(method: Method, is_confirmable: bool, payload: &'a [u8]) -> Self {
        Self {
            method,
            is_confirmable,
            payload,
            content_type: None,
            segments: [""; SEGMENTS_MAX],
            count: 0,
            parameters: [""; PARAMETERS_MAX],
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

    /// How many segments its path has.
    #[must_use]
    pub const fn segments(&self) -> usize {
        self.count
    }

    /// A segment of its path by its place; none if it is empty or not there.
    pub(crate) fn at(&self, place: usize) -> Option<&'a str> {
        let segment = self.segments.get(place).copied();
        segment.filter(|segment| !segment.is_empty())
    }

    /// What a parameter of that name says: nothing where it stands alone.
    pub(crate) fn says(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find_map(|parameter| {
            let rest = parameter.strip_prefix(name)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None => rest.is_empty().then_some(rest),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(came.says("hono-ttd"), Some("10"));
        assert_eq!(came.says("empty"), Some(""));
        assert_eq!(came.says("a"), Some("b=c"));
        assert_eq!((came.says("hono"), came.says("b")), (None, None));
        (0..99).for_each(|_| came.parameter("more"));
    }
}
