//! The windows that are being filled between two flushes.

use hdrhistogram::Histogram;
use muster_model::Micros;

use crate::{ArrivalWindow, Cell, Distribution, TOP, UplinkWindow, WindowKey};

/// Windows of one stream that keep dense histograms, which are fast and large. Two or three are
/// filled at a time; answers to messages of more seconds than this go to the sparse form at once.
const DENSE_WINDOWS: usize = 6;
/// Windows whose memory is kept from flush to flush.
const WINDOWS_KEPT: usize = 64;
/// Digits of a histogram: cells of at most 0.1 %, as `Distribution` has them.
const SIGNIFICANT_DIGITS: u8 = 3;

/// What can be a window in the making.
pub(crate) trait Filling: Default {
    type Window;
    /// The finished window; the memory stays for the next one.
    fn take(&mut self) -> Self::Window;
    /// Whether dense histograms may be used from now on.
    fn prepare(&mut self, is_dense: bool);
}

/// The windows touched since the last flush, by key.
#[derive(Debug)]
pub(crate) struct Live<F> {
    keys: Vec<WindowKey>,
    windows: Vec<F>,
    last: usize,
}

impl<F> Default for Live<F> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            windows: Vec::new(),
            last: 0,
        }
    }
}

impl<F: Filling> Live<F> {
    /// The window of a key. Allocates only if more windows are touched than ever before.
    pub(crate) fn window(&mut self, key: WindowKey) -> &mut F {
        if self.keys.get(self.last) != Some(&key) {
            self.last = self.find(key);
        }
        &mut self.windows[self.last]
    }

    /// Hands every touched window over and starts anew.
    pub(crate) fn drain(&mut self, mut hand_over: impl FnMut(WindowKey, F::Window)) {
        for (key, window) in self.keys.drain(..).zip(&mut self.windows) {
            hand_over(key, window.take());
        }
        self.windows.truncate(WINDOWS_KEPT);
        self.last = 0;
    }

    fn find(&mut self, key: WindowKey) -> usize {
        if let Some(at) = self.keys.iter().position(|known| *known == key) {
            return at;
        }
        let at = self.keys.len();
        self.keys.push(key);
        if at == self.windows.len() {
            self.windows.push(F::default());
        }
        self.windows[at].prepare(at < DENSE_WINDOWS);
        at
    }
}

/// The device side of one stream in the making.
#[derive(Debug, Default)]
pub(crate) struct UplinkFilling {
    pub(crate) window: UplinkWindow,
    pub(crate) response: Gauge,
    pub(crate) service: Gauge,
    pub(crate) lateness: Gauge,
    pub(crate) held: Gauge,
    pub(crate) censored: Gauge,
}

impl Filling for UplinkFilling {
    type Window = UplinkWindow;

    fn take(&mut self) -> UplinkWindow {
        let window = UplinkWindow {
            response: self.response.take(),
            service: self.service.take(),
            lateness: self.lateness.take(),
            held: self.held.take(),
            censored: self.censored.take(),
            above: take_above(&mut self.window.above),
            ..self.window.clone()
        };
        self.window.counts = Default::default();
        self.window.flow = Default::default();
        self.window.outcomes.clear();
        window
    }

    fn prepare(&mut self, is_dense: bool) {
        let gauges = [
            &mut self.response,
            &mut self.service,
            &mut self.lateness,
            &mut self.held,
            &mut self.censored,
        ];
        gauges
            .into_iter()
            .for_each(|gauge| gauge.is_dense = is_dense);
    }
}

/// The arrivals of one stream at one backend in the making.
#[derive(Debug, Default)]
pub(crate) struct ArrivalFilling {
    pub(crate) window: ArrivalWindow,
    pub(crate) end_to_end: Gauge,
}

impl Filling for ArrivalFilling {
    type Window = ArrivalWindow;

    fn take(&mut self) -> ArrivalWindow {
        let window = ArrivalWindow {
            end_to_end: self.end_to_end.take(),
            above: take_above(&mut self.window.above),
            ..self.window.clone()
        };
        let above = std::mem::take(&mut self.window.above);
        self.window = ArrivalWindow {
            above,
            ..ArrivalWindow::default()
        };
        window
    }

