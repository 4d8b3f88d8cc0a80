//! Answers of a server.

use super::{Code, Opt};

/// A response.
///
/// Block1, Block2 and Size2 are the session's to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The code.
    pub code: Code,
    /// Options in the order of their numbers.
    pub options: &'a [Opt<'a>],
    /// The whole body; if it is longer than a block, the client fetches it in several (RFC 7959).
    pub payload: &'a [u8],
    /// True for CON and false for NON in a separate response; unused in an acknowledgement.
    pub is_confirmable: bool,
    /// The caller's name for it, given back with what becomes of it where it is confirmable.
    pub ticket: u32,
}

impl<'a> Reply<'a> {
    /// A reply, confirmable if it is separate.
    pub const fn new(code: Code, options: &'a [Opt<'a>], payload: &'a [u8]) -> Self {
        Self {
            code,
            options,
            payload,
            is_confirmable: true,
            ticket: 0,
        }
    }
}
