//! Events of a server session.

use crate::mqtt::packet::{Auth, Connect, Subscribe, Unsubscribe};
use crate::mqtt::{Malformed, Properties, Qos, Token, Topic};

/// Something that happened; drain [`super::Server::poll`] until it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A client opens; nothing more is taken before [`super::Server::accept`] or
    /// [`super::Server::refuse`].
    Connect(Connect<'a>),
    /// The client published; answer with [`super::Server::ack`] where it can be answered.
    Publish(Incoming<'a>),
    /// The client subscribes; answer with [`super::Server::suback`].
    Subscribe(Subscribe<'a>),
    /// The client ends subscriptions; answer with [`super::Server::unsuback`].
    Unsubscribe(Unsubscribe<'a>),
    /// The client answered a delivery: PUBACK, or PUBREC at QoS 2.
    Acked {
        /// The delivery.
        token: Token,
        /// Its code; 0x80 and above ends the delivery as refused.
        reason: u8,
    },
    /// PUBCOMP: delivery at QoS 2 is complete.
    Completed {
        /// The delivery.
        token: Token,
    },
    /// The session was resumed and this delivery has no answer yet: render it again and call
    /// [`super::Server::redeliver`], or [`super::Server::forget`] it.
    Resend {
        /// The delivery.
        token: Token,
    },
    /// The client pinged; it is answered already.
    Ping,
    /// A step of enhanced authentication (section 4.12). Before CONNACK answer with
    /// [`super::Server::challenge`], [`super::Server::accept`] or [`super::Server::refuse`]; after
    /// it with [`super::Server::challenge`], [`super::Server::authenticated`] or
    /// [`super::Server::disconnect`].
    Auth(Auth<'a>),
    /// The client ended the connection.
    Disconnect {
        /// Its code.
        reason: u8,
        /// True if its will must be published (section 3.1.2.5).
        with_will: bool,
        /// A new expiry of the session.
        session_expiry: Option<u32>,
    },
    /// Nothing came for one and a half times the keep-alive (MQTT-3.1.2-22); the connection is
    /// over and the will is due.
    KeepAliveExpired,
    /// The client's bytes are not the protocol; the connection is over and the will is due.
    Malformed(Malformed),
}

/// A message a client published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// Its topic, with a topic alias resolved.
    pub topic: Topic<'a>,
    /// Its payload.
    pub payload: &'a [u8],
    /// Its quality of service.
    pub qos: Qos,
    /// True if it must be retained.
    pub retain: bool,
    /// True if the client sent it before.
    pub dup: bool,
    /// Handle for the answer; none at QoS 0.
    pub pending: Option<Pending>,
    /// Its properties.
    pub properties: Properties<'a>,
}

/// A publish that waits for the server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pending {
    /// Its packet id.
    pub packet_id: u16,
    /// Its quality of service, which decides between PUBACK and PUBREC.
    pub qos: Qos,
}
