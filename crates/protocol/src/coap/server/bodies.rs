//! Bodies under way in blocks: those that come, put together, and those that go, kept until their
//! blocks were fetched (RFC 7959 sections 2.4 and 2.5).

use std::collections::VecDeque;

use muster_model::Micros;
use rustc_hash::FxHashMap;

use crate::coap::{Block, Code};

/// A body that takes memory until it is over.
pub(super) trait Underway {
    fn bytes(&self) -> usize;

    /// Returns true if its other end misses nothing, so that it may go without a loss.
    fn is_through(&self) -> bool;
}

impl Underway for Vec<u8> {
    fn bytes(&self) -> usize {
        self.capacity()
    }

    fn is_through(&self) -> bool {
        false
    }
}

/// Bodies of one direction and one peer; they take memory only while there are any.
#[derive(Debug, Default)]
pub(super) struct Bodies<T> {
    table: Option<Box<Table<T>>>,
    /// Bodies given up for want of room since the last query.
    given_up: u32,
}

/// Bound on the bodies in flight in one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) bodies: u16,
    /// Most bytes of all of them together, but for one alone.
    pub(super) bytes: u32,
}

/// Thousands of bodies, each found at once, and so the one that was touched longest ago.
#[derive(Debug, Default)]
struct Table<T> {
    by_resource: FxHashMap<u64, Body<T>>,
    /// Touches with their resources, the last at the end. Only the last touch of a body counts; the
    /// first of all here does.
    touched: VecDeque<(u64, u64)>,
    touches: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Body<T> {
    touch: u64,
    expires: Micros,
    value: T,
}

impl<T: Underway> Table<T> {
    /// Touches beyond two for each body at which those that count no longer are dropped.
    const SLACK: usize = 8;

    fn put(&mut self, resource: u64, expires: Micros, value: T) {
        self.bytes += value.bytes();
        let body = Body {
            touch: self.note_touch(resource),
            expires,
            value,
        };
        self.by_resource.insert(resource, body);
    }

    fn touch(&mut self, resource: u64, expires: Micros) {
        if !self.by_resource.contains_key(&resource) {
            return;
        }
        let touch = self.note_touch(resource);
        if let Some(body) = self.by_resource.get_mut(&resource) {
            (body.touch, body.expires) = (touch, expires);
        }
        self.skip();
    }

    fn note_touch(&mut self, resource: u64) -> u64 {
        let by_resource = &self.by_resource;
        if self.touched.len() > 2 * by_resource.len() + Self::SLACK {
            self.touched.retain(|touch| counts(by_resource, *touch));
        }
        self.touches += 1;
        self.touched.push_back((self.touches, resource));
        self.touches
    }

    fn take(&mut self, resource: u64) -> Option<T> {
        let body = self.by_resource.remove(&resource)?;
        self.bytes -= body.value.bytes();
        self.skip();
        Some(body.value)
    }

    /// Drops the first touches until one counts.
    fn skip(&mut self) {
        while let Some(first) = self.touched.front()
            && !counts(&self.by_resource, *first)
        {
            self.touched.pop_front();
        }
    }

    fn oldest(&self) -> Option<(u64, Micros)> {
        let (_, resource) = *self.touched.front()?;
        let body = self.by_resource.get(&resource)?;
        Some((resource, body.expires))
    }

    fn bytes(&self) -> usize {
        let of_bodies = self.by_resource.capacity() * size_of::<(u64, Body<T>)>();
        let of_touches = self.touched.capacity() * size_of::<(u64, u64)>();
        self.bytes + of_bodies + of_touches
    }
}

/// Returns true for the last touch of its body.
fn counts<T>(bodies: &FxHashMap<u64, Body<T>>, (touch, resource): (u64, u64)) -> bool {
    bodies
        .get(&resource)
        .is_some_and(|body| body.touch == touch)
}

impl<T: Underway + Default> Bodies<T> {
    /// Bytes of all that are under way, and of what finds them.
    pub(super) fn bytes(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.bytes())
    }

    /// Returns how many were given up for want of room since the last call.
    pub(super) fn take_given_up(&mut self) -> u32 {
        std::mem::take(&mut self.given_up)
    }

    /// Gives all up, and their memory back.
    pub(super) fn give_up(&mut self) {
        while let Some((oldest, _)) = self.oldest() {
            self.give_up_one(oldest);
        }
    }

    fn give_up_one(&mut self, resource: u64) {
        let body = self.take(resource);
        self.given_up += u32::from(body.is_some_and(|body| !body.is_through()));
    }

    fn oldest(&self) -> Option<(u64, Micros)> {
        self.table.as_ref()?.oldest()
    }

    /// Gives up the oldest until there is room for `more` bytes, or that of `resource` is the oldest.
    fn make_room(&mut self, resource: u64, more: usize, most: u32) {
        while let Some(table) = &self.table
            && table.bytes + more > most as usize
            && let Some((oldest, _)) = table.oldest()
            && oldest != resource
        {
            self.give_up_one(oldest);
        }
    }

    /// Begins a body in the place of another of that resource, and, where there are more than may be,
    /// of the oldest.
    pub(super) fn begin(&mut self, resource: u64, expires: Micros, value: T, bound: Bound) {
        self.take(resource);
        if let Some(table) = &self.table
            && table.by_resource.len() >= usize::from(bound.bodies.max(1))
            && let Some((oldest, _)) = table.oldest()
        {
            self.give_up_one(oldest);
        }
        self.make_room(resource, value.bytes(), bound.bytes);
        let table = self.table.get_or_insert_default();
        table.put(resource, expires, value);
    }