    fn prepare(&mut self, is_dense: bool) {
        self.end_to_end.is_dense = is_dense;
    }
}

/// The counters, or none at all if none counted anything, so that equal windows look equal.
fn take_above(above: &mut [u64]) -> Vec<u64> {
    let counted = above.iter().any(|count| *count > 0);
    let taken = if counted { above.to_vec() } else { Vec::new() };
    above.fill(0);
    taken
}

macro_rules! fill_plainly {
    ($($window:ty),*) => {$(
        impl Filling for $window {
            type Window = Self;

            fn take(&mut self) -> Self {
                std::mem::take(self)
            }

            fn prepare(&mut self, _: bool) {}
        }
    )*};
}

fill_plainly!(crate::CopyCounts, crate::LinkWindow);

/// A distribution in the making: dense where that is allowed, else sparse.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    is_dense: bool,
    dense: Option<Box<Histogram<u32>>>,
    sparse: Distribution,
}

impl Gauge {
    /// Records one value.
    pub(crate) fn record(&mut self, value: Micros) {
        if !self.is_dense {
            self.sparse.record(value);
            return;
        }
        self.sparse.count += 1;
        self.sparse.sum_us += value.get();
        self.sparse.max_us = self.sparse.max_us.max(value.get());
        if value >= TOP {
            self.sparse.above_top += 1;
        } else {
            self.dense
                .get_or_insert_with(dense)
                .saturating_record(value.get());
        }
    }

    fn take(&mut self) -> Distribution {
        let mut taken = std::mem::take(&mut self.sparse);
        let Some(dense) = self.dense.as_mut().filter(|dense| !dense.is_empty()) else {
            return taken;
        };
        for cell in dense.iter_recorded() {
            taken.push_cell(Cell {
                low_us: dense.lowest_equivalent(cell.value_iterated_to()),
                count: u64::from(cell.count_at_value()),
            });
        }
        dense.reset();
        taken
    }
}

fn dense() -> Box<Histogram<u32>> {
    let histogram = Histogram::new_with_bounds(1, TOP.get(), SIGNIFICANT_DIGITS);
    Box::new(histogram.expect("the bounds are constants that the histogram allows"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(values: &[u64], is_dense: bool) -> Distribution {
        let mut gauge = Gauge {
            is_dense,
            ..Gauge::default()
        };
        for value in values {
            gauge.record(Micros(*value));
        }
        gauge.take()
    }

    proptest! {
        /// The dense and the sparse form have the same cells, sums and quantiles.
        #[test]
        fn dense_and_sparse_agree(
            values in prop::collection::vec(
                prop_oneof![0u64..5_000, 0u64..10_000_000, 3_500_000_000u64..3_700_000_000],
                0..400,
            ),
        ) {
            prop_assert_eq!(taken(&values, true), taken(&values, false));
        }

        /// A quantile lies at most 0.1 % above the value of its rank, and never below it.
        #[test]
        fn a_quantile_is_the_upper_edge_of_its_cell(
            mut values in prop::collection::vec(0u64..3_000_000_000, 1..400),
            share in 0.0f64..1.0,
        ) {
            let quantile = taken(&values, true).quantile_us(share).unwrap();
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!((exact..=exact + exact / 1_000).contains(&quantile), "{exact} {quantile}");
        }
    }

    #[test]
    fn a_gauge_is_empty_after_it_was_taken() {
        let mut gauge = Gauge {
            is_dense: true,
            ..Gauge::default()
        };
        gauge.record(Micros(5));
        assert_eq!(gauge.take().count, 1);
        assert_eq!(gauge.take(), Distribution::default());
    }

    #[test]
    fn values_above_the_top_are_counted_apart() {
        let taken = taken(&[TOP.get() - 1, TOP.get(), TOP.get() * 2], true);
        assert_eq!(
            (taken.count, taken.above_top, taken.cells().len()),
            (3, 2, 1)
        );
        assert_eq!(taken.quantile_us(0.99), Some(TOP.get() * 2));
    }
}
