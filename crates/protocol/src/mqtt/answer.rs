//! Meaning of the peer's answer to a publish.

use super::inflight::{Entry, FORGOTTEN};
use super::{Token, reason};

/// Meaning of an answer for its publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// PUBACK, or PUBREC at QoS 2.
    Accepted { token: Token, reason: u8 },
    /// PUBACK or PUBREC with a code of failure.
    Rejected { token: Token, reason: u8 },
    /// PUBCOMP.
    Completed { token: Token },
    /// To a publish that was forgotten.
    Late { token: Token, reason: u8 },
    /// To no publish that waits.
    Stray {
        /// True if its packet id was in use before.
        was_used: bool,
    },
    /// A second time, or the end of what was forgotten: of no interest.
    Silent,
}

#[inline]
pub(super) fn first_answer(entry: Entry, reason: u8) -> Answer {
    let token = Token(entry.name);
    if entry.is(FORGOTTEN) {
        Answer::Late { token, reason }
    } else if reason >= reason::UNSPECIFIED_ERROR {
        Answer::Rejected { token, reason }
    } else {
        Answer::Accepted { token, reason }
    }
}
