//! What one agent is to do.

use std::net::SocketAddr;

use muster_conduct::{Slice, Trial};
use muster_model::{BackendId, ConsumerId, RunId};
use muster_scenario::Plan;
use serde::{Deserialize, Serialize};

/// The share of a run that one process carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The process's name, which begins the names of its threads; empty where there is only one.
    pub name: String,
    /// The plan of the whole run.
    pub plan: Plan,
    /// Which run it is.
    pub run: RunId,
    /// The share of the links; none where the process has consumers alone, and so no shards.
    pub slice: Option<Slice>,
    /// T0 as a raw reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub t0_ns: u64,
    /// The wall clock at T0, in milliseconds since the Unix epoch: one for all processes, since
    /// `${due_ms}` in a payload must read the same at its sender and at its consumer.
    pub wall_ms_at_t0: u64,
    /// Device shards, one thread each; at least 1 where there are links.
    pub shards: u32,
    /// Where devices connect.
    pub targets: Vec<SocketAddr>,
    /// The consumers: of which backend, which number, and where each connects.
    pub seats: Vec<(BackendId, ConsumerId, SocketAddr)>,
    /// The processes of an embedded gateway on this host, whose CPU wait counts as our own.
    pub gateways: Vec<u32>,
    /// What only tests set.
    pub trial: Trial,
}
