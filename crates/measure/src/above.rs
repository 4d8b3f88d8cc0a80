//! Exact counters of the messages above each registered bound.

use muster_model::Micros;

use crate::{Latency, StreamTrack};

/// The registered bounds of a stream, as the counters of a window lie.
#[derive(Debug, Default)]
pub(crate) struct BoundTable {
    response: Vec<Micros>,
    service: Vec<Micros>,
    lateness: Vec<Micros>,
    held: Vec<Micros>,
}

impl BoundTable {
    /// The bounds of a stream.
    pub(crate) fn of(track: &StreamTrack) -> Self {
        Self {
            response: track.bounds.sorted(Latency::Response),
            service: track.bounds.sorted(Latency::Service),
            lateness: track.bounds.sorted(Latency::Lateness),
            held: track.bounds.sorted(Latency::Held),
        }
    }

    /// Number of counters that the bounds take.
    pub(crate) fn len(&self) -> usize {
        self.response.len() + self.service.len() + self.lateness.len() + self.held.len()
    }

    /// Counts the lower time of a response or a service. The counters have the places of those for
    /// upper times; no other latency has a lower time.
    pub(crate) fn count_lower(&self, above: &mut Vec<u64>, latency: Latency, lower: Micros) {
        above.resize(self.response.len() + self.service.len(), 0);
        self.count(above, latency, lower);
    }

    /// Counts a time that it took in the counters of all bounds.
    pub(crate) fn count(&self, above: &mut [u64], latency: Latency, took: Micros) {
        let (start, bounds) = match latency {
            Latency::Response => (0, &self.response),
            Latency::Service => (self.response.len(), &self.service),
            Latency::Lateness => (self.response.len() + self.service.len(), &self.lateness),
            Latency::Held => (self.len() - self.held.len(), &self.held),
            Latency::EndToEnd | Latency::Connect => return,
        };
        for (bound, above) in bounds.iter().zip(&mut above[start..]) {
            *above += u64::from(took > *bound);
        }
    }
}

/// Counts a time that it took against bounds by themselves.
pub(crate) fn count_above(above: &mut Vec<u64>, bounds: &[Micros], took: Micros) {
    above.resize(bounds.len(), 0);
    for (bound, above) in bounds.iter().zip(above) {
        *above += u64::from(took > *bound);
    }
}
