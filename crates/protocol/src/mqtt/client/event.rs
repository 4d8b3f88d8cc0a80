//! Events of a client session.

use muster_model::Reason;

use crate::mqtt::packet::Auth;
use crate::mqtt::property::find;
use crate::mqtt::{Malformed, Properties, Qos, Token, Topic};

/// Something that happened; drain [`super::Client::poll`] until it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server took the connection.
    Connected(Connected<'a>),
    /// The server refused the connection; it is over.
    Refused {
        /// Its code.
        reason: Reason,
        /// A reason for people, another server to use.
        properties: Properties<'a>,
    },
    /// The server took responsibility for a publish: PUBACK, or PUBREC at QoS 2.
    Accepted {
        /// The publish.
        token: Token,
        /// 0, or 0x10: nobody subscribes.
        reason: u8,
    },
    /// The server refused a publish; its packet id is free again.
    Rejected {
        /// The publish.
        token: Token,
        /// The server's code.
        reason: Reason,
    },
    /// PUBCOMP: delivery at QoS 2 is complete.
    Completed {
        /// The publish.
        token: Token,
    },
    /// The answer to a publish that was forgotten.
    AnsweredLate {
        /// The publish, by the token that it had when it was forgotten.
        token: Token,
        /// The server's code.
        reason: u8,
    },
    /// The session was resumed and this publish has no answer yet: render it again and call
    /// [`super::Client::republish`], or [`super::Client::forget`] it.
    Resend {
        /// The publish.
        token: Token,
    },
    /// SUBACK: one code a filter; 0x80 and above is a refusal.
    Subscribed {
        /// The caller's number of the request.
        id: u32,
        /// The codes in the order of the filters.
        codes: &'a [u8],
    },
    /// UNSUBACK: one code a filter, in MQTT 3.1.1 none.
    Unsubscribed {
        /// The caller's number of the request.
        id: u32,
        /// The codes in the order of the filters.
        codes: &'a [u8],
    },
    /// A message came; it is answered already.
    Message(Message<'a>),
    /// The answer to a ping.
    Pong,
    /// A step of enhanced authentication (section 4.12): the server wants more, which
    /// [`super::Client::authenticate`] gives, or a further authentication has succeeded.
    Auth(Auth<'a>),
    /// No sign of life since a ping; the connection is over.
    KeepAliveExpired,
    /// The server ended the connection.
    Disconnected {
        /// Its code.
        reason: Reason,
        /// A reason for people, another server to use.
        properties: Properties<'a>,
    },
    /// The server's bytes are not the protocol; the connection is over.
    Malformed(Malformed),
}

impl<'a> ClientEvent<'a> {
    /// The server's reason for people, of a refusal or of an end (sections 3.2.2.3.9 and 3.14.2.2.3).
    pub fn reason_string(&self) -> Option<&'a str> {
        let (Self::Refused { properties, .. } | Self::Disconnected { properties, .. }) = self
        else {
            return None;
        };
        find!(properties, ReasonString)
    }
}

/// The server's CONNACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected<'a> {
    /// True if the server continues a session it kept. If not, and publishes were in flight, call
    /// [`super::Client::drop_inflight`].
    pub session_present: bool,
    /// Seconds of keep-alive that hold, the server's before our own; 0 is none.
    pub keep_alive: u16,
    /// Bytes of the largest packet the server takes.
    pub maximum_packet_size: u32,
    /// All the server said: session expiry, the client id it chose, what it serves.
    pub properties: Properties<'a>,
}

/// A message that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its topic, with a topic alias resolved.
    pub topic: Topic<'a>,
    /// Its payload.
    pub payload: &'a [u8],
    /// Quality of service of its delivery.
    pub qos: Qos,
    /// True if the server had kept it.
    pub retain: bool,
    /// True if the server sent it before.
    pub dup: bool,
    /// Its properties, subscription identifiers and user properties among them.
    pub properties: Properties<'a>,
}
