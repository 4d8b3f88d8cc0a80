//! The windows that are being filled between two flushes.

use muster_model::Micros;

use crate::cells::{CellPool, DenseCells};
use crate::command::CommandFilling;
use crate::reception::ReceptionFilling;
use crate::{ArrivalWindow, Cell, Distribution, UplinkWindow, WindowKey};

/// Windows of one stream whose memory is kept from flush to flush: two or three are filled at a
/// time, more after a pause.
const WINDOWS_KEPT: usize = 8;
/// Cells that a distribution keeps in the sparse form, which a slow stream never exceeds: putting
/// one more between them moves 4 KiB at the most. With more it takes pages from the pool.
const SPARSE_CELLS: usize = 256;

/// Bytes that the windows in the making of one recorder keep at the most.
pub(crate) const fn bytes_most(streams: usize, backends: usize) -> usize {
    let of_stream = UplinkFilling::GAUGES + CommandFilling::GAUGES + ReceptionFilling::GAUGES;
    let gauges = streams * of_stream + streams * backends;
    CellPool::BYTES_MAX + gauges * WINDOWS_KEPT * Gauge::BYTES
}

/// A window in the making.
pub(crate) trait Filling: Default {
    type Window;
    /// The finished window; the memory stays for the next one.
    fn take(&mut self, pool: &mut CellPool) -> Self::Window;
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
    pub(crate) fn drain(
        &mut self,
        pool: &mut CellPool,
        mut hand_over: impl FnMut(WindowKey, F::Window),
    ) {
        for (key, window) in self.keys.drain(..).zip(&mut self.windows) {
            hand_over(key, window.take(pool));
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
        at
    }
}

/// The device side of one stream in the making.
#[derive(Debug, Default)]
pub(crate) struct UplinkFilling {
    pub(crate) window: UplinkWindow,
    pub(crate) response: Gauge,
    pub(crate) lower: Gauge,
    pub(crate) service: Gauge,
    pub(crate) lateness: Gauge,
    pub(crate) held: Gauge,
    pub(crate) censored: Gauge,
}

impl UplinkFilling {
    const GAUGES: usize = 6;
}

impl Filling for UplinkFilling {
    type Window = UplinkWindow;

    fn take(&mut self, pool: &mut CellPool) -> UplinkWindow {
        let window = UplinkWindow {
            response: self.response.take(pool),
            lower: self.lower.take(pool),
            service: self.service.take(pool),
            lateness: self.lateness.take(pool),
            held: self.held.take(pool),
            censored: self.censored.take(pool),
            above: take_above(&mut self.window.above),
            above_lower: take_above(&mut self.window.above_lower),
            ..self.window.clone()
        };
        self.window.counts = Default::default();
        self.window.flow = Default::default();
        self.window.outcomes.clear();
        self.window.times = Default::default();
        window
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

    fn take(&mut self, pool: &mut CellPool) -> ArrivalWindow {
        let window = ArrivalWindow {
            end_to_end: self.end_to_end.take(pool),
            above: take_above(&mut self.window.above),
            above_lower: take_above(&mut self.window.above_lower),
            ..self.window.clone()
        };
        let above = std::mem::take(&mut self.window.above);
        let above_lower = std::mem::take(&mut self.window.above_lower);
        self.window = ArrivalWindow {
            above,
            above_lower,
            ..ArrivalWindow::default()
        };
        window
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

            fn take(&mut self, _: &mut CellPool) -> Self {
                std::mem::take(self)
            }
        }
    )*};
}

fill_plainly!(crate::CopyCounts, crate::LinkWindow);

/// A distribution in the making: sparse while it has few cells, then dense while the pool has
/// pages for it.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// All sums, and the cells that are not dense.
    sparse: Distribution,
    dense: Option<DenseCells>,
    is_dense: bool,
}

impl Gauge {
    /// Bytes kept from flush to flush, at the most.
    const BYTES: usize = SPARSE_CELLS * size_of::<Cell>() + DenseCells::BYTES;

