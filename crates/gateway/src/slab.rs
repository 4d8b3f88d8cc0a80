//! Places that are used again, each time under a new name.

/// A growing table with a free list and generations.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a value that may know its own name.
    pub(crate) fn insert_with(&mut self, value: impl FnOnce(u32, u32) -> T) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                value: None,
            });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[slot as usize];
        place.value = Some(value(slot, place.generation));
        (slot, place.generation)
    }

    /// Values there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Places there are, taken or not.
    pub(crate) fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// The value at a place, with the generation of its name.
    pub(crate) fn at(&self, slot: u32) -> Option<(u32, &T)> {
        let place = self.places.get(slot as usize)?;
        Some((place.generation, place.value.as_ref()?))
    }

    pub(crate) fn get_mut(&mut self, slot: u32, generation: u32) -> Option<&mut T> {
        let place = self.places.get_mut(slot as usize)?;
        place
            .value
            .as_mut()
            .filter(|_| place.generation == generation)
    }

    pub(crate) fn remove(&mut self, slot: u32, generation: u32) -> Option<T> {
        let place = self.places.get_mut(slot as usize)?;
        if place.generation != generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_place_does_not_answer_to_an_old_name() {
        let mut slab = Slab::new();
        let (slot, old) = slab.insert_with(|_, _| 'a');
        assert_eq!(slab.remove(slot, old), Some('a'));
        let (again, new) = slab.insert_with(|_, _| 'b');
        assert_eq!(again, slot);
        assert_eq!(slab.get_mut(slot, old), None);
        assert_eq!(slab.remove(slot, old), None);
        assert_eq!(slab.get_mut(slot, new), Some(&mut 'b'));
    }
}
