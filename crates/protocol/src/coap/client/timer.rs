//! Timers: copies of unacknowledged messages, and ends without an answer.

use muster_model::Micros;

use super::exchange::{CONFIRMABLE, Exchange, FORGOTTEN, PING, RESEND_DUE, Stage};
use super::{Again, ClientEvent, Endpoint, Failure, SocketSlot};
use crate::coap::{ExchangeKey, Header, Kind};

impl<L: AsRef<[SocketSlot]> + AsMut<[SocketSlot]>> Endpoint<L> {
    /// Does what is due, one thing a call; none if nothing is.
    #[inline]
    pub fn wake(&mut self, now: Micros, out: &mut Vec<u8>) -> Option<ClientEvent<'static>> {
        loop {
            let (key, deadline) = self.exchanges.first()?;
            if deadline > now {
                return None;
            }
            if let Some(event) = self.due(now, key, out) {
                return Some(event);
            }
        }
    }

    fn due(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'static>> {
        let exchange = self.exchanges.get_mut(key)?;
        let ticket = exchange.ticket;
        if !may_copy(exchange, now, self.settings.transmission.max_retransmit) {
            return self.give_up(key);
        }
        exchange.retries += 1;
        exchange.timeout = exchange.timeout + exchange.timeout;
        let (deadline, id) = (exchange.next_copy(now), exchange.id);
        let is_ping = exchange.is(PING);
        exchange.set(RESEND_DUE, !is_ping);
        self.exchanges.set_deadline(key, deadline);
        if is_ping {
            Header::empty(Kind::Confirmable, id).write(out);
            self.counts.retransmitted += 1;
            return Some(ClientEvent::PingedAgain);
        }
        let cause = Again::Retransmission;
        Some(ClientEvent::Again { ticket, key, cause })
    }

    /// The exchange is over without an answer; the end of a forgotten one is no event.
    fn give_up(&mut self, key: ExchangeKey) -> Option<ClientEvent<'static>> {
        let ended = self.end(key)?;
        let is_unacknowledged = ended.stage == Stage::Sent && ended.is(CONFIRMABLE);
        let cause = if is_unacknowledged {
            Failure::Unacknowledged
        } else {
            Failure::Unanswered
        };
        let ticket = ended.ticket;
        (!ended.is(FORGOTTEN)).then_some(ClientEvent::Failed { ticket, cause })
    }
}

/// Returns true if another copy may be sent (section 4.2).
fn may_copy(exchange: &Exchange, now: Micros, most: u8) -> bool {
    exchange.stage == Stage::Sent
        && exchange.is(CONFIRMABLE)
        && !exchange.is(FORGOTTEN)
        && exchange.retries < most
        && now < exchange.expires
}
