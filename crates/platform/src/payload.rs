//! Payloads that dialects know by name.

use muster_load::PayloadSpec;

use crate::hono::{self, DittoPayload};
use crate::sap_edge;
use crate::thingsboard::{self, BoardPayload};

/// A payload that a dialect knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPayload<'a> {
    /// The measures of SAP Edge.
    SapMeasures {
        /// At least 1.
        samples: u32,
    },
    /// A payload of the published performance tests of ThingsBoard.
    Board(BoardPayload<'a>),
    /// A message of the Ditto protocol.
    Ditto(DittoPayload<'a>),
}

impl NamedPayload<'_> {
    /// The payload for the stream at `stream_index` of its fleet.
    pub fn spec(self, stream_index: u8) -> PayloadSpec {
        match self {
            Self::Board(payload) => thingsboard::payload(payload),
            Self::Ditto(payload) => hono::payload(payload),
            Self::SapMeasures { samples } => sap_edge::measures(samples, stream_index),
        }
    }
}
