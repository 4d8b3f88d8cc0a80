//! The codec: every packet of both versions, as a view of the bytes it was read from.
//!
//! Decoding checks all that can be known without a session: lengths, reserved bits, UTF-8,
//! property places and values. Unknown reason codes are let through, so that a platform's odd
//! code can be counted instead of ending the connection. Properties are ignored when a packet is
//! written for MQTT 3.1.1, which has none.

mod acknowledge;
mod connack;
mod connect;
mod disconnect;
mod publish;
mod suback;
mod subscribe;

pub use acknowledge::Acknowledge;
pub use connack::Connack;
pub use connect::{Connect, Will};
pub use disconnect::{Auth, Disconnect};
pub use publish::Publish;
pub use suback::Suback;
pub use subscribe::{
    Entry, Filter, Filters, List, Request, RetainHandling, Subscribe, Texts, Unsubscribe,
};

use thiserror::Error;

use super::input::{Frame, Input};
use super::wire::{VARINT_MAXIMUM, put_varint, varint_size};
use super::{Malformed, Version};

/// The type of a packet, with its number in the fixed header (section 2.1.2).
pub(super) mod kind {
    pub(in crate::mqtt) const CONNECT: u8 = 1;
    pub(in crate::mqtt) const CONNACK: u8 = 2;
    pub(in crate::mqtt) const PUBLISH: u8 = 3;
    pub(in crate::mqtt) const PUBACK: u8 = 4;
    pub(in crate::mqtt) const PUBREC: u8 = 5;
    pub(in crate::mqtt) const PUBREL: u8 = 6;
    pub(in crate::mqtt) const PUBCOMP: u8 = 7;
    pub(in crate::mqtt) const SUBSCRIBE: u8 = 8;
    pub(in crate::mqtt) const SUBACK: u8 = 9;
    pub(in crate::mqtt) const UNSUBSCRIBE: u8 = 10;
    pub(in crate::mqtt) const UNSUBACK: u8 = 11;
    pub(in crate::mqtt) const PINGREQ: u8 = 12;
    pub(in crate::mqtt) const PINGRESP: u8 = 13;
    pub(in crate::mqtt) const DISCONNECT: u8 = 14;
    pub(in crate::mqtt) const AUTH: u8 = 15;
}

