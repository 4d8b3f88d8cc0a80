//! The seam between a loop and the drivers of its shards.

use std::fmt::Debug;

use muster_conduct::{Dispatch, Order};
use muster_model::Micros;
use muster_net::{Handler, Io};

/// The driver of a shard, whose links speak one protocol.
pub trait LinkDriver: Handler + Debug {
    /// Carries out an order.
    fn obey(&mut self, io: &mut Io, order: Order);

    /// Returns the records since the last dispatch.
    fn dispatch(&mut self, io: &mut Io, now: Micros) -> Box<Dispatch>;

    /// Returns all that the shard leaves behind, once it has finished.
    fn hand_over(&mut self, io: &mut Io) -> Box<Dispatch>;
}
