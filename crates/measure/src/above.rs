//! Exact counters of the messages above each registered bound.

use muster_model::Micros;

use crate::{Bounds, Latency, StreamTrack};

/// The registered bounds of a stream, as the counters of a window lie ([`Bounds::place`]).
#[derive(Debug, Default)]
pub(crate) struct BoundTable {
    response: Placed,
    service: Placed,
    lateness: Placed,
    held: Placed,
}

/// The bounds of one latency, and the place of their first counter.
#[derive(Debug, Default)]
struct Placed {
    first: usize,
    bounds: Vec<Micros>,
}

impl Placed {
    fn of(bounds: &Bounds, latency: Latency) -> Self {
        Self {
            first: bounds.first_place(latency),
            bounds: bounds.sorted(latency),
        }
    }

    fn end(&self) -> usize {
        self.first + self.bounds.len()
    }
}

impl BoundTable {
    /// The bounds of a stream.
    pub(crate) fn of(track: &StreamTrack) -> Self {
        let placed = |latency| Placed::of(&track.bounds, latency);
        Self {
            response: placed(Latency::Response),
            service: placed(Latency::Service),
            lateness: placed(Latency::Lateness),
            held: placed(Latency::Held),
        }
    }

    /// Number of counters that the bounds take.
    pub(crate) fn len(&self) -> usize {
        self.held.end()
    }

    /// Counts the lower time of a response or a service. The counters have the places of those for
    /// upper times; no other latency has a lower time.
    pub(crate) fn count_lower(&self, above: &mut Vec<u64>, latency: Latency, lower: Micros) {
        above.resize(self.service.end(), 0);
        self.count(above, latency, lower);
    }

    /// Counts a time that it took in the counters of all bounds.
    pub(crate) fn count(&self, above: &mut [u64], latency: Latency, took: Micros) {
        let placed = match latency {
            Latency::Response => &self.response,
            Latency::Service => &self.service,
            Latency::Lateness => &self.lateness,
            Latency::Held => &self.held,
            Latency::EndToEnd | Latency::Connect => return,
        };
        for (bound, above) in placed.bounds.iter().zip(&mut above[placed.first..]) {
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
