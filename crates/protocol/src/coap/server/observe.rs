//! Clients that are told of later states of a resource (RFC 7641 section 4).

use muster_model::Micros;

use super::respond::Writing;
use super::{Pending, Server};
use crate::coap::request::out_of_order;
use crate::coap::{Kind, Refused, Reply, Token};

/// Numbers of notifications have 24 bits (RFC 7641 section 2).
const NUMBERS: u32 = 0x00ff_ffff;

/// One client that observes one resource.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) token: Token,
    pub(super) ticket: u32,
    /// The message id of the last notification, which may be reset.
    pub(super) last_id: Option<u16>,
    resource: u64,
    number: u32,
}

impl Server {
    /// Grants an observation; the number of its first state. None where there are too many: the
    /// client then has its answer, and no more (RFC 7641 section 4.1).
    pub(super) fn observe(&mut self, pending: &Pending, ticket: u32) -> Option<u32> {
        self.forget_observer(pending.token);
        if self.observers.len() >= usize::from(self.settings.observers_max) {
            return None;
        }
        self.observers.push(Observer {
            token: pending.token,
            ticket,
            last_id: None,
            resource: pending.resource,
            number: 1,
        });
        Some(1)
    }

    /// Tells an observer a later state. A code that is no success ends the observation
    /// (RFC 7641 section 4.2). `reply.ticket` replaces the one that the observation had.
    ///
    /// # Errors
    /// [`Refused::NothingDue`] if the client does not observe; [`Refused::Window`] while a
    /// confirmable notification waits for its acknowledgement: tell the latest state after it
    /// (RFC 7641 section 4.5.1); else as [`Server::respond`].
    pub fn notify(
        &mut self,
        now: Micros,
        token: Token,
        reply: &Reply<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if let Some(number) = out_of_order(reply.options) {
            return Err(Refused::OptionOrder(number));
        }
        let mut observers = self.observers.iter();
        let at = observers.position(|observer| observer.token == token);
        let at = at.ok_or(Refused::NothingDue)?;
        if self.observers[at]
            .last_id
            .is_some_and(|id| self.waiting.has(id))
        {
            return Err(Refused::Window);
        }
        self.check_room(reply.is_confirmable)?;
        let id = self.take_id(now)?;
        let observer = &mut self.observers[at];
        observer.number = (observer.number + 1) & NUMBERS;
        observer.ticket = reply.ticket;
        observer.last_id = Some(id);
        let (number, resource) = (observer.number, observer.resource);
        let writing = Writing {
            kind: Kind::of(reply.is_confirmable),
            id,
            token,
            ticket: reply.ticket,
            resource,
            observe: reply.code.is_success().then_some(number),
            ..Writing::default()
        };
        if !reply.code.is_success() {
            self.observers.remove(at);
        }
        self.write(now, writing, reply, out);
        Ok(())
    }

    /// How many observations there are.
    #[must_use]
    pub fn observers(&self) -> usize {
        self.observers.len()
    }
}
