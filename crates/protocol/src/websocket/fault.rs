//! Faults that keep a WebSocket connection from beginning or continuing.

use thiserror::Error;

/// A fault of the peer, or its refusal. Sections are those of RFC 6455.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The head of a request or answer is not HTTP/1.1, or gives a field twice that may be given
    /// once (sections 4.1, 4.2.1, 11.3; RFC 9112).
    #[error("the peer's handshake is not the head of an HTTP/1.1 message: is this the right port?")]
    Head,
    /// The head of a request or answer has no end.
    #[error("the peer's handshake is longer than {0} bytes")]
    HeadTooLong(u16),
    /// The server answered with another status than 101 (section 4.1, step 1).
    #[error("the server refused the upgrade with HTTP status {0}")]
    Refused(u16),
    /// The answer lacks `Upgrade: websocket` or `Connection: Upgrade` (section 4.1, steps 2, 3).
    #[error("the server's answer 101 does not upgrade to WebSocket")]
    NotUpgraded,
    /// The accept key is missing, or is not that of our nonce (section 4.1, step 4).
    #[error("the server's Sec-WebSocket-Accept does not belong to our request: a cache between?")]
    AcceptKey,
    /// The server uses an extension; we asked for none (section 4.1, step 5).
    #[error("the server uses an extension that was not asked for")]
    Extension,
    /// The server chose no subprotocol or another than `mqtt` (section 4.1, step 6; MQTT-6.0.0-4).
    #[error("the server did not choose the subprotocol mqtt")]
    Subprotocol,
    /// The request is not GET (section 4.2.1, item 1).
    #[error("the request's method is not GET")]
    Method,
    /// The request is for a resource that is not served (section 4.2.2).
    #[error("the request's path is not served")]
    Path,
    /// The request has no `Host` (section 4.2.1, item 2).
    #[error("the request has no Host")]
    Host,
    /// The request lacks `Upgrade: websocket` or `Connection: Upgrade` (section 4.2.1, items 3, 4).
    #[error("the request does not ask for WebSocket")]
    NotUpgrade,
    /// The request's nonce is missing or is not 16 bytes in base64 (section 4.2.1, item 5).
    #[error("the request's Sec-WebSocket-Key is not 16 bytes in base64")]
    Nonce,
    /// The request is for another version than 13 (section 4.2.1, item 6).
    #[error("the request is not for WebSocket version 13")]
    Version,
    /// The request does not offer `mqtt` (MQTT-6.0.0-3).
    #[error("the request does not offer the subprotocol mqtt")]
    NotOffered,
    /// A reserved bit is set, and no extension gives it a meaning (section 5.2).
    #[error("a frame has reserved bits")]
    ReservedBits,
    /// A frame of a kind that does not exist (section 5.2).
    #[error("frame opcode {0} does not exist")]
    Opcode(u8),
    /// A text frame, where MQTT travels in binary ones (MQTT-6.0.0-1).
    #[error("a text frame where MQTT needs binary ones")]
    Text,
    /// A client's frame without a mask (section 5.1).
    #[error("a frame of the client is not masked")]
    Unmasked,
    /// A server's frame with a mask (section 5.1).
    #[error("a frame of the server is masked")]
    Masked,
    /// A payload length in more bytes than it needs (section 5.2).
    #[error("a frame's length is longer than its value needs")]
    Length,
    /// A frame larger than the receiver takes (section 10.4), or than 2^63 - 1 (section 5.2).
    #[error("a frame of {size} bytes where at most {maximum} are taken")]
    FrameTooLarge {
        /// Bytes of its payload.
        size: u64,
        /// Bytes the receiver takes.
        maximum: u32,
    },
    /// A control frame of more than 125 bytes (section 5.5).
    #[error("a control frame of more than 125 bytes")]
    ControlTooLong,
    /// A control frame in fragments (section 5.5).
    #[error("a control frame in fragments")]
    ControlFragment,
    /// A continuation where no message has begun (section 5.4).
    #[error("a continuation frame where no message has begun")]
    Continuation,
    /// A message begins inside another one's fragments (section 5.4).
    #[error("a message begins before the last one has ended")]
    Interleaved,
    /// A close frame with half a status code (section 5.5.1).
    #[error("a close frame ends inside its status code")]
    CloseBody,
    /// A close frame with a status code that may not be sent (section 7.4).
    #[error("a close frame has status code {0}, which may not be sent")]
    CloseCode(u16),
    /// A close frame with a reason that is not UTF-8 (sections 5.5.1, 8.1).
    #[error("the reason of a close frame is not UTF-8")]
    CloseReason,
}

impl Fault {
    /// The status code of the close frame that answers it (section 7.4.1); none in a handshake,
    /// where no frame may be sent.
    pub const fn close_code(self) -> Option<u16> {
        match self {
            Self::Head
            | Self::HeadTooLong(_)
            | Self::Refused(_)
            | Self::NotUpgraded
            | Self::AcceptKey
            | Self::Extension
            | Self::Subprotocol
            | Self::Method
            | Self::Path
            | Self::Host
            | Self::NotUpgrade
            | Self::Nonce
            | Self::Version
            | Self::NotOffered => None,
            Self::ReservedBits
            | Self::Opcode(_)
            | Self::Unmasked
            | Self::Masked
            | Self::Length
            | Self::ControlTooLong
            | Self::ControlFragment
            | Self::Continuation
            | Self::Interleaved
            | Self::CloseBody
            | Self::CloseCode(_) => Some(super::close::PROTOCOL_ERROR),
            Self::Text => Some(super::close::UNSUPPORTED_DATA),
            Self::CloseReason => Some(super::close::INVALID_DATA),
            Self::FrameTooLarge { .. } => Some(super::close::TOO_BIG),
        }
    }
}
