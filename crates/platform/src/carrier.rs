//! Carriers of a message's id.

use std::fmt;

use muster_model::{STAMP_BYTES, STAMP_TEXT};
use serde::{Deserialize, Serialize};

use crate::BlindField;

/// Carrier of a message's id from the device to the backend.
///
/// For a stamp, [`IntegrityLevel`] says what its check covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carrier {
    /// A stamp in the payload: 22 bytes at its head, or 30 characters at `${stamp}`.
    Payload,
    /// A stamp as text in an MQTT 5 user property named [`PROPERTY_NAME`] (MQTT-3.3.2.3.7).
    Property,
    /// A stamp as text in a field of a JSON payload, named by a JSON pointer (RFC 6901).
    Field(String),
    /// The dialect's own id of a message ([`crate::ApplicationId`]), which the platform's acknowledgement
    /// repeats; northbound it identifies nothing.
    ApplicationId,
    /// An id of the application's own in a field of a JSON payload, made of the device and the
    /// number of its message; its topic leads back to the device.
    Blind(BlindField),
    /// No id: the n-th arrival on a device's topic is taken for its n-th message.
    Order,
    /// No id at all: arrivals are counted as unstamped.
    None,
}

/// The part of a message that a stamp's check covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum IntegrityLevel {
    /// The stamp and all of the payload.
    #[default]
    Body,
    /// The stamp alone, for platforms that write a payload anew (`1.50` becomes `1.5`). Its field then leads
    /// to the stamp, wherever the platform puts that field.
    Stamp,
}

/// Name of the user property that carries a stamp.
pub const PROPERTY_NAME: &str = "muster-id";

impl Carrier {
    /// Returns the least payload, in bytes, that this carrier fits into. `text` is true for a template
    /// (30 characters) and false for plain bytes (22 bytes).
    pub fn least_payload(&self, text: bool) -> usize {
        match self {
            Carrier::Payload if text => STAMP_TEXT,
            Carrier::Payload => STAMP_BYTES,
            Carrier::Field(_) => STAMP_TEXT,
            Carrier::Property
            | Carrier::ApplicationId
            | Carrier::Blind(_)
            | Carrier::Order
            | Carrier::None => 0,
        }
    }
}

impl IntegrityLevel {
    /// Returns the parts of a payload that the check covers, besides the stamp.
    pub(crate) fn covered(self, around: [&[u8]; 2]) -> [&[u8]; 2] {
        match self {
            Self::Body => around,
            Self::Stamp => [&[], &[]],
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Carrier::Payload => f.write_str("payload"),
            Carrier::Property => f.write_str("property"),
            Carrier::Field(pointer) => write!(f, "field {pointer}"),
            Carrier::ApplicationId => f.write_str("application-id"),
            Carrier::Blind(field) => write!(f, "blind {}", field.pointer),
            Carrier::Order => f.write_str("order"),
            Carrier::None => f.write_str("none"),
        }
    }
}
