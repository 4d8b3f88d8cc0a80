//! Messages of a dialect's server end.

use crate::hono::Published;
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
    /// A message of one device, which surfaces northbound on a topic of that device.
    Published(Published<'a>),
    /// A message that the platform does not take; the status is as of HTTP.
    Refused(u16),
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
    /// On a topic that is not for this link, which the transport's answer says; then the link ends.
    Foreign,
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

/// The treatment of a message that the platform does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRefusal {
    /// The link ends.
    Disconnect,
    /// The protocol acknowledges the message nevertheless.
    Acknowledge,
    /// The message stays without an answer.
    Ignore,
}

/// A refusal as it is said on the link that published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objection<'a> {
    /// Name that the link logged in with.
    pub link: &'a str,
    /// The topic that was published on.
    pub topic: &'a str,
    /// The packet id; none at QoS 0.
    pub packet_id: Option<u16>,
    /// The status, as of HTTP.
    pub status: u16,
    /// The instant, as ISO 8601 has it.
    pub at: &'a str,
}
