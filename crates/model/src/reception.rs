//! Report of a subscriber among the devices on the messages that it receives.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Integrity, MessageId, Micros, StreamId};

/// One copy of a device's message, as a subscribed device saw it: each subscriber has its
/// account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reception {
    /// The subscriber.
    pub subscriber: DeviceId,
    /// The stream of kind `receive` that subscribed.
    pub stream: StreamId,
    /// The message; none if it carried no readable id.
    pub id: Option<MessageId>,
    /// Its due instant, if known.
    pub due: Option<Micros>,
    /// Instant at which the subscriber received it.
    pub seen: Micros,
    /// Comparison with the bytes that were sent.
    pub integrity: Integrity,
}
