//! Sums windows: over a phase for ledgers and latencies.

use muster_model::{BackendId, FleetId, StreamId};

use crate::merge::sum_of;
use crate::{CopyCounts, Counts, Flow, LinkWindow, Outcomes, UplinkWindow, WindowDelta, WindowKey};

/// The windows of one stream, summed.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) uplink: UplinkWindow,
    /// Per backend.
    pub(crate) arrivals: Vec<crate::ArrivalWindow>,
}

impl Gathered {
    /// Sums the windows of a stream whose key is wanted.
    pub(crate) fn of(
        windows: &WindowDelta,
        stream: StreamId,
        backends: u8,
        is_wanted: impl Fn(&WindowKey) -> bool,
    ) -> Self {
        let arrivals = (0..backends).map(|at| {
            let windows = windows.arrivals_of(BackendId(at), stream);
            sum_of(windows, |key| is_wanted(key))
        });
        Self {
            uplink: sum_of(windows.uplinks_of(stream), |key| is_wanted(key)),
            arrivals: arrivals.collect(),
        }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.uplink.counts
    }

    pub(crate) fn flow(&self) -> &Flow {
        &self.uplink.flow
    }

    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.uplink.outcomes
    }
}

/// The copies a backend took in, summed over the wanted windows.
pub(crate) fn copies(
    windows: &WindowDelta,
    backend: BackendId,
    is_wanted: impl Fn(&WindowKey) -> bool,
) -> CopyCounts {
    let is_its = |(of, key): &&(BackendId, WindowKey)| *of == backend && is_wanted(key);
    sum_of(&windows.copies, is_its)
}

/// The links of a fleet, or of all, summed over the wanted windows.
pub(crate) fn links(
    windows: &WindowDelta,
    fleet: Option<FleetId>,
    is_wanted: impl Fn(&WindowKey) -> bool,
) -> LinkWindow {
    sum_of(&windows.links, |(of, key)| {
        fleet.is_none_or(|fleet| fleet == *of) && is_wanted(key)
    })
}
