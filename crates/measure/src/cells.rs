//! Cells of the distributions that are being filled, in pages from a pool: memory follows the
//! values that are counted, and has a bound, however many windows and streams are touched.

use crate::Cell;
use crate::distribution::{CELLS, low_of, place_of};

/// Cells of one page: values that lie close to each other share one.
const PAGE: usize = 64;
/// Pages of one distribution at the most.
const PAGES_EACH: usize = CELLS.div_ceil(PAGE);
/// Pages of one recorder: what three busy seconds of one stream touch, several times over. Beyond
/// them distributions are kept in the sparse form, which is slower.
const PAGES_MAX: usize = 2_048;
/// Mark of a place without a page.
const NONE: u16 = u16::MAX;

/// The pages of one recorder, all counts in those that are free being zero.
#[derive(Debug, Default)]
pub(crate) struct CellPool {
    pages: Vec<[u32; PAGE]>,
    free: Vec<u16>,
}

/// The places of one distribution's pages.
#[derive(Debug)]
pub(crate) struct DenseCells(Box<[u16; PAGES_EACH]>);

impl CellPool {
    /// Bytes that it takes at the most.
    pub(crate) const BYTES_MAX: usize = PAGES_MAX * (size_of::<[u32; PAGE]>() + size_of::<u16>());

    fn take(&mut self) -> Option<u16> {
        if let Some(page) = self.free.pop() {
            return Some(page);
        }
        if self.pages.capacity() == 0 {
            // At once, so that no message pays for moving them; what is never used is no memory.
            self.pages.reserve_exact(PAGES_MAX);
            self.free.reserve_exact(PAGES_MAX);
        }
        if self.pages.len() == PAGES_MAX {
            return None;
        }
        self.pages.push([0; PAGE]);
        u16::try_from(self.pages.len() - 1).ok()
    }

    fn put_back(&mut self, page: u16) {
        self.pages[usize::from(page)].fill(0);
        self.free.push(page);
    }
}

impl Default for DenseCells {
    fn default() -> Self {
        Self(Box::new([NONE; PAGES_EACH]))
    }
}

impl DenseCells {
    /// Bytes of one of them, its pages left out.
    pub(crate) const BYTES: usize = size_of::<[u16; PAGES_EACH]>();

    /// Adds `count` values of the cell that holds `value_us`; false if there is no page for it.
    pub(crate) fn add(&mut self, value_us: u64, count: u32, pool: &mut CellPool) -> bool {
        let place = place_of(value_us);
        let page = &mut self.0[place / PAGE];
        if *page == NONE {
            let Some(new) = pool.take() else {
                return false;
            };
            *page = new;
        }
        let cell = &mut pool.pages[usize::from(*page)][place % PAGE];
        *cell = cell.saturating_add(count);
        true
    }

    /// The cells that hold values, by ascending value; the pages go back to the pool.
    pub(crate) fn take(&mut self, pool: &mut CellPool) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (at, page) in self.0.iter_mut().enumerate() {
            if *page == NONE {
                continue;
            }
            let counts = pool.pages[usize::from(*page)].iter().enumerate();
            cells.extend(
                counts
                    .filter(|(_, count)| **count > 0)
                    .map(|(place, count)| Cell {
                        low_us: low_of(at * PAGE + place),
                        count: u64::from(*count),
                    }),
            );
            pool.put_back(std::mem::replace(page, NONE));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_used_up_gives_no_page_until_one_comes_back() {
        let mut pool = CellPool::default();
        let mut all: Vec<DenseCells> = Vec::new();
        let far = |page: usize| low_of(page * PAGE);
        for n in 0..PAGES_MAX {
            if n % PAGES_EACH == 0 {
                all.push(DenseCells::default());
            }
            let last = all.last_mut().expect("one was pushed");
            assert!(last.add(far(n % PAGES_EACH), 1, &mut pool), "page {n}");
        }
        let mut further = DenseCells::default();
        assert!(!further.add(0, 1, &mut pool));
        assert_eq!(all[0].take(&mut pool).len(), PAGES_EACH);
        assert!(further.add(5, 3, &mut pool));
        let cell = Cell {
            low_us: 5,
            count: 3,
        };
        assert_eq!(further.take(&mut pool), [cell]);
        assert_eq!(pool.pages.len(), PAGES_MAX);
    }
}
