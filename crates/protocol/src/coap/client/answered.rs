//! The last answers on a socket, by which a second answer is recognized (RFC 7252 section 4.5).
//!
//! Message ids go round in their order, and so do the places: one in each lane, whosever it is.

use super::Lane;
use super::exchange::{Exchange, fold};
use crate::coap::{Ticket, Token};

impl Lane {
    /// Keeps a request in mind that has its answer, where it has its place.
    #[inline]
    pub(super) fn note(lanes: &mut [Self], exchange: &Exchange) {
        let at = place_of(exchange.id, lanes.len());
        if let Some(lane) = at.and_then(|at| lanes.get_mut(at)) {
            lane.answered = exchange.ticket;
            lane.answered_token = fold(exchange.token.as_bytes());
            lane.answered_id = exchange.id;
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
    pub(super) fn of_answered(lanes: &[Self], id: u16, token: Token) -> Option<Ticket> {
        let lane = lanes.get(place_of(id, lanes.len())?)?;
        let is_it = lane.answered_id == id && lane.answered_token == fold(token.as_bytes());
        is_it.then_some(lane.answered)
    }
}

fn place_of(id: u16, places: usize) -> Option<usize> {
    usize::from(id).checked_rem(places)
}
