//! Places the links of a plan on shards: one thread and one epoll loop each.
//!
//! Layer 6. It turns the plan into a [`muster_device::Shard`], drives that over
//! [`muster_net`], and tells the conductor what happened in dispatches. It must never know what
//! is judged, or how many other shards there are beyond its slice.

mod classes;
mod driver;

pub use classes::{ShardError, ShardSpec};
pub use driver::{Datagrams, Driver, Lines, LinkCertificates, Secured, Streams, shard_loop};
