//! Reasons that a datagram is no message.

use thiserror::Error;

use super::Kind;

/// A fault in the bytes of a datagram (RFC 7252 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// Fewer than the four bytes of a header (section 3).
    #[error("a datagram of {0} bytes is shorter than a header")]
    Header(usize),
    /// A version other than 1, which has to be ignored (section 3).
    #[error("version {0} is not known")]
    Version(u8),
    /// A token length from 9 to 15 (section 3).
    #[error("a token of {0} bytes, more than 8")]
    TokenLength(u8),
    /// The datagram ends inside the token (section 3).
    #[error("the datagram ends inside the token")]
    Token,
    /// An empty message with bytes behind its header (section 4.1).
    #[error("an empty message with bytes behind its header")]
    NotEmpty,
    /// A code of a class of nobody (section 4.2).
    #[error("the code's class {0} is reserved")]
    ReservedClass(u8),
    /// A type that cannot carry this code: a reset that is not empty, an acknowledgement with a
    /// request, an empty message that is non-confirmable (section 4.3, table 1).
    #[error("the message's type cannot carry its code")]
    KindOfCode,
    /// The nibble 15 in an option that is no payload marker (section 3.1).
    #[error("an option's delta or length is the reserved 15")]
    ReservedNibble,
    /// An option number above 65,535 (section 3.1).
    #[error("an option's number is above 65535")]
    OptionNumber,
    /// The datagram ends inside an option (section 3.1).
    #[error("the datagram ends inside an option")]
    Option,
    /// A payload marker without a payload (section 3).
    #[error("a payload marker without a payload")]
    Payload,
}

/// A datagram that is no message, and what is needed to reject it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[error("{fault}")]
pub struct Malformed {
    /// Its fault.
    pub fault: Fault,
    /// Its type and message id, where its header could be read: a confirmable one is answered
    /// with a reset (section 4.2), all others are ignored (section 4.3).
    pub header: Option<(Kind, u16)>,
}

impl Malformed {
    /// The message id of the reset that answers it; none where nothing may answer.
    pub fn reset(&self) -> Option<u16> {
        match self.header {
            Some((Kind::Confirmable, id)) => Some(id),
            Some((Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset, _)) | None => None,
        }
    }
}
