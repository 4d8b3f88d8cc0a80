//! Ledger of what the platform kept for devices that were offline.

use muster_model::{DeviceId, Micros};
use serde::{Deserialize, Serialize};

use crate::LatencyView;
use crate::merge::Merge;

/// Draining of the queues that the platform kept while devices were offline on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrainLedger {
    /// Devices that went offline; each counts once for each of its streams.
    pub devices: u64,
    /// Devices that the platform answered when they returned.
    pub returned: u64,
    /// Returned devices whose session the platform had dropped.
    pub forgotten: u64,
    /// Due while offline and accepted by the platform; null after closed loops and queries.
    pub expected: Option<u64>,
    /// Expected, and arrived.
    pub drained: Option<u64>,
    /// Expected, and lost.
    pub lost: Option<u64>,
    /// Expected, and may still arrive; of commands always 0.
    pub outstanding: Option<u64>,
    /// Further copies of what was due while the device was offline.
    pub duplicates: u64,
    /// Overtaken within one subscriber and sender; of commands always 0.
    pub reordered: u64,
    /// Devices that miss some of it.
    pub incomplete: u64,
    /// Instant at which the first device was back; none if none was.
    #[serde(skip)]
    pub began: Option<Micros>,
    /// Instant at which the last of it came; none if nothing did.
    #[serde(skip)]
    pub ended: Option<Micros>,
    /// The device that took longest.
    #[serde(skip)]
    pub slowest: Option<DeviceId>,
}

/// Ledger and times of the draining of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrainSummary {
    /// Ledger of what was kept.
    pub ledger: DrainLedger,
    /// From a device's return to the last of what was kept for it, one of each device to which
    /// anything came.
    pub took: LatencyView,
}

impl DrainLedger {
    /// Drained messages per second, from the return of the first device to the last of what was
    /// kept.
    pub fn rate(&self) -> Option<f64> {
        let took = self.ended?.get().saturating_sub(self.began?.get());
        let drained = self.drained?;
        (took > 0).then(|| drained as f64 / Micros(took).as_secs_f64())
    }

    /// Adds the ledger of another stream. A figure that is null on one side is the other's; the
    /// slowest device stays as it is.
    pub fn merge(&mut self, other: &Self) {
        self.devices += other.devices;
        self.returned += other.returned;
        self.forgotten += other.forgotten;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.incomplete += other.incomplete;
        self.expected.merge(&other.expected);
        self.drained.merge(&other.drained);
        self.lost.merge(&other.lost);
        self.outstanding.merge(&other.outstanding);
        self.began = [self.began, other.began].into_iter().flatten().min();
        self.ended = self.ended.max(other.ended);
    }
}
