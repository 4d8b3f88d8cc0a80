//! Distributions of times: a sparse histogram that merges, travels and answers quantiles.
//!
//! Cells are those of an HDR histogram with three significant digits, so that a cell is at most
//! 0.1 % wide. Sum and maximum are exact.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::merge::Merge;

/// Values from here on are counted apart and lie in no cell: one hour.
pub const TOP: Micros = Micros::from_secs(3_600);

/// log2 of the number of cells of width one: three significant digits need 2,048 of them.
const UNIT_CELLS_LOG2: u32 = 11;

/// The latencies and times that are kept as distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// `ended - due` of the answered.
    Response,
    /// `ended - sent` of the answered.
    Service,
    /// `taken - due`: the generator's own.
    Lateness,
    /// `sent - taken`: the platform's, or what the scenario declared.
    Held,
    /// `seen - due` of first copies.
    EndToEnd,
    /// From the first SYN to a usable link.
    Connect,
}

impl Latency {
    /// Every latency, in the order of the report.
    pub const ALL: [Latency; 6] = [
        Latency::Response,
        Latency::Service,
        Latency::Lateness,
        Latency::Held,
        Latency::EndToEnd,
        Latency::Connect,
    ];

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Lateness => "lateness",
            Self::Held => "held",
            Self::EndToEnd => "end_to_end",
            Self::Connect => "connect",
        }
    }
}

/// A sparse histogram of microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values, those above the top among them.
    pub count: u64,
    /// Sum of all values, in microseconds.
    pub sum_us: u64,
    /// The largest value, in microseconds; 0 if there is none.
    pub max_us: u64,
    /// Number of values not below [`TOP`].
    pub above_top: u64,
    /// The cells that hold values, by ascending value.
    #[serde(with = "gaps")]
    cells: Vec<Cell>,
}

/// The values of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The smallest value of the cell, in microseconds.
    pub low_us: u64,
    /// Number of values in the cell.
    pub count: u64,
}

/// Cells travel as their distance from the cell before and their count: two small numbers, where
/// the values themselves would be large ones.
mod gaps {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Cell;

    pub(super) fn serialize<S: Serializer>(cells: &[Cell], to: S) -> Result<S::Ok, S::Error> {
        let mut last = 0;
        to.collect_seq(cells.iter().map(|cell| {
            let gap = cell.low_us - last;
            last = cell.low_us;
            (gap, cell.count)
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Cell>, D::Error> {
        let gaps = Vec::<(u64, u64)>::deserialize(from)?;
        let mut low_us = 0u64;
        let cells = gaps.into_iter().map(|(gap, count)| {
            low_us = low_us.saturating_add(gap);
            Cell { low_us, count }
        });
        Ok(cells.collect())
    }
}

impl Cell {
    /// The cell that holds a value, with this number of values in it.
    pub const fn new(value: Micros, count: u64) -> Self {
        Self {
            low_us: cell_of(value.get()),
            count,
        }
    }

    /// The largest value of the cell, in microseconds.
    pub const fn high_us(&self) -> u64 {
        self.low_us + width(self.low_us) - 1
    }
}

impl Merge for Distribution {
    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }
}

impl Distribution {
    /// Records one value.
    pub fn record(&mut self, value: Micros) {
        self.record_n(value, 1);
    }

    /// Records the same value `n` times.
    pub fn record_n(&mut self, value: Micros, n: u64) {
        if n == 0 {
            return;
        }
        if self.count_values(value, n) {
            self.add_value(value, n);
        }
    }

    /// Adds all values of `other`; sums commute and associate.
    pub fn merge(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
        self.above_top += other.above_top;
        self.add_cells(&other.cells);
    }

    /// The cells that hold values, by ascending value.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The mean, in microseconds; none without values.
    pub fn mean_us(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum_us as f64 / self.count as f64).round() as u64)
    }

    /// The value, in microseconds, that at most a share `1 - q` of the values exceed: the upper
    /// edge of its cell, never more than the maximum. None without values.
    pub fn quantile_us(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        self.at_rank(self.rank(q))
    }

    /// The place of a quantile among the values in their order, from 1.
    pub(crate) fn rank(&self, q: f64) -> u64 {
        ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1))
    }

    /// The value at a rank, as in [`Distribution::quantile_us`].
    pub(crate) fn at_rank(&self, rank: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let mut seen = 0;
        for cell in &self.cells {
            seen += cell.count;
            if seen >= rank {
                return Some(cell.high_us().min(self.max_us));
            }
        }
        Some(self.max_us)
    }

    /// Adds values to their cell, the sums having them already.
    pub(crate) fn add_value(&mut self, value: Micros, n: u64) {
        self.add_cell(Cell::new(value, n));
    }

    /// Gives its cells away, but not its sums.
    pub(crate) fn take_cells(&mut self) -> Vec<Cell> {
        std::mem::take(&mut self.cells)
    }

    /// Takes cells back, by ascending value.
    pub(crate) fn put_cells(&mut self, cells: Vec<Cell>) {
        self.cells = cells;
    }

    /// Forgets every value, and keeps the memory of `kept` cells.
    pub(crate) fn clear(&mut self, kept: usize) {
        let mut cells = self.take_cells();
        cells.clear();
        cells.shrink_to(kept);
        *self = Self {
            cells,
            ..Self::default()
        };
    }

    /// Counts values in the sums and returns whether they lie in a cell, which the caller adds.
    pub(crate) fn count_values(&mut self, value: Micros, n: u64) -> bool {
        self.count += n;
        self.sum_us += value.get() * n;
        self.max_us = self.max_us.max(value.get());
        let is_above = value >= TOP;
        self.above_top += if is_above { n } else { 0 };
        !is_above
    }

    fn add_cell(&mut self, cell: Cell) {
        match self
            .cells
            .binary_search_by_key(&cell.low_us, |known| known.low_us)
        {
            Ok(at) => self.cells[at].count += cell.count,
            Err(at) => self.cells.insert(at, cell),
        }
    }

    /// Adds cells by ascending value, the sums having their values already.
    pub(crate) fn add_cells(&mut self, other: &[Cell]) {
        let is_known = |cell: &Cell| {
            self.cells
                .binary_search_by_key(&cell.low_us, |known| known.low_us)
                .is_ok()
        };
        let new = other.iter().filter(|cell| !is_known(cell)).count();
        if new == 0 {
            other.iter().for_each(|cell| self.add_cell(*cell));
            return;
        }
        let mut merged = Vec::with_capacity(self.cells.len() + new);
        let mut mine = self.cells.iter().copied().peekable();
        for cell in other {
            while let Some(before) = mine.next_if(|mine| mine.low_us < cell.low_us) {
                merged.push(before);
            }
            let same = mine
                .next_if(|mine| mine.low_us == cell.low_us)
                .map_or(0, |mine| mine.count);
            merged.push(Cell {
                low_us: cell.low_us,
                count: cell.count + same,
            });
        }
        merged.extend(mine);
        self.cells = merged;
    }
}

