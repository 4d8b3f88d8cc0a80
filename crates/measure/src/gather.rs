//! Sums windows: over a phase for ledgers and latencies.

use muster_model::{BackendId, FleetId, StreamId};

use crate::{
    CopyCounts, Counts, Distribution, Flow, LinkCounts, Outcomes, UplinkWindow, WindowDelta,
    WindowKey,
};

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
        let mut sum = Self::default();
        for (key, window) in windows.uplinks_of(stream) {
            if is_wanted(key) {
                sum.uplink.merge(window);
            }
        }
        sum.arrivals
            .resize_with(usize::from(backends), Default::default);
        for (arrivals, at) in sum.arrivals.iter_mut().zip(0..backends) {
            for (key, window) in windows.arrivals_of(BackendId(at), stream) {
                if is_wanted(key) {
                    arrivals.merge(window);
                }
            }
        }
        sum
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
    let mut sum = CopyCounts::default();
    for ((of, key), counts) in &windows.copies {
        if *of == backend && is_wanted(key) {
            sum.merge(counts);
        }
    }
    sum
}

/// The links of a fleet, or of all, summed over the wanted windows.
pub(crate) fn links(
    windows: &WindowDelta,
    fleet: Option<FleetId>,
    is_wanted: impl Fn(&WindowKey) -> bool,
) -> (LinkCounts, Distribution) {
    let (mut counts, mut connect) = (LinkCounts::default(), Distribution::default());
    for ((of, key), window) in &windows.links {
        if fleet.is_none_or(|fleet| fleet == *of) && is_wanted(key) {
            counts.merge(&window.counts);
            connect.merge(&window.connect);
        }
    }
    (counts, connect)
}
