//! Bodies under way in blocks: those that come, put together, and those that go, kept until their
//! blocks were fetched (RFC 7959 sections 2.4 and 2.5).

use muster_model::Micros;

use crate::coap::{Block, Code};

/// A body that takes memory until it is over.
pub(super) trait Underway {
    /// How many bytes.
    fn bytes(&self) -> usize;

    /// Whether nothing of it is missing at its other end, so that it may go without a loss.
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

/// Bodies of one direction and one peer, that which was touched last at the end.
#[derive(Debug)]
pub(super) struct Bodies<T> {
    bodies: Vec<Body<T>>,
    /// Those that were given up for want of room since that was last asked.
    given_up: u32,
}

/// How much of one direction may be under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// Most bodies.
    pub(super) bodies: u8,
    /// Most bytes of all of them together, but for one alone.
    pub(super) bytes: u32,
}

#[derive(Debug)]
struct Body<T> {
    resource: u64,
    expires: Micros,
    value: T,
}

impl<T> Default for Bodies<T> {
    fn default() -> Self {
        Self {
            bodies: Vec::new(),
            given_up: 0,
        }
    }
}

impl<T: Underway> Bodies<T> {
    /// Bytes of all that are under way.
    pub(super) fn bytes(&self) -> usize {
        self.bodies.iter().map(|body| body.value.bytes()).sum()
    }

    /// How many were given up for want of room since this was last asked.
    pub(super) fn take_given_up(&mut self) -> u32 {
        std::mem::take(&mut self.given_up)
    }

    /// Gives all up, and their memory back.
    pub(super) fn give_up(&mut self) {
        while !self.bodies.is_empty() {
            self.give_up_at(0);
        }
        self.bodies = Vec::new();
    }

    fn give_up_at(&mut self, at: usize) {
        let body = self.bodies.remove(at);
        self.given_up += u32::from(!body.value.is_through());
    }

    /// Gives up the oldest, but for that of `resource`, until there is room for so many bytes more.
    fn make_room(&mut self, resource: u64, more: usize, most: u32) {
        while self.bytes() + more > most as usize {
            let mut bodies = self.bodies.iter();
            let Some(oldest) = bodies.position(|body| body.resource != resource) else {
                return;
            };
            self.give_up_at(oldest);
        }
    }

    /// The body of a resource that is under way.
    pub(super) fn find(&mut self, resource: u64) -> Option<&mut T> {
        let mut bodies = self.bodies.iter_mut();
        let body = bodies.find(|body| body.resource == resource);
        body.map(|body| &mut body.value)
    }

    /// Begins a body in the place of another of that resource, and, where there are more than may be,
    /// of the oldest.
    pub(super) fn begin(&mut self, resource: u64, expires: Micros, value: T, bound: Bound) {
        self.take(resource);
        if self.bodies.len() >= usize::from(bound.bodies.max(1)) {
            self.give_up_at(0);
        }
        self.make_room(resource, value.bytes(), bound.bytes);
        self.bodies.push(Body {
            resource,
            expires,
            value,
        });
    }

    /// The body is under way for longer.
    pub(super) fn touch(&mut self, resource: u64, expires: Micros) {
        let mut bodies = self.bodies.iter();
        if let Some(at) = bodies.position(|body| body.resource == resource) {
            let touched = self.bodies.remove(at);
            self.bodies.push(Body { expires, ..touched });
        }
    }

    /// Ends a body.
    pub(super) fn take(&mut self, resource: u64) -> Option<T> {
        let mut bodies = self.bodies.iter();
        let at = bodies.position(|body| body.resource == resource)?;
        Some(self.bodies.remove(at).value)
    }

    /// Drops what has expired.
    pub(super) fn expire(&mut self, now: Micros) {
        self.bodies.retain(|body| body.expires > now);
    }

    /// When the next one expires.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.bodies.iter().map(|body| body.expires).min()
    }
}

/// What a block of a request's body came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// It was taken, and more are to come.
    Continue,
    /// It was the last: the body.
    Whole(Vec<u8>),
    /// It cannot be taken.
    Refused(Code),
}

/// How a body is put together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joining {
    pub(super) resource: u64,
    pub(super) expires: Micros,
    /// Bytes of the longest body.
    pub(super) maximum: u32,
    /// How much may be under way.
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
        let body = self.find(resource);
        let is_next = body.is_some_and(|body| body.len() == block.offset());
        if is_next {
            self.make_room(resource, payload.len(), bound.bytes);
        }
        let Some(body) = self.find(resource).filter(|_| is_next) else {
            return Joined::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        };
        body.extend_from_slice(payload);
        if block.more {
            self.touch(resource, expires);
            return Joined::Continue;
        }
        Joined::Whole(self.take(resource).unwrap_or_default())
    }
}