    /// Records one value.
    pub(crate) fn record(&mut self, value: Micros, pool: &mut CellPool) {
        if !self.sparse.count_values(value, 1) {
            return;
        }
        if !self.is_dense && self.sparse.cells().len() >= SPARSE_CELLS {
            self.spread(pool);
        }
        let is_kept = self.is_dense && self.dense(value.get(), 1, pool);
        if !is_kept {
            self.sparse.add_value(value, 1);
        }
    }

    /// From now on dense, with what was counted so far.
    fn spread(&mut self, pool: &mut CellPool) {
        self.is_dense = true;
        let mut cells = self.sparse.take_cells();
        cells.retain(|cell| {
            let count = u32::try_from(cell.count).unwrap_or(u32::MAX);
            !self.dense(cell.low_us, count, pool)
        });
        self.sparse.put_cells(cells);
    }

    fn dense(&mut self, value_us: u64, count: u32, pool: &mut CellPool) -> bool {
        let dense = self.dense.get_or_insert_with(DenseCells::default);
        dense.add(value_us, count, pool)
    }

    pub(crate) fn take(&mut self, pool: &mut CellPool) -> Distribution {
        let mut taken = self.sparse.clone();
        self.sparse.clear(SPARSE_CELLS);
        if std::mem::take(&mut self.is_dense)
            && let Some(dense) = &mut self.dense
        {
            taken.add_cells(&dense.take(pool));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TOP;

    fn taken(values: &[u64]) -> Distribution {
        let (mut gauge, mut pool) = (Gauge::default(), CellPool::default());
        for value in values {
            gauge.record(Micros(*value), &mut pool);
        }
        gauge.take(&mut pool)
    }

    fn plainly(values: &[u64]) -> Distribution {
        let mut plain = Distribution::default();
        values.iter().for_each(|value| plain.record(Micros(*value)));
        plain
    }

    proptest! {
        /// However a gauge keeps them, values lie in the cells, sums and quantiles of a plain
        /// distribution; so they do in one that must share its pool with many others.
        #[test]
        fn dense_and_sparse_agree(
            values in prop::collection::vec(
                prop_oneof![0u64..5_000, 0u64..10_000_000, 3_500_000_000u64..3_700_000_000],
                0..2_000,
            ),
        ) {
            prop_assert_eq!(taken(&values), plainly(&values));
            let (mut gauges, mut pool) = (Vec::new(), CellPool::default());
            gauges.resize_with(40, Gauge::default);
            for value in &values {
                gauges.iter_mut().for_each(|gauge| gauge.record(Micros(*value), &mut pool));
            }
            for gauge in &mut gauges {
                prop_assert_eq!(gauge.take(&mut pool), plainly(&values));
            }
        }

        /// A quantile lies at most 0.1 % above the value of its rank, and never below it.
        #[test]
        fn a_quantile_is_the_upper_edge_of_its_cell(
            mut values in prop::collection::vec(0u64..3_000_000_000, 1..400),
            share in 0.0f64..1.0,
        ) {
            let quantile = taken(&values).quantile_us(share).unwrap();
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!((exact..=exact + exact / 1_000).contains(&quantile), "{exact} {quantile}");
        }
    }

    #[test]
    fn a_gauge_is_empty_after_it_was_taken() {
        let (mut gauge, mut pool) = (Gauge::default(), CellPool::default());
        for n in 0..1_000 {
            gauge.record(Micros(n), &mut pool);
        }
        assert_eq!(gauge.take(&mut pool).count, 1_000);
        assert_eq!(gauge.take(&mut pool), Distribution::default());
    }

    #[test]
    fn values_above_the_top_are_counted_apart() {
        let taken = taken(&[TOP.get() - 1, TOP.get(), TOP.get() * 2]);
        assert_eq!(
            (taken.count, taken.above_top, taken.cells().len()),
            (3, 2, 1)
        );
        assert_eq!(taken.quantile_us(0.99), Some(TOP.get() * 2));
    }
}
