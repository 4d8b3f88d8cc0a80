//! The last answers on a socket, which make a second answer known for one (RFC 7252 section 4.5).
//!
//! Message ids go round in their order, and so do the places: one in each slot, whosever it is.

use super::SocketSlot;
use super::exchange::{Exchange, fold};
use crate::coap::{Ticket, Token};

impl SocketSlot {
    /// Keeps a request in mind that has its answer, where it has its place.
    #[inline]
    pub(super) fn note(slots: &mut [Self], exchange: &Exchange) {
        let at = place_of(exchange.id, slots.len());
        if let Some(slot) = at.and_then(|at| slots.get_mut(at)) {
            slot.answered = exchange.ticket;
            slot.answered_token = fold(exchange.token.as_bytes());
            slot.answered_id = exchange.id;
        }
    }

    /// No second answer can come any more.
    pub(super) fn forget_answered(&mut self) {
        *self = Self {
            held: self.held,
            open: self.open,
            ..Self::default()
        };
    }

    /// Returns the ticket of the answered request with this message id and token, if no later one
    /// replaced it.
    pub(super) fn of_answered(slots: &[Self], id: u16, token: Token) -> Option<Ticket> {
        let slot = slots.get(place_of(id, slots.len())?)?;
        let is_it = slot.answered_id == id && slot.answered_token == fold(token.as_bytes());
        is_it.then_some(slot.answered)
    }
}

fn place_of(id: u16, places: usize) -> Option<usize> {
    usize::from(id).checked_rem(places)
}
