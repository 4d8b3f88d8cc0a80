//! The HTTP of a fleet's links, and the requests of an API without a dialect.

use muster_load::Template;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The HTTP/1.1 of a fleet's links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpSettings {
    /// The number of requests that a connection may have open; 1 is no pipelining (RFC 9112 section
    /// 9.3.2).
    pub pipelining: u16,
    /// True if a connection carries one request: the link opens it when a message is due, and closes it
    /// after the answer.
    pub closes: bool,
    /// True if a link sends nothing for as long as `Retry-After` of 429 and 503 says (RFC 9110 section
    /// 10.2.3).
    pub obeys_retry_after: bool,
    /// Bytes of the longest body of an answer that a link receives.
    pub body_max: u32,
}

impl HttpSettings {
    /// Settings of links that keep their connection, with one request at a time.
    pub const fn new() -> Self {
        Self {
            pipelining: 1,
            closes: false,
            obeys_retry_after: true,
            body_max: u32::MAX,
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// The form of a stream's requests, and of the answers that accept them, where no dialect gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpCall {
    /// The method, in upper case.
    pub method: String,
    /// Further headers, each with its value for a message.
    pub headers: Vec<(String, Secret<Template>)>,
    /// Ranges of the statuses that accept a message, the ends included.
    pub success: Vec<(u16, u16)>,
    /// The place of the id that the platform gives a message; without one no id is looked for.
    pub id: Option<AnswerId>,
}

/// The place of an id in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerId {
    /// The header of this name.
    Header(String),
    /// The string or number of a JSON body that this pointer leads to (RFC 6901).
    Pointer(String),
}

impl HttpCall {
    /// Returns true if an answer of this status accepts a message.
    pub fn accepts(&self, status: u16) -> bool {
        let mut ranges = self.success.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_within_any_range_accepts() {
        let call = HttpCall {
            method: "POST".to_owned(),
            headers: Vec::new(),
            success: vec![(200, 204), (409, 409)],
            id: None,
        };
        let accepted = [199, 200, 204, 205, 408, 409, 410].map(|status| call.accepts(status));
        assert_eq!(accepted, [false, true, true, false, false, true, false]);
    }
}
