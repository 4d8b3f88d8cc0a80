//! Names of requests that wait for a command.

use muster_platform::Protocol;
use slotmap::new_key_type;

new_key_type! {
    /// Names one request of a thread that waits, and never another one after it.
    pub(crate) struct QueryRef;
}

/// A request that waits for a command, as all threads know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) shard: u16,
    pub(crate) protocol: Protocol,
    pub(crate) query: QueryRef,
    /// True if it goes on to wait once it has a command.
    pub(crate) observes: bool,
}
