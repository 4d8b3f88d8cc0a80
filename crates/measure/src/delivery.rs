//! The counters of end-to-end bounds second by second, so that a rule can be decided again without
//! some seconds.

use std::collections::BTreeMap;

use muster_model::{BackendId, Micros};

use crate::closing::{Closing, StreamClosed};
use crate::{DeliverySecond, DeliverySeconds, Latency, Phase, SecondRow};

/// Messages above a bound, by their upper and their lower time.
#[derive(Clone, Copy, Default)]
struct Counted {
    above: u64,
    above_lower: u64,
}

impl Closing<'_> {
    /// The seconds of every end-to-end bound that all streams have registered.
    pub(crate) fn delivery(
        &self,
        streams: &[&StreamClosed],
        series: &[SecondRow],
    ) -> Vec<DeliverySeconds> {
        let bounds_of = |stream: &StreamClosed| &self.plan.streams[stream.stream.index()].bounds;
        let Some(first) = streams.first().filter(|_| self.has_one_clock) else {
            return Vec::new();
        };
        if streams.iter().any(|stream| stream.unsure() > 0) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for bound in bounds_of(first).sorted(Latency::EndToEnd) {
            let places: Option<Vec<usize>> = streams
                .iter()
                .map(|stream| bounds_of(stream).place(Latency::EndToEnd, bound))
                .collect();
            let Some(places) = places else { continue };
            for backend in (0..self.plan.timed()).map(BackendId) {
                let mut counted = BTreeMap::new();
                for (stream, place) in streams.iter().zip(&places) {
                    self.count_seconds(stream, backend, *place, &mut counted);
                }
                found.push(seconds_of(bound, backend, series, &counted));
            }
        }
        found
    }

    fn count_seconds(
        &self,
        stream: &StreamClosed,
        backend: BackendId,
        place: usize,
        counted: &mut BTreeMap<u32, Counted>,
    ) {
        let windows = self.windows.arrivals_of(backend, stream.stream);
        for (key, window) in windows.filter(|(key, _)| key.phase == Phase::Measure) {
            let at_place = |above: &[u64]| above.get(place).copied().unwrap_or(0);
            let of_second = counted.entry(key.second).or_default();
            of_second.above += at_place(&window.above);
            of_second.above_lower += at_place(&window.above_lower);
        }
    }
}

fn seconds_of(
    bound: Micros,
    backend: BackendId,
    series: &[SecondRow],
    counted: &BTreeMap<u32, Counted>,
) -> DeliverySeconds {
    let measured = series.iter().filter(|row| row.phase == Phase::Measure);
    let seconds = measured.filter(|row| row.due.finals() > 0).map(|row| {
        let arrivals = row.arrivals.get(backend.index());
        let arrivals = arrivals.copied().unwrap_or_default();
        let n = row
            .due
            .finals()
            .saturating_sub(arrivals.rejected_absent_due);
        let Counted { above, above_lower } = counted.get(&row.second).copied().unwrap_or_default();
        DeliverySecond {
            second: row.second,
            lateness_max_us: row.lateness_max_us.unwrap_or(0),
            above,
            above_lower,
            missing: n.saturating_sub(arrivals.arrived_due),
            n,
        }
    });
    DeliverySeconds {
        backend,
        bound,
        seconds: seconds.collect(),
    }
}
