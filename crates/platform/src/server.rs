//! Messages of a dialect's server end.

use crate::thingsboard::Data;

/// A device's publish, as the server end reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DevicePublish<'a> {
    /// A message that the application acknowledges.
    Message {
        /// The sender, by the topic.
        device: &'a str,
        /// Its id as in the payload, which the acknowledgement repeats; none if it has none.
        id: Option<&'a [u8]>,
    },
    /// Meant to be one, and not readable.
    Unreadable {
        /// The sender, by the topic.
        device: &'a str,
    },
    /// Data of devices, which surface northbound on topics of theirs.
    Data(Data<'a>),
    /// A gateway says that a device of its is there, or is gone: no message of the device's.
    Announced {
        /// The device.
        device: &'a str,
        /// True if it is there.
        is_there: bool,
    },
    /// Neither answered nor stored.
    Ignored,
    /// Consumed by the platform itself: it surfaces nowhere.
    Taken,
    /// Meant to be data, and not readable. The transport's answer says so; where it cannot, the link
    /// ends.
    Invalid,
    /// On a topic that the platform does not know, which the transport's answer says.
    Unknown,
    /// A message like any other, which goes to whoever subscribed to its topic.
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
