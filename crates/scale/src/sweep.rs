//! A sweep: the capacity of each cell of a matrix of settings.

use crate::growth::{BELOW, End, Measured, Next, Outcome, Wanted};
use crate::setting::Setting;
use crate::tries::Tries;

/// A sweep under way. Each cell is measured, whatever came of the others.
#[derive(Debug, Clone)]
pub struct Sweep {
    cells: Vec<(Setting, Tries)>,
    first: f64,
}

impl Sweep {
    /// A sweep over these settings, in their order. `first` is the first rate where no smaller cell has a capacity.
    pub fn new(cells: Vec<Setting>, first: f64) -> Self {
        let cells = cells.into_iter().map(|cell| (cell, Tries::default()));
        Self {
            cells: cells.collect(),
            first,
        }
    }

    /// The next move. The sweep ends with [`End::AtMost`].
    pub fn next(&self) -> Next<Setting> {
        match self.under_way() {
            None => Next::End(End::AtMost),
            Some((cell, tries)) => Next::Measure(Wanted {
                instances: cell.clone(),
                first: tries.first(self.carried_by_fewer(cell)),
            }),
        }
    }

    /// Takes the outcome of a search of a setting.
    pub fn record(&mut self, setting: &Setting, outcome: &Outcome) {
        let cell = self.cells.iter_mut().find(|(cell, _)| cell == setting);
        if let Some((_, tries)) = cell {
            tries.record(outcome);
        }
    }

    /// Number of cells that are not yet measured.
    pub fn further(&self) -> u32 {
        let open = self.cells.iter().filter(|(_, tries)| !tries.are_over());
        open.count() as u32
    }

    /// The end for want of time, with what is known of the cell under way.
    pub fn out_of_budget(&self, why: String) -> End<Setting> {
        match self.under_way() {
            Some((cell, tries)) => tries.unclear(cell.clone(), why),
            None => End::AtMost,
        }
    }

    /// Each cell with the outcome of its last search; none of one without a search.
    pub fn cells(&self) -> impl Iterator<Item = (&Setting, Option<&Outcome>)> {
        self.cells.iter().map(|(cell, tries)| (cell, tries.last()))
    }

    fn under_way(&self) -> Option<&(Setting, Tries)> {
        self.cells.iter().find(|(_, tries)| !tries.are_over())
    }

    /// The first rate of a cell: one that fewer instances carry in its environment.
    fn carried_by_fewer(&self, cell: &Setting) -> f64 {
        let fewer = self.cells.iter().filter(|(of, _)| cell.includes(of));
        let carried = fewer.filter_map(|(_, tries)| match tries.last() {
            Some(Outcome::Found(Measured { lower, .. })) => Some(lower * BELOW),
            _ => None,
        });
        carried.reduce(f64::max).unwrap_or(self.first)
    }
}
