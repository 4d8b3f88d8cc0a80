//! Bodies under way in blocks: those that come, put together, and those that go, kept until their
//! blocks were fetched (RFC 7959 sections 2.4 and 2.5).

use muster_model::Micros;

use crate::coap::{Block, Code};

/// Bodies of one direction and one peer.
#[derive(Debug)]
pub(super) struct Bodies<T> {
    bodies: Vec<Body<T>>,
}

#[derive(Debug)]
struct Body<T> {
    resource: u64,
    expires: Micros,
    value: T,
}

impl<T> Default for Bodies<T> {
    fn default() -> Self {
        Self { bodies: Vec::new() }
    }
}

impl<T> Bodies<T> {
    /// The body of a resource that is under way.
    pub(super) fn find(&mut self, resource: u64) -> Option<&mut T> {
        let mut bodies = self.bodies.iter_mut();
        let body = bodies.find(|body| body.resource == resource);
        body.map(|body| &mut body.value)
    }

    /// Begins a body in the place of another of that resource, and, of more than `bound`, of the
    /// oldest.
    pub(super) fn begin(&mut self, resource: u64, expires: Micros, value: T, bound: u8) {
        self.take(resource);
        if self.bodies.len() >= usize::from(bound.max(1)) {
            self.bodies.remove(0);
        }
        self.bodies.push(Body {
            resource,
            expires,
            value,
        });
    }

    /// The body is under way for longer.
    pub(super) fn touch(&mut self, resource: u64, expires: Micros) {
        let mut bodies = self.bodies.iter_mut();
        if let Some(body) = bodies.find(|body| body.resource == resource) {
            body.expires = expires;
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
    /// Most bodies at once.
    pub(super) bound: u8,
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
        let body = self
            .find(resource)
            .filter(|body| body.len() == block.offset());
        let Some(body) = body else {
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
