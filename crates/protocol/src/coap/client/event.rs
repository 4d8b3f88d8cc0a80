//! Events of a client session.

use thiserror::Error;

use crate::coap::{Block, Code, ExchangeKey, OptionNumber, Options, Ticket};

/// Something that happened. Each exchange ends with exactly one of [`ClientEvent::Response`],
/// [`ClientEvent::Failed`], [`ClientEvent::AnsweredLate`] and [`ClientEvent::Pong`], unless it was
/// forgotten and never answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The request was taken, and its response comes later (section 5.2.2).
    Acknowledged {
        /// The exchange.
        ticket: Ticket,
        /// The exchange, which goes on.
        key: ExchangeKey,
    },
    /// The response, or the last block of it. The exchange is over, unless an observation begins: a notification
    /// that comes before the response begins it, too.
    Response(Response<'a>),
    /// A block of the response that is not the last: take its payload, then call
    /// [`super::Endpoint::again`] for the next.
    Part(Response<'a>),
    /// The server notifies an observer (RFC 7641). Without Observe, or with an error, it is the last one, and the
    /// exchange is over.
    Notification(Response<'a>),
    /// Render the request again and call [`super::Endpoint::again`].
    Again {
        /// The exchange.
        ticket: Ticket,
        /// The exchange.
        key: ExchangeKey,
        /// The reason for the copy.
        cause: Again,
    },
    /// The exchange ended without a response.
    Failed {
        /// The exchange.
        ticket: Ticket,
        /// The cause.
        cause: Failure,
    },
    /// The answer to a request that was forgotten.
    AnsweredLate {
        /// The exchange.
        ticket: Ticket,
        /// The server's code; none for a reset.
        code: Option<Code>,
    },
    /// A response that came again (section 4.5). A separate response was acknowledged again;
    /// one in an acknowledgement is known for a second one as long as its socket sent no more requests
    /// since than devices share it, and only if the request was sent once: each copy of it may have an answer.
    Duplicate {
        /// The exchange.
        ticket: Ticket,
    },
    /// The server shows that it is alive: the reset that answers a ping (section 4.3).
    Pong {
        /// The ping.
        ticket: Ticket,
    },
    /// A ping was sent again: nothing is to be done but to send it.
    PingedAgain,
}

impl ClientEvent<'_> {
    /// Returns the ticket; none for a ping that was sent again.
    pub const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Response(response) | Self::Part(response) | Self::Notification(response) => {
                Some(response.ticket)
            }
            Self::Acknowledged { ticket, .. }
            | Self::Again { ticket, .. }
            | Self::Failed { ticket, .. }
            | Self::AnsweredLate { ticket, .. }
            | Self::Duplicate { ticket }
            | Self::Pong { ticket } => Some(*ticket),
            Self::PingedAgain => None,
        }
    }
}

/// Reason to render a request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Again {
    /// No acknowledgement came in time (section 4.2): the same bytes again.
    Retransmission,
    /// The server took a block of the body and is ready for the next (RFC 7959 section 2.3), or
    /// wants smaller ones.
    Block,
}

/// A response that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The exchange.
    pub ticket: Ticket,
    /// The exchange.
    pub key: ExchangeKey,
    /// The server's code, errors among them.
    pub code: Code,
    /// Its options.
    pub options: Options<'a>,
    /// The payload, or that of one block.
    pub payload: &'a [u8],
    /// The block of the body in the payload; none if the body is not in blocks.
    pub block: Option<Block>,
    /// True if it did not come in the acknowledgement (a separate response, section 5.2.2).
    pub is_separate: bool,
}

impl Response<'_> {
    /// Returns true if further notifications follow (RFC 7641 section 3.2).
    pub fn is_observed(&self) -> bool {
        self.code.is_success() && self.options.first(OptionNumber::OBSERVE).is_some()
    }
}

/// Reason that an exchange ended without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// The server has rejected the message (RST, section 4.2).
    #[error("reset by the server")]
    Reset,
    /// No copy of a CON was acknowledged (section 4.2).
    #[error("not acknowledged after all retransmissions")]
    Unacknowledged,
    /// No response came within the lifetime of the exchange (section 4.8.2).
    #[error("no response within the lifetime of the exchange")]
    Unanswered,
    /// The response has a critical option that cannot be accepted (section 5.4.1).
    #[error("the response has the critical option {0}, which cannot be accepted")]
    BadOption(OptionNumber),
    /// The response is not of the block that was sent or asked for (RFC 7959 section 2.4).
    #[error("the response is not of the block that it should be of")]
    Block,
    /// The body has changed between two of its blocks: its `ETag` is another (RFC 7959 section 2.4).
    #[error("the body changed between two of its blocks")]
    BodyChanged,
    /// The body is longer than is taken.
    #[error("the response's body is longer than is taken")]
    BodyTooLarge,
}
