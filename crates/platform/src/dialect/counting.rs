//! What the platforms of the dialects count themselves.

use super::Dialect;
use crate::{Counters, hono};

impl Dialect {
    /// The counters of the platform's own; none where none are known.
    #[must_use]
    pub const fn counters(self) -> Option<&'static Counters> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Some(&hono::COUNTERS),
        }
    }

    /// The kind under which the platform counts what is published on a topic; none if it does not.
    #[must_use]
    pub fn counted_as(self, topic: &str) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => hono::counted_as(topic),
        }
    }
}
