//! Absences of devices, and the last arrivals of what was kept for them.

use muster_model::{Cause, DeviceId, LinkEvent, LinkFact, LinkId, Micros, StreamId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// All links that went offline on purpose, and what was kept for their devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drains {
    absences: FxHashMap<LinkId, Absence>,
    /// By the stream that takes it, and the device.
    drained: FxHashMap<(StreamId, DeviceId), Drained>,
}

/// The time that a link was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Absence {
    /// Instant at which the link ended.
    pub(crate) left: Micros,
    /// Instant at which the platform answered the CONNECT of its return.
    pub(crate) returned: Option<Micros>,
    /// True if the platform still had the session then.
    pub(crate) is_kept: bool,
}

/// Arrivals of what was kept for a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drained {
    /// First copies.
    pub(crate) count: u64,
    /// Instant at which the last of them came.
    pub(crate) last: Option<Micros>,
}

impl Absence {
    /// Returns whether something that was due then was kept for the device.
    fn holds(&self, due: Micros) -> bool {
        self.left <= due && self.returned.is_some_and(|returned| due < returned)
    }
}

impl Drains {
    /// Records an event of a link. A link is away once: what ends it later is no absence on purpose.
    pub(crate) fn link(&mut self, fact: &LinkFact) {
        match fact.event {
            LinkEvent::Disconnected(Cause::Offline) => {
                self.absences.entry(fact.link).or_insert(Absence {
                    left: fact.at,
                    returned: None,
                    is_kept: false,
                });
            }
            LinkEvent::Returned { is_kept } => {
                let absence = self.absences.get_mut(&fact.link);
                if let Some(absence) = absence.filter(|absence| absence.returned.is_none()) {
                    (absence.returned, absence.is_kept) = (Some(fact.at), is_kept);
                }
            }
            LinkEvent::Connected { .. }
            | LinkEvent::Failed(_)
            | LinkEvent::Disconnected(_)
            | LinkEvent::LastSent { .. } => {}
        }
    }

    /// Records a first copy that reached a device on a link. It was kept for the device if it came
    /// due in the absence.
    pub(crate) fn came(
        &mut self,
        link: LinkId,
        who: (StreamId, DeviceId),
        due: Micros,
        seen: Micros,
    ) {
        let absence = self.absences.get(&link);
        if absence.is_some_and(|absence| absence.holds(due)) {
            self.drained.entry(who).or_default().add(seen);
        }
    }

    /// Records a first copy that was kept for a device.
    pub(crate) fn kept_came(&mut self, link: LinkId, who: (StreamId, DeviceId), seen: Micros) {
        if self.absences.contains_key(&link) {
            self.drained.entry(who).or_default().add(seen);
        }
    }

    /// Absence of a link; none if it never was away.
    pub(crate) fn absence(&self, link: Option<LinkId>) -> Option<&Absence> {
        self.absences.get(&link?)
    }

    /// Arrivals of what was kept for a device.
    pub(crate) fn drained(&self, stream: StreamId, device: DeviceId) -> Drained {
        let drained = self.drained.get(&(stream, device));
        drained.copied().unwrap_or_default()
    }

    /// Number of first copies that a stream's devices received of what was kept for them.
    pub(crate) fn drained_count(&self, stream: StreamId) -> u64 {
        let of = self.drained.iter().filter(|((of, _), _)| *of == stream);
        of.map(|(_, drained)| drained.count).sum()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        // A link lives in one process.
        self.absences.extend(other.absences);
        for (who, theirs) in other.drained {
            let mine = self.drained.entry(who).or_default();
            mine.count += theirs.count;
            mine.last = mine.last.max(theirs.last);
        }
    }
}

impl Drained {
    fn add(&mut self, seen: Micros) {
        self.count += 1;
        self.last = self.last.max(Some(seen));
    }
}
