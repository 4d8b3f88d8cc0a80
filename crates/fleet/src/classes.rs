//! Parts that a shard is made from.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_conduct::{Placement, Slice, Trial};
use muster_device::{Session, Shard, Sink};
use muster_load::{PayloadError, StreamSchedule};
use muster_measure::RecorderPlan;
use muster_model::RunId;
use muster_net::Clock;
use muster_plan::Plan;
use muster_platform::Protocol;

use crate::renewed_targets::RenewedTargets;

/// Parts that a shard is made from.
#[derive(Debug, Clone)]
pub struct ShardSpec {
    /// The plan of the run.
    pub plan: Arc<Plan>,
    /// Plan of its recorders.
    pub recorder: RecorderPlan,
    /// The schedules of its streams.
    pub schedules: Vec<Arc<StreamSchedule>>,
    /// Run that its messages are of.
    pub run: RunId,
    /// The share of all links that this shard carries.
    pub slice: Slice,
    /// The clock of the run.
    pub clock: Clock,
    /// Addresses that devices connect to, each with the protocol of its devices.
    pub targets: Vec<(Protocol, SocketAddr)>,
    /// The addresses that replace these while the run goes on; none if names are looked up once.
    pub renewed: Option<Arc<RenewedTargets>>,
    /// The processes of an embedded gateway, whose CPU wait counts as our own.
    pub gateways: Vec<u32>,
    /// Settings that only tests change.
    pub trial: Trial,
}

/// Reason for which a plan cannot be placed on a shard.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// A payload that the scenario's checks let through.
    #[error("cannot compile the payload of a stream: {0}")]
    Payload(#[from] PayloadError),
    /// Devices speak a protocol that no address is of.
    #[error("devices speak {0}, and `platform.devices` has no address of it: add one")]
    NoTarget(&'static str),
    /// The event loop cannot start.
    #[error(transparent)]
    Loop(#[from] muster_net::LoopError),
}

impl ShardSpec {
    /// The shard, with every link down.
    ///
    /// # Errors
    /// [`ShardError::Payload`] for a plan that cannot be placed.
    pub fn shard<P: Session, S: Sink>(&self, sink: S) -> Result<Shard<P, S>, ShardError> {
        let placement = Placement {
            plan: &self.plan,
            recorder: &self.recorder,
            schedules: &self.schedules,
            run: self.run,
            slice: self.slice,
            wall_ms_at_t0: self.clock.wall_ms_at_t0(),
            slot_limit: self.trial.slots,
        };
        Ok(placement.shard(sink)?)
    }
}
