//! Requests of each dialect, at the device's end and the server's.

use super::Dialect;
use crate::hono::{self, Wanted};
use crate::incoming::{Incoming, Peer};
use crate::request::{
    Answered, Asking, Field, Method, ReplyPath, Request, RequestLimits, Segments, Status,
};

impl Dialect {
    /// Whether devices send requests, each with an answer of its own in which a command may come, and
    /// do not publish and subscribe.
    #[must_use]
    pub const fn asks(self) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => false,
            Self::Hono => true,
        }
    }

    /// What the platform takes of requests unless whoever runs it has set something else; none where
    /// nothing is known of it.
    #[must_use]
    pub const fn request_limits(self) -> Option<RequestLimits> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Some(hono::REQUEST_LIMITS),
        }
    }

    /// Makes a request of a message; `query` is where its parameters are put together, and is emptied
    /// first. Nothing is allocated once `query` has room.
    #[must_use]
    pub fn ask<'a>(self, asking: &Asking<'a>, query: &'a mut String) -> Request<'a> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => plain(asking),
            Self::Hono => hono::ask(asking, query),
        }
    }

    /// Makes the request that replies to a command: on the path that came with it, with a status as
    /// of HTTP.
    #[must_use]
    pub fn ask_reply<'a>(
        self,
        to: &'a ReplyPath,
        status: u16,
        payload: &'a [u8],
        query: &'a mut String,
    ) -> Request<'a> {
        // Only requests have commands in their answers.
        hono::ask_reply(to, status, payload, query)
    }

    /// Reads an answer to a device. Where a command comes with it that wants a reply, the path of the
    /// reply goes into `reply`; else that is empty afterwards.
    pub fn answered<'a>(
        self,
        status: Status,
        fields: impl Iterator<Item = Field<'a>>,
        payload: &'a [u8],
        reply: &mut ReplyPath,
    ) -> Answered<'a> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard if status.is_yes() => Answered::Accepted,
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => Answered::Rejected(status),
            Self::Hono => hono::answered(status, fields, payload, reply),
        }
    }

    /// What a refusal means on this platform, and what to look at; none where the code says it all.
    #[must_use]
    pub fn hint(self, status: Status) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => hono::hint(status),
        }
    }

    /// What else to look at where a handshake is not answered, as the end of a sentence; none where the
    /// platform answers it whoever asks.
    #[must_use]
    pub const fn handshake_hint(self) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Some(hono::HANDSHAKE_HINT),
        }
    }

    /// What a request means at the server end; none where the dialect has no requests. `peer` is who the
    /// link's credentials belong to.
    #[must_use]
    pub fn hear_request<'a>(
        self,
        came: &Incoming<'a>,
        peer: Option<&Peer<'a>>,
    ) -> Option<Wanted<'a>> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Some(hono::hear(came, peer)),
        }
    }
}

/// A message as it is, on its path.
fn plain<'a>(asking: &Asking<'a>) -> Request<'a> {
    Request {
        method: Method::Post,
        path: Segments::of(asking.path),
        query: "",
        content_type: asking.content_type,
        is_confirmable: asking.is_confirmable,
        payload: asking.payload,
    }
}
