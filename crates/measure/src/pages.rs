//! A table by device that takes memory only where devices are.

use serde::{Deserialize, Serialize};

/// Devices of one page: few enough that a shard with a part of a fleet pays for little more than
/// its part, many enough that a fleet of a million has few pages.
const PAGE: u32 = 256;

/// One value per slot, made when first asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pages<T>(Vec<Option<Box<[T]>>>);

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> Pages<T> {
    /// The value of a slot. Allocates for the first of each page.
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut T {
        let page = (slot / PAGE) as usize;
        if page >= self.0.len() {
            self.0.resize_with(page + 1, || None);
        }
        let values = self.0[page].get_or_insert_with(|| (0..PAGE).map(|_| T::default()).collect());
        &mut values[(slot % PAGE) as usize]
    }

    /// The value of a slot; none if its page was never asked for.
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        let page = self.0.get((slot / PAGE) as usize)?.as_ref()?;
        page.get((slot % PAGE) as usize)
    }

    /// Every value that was made, with its slot.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let pages = self.0.iter_mut().zip(0u32..);
        pages
            .filter_map(|(page, at)| Some((page.as_mut()?, at)))
            .flat_map(|(page, at)| {
                page.iter_mut()
                    .zip(at * PAGE..)
                    .map(|(value, slot)| (slot, value))
            })
    }

    /// Takes the other table in; `merge` joins two values of one slot.
    pub(crate) fn merge(&mut self, other: Pages<T>, mut merge: impl FnMut(&mut T, T)) {
        if self.0.len() < other.0.len() {
            self.0.resize_with(other.0.len(), || None);
        }
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            let Some(theirs) = theirs else { continue };
            match mine {
                None => *mine = Some(theirs),
                Some(mine) => {
                    for (mine, theirs) in mine.iter_mut().zip(theirs) {
                        merge(mine, theirs);
                    }
                }
            }
        }
    }
}
