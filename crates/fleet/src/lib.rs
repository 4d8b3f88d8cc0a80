//! Places the links of a plan on shards: one thread and one epoll loop each.
//!
//! Layer 6. It turns the plan into a [`muster_device::Shard`] for each protocol,
//! drives these over one loop of [`muster_net`], and sends the conductor what happened in
//! dispatches. It must never know what is judged, or how many other shards there are beyond its slice.

mod classes;
mod driver;
mod link_driver;
mod renewed_targets;
mod shards;
mod tags;

pub use classes::{ShardError, ShardSpec};
pub use driver::{DatagramLines, Datagrams, Lines, LinkCertificates, Secured, Streams};
pub use link_driver::LinkDriver;
pub use renewed_targets::RenewedTargets;
pub use shards::{MakeDriver, Shards, datagram_driver, shard_loop, stream_driver};
