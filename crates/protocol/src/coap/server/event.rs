//! Events of a server session.

use std::borrow::Cow;

use crate::coap::{Block, Code, Options, Token};

/// Something that happened. Duplicates, pings, messages that cannot be taken and blocks before the
/// last are no events: the session has answered them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A request, once: answer it with [`super::Server::respond`], at once or after
    /// [`super::Server::acknowledge`].
    Request(Incoming<'a>),
    /// A confirmable message of ours was acknowledged.
    Acknowledged {
        /// The ticket of its reply.
        ticket: u32,
    },
    /// The client rejected a message of ours.
    Reset {
        /// The ticket of its reply.
        ticket: u32,
    },
    /// A confirmable message of ours was never acknowledged.
    TimedOut {
        /// The ticket of its reply.
        ticket: u32,
    },
    /// A confirmable message of ours was written again: nothing is to be done but to send it.
    Retransmitted,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// Handle for the answer.
    pub pending: Pending,
    /// GET, POST and so on.
    pub method: Code,
    /// Its options.
    pub options: Options<'a>,
    /// The whole body, put together where it came in blocks.
    pub payload: Cow<'a, [u8]>,
    /// True for CON, false for NON.
    pub is_confirmable: bool,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// Its token.
    pub token: Token,
    /// Stands for method, path and all else that makes the body one and the same.
    pub(super) resource: u64,
    /// Number in the session's memory of duplicates.
    pub(super) number: u32,
    pub(super) id: u16,
    pub(super) is_confirmable: bool,
    /// True if it was acknowledged, so that its answer is a separate message.
    pub(super) is_separate: bool,
    pub(super) wants_size: bool,
    /// Classes of responses that are not wanted, as No-Response has them (RFC 7967 section 2.1).
    pub(super) unwanted: u8,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
}

impl Pending {
    /// Returns true if the request is CON, false for NON.
    pub const fn is_confirmable(&self) -> bool {
        self.is_confirmable
    }

    /// Returns the request as notifications answer it (RFC 7641): each response to it is a separate message with its
    /// token.
    pub const fn observed(self) -> Self {
        Self {
            is_separate: true,
            block1: None,
            ..self
        }
    }

    /// Returns true if it was acknowledged without its answer.
    pub const fn is_separate(&self) -> bool {
        self.is_separate
    }
}
