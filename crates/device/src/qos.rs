//! The quality of service that a stream asks for.

/// The promise with which a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qos {
    /// Sent once; the protocol does not answer.
    AtMostOnce,
    /// The protocol answers, and the message may come twice.
    AtLeastOnce,
    /// The protocol answers twice, so that the message comes once.
    ExactlyOnce,
}
