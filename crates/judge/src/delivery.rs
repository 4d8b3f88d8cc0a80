//! Streams without a witness that the platform delivered what it acknowledged.

use muster_model::Promise;
use serde::{Deserialize, Serialize};

use crate::{Evidence, StreamEvidence};

/// A stream whose delivery is unknown: its acknowledgements promise no delivery, and no backend,
/// counter or read-back looks behind them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownDelivery {
    /// `<fleet>/<stream>`.
    pub scope: String,
    /// The promise of its acknowledgements.
    pub promise: Promise,
}

/// Every stream with messages sent whose delivery is unknown, in the plan's order.
pub(crate) fn unknown(evidence: &Evidence<'_>) -> Vec<UnknownDelivery> {
    let streams = evidence.streams.iter().zip(&evidence.summary.streams);
    let unknown = streams.filter(|(of, figures)| is_unknown(of) && figures.uplink.sent > 0);
    unknown
        .map(|(of, _)| UnknownDelivery {
            scope: of.name.clone(),
            promise: of.promise,
        })
        .collect()
}

/// Returns true if only a store has what the platform delivered: when that was is not known.
pub(crate) fn is_without_times(stream: &StreamEvidence, evidence: &Evidence<'_>) -> bool {
    let backends = &evidence.summary.backends;
    let is_of_delivery = !stream.role.is_uplink() || stream.promise.is_of_delivery();
    !is_of_delivery && !backends.is_empty() && backends.iter().all(|backend| backend.is_store)
}

pub(crate) const fn is_unknown(stream: &StreamEvidence) -> bool {
    stream.role.is_uplink() && !stream.promise.is_of_delivery() && !stream.is_delivery_seen
}
