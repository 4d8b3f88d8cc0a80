//! Device names with their inverse: computed from the index, or looked up in a table.

use std::sync::Arc;

use muster_model::mix;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::NameTemplate;
use crate::template::{TemplateError, escaped_length, needs_escapes};

/// The names of a fleet's devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Names {
    /// A formula of the index, which costs no memory.
    Formula(NameTemplate),
    /// A table made when the plan is built.
    Listed(Arc<NameTable>),
}

impl Names {
    /// Reads a name template that is a formula of the index.
    ///
    /// # Errors
    /// [`TemplateError`] if it is no template, or one that needs a table.
    pub fn formula(source: &str) -> Result<Self, TemplateError> {
        NameTemplate::parse(source).map(Self::Formula)
    }

    /// Appends the name of device `index`; nothing for an index beyond the table.
    pub fn render(&self, index: u32, out: &mut String) {
        match self {
            Self::Formula(template) => template.render(index, out),
            Self::Listed(table) => out.push_str(table.name(index).unwrap_or_default()),
        }
    }

    /// The index of the device of that name; none if no device has it.
    pub fn index_of(&self, name: &str) -> Option<u32> {
        match self {
            Self::Formula(template) => template.index_of(name),
            Self::Listed(table) => table.index_of(name),
        }
    }

    /// The least and greatest length of the names of `first..=last`, in bytes.
    pub fn lengths(&self, first: u32, last: u32) -> (usize, usize) {
        match self {
            Self::Formula(template) => template.lengths(first, last),
            Self::Listed(table) => table.lengths(),
        }
    }

    /// The same of the names as they stand in a string of JSON.
    pub fn json_lengths(&self, first: u32, last: u32) -> (usize, usize) {
        match self {
            Self::Formula(template) => {
                let (least, most) = template.lengths(first, last);
                let escapes = template.json_escapes();
                (least + escapes, most + escapes)
            }
            Self::Listed(table) => table.measured(|name| escaped_length(name.as_bytes())),
        }
    }

    /// Returns true if a name must be escaped in a JSON string.
    pub fn need_escapes(&self) -> bool {
        match self {
            Self::Formula(template) => template.json_escapes() > 0,
            Self::Listed(table) => table.list.iter().any(needs_escapes),
        }
    }

    /// Bytes that the table holds besides the plan; 0 for a formula.
    pub fn memory(&self) -> usize {
        match self {
            Self::Formula(_) => 0,
            Self::Listed(table) => table.memory(),
        }
    }
}

/// The most bytes of all names of a table: offsets are 32 bits.
pub const MAX_NAME_BYTES: usize = u32::MAX as usize;

/// Names in one piece of text, found by place and by text.
///
/// A device costs the bytes of its name, 4 for its end and 6 for the index of hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Bare")]
pub struct NameTable {
    /// Index of the first name.
    first: u32,
    list: NameList,
    /// Places plus one, by hash with linear probing; 0 is free. Made anew by whoever receives it.
    #[serde(skip)]
    slots: Box<[u32]>,
}

/// A table as it travels.
#[derive(Deserialize)]
struct Bare {
    first: u32,
    list: NameList,
}

/// Texts in one piece, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameList {
    text: String,
    /// End of each in `text`.
    ends: Vec<u32>,
}

/// A reason why texts are no names. Places count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameTableError {
    /// A name without text.
    #[error("the name at place {place} is empty")]
    Empty {
        /// Its place.
        place: u32,
    },
    /// A name with a NUL, which no text of MQTT may hold.
    #[error("the name at place {place} holds a NUL")]
    Nul {
        /// Its place.
        place: u32,
    },
    /// Two devices of one name.
    #[error("the names at places {first} and {second} are alike")]
    Twice {
        /// The earlier place.
        first: u32,
        /// The later place.
        second: u32,
    },
    /// More than [`MAX_NAME_BYTES`].
    #[error("the names have more than {MAX_NAME_BYTES} bytes together")]
    TooLarge,
}

impl NameTable {
    /// Makes the table of `count` names, which `render` appends by place; the first has index `first`.
    ///
    /// # Errors
    /// [`NameTableError`] for names that do not lead back to their devices.
    pub fn build(
        first: u32,
        count: u32,
        mut render: impl FnMut(u32, &mut String),
    ) -> Result<Self, NameTableError> {
        let mut list = NameList::default();
        for place in 0..count {
            let before = list.text.len();
            render(place, &mut list.text);
            if list.text.len() == before {
                return Err(NameTableError::Empty { place });
            }
            if list.text[before..].contains('\0') {
                return Err(NameTableError::Nul { place });
            }
            if list.text.len() > MAX_NAME_BYTES {
                return Err(NameTableError::TooLarge);
            }
            list.ends.push(list.text.len() as u32);
        }
        list.text.shrink_to_fit();
        let slots = list
            .slots()
            .map_err(|(first, second)| NameTableError::Twice { first, second })?;
        Ok(Self { first, list, slots })
    }

    /// The name of device `index`.
    pub fn name(&self, index: u32) -> Option<&str> {
        self.list.get(index.checked_sub(self.first)?)
    }

    /// The index of the device of that name.
    pub fn index_of(&self, name: &str) -> Option<u32> {
        let mut slot = slot_of(name, self.slots.len())?;
        loop {
            let place = self.slots[slot].checked_sub(1)?;
            if self.list.get(place) == Some(name) {
                return Some(self.first + place);
            }
            slot = next(slot, self.slots.len());
        }
    }

