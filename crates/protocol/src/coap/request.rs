//! Requests of a client, and reasons that a session refuses them.

use muster_model::Micros;
use thiserror::Error;

use super::{Code, Opt, OptionNumber};

/// A request, rendered by the caller for each copy of it: nothing of it is kept.
///
/// Block1, Block2 and Size1 are the session's to write, unless the caller writes them
/// itself, which nobody then looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// GET, POST and so on.
    pub method: Code,
    /// CON or NON.
    pub is_confirmable: bool,
    /// Options in the order of their numbers.
    pub options: &'a [Opt<'a>],
    /// The whole body; if it is longer than a block it travels in several (RFC 7959).
    pub payload: &'a [u8],
}

impl<'a> Request<'a> {
    /// A confirmable request.
    pub const fn new(method: Code, options: &'a [Opt<'a>], payload: &'a [u8]) -> Self {
        Self {
            method,
            is_confirmable: true,
            options,
            payload,
        }
    }
}

/// The caller's name for an exchange, given back with what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ticket {
    /// Index of the device on the shared socket; 0 for a single one.
    pub slot: u32,
    /// Number of the exchange.
    pub name: u32,
}

/// Reason that nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Refused {
    /// The device has as many interactions open as NSTART allows (section 4.7).
    #[error("the device has its NSTART of interactions open")]
    Window,
    /// The server was unavailable and said for how long (section 5.9.3.4).
    #[error("the server asked for silence until {} us", until.get())]
    Held {
        /// Instant from which the device may send again.
        until: Micros,
    },
    /// All message ids were used within the last `EXCHANGE_LIFETIME` (section 4.4).
    #[error("all 65536 message ids of this socket are in use until {} us", free_at.get())]
    NoMessageId {
        /// Instant at which one is free again.
        free_at: Micros,
    },
    /// The socket has as many exchanges open as it may.
    #[error("the socket has as many exchanges open as it may")]
    Full,
    /// The slot of the ticket does not exist.
    #[error("the socket has no slot {0}")]
    NoSlot(u32),
    /// The exchange is over, or nothing of it is due.
    #[error("nothing of this exchange is due")]
    NothingDue,
    /// The code is no method.
    #[error("{0} is no method")]
    Method(Code),
    /// Options are not in the order of their numbers.
    #[error("option {0} stands behind a greater number")]
    OptionOrder(OptionNumber),
    /// A body longer than the bound.
    #[error("a body of {size} bytes where at most {maximum} may be sent")]
    BodyTooLarge {
        /// Bytes of the body.
        size: usize,
        /// Bytes of the longest.
        maximum: u32,
    },
}

/// The first option that stands behind a greater number.
pub(super) fn out_of_order(options: &[Opt<'_>]) -> Option<OptionNumber> {
    let pairs = options.windows(2);
    let mut wrong = pairs.filter(|pair| pair[0].number > pair[1].number);
    wrong.next().map(|pair| pair[1].number)
}
