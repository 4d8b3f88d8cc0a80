//! Codes of requests and responses (RFC 7252 sections 3 and 12.1).

use std::fmt;

use muster_model::Reason;

/// A code: three bits of class, five of detail, printed as in `4.04` (section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Code(pub u8);

/// Class of a code (section 12.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// 0.00: a message that carries nothing.
    Empty,
    /// 0.01 to 0.31.
    Request,
    /// 2.xx: the request was taken.
    Success,
    /// 4.xx: the request cannot be taken as it is.
    ClientError,
    /// 5.xx: the server cannot take a request that may be right.
    ServerError,
    /// 1.xx, 3.xx, 6.xx and 7.xx: of nobody yet.
    Reserved,
}

impl Code {
    /// No request and no response.
    pub const EMPTY: Self = Self::new(0, 0);
    /// GET (section 5.8.1).
    pub const GET: Self = Self::new(0, 1);
    /// POST (section 5.8.2).
    pub const POST: Self = Self::new(0, 2);
    /// PUT (section 5.8.3).
    pub const PUT: Self = Self::new(0, 3);
    /// DELETE (section 5.8.4).
    pub const DELETE: Self = Self::new(0, 4);
    /// FETCH (RFC 8132 section 2).
    pub const FETCH: Self = Self::new(0, 5);
    /// Valid: a response without a payload (section 5.9.1.3).
    pub const VALID: Self = Self::new(2, 3);
    /// Changed.
    pub const CHANGED: Self = Self::new(2, 4);
    /// Content.
    pub const CONTENT: Self = Self::new(2, 5);
    /// Continue: a block was taken, more are expected (RFC 7959 section 2.9.1).
    pub const CONTINUE: Self = Self::new(2, 31);
    /// Bad Request.
    pub const BAD_REQUEST: Self = Self::new(4, 0);
    /// Unauthorized.
    pub const UNAUTHORIZED: Self = Self::new(4, 1);
    /// Bad Option: a critical option is not known (section 5.4.1).
    pub const BAD_OPTION: Self = Self::new(4, 2);
    /// Forbidden.
    pub const FORBIDDEN: Self = Self::new(4, 3);
    /// Not Found.
    pub const NOT_FOUND: Self = Self::new(4, 4);
    /// Method Not Allowed.
    pub const METHOD_NOT_ALLOWED: Self = Self::new(4, 5);
    /// Request Entity Incomplete: blocks are missing (RFC 7959 section 2.9.2).
    pub const REQUEST_ENTITY_INCOMPLETE: Self = Self::new(4, 8);
    /// Conflict (RFC 8132 section 3.4).
    pub const CONFLICT: Self = Self::new(4, 9);
    /// Request Entity Too Large (also RFC 7959 section 2.9.3).
    pub const REQUEST_ENTITY_TOO_LARGE: Self = Self::new(4, 13);
    /// Too Many Requests (RFC 8516).
    pub const TOO_MANY_REQUESTS: Self = Self::new(4, 29);
    /// Internal Server Error.
    pub const INTERNAL_SERVER_ERROR: Self = Self::new(5, 0);
    /// Service Unavailable: Max-Age says when to come again (section 5.9.3.4).
    pub const SERVICE_UNAVAILABLE: Self = Self::new(5, 3);
    /// Proxying Not Supported.
    pub const PROXYING_NOT_SUPPORTED: Self = Self::new(5, 5);

    /// The code `class.detail`; bits that do not fit are dropped.
    pub const fn new(class: u8, detail: u8) -> Self {
        Self((class & 0x07) << 5 | (detail & 0x1f))
    }

    /// The digit before the dot.
    pub const fn digit(self) -> u8 {
        self.0 >> 5
    }

    /// The two digits behind the dot.
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// The status of HTTP with the same digits: 503 for 5.03.
    pub const fn status(self) -> u16 {
        self.digit() as u16 * 100 + self.detail() as u16
    }

