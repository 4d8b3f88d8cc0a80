//! What a subscriber among the devices tells of what it gets.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Integrity, MessageId, Micros, StreamId};

/// One copy of a device's message, as a subscribed device saw it: each subscriber is an account of
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reception {
    /// Who got it.
    pub subscriber: DeviceId,
    /// By which stream of kind `receive`.
    pub stream: StreamId,
    /// Which message; none if it carried no readable id.
    pub id: Option<MessageId>,
    /// When that was due, if anything tells.
    pub due: Option<Micros>,
    /// When the subscriber got it.
    pub seen: Micros,
    /// Whether it is what was sent.
    pub integrity: Integrity,
}
