//! Faults of a peer that end an HTTP connection.

use thiserror::Error;

/// A message that cannot be read; sections are those of RFC 9112.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Malformed {
    /// The start line or a field is not HTTP (sections 3 to 5).
    #[error("not an HTTP/1.1 message: is this the right port?")]
    Head,
    /// Bytes came behind an answer whose status allows no body (section 6.3).
    #[error("bytes behind an answer that has no body: 204 and 304 end with their head")]
    NoBody,
    /// Bytes came behind the end of an answer, and they begin no other one.
    #[error("bytes behind the end of an answer, as its head gives it")]
    Surplus,
    /// A line of a request ends in LF alone (section 2.2).
    #[error("a line ends without CR")]
    BareLineFeed,
    /// The head is longer than the bound, in bytes.
    #[error("the head is longer than {0} bytes")]
    HeadTooLong(usize),
    /// The head has more fields than the bound.
    #[error("the head has more than {0} fields")]
    TooManyFields(usize),
    /// The message has a content length and a transfer coding, or two lengths (section 6.3).
    #[error("the length of the body is given in two ways")]
    TwoLengths,
    /// The content length is not a number (section 6.3).
    #[error("Content-Length is not a number")]
    Length,
    /// The last transfer coding of a request is not `chunked`, or another one precedes it (section 6.1).
    #[error("the transfer coding is not `chunked`")]
    Coding,
    /// The size of a chunk, or the end of one, is not as section 7.1 wants it.
    #[error("the chunked body is broken")]
    Chunk,
    /// The body is longer than the bound, in bytes.
    #[error("the body is longer than {0} bytes")]
    BodyTooLong(u32),
    /// A request without `Host`, or with two (section 3.2).
    #[error("the request needs one Host")]
    Host,
    /// A switch of protocols that nobody asked for (RFC 9110 section 15.2.2).
    #[error("the server switches protocols without being asked")]
    Switched,
}

impl Malformed {
    /// The status with which a server answers a request that is malformed so (RFC 9110 section 15.5,
    /// RFC 6585 section 5).
    pub const fn status(self) -> u16 {
        match self {
            Self::HeadTooLong(_) | Self::TooManyFields(_) => 431,
            Self::BodyTooLong(_) => 413,
            Self::Coding => 501,
            Self::Head
            | Self::NoBody
            | Self::Surplus
            | Self::BareLineFeed
            | Self::TwoLengths
            | Self::Length
            | Self::Chunk
            | Self::Host
            | Self::Switched => 400,
        }
    }
}