    /// An index of another table and one of this whose names are alike.
    pub fn common(&self, other: &Self) -> Option<(u32, u32)> {
        let mut names = (self.first..).zip(self.list.iter());
        names.find_map(|(index, name)| Some((other.index_of(name)?, index)))
    }

    /// The least and greatest length of its names, in bytes.
    pub fn lengths(&self) -> (usize, usize) {
        self.measured(str::len)
    }

    fn measured(&self, length: impl Fn(&str) -> usize) -> (usize, usize) {
        let lengths = self.list.iter().map(length);
        let bounds = lengths.fold(None, |bounds: Option<(usize, usize)>, length| {
            let (least, most) = bounds.unwrap_or((length, length));
            Some((least.min(length), most.max(length)))
        });
        bounds.unwrap_or_default()
    }

    fn memory(&self) -> usize {
        let words = self.list.ends.len() + self.slots.len();
        self.list.text.len() + words * size_of::<u32>()
    }
}

impl From<Bare> for NameTable {
    fn from(Bare { first, list }: Bare) -> Self {
        // A table that travels was built before, so that no name stands twice.
        let slots = list.slots().unwrap_or_default();
        Self { first, list, slots }
    }
}

impl NameList {
    /// Adds a text; what goes beyond 4 GiB is left out.
    pub(crate) fn push(&mut self, text: &str) {
        let end = self.text.len() + text.len();
        if let Ok(end) = u32::try_from(end) {
            self.text.push_str(text);
            self.ends.push(end);
        }
    }

    /// The text at a place.
    pub fn get(&self, place: u32) -> Option<&str> {
        let place = place as usize;
        let end = *self.ends.get(place)? as usize;
        let start = place
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        self.text.get(start..end)
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).filter_map(|place| self.get(place))
    }

    /// The index of hashes; two places of one text if there are any.
    fn slots(&self) -> Result<Box<[u32]>, (u32, u32)> {
        let count = self.ends.len();
        let mut slots = vec![0_u32; count + count / 2 + 1].into_boxed_slice();
        for (place, name) in (0..).zip(self.iter()) {
            let Some(mut slot) = slot_of(name, slots.len()) else {
                break;
            };
            while let Some(other) = slots[slot].checked_sub(1) {
                if self.get(other) == Some(name) {
                    return Err((other, place));
                }
                slot = next(slot, slots.len());
            }
            slots[slot] = place + 1;
        }
        Ok(slots)
    }
}

/// The slot where the search for a name begins; none in a table without slots.
fn slot_of(name: &str, slots: usize) -> Option<usize> {
    let mut hash = name.len() as u64;
    for chunk in name.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    let slot = (u128::from(hash) * slots as u128) >> 64;
    (slots > 0).then_some(slot as usize)
}

fn next(slot: usize, slots: usize) -> usize {
    if slot + 1 == slots { 0 } else { slot + 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn table(first: u32, names: &[impl AsRef<str>]) -> Result<NameTable, NameTableError> {
        let count = names.len() as u32;
        NameTable::build(first, count, |place, out| {
            out.push_str(names[place as usize].as_ref());
        })
    }

    proptest! {
        /// index_of(render(i)) = i for every device, and no other text has an index; also after a
        /// journey to a worker process.
        #[test]
        fn listed_names_invert(
            names in prop::collection::btree_set("\\PC{1,20}|[a-z]{1,2}", 1..60),
            first in 0u32..1_000_000,
            other in "\\PC{0,20}|[a-z]{1,2}",
        ) {
            let list: Vec<&String> = names.iter().collect();
            let table = table(first, &list).unwrap();
            let names_of = Names::Listed(Arc::new(table));
            let bytes = serde_json::to_vec(&names_of).unwrap();
            for names_of in [names_of, serde_json::from_slice(&bytes).unwrap()] {
                for (index, name) in (first..).zip(&list) {
                    let mut rendered = String::new();
                    names_of.render(index, &mut rendered);
                    prop_assert_eq!(&rendered, *name);
                    prop_assert_eq!(names_of.index_of(name), Some(index));
                }
                prop_assert_eq!(names_of.index_of(&other).is_some(), names.contains(&other));
                let lengths: BTreeSet<usize> = list.iter().map(|name| name.len()).collect();
                let bounds = (*lengths.first().unwrap(), *lengths.last().unwrap());
                prop_assert_eq!(names_of.lengths(first, first + list.len() as u32 - 1), bounds);
            }
        }
    }

    #[test]
    fn names_that_do_not_lead_back_are_refused_by_their_places() {
        assert_eq!(
            table(7, &["a", "b", "c", "b"]),
            Err(NameTableError::Twice {
                first: 1,
                second: 3
            })
        );
        assert_eq!(
            table(7, &["a", ""]),
            Err(NameTableError::Empty { place: 1 })
        );
        assert_eq!(
            table(7, &["a", "b\0"]),
            Err(NameTableError::Nul { place: 1 })
        );
    }

    #[test]
    fn an_index_outside_the_table_has_no_name() {
        let table = table(10, &["a", "b"]).unwrap();
        assert_eq!(
            (table.name(9), table.name(11), table.name(12)),
            (None, Some("b"), None)
        );
    }

    /// The cost that the documentation states.
    #[test]
    fn a_listed_device_costs_its_name_and_ten_bytes() {
        let names: Vec<String> = (0..1_000).map(|n| format!("{:016x}", mix(1, n))).collect();
        let names = Names::Listed(Arc::new(table(0, &names).unwrap()));
        assert_eq!(names.memory(), 1_000 * (16 + 10) + 4);
    }
}
