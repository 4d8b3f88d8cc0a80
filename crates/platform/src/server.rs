//! What the server end of a dialect hears and says.

/// What a device published, as the server end reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A message that the application acknowledges.
    Message {
        /// Who sent it, by the topic.
        device: &'a str,
        /// Its id as it stands in the payload, to be given back; none if it has none.
        id: Option<&'a [u8]>,
    },
    /// Meant to be one, and not readable.
    Unreadable {
        /// Who sent it, by the topic.
        device: &'a str,
    },
    /// Nothing that the dialect knows.
    Other,
}

/// The server end's word on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The message's id as it came; none if it had none.
    pub id: Option<&'a [u8]>,
    /// The code.
    pub code: u16,
}