/// The smallest value of the cell that holds `value_us`.
const fn cell_of(value_us: u64) -> u64 {
    value_us & !(width(value_us) - 1)
}

/// The width of the cell that holds `value_us`: each value of up to 11 bits has its cell,
/// and each further bit doubles the width.
const fn width(value_us: u64) -> u64 {
    1 << width_log2(value_us)
}

const fn width_log2(value_us: u64) -> u32 {
    let bits = u64::BITS - value_us.leading_zeros();
    bits.saturating_sub(UNIT_CELLS_LOG2)
}

/// Cells of one width beyond the narrowest.
const CELLS_OF_WIDTH: usize = 1 << (UNIT_CELLS_LOG2 - 1);

/// Number of cells below [`TOP`].
pub(crate) const CELLS: usize = place_of(TOP.get() - 1) + 1;

/// The place of the cell that holds `value_us` among all cells, by ascending value.
pub(crate) const fn place_of(value_us: u64) -> usize {
    let width_log2 = width_log2(value_us);
    width_log2 as usize * CELLS_OF_WIDTH + (value_us >> width_log2) as usize
}

/// The smallest value of the cell at a place.
pub(crate) const fn low_of(place: usize) -> u64 {
    let width_log2 = (place / CELLS_OF_WIDTH).saturating_sub(1);
    ((place - width_log2 * CELLS_OF_WIDTH) as u64) << width_log2
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn cells_are_those_of_an_hdr_histogram_with_three_digits() {
        let theirs = Histogram::<u32>::new_with_bounds(1, TOP.get(), 3).expect("sound bounds");
        for place in 0..CELLS {
            let low = low_of(place);
            let high = low + width(low) - 1;
            assert_eq!(theirs.lowest_equivalent(low), low);
            assert_eq!(theirs.highest_equivalent(low), high);
        }
    }

    #[test]
    fn every_cell_has_one_place_and_they_ascend_without_gap() {
        let mut next = 0;
        for place in 0..CELLS {
            let cell = Cell {
                low_us: low_of(place),
                count: 1,
            };
            assert_eq!(cell.low_us, next, "place {place}");
            assert_eq!(place_of(cell.low_us), place);
            assert_eq!(place_of(cell.high_us()), place);
            next = cell.high_us() + 1;
        }
        assert!(next >= TOP.get());
    }
}