    /// Ends a body; with the last of them their memory is given back.
    pub(super) fn take(&mut self, resource: u64) -> Option<T> {
        let table = self.table.as_mut()?;
        let taken = table.take(resource);
        if table.by_resource.is_empty() {
            self.table = None;
        }
        taken
    }

    /// Drops what has expired. Whatever is touched expires a constant time later, so that the oldest
    /// is the first to.
    pub(super) fn expire(&mut self, now: Micros) {
        while let Some((oldest, expires)) = self.oldest()
            && expires <= now
        {
            self.take(oldest);
        }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.oldest().map(|(_, expires)| expires)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// Taken, and more follow.
    Continue,
    /// The last one: the whole body.
    Whole(Vec<u8>),
    /// Rejected.
    Refused(Code),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Joining {
    pub(super) resource: u64,
    pub(super) expires: Micros,
    pub(super) maximum: u32,
    pub(super) bound: Bound,
}

impl Bodies<Vec<u8>> {
    /// Takes a block. `announced` is how long the body is said to be (Size1).
    pub(super) fn join(
        &mut self,
        joining: Joining,
        block: Block,
        announced: Option<u32>,
        payload: &[u8],
    ) -> Joined {
        let Joining {
            resource,
            expires,
            maximum,
            bound,
        } = joining;
        let size = block.size.bytes();
        let is_wrong = if block.more {
            payload.len() != size
        } else {
            payload.len() > size
        };
        if is_wrong {
            return Joined::Refused(Code::BAD_REQUEST);
        }
        let end = block.offset() + payload.len();
        if end > maximum as usize || announced.is_some_and(|size| size > maximum) {
            self.take(resource);
            return Joined::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        if block.number == 0 {
            self.begin(resource, expires, Vec::new(), bound);
        }
        if self.length(resource) != Some(block.offset()) {
            return Joined::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.extend(&joining, payload);
        if block.more {
            return Joined::Continue;
        }
        Joined::Whole(self.take(resource).unwrap_or_default())
    }

    fn length(&self, resource: u64) -> Option<usize> {
        let body = self.table.as_ref()?.by_resource.get(&resource)?;
        Some(body.value.len())
    }

    fn extend(&mut self, joining: &Joining, payload: &[u8]) {
        let resource = joining.resource;
        if let Some(table) = &mut self.table {
            table.touch(resource, joining.expires);
        }
        self.make_room(resource, payload.len(), joining.bound.bytes);
        let Some(table) = &mut self.table else { return };
        if let Some(body) = table.by_resource.get_mut(&resource) {
            let before = body.value.bytes();
            body.value.extend_from_slice(payload);
            table.bytes += body.value.bytes() - before;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const BOUND: Bound = Bound {
        bodies: 5,
        bytes: 100,
    };

    /// The same as a list, the one that was touched last at its end.
    #[derive(Default)]
    struct List(Vec<(u64, Micros, usize)>);

    impl List {
        fn take(&mut self, resource: u64) -> Option<usize> {
            let at = self.0.iter().position(|body| body.0 == resource)?;
            Some(self.0.remove(at).2)
        }

        fn begin(&mut self, resource: u64, expires: Micros, length: usize) {
            self.take(resource);
            if self.0.len() == usize::from(BOUND.bodies) {
                self.0.remove(0);
            }
            let bytes = |list: &Self| list.0.iter().map(|body| body.2).sum::<usize>();
            while !self.0.is_empty() && bytes(self) + length > BOUND.bytes as usize {
                self.0.remove(0);
            }
            self.0.push((resource, expires, length));
        }

        fn touch(&mut self, resource: u64, expires: Micros) {
            if let Some(length) = self.take(resource) {
                self.0.push((resource, expires, length));
            }
        }
    }

    proptest! {
        /// However they come and go, they are a list in the order of their last touches, and take no
        /// memory once there are none.
        #[test]
        fn bodies_are_a_list_whose_oldest_goes_first(
            steps in vec((0..8u8, 0..8u64, 0..3u64, 0..40usize), 0..300),
        ) {
            let (mut bodies, mut list, mut now) = (Bodies::default(), List::default(), Micros(0));
            for (operation, resource, wait, length) in steps {
                now += Micros(wait);
                let expires = now + Micros(10);
                match operation {
                    0 | 1 => {
                        bodies.begin(resource, expires, vec![7; length], BOUND);
                        list.begin(resource, expires, length);
                    }
                    2 => prop_assert_eq!(bodies.take(resource).map(|body| body.len()), list.take(resource)),
                    3 => {
                        bodies.expire(now);
                        list.0.retain(|body| body.1 > now);
                    }
                    _ => {
                        if let Some(table) = &mut bodies.table {
                            table.touch(resource, expires);
                        }
                        list.touch(resource, expires);
                    }
                }
                let oldest = list.0.first().map(|body| (body.0, body.1));
                prop_assert_eq!(bodies.oldest(), oldest);
                prop_assert_eq!(bodies.bytes() == 0, list.0.is_empty());
                let Some(table) = &bodies.table else { continue };
                prop_assert_eq!(table.bytes, list.0.iter().map(|body| body.2).sum::<usize>());
                prop_assert!(table.touched.len() <= 2 * BOUND.bodies as usize + 10);
            }
        }
    }
}