/// PINGREQ, whole (section 3.12).
pub(super) const PINGREQ: [u8; 2] = [kind::PINGREQ << 4, 0];
/// PINGRESP, whole (section 3.13).
pub(super) const PINGRESP: [u8; 2] = [kind::PINGRESP << 4, 0];

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The client opens (section 3.1).
    Connect(Connect<'a>),
    /// The server answers (section 3.2).
    Connack(Connack<'a>),
    /// A message (section 3.3).
    Publish(Publish<'a>),
    /// Answer at QoS 1 (section 3.4).
    Puback(Acknowledge<'a>),
    /// First answer at QoS 2 (section 3.5).
    Pubrec(Acknowledge<'a>),
    /// Release at QoS 2 (section 3.6).
    Pubrel(Acknowledge<'a>),
    /// Last answer at QoS 2 (section 3.7).
    Pubcomp(Acknowledge<'a>),
    /// The client subscribes (section 3.8).
    Subscribe(Subscribe<'a>),
    /// The server answers (section 3.9).
    Suback(Suback<'a>),
    /// The client ends subscriptions (section 3.10).
    Unsubscribe(Unsubscribe<'a>),
    /// The server answers (section 3.11); without codes in MQTT 3.1.1.
    Unsuback(Suback<'a>),
    /// Are you there (section 3.12).
    Pingreq,
    /// I am (section 3.13).
    Pingresp,
    /// The last packet (section 3.14).
    Disconnect(Disconnect<'a>),
    /// Enhanced authentication (section 3.15); not in MQTT 3.1.1.
    Auth(Auth<'a>),
}

/// Reason that a packet cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Unwritable {
    /// A text or datum longer than its two-byte length can say.
    #[error("a text or datum is longer than 65,535 bytes")]
    TextTooLong,
    /// More bytes than the remaining length can say (section 1.5.5).
    #[error("the packet would have {0} bytes, more than the remaining length can say")]
    TooLarge(usize),
}

impl<'a> Packet<'a> {
    /// The first packet of `input`, if it is whole; a CONNECT brings its own version.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no packet of `version`, or it exceeds `maximum` bytes.
    pub fn decode(
        version: Version,
        input: &mut Input<'a>,
        maximum: u32,
    ) -> Result<Option<Self>, Malformed> {
        match input.take(maximum)? {
            Some(frame) => Self::read(version, frame).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn read(version: Version, frame: Frame<'a>) -> Result<Self, Malformed> {
        let Frame { first, body } = frame;
        let packet_kind = first >> 4;
        check_flags(first)?;
        Ok(match packet_kind {
            kind::CONNECT => Self::Connect(Connect::read(body)?),
            kind::CONNACK => Self::Connack(Connack::read(version, body)?),
            kind::PUBLISH => Self::Publish(Publish::read(version, first, body)?),
            kind::PUBACK => Self::Puback(Acknowledge::read(version, body)?),
            kind::PUBREC => Self::Pubrec(Acknowledge::read(version, body)?),
            kind::PUBREL => Self::Pubrel(Acknowledge::read(version, body)?),
            kind::PUBCOMP => Self::Pubcomp(Acknowledge::read(version, body)?),
            kind::SUBSCRIBE => Self::Subscribe(Subscribe::read(version, body)?),
            kind::SUBACK => Self::Suback(Suback::read(version, packet_kind, body)?),
            kind::UNSUBSCRIBE => Self::Unsubscribe(Unsubscribe::read(version, body)?),
            kind::UNSUBACK => Self::Unsuback(Suback::read(version, packet_kind, body)?),
            kind::PINGREQ if body.is_empty() => Self::Pingreq,
            kind::PINGRESP if body.is_empty() => Self::Pingresp,
            kind::PINGREQ | kind::PINGRESP => return Err(Malformed::Trailing),
            kind::DISCONNECT => Self::Disconnect(Disconnect::read(version, body)?),
            kind::AUTH if version == Version::V5 => Self::Auth(Auth::read(body)?),
            _ => return Err(Malformed::PacketType(packet_kind)),
        })
    }

    /// Appends the packet to `out`; nothing is appended on error.
    ///
    /// # Errors
    /// [`Unwritable`] if a length does not fit its field.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        match self {
            Self::Connect(packet) => packet.write(out),
            Self::Connack(packet) => packet.write(version, out),
            Self::Publish(packet) => packet.write(version, out),
            Self::Puback(packet) => packet.write(version, kind::PUBACK, out),
            Self::Pubrec(packet) => packet.write(version, kind::PUBREC, out),
            Self::Pubrel(packet) => packet.write(version, kind::PUBREL, out),
            Self::Pubcomp(packet) => packet.write(version, kind::PUBCOMP, out),
            Self::Subscribe(packet) => packet.write(version, out),
            Self::Suback(packet) => packet.write(version, kind::SUBACK, out),
            Self::Unsubscribe(packet) => packet.write(version, out),
            Self::Unsuback(packet) => packet.write(version, kind::UNSUBACK, out),
            Self::Pingreq => whole(PINGREQ, out),
            Self::Pingresp => whole(PINGRESP, out),
            Self::Disconnect(packet) => packet.write(version, out),
            Self::Auth(packet) => packet.write(out),
        }
    }
}

/// The lower four bits belong to PUBLISH; elsewhere they are fixed (MQTT-2.1.3-1).
#[inline]
pub(super) const fn check_flags(first: u8) -> Result<(), Malformed> {
    let wanted = match first >> 4 {
        kind::PUBLISH => return Ok(()),
        kind::PUBREL | kind::SUBSCRIBE | kind::UNSUBSCRIBE => 0b0010,
        _ => 0,
    };
    if first & 0x0f == wanted {
        Ok(())
    } else {
        Err(Malformed::Flags)
    }
}

fn whole(packet: [u8; 2], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    out.extend_from_slice(&packet);
    Ok(())
}

/// Appends the fixed header of a packet whose remaining length is `length`.
#[inline]
fn header(first: u8, length: usize, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    if length > VARINT_MAXIMUM {
        return Err(Unwritable::TooLarge(length));
    }
    out.reserve(1 + varint_size(length) + length);
    out.push(first);
    put_varint(out, length);
    Ok(())
}

/// Bytes of a list of properties with its length; none in MQTT 3.1.1.
#[inline]
fn properties_size(version: Version, properties: super::Properties<'_>) -> usize {
    match version {
        Version::V311 => 0,
        Version::V5 => {
            let size = properties.size();
            varint_size(size) + size
        }
    }
}
