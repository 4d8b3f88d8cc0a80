//! Ids of devices, links and messages.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// One run of one scenario; another run's messages are *foreign*.
    RunId(u32)
);
id!(
    /// Sender of a message: global over all fleets of the plan, without gaps.
    DeviceId(u32)
);
id!(
    /// One session with one credential; it carries one or many devices.
    LinkId(u32)
);
id!(
    /// One fleet of the plan, in the order of the file.
    FleetId(u8)
);
id!(
    /// One stream of the plan, global over all fleets, in the order of the file.
    StreamId(u8)
);
id!(
    /// One northbound account (consumer group, plain subscriber, stored read-back).
    BackendId(u8)
);
id!(
    /// One consumer session and partition within a backend; order is judged within it.
    ConsumerId(u16)
);

/// The key of a message, the same on the device side and on the backend side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageId {
    /// The run that sent it.
    pub run: RunId,
    /// The device it is from.
    pub device: DeviceId,
    /// The stream of that device.
    pub stream: StreamId,
    /// Its place in that device's stream, from 0 without gaps.
    pub seq: u32,
}