    /// The code with the digits of a status of HTTP; none if it has no room for them.
    pub const fn of_status(status: u16) -> Option<Self> {
        let (digit, detail) = (status / 100, status % 100);
        if digit < 8 && detail < 32 {
            Some(Self::new(digit as u8, detail as u8))
        } else {
            None
        }
    }

    /// Returns its class.
    pub const fn class(self) -> Class {
        match (self.digit(), self.detail()) {
            (0, 0) => Class::Empty,
            (0, _) => Class::Request,
            (2, _) => Class::Success,
            (4, _) => Class::ClientError,
            (5, _) => Class::ServerError,
            _ => Class::Reserved,
        }
    }

    /// Returns true for the code of a request.
    pub const fn is_request(self) -> bool {
        matches!(self.class(), Class::Request)
    }

    /// Returns true for the code of a response.
    pub const fn is_response(self) -> bool {
        matches!(
            self.class(),
            Class::Success | Class::ClientError | Class::ServerError
        )
    }

    /// Returns true if it reports success.
    pub const fn is_success(self) -> bool {
        matches!(self.class(), Class::Success)
    }

    /// The name that its standard gives it; none for one without a standard.
    pub fn meaning(self) -> Option<&'static str> {
        let at = MEANINGS.binary_search_by_key(&self, |(code, _)| *code);
        match at {
            Ok(at) => Some(MEANINGS[at].1),
            Err(_) => Reason::Coap(self.0).meaning(),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.digit(), self.detail())
    }
}

/// Names of the codes that are no refusals, sorted by code.
const MEANINGS: [(Code, &str); 14] = [
    (Code::EMPTY, "empty"),
    (Code::GET, "GET"),
    (Code::POST, "POST"),
    (Code::PUT, "PUT"),
    (Code::DELETE, "DELETE"),
    (Code::FETCH, "FETCH"),
    (Code::new(0, 6), "PATCH"),
    (Code::new(0, 7), "iPATCH"),
    (Code::new(2, 1), "created"),
    (Code::new(2, 2), "deleted"),
    (Code::new(2, 3), "valid"),
    (Code::CHANGED, "changed"),
    (Code::CONTENT, "content"),
    (Code::CONTINUE, "continue"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_as_its_class_a_dot_and_two_digits() {
        assert_eq!(Code::NOT_FOUND.to_string(), "4.04");
        assert_eq!(Code::CONTINUE.to_string(), "2.31");
        assert_eq!(Code(0x84), Code::NOT_FOUND);
        assert_eq!(Code::NOT_FOUND.meaning(), Some("not found"));
        assert_eq!(
            Code::SERVICE_UNAVAILABLE.meaning(),
            Some("service unavailable")
        );
        assert_eq!(Code::new(4, 30).meaning(), None);
    }

    #[test]
    fn a_status_with_two_digits_below_32_is_a_code() {
        for code in (0..=u8::MAX).map(Code) {
            assert_eq!(Code::of_status(code.status()), Some(code));
        }
        assert_eq!(Code::SERVICE_UNAVAILABLE.status(), 503);
        for status in [432, 499, 800, 1_200] {
            assert_eq!(Code::of_status(status), None, "{status}");
        }
    }

    #[test]
    fn meanings_stand_in_order_so_that_they_are_found() {
        for (code, meaning) in MEANINGS {
            assert_eq!(code.meaning(), Some(meaning));
        }
    }

    /// RFC 7252 section 12.1: classes 1, 3, 6 and 7 are of nobody.
    #[test]
    fn every_code_has_one_class() {
        for code in 0..=u8::MAX {
            let code = Code(code);
            let kinds = [code == Code::EMPTY, code.is_request(), code.is_response()];
            let is_reserved = code.class() == Class::Reserved;
            let count = kinds.iter().filter(|is| **is).count() + usize::from(is_reserved);
            assert_eq!(count, 1, "{code}");
            assert_eq!(is_reserved, [1, 3, 6, 7].contains(&code.digit()), "{code}");
        }
    }
}
