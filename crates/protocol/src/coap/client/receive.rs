//! Handles the server's datagrams.

use muster_model::Micros;

use super::exchange::{CONFIRMABLE, Exchange, FORGOTTEN, OBSERVES, PING, Stage, Step};
use super::{Again, ClientEvent, Endpoint, Failure, Response, SLOT_BYTES, SocketSlot, Verdict};
use crate::coap::{Class, Code, ExchangeKey, Header, Kind, Message, OptionNumber, Ticket, Token};

impl<L: AsRef<[SocketSlot]> + AsMut<[SocketSlot]>> Endpoint<L> {
    /// Takes one datagram; returns its meaning, if it has one.
    #[inline]
    pub fn receive<'d>(
        &mut self,
        now: Micros,
        datagram: &'d [u8],
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'d>> {
        let message = Message::receive(datagram, &mut self.counts.malformed, out)?;
        match (message.kind, message.code.class()) {
            (Kind::Acknowledgement, Class::Empty) => self.acknowledged(&message),
            (Kind::Reset, _) => self.reset(&message),
            (Kind::Acknowledgement, _) => self.piggybacked(now, &message),
            (Kind::Confirmable | Kind::NonConfirmable, Class::Empty | Class::Request) => {
                self.unexpected(&message, out)
            }
            (Kind::Confirmable | Kind::NonConfirmable, _) => self.separate(now, &message, out),
        }
    }

    /// The server will answer later (section 5.2.2).
    fn acknowledged(&mut self, message: &Message<'_>) -> Option<ClientEvent<'static>> {
        let key = self.by_id(message.id);
        let known = key.and_then(|key| Some((key, self.exchanges.get_mut(key)?)));
        let Some((key, exchange)) = known.filter(|(_, it)| it.is(CONFIRMABLE) && !it.is(PING))
        else {
            self.counts.stray += 1;
            return None;
        };
        exchange.stage = Stage::Acknowledged;
        let (ticket, expires) = (exchange.ticket, exchange.expires);
        let is_forgotten = exchange.is(FORGOTTEN);
        self.answered(key);
        self.exchanges.set_deadline(key, expires);
        (!is_forgotten).then_some(ClientEvent::Acknowledged { ticket, key })
    }

    /// The server rejects a message of ours (section 4.2), or answers a ping (section 4.3).
    fn reset(&mut self, message: &Message<'_>) -> Option<ClientEvent<'static>> {
        let ended = self.by_id(message.id).and_then(|key| self.end(key));
        let Some(exchange) = ended else {
            self.counts.stray += 1;
            return None;
        };
        let ticket = exchange.ticket;
        if exchange.is(FORGOTTEN) {
            return Some(ClientEvent::AnsweredLate { ticket, code: None });
        }
        if exchange.is(PING) {
            return Some(ClientEvent::Pong { ticket });
        }
        let cause = Failure::Reset;
        Some(ClientEvent::Failed { ticket, cause })
    }

    /// A ping of the server is answered with a reset, which rejects a request too: this is a client
    /// (section 4.3).
    fn unexpected(
        &mut self,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'static>> {
        self.counts.unexpected += 1;
        if message.kind == Kind::Confirmable {
            Header::empty(Kind::Reset, message.id).write(out);
        }
        None
    }

    /// A response in the acknowledgement (section 5.2.1): it must have the token too
    /// (section 5.3.2).
    #[inline]
    fn piggybacked<'d>(&mut self, now: Micros, message: &Message<'d>) -> Option<ClientEvent<'d>> {
        let key = self.by_id(message.id);
        let is_it = |key: &ExchangeKey| {
            let exchange = self.exchanges.get(*key);
            exchange
                .is_some_and(|it| it.token == message.token && it.is(CONFIRMABLE) && !it.is(PING))
        };
        match key.filter(is_it) {
            Some(key) => self.answer(now, key, message),
            None => self.answered_again(message),
        }
    }

    /// An answer to a message that waits for none: a second one where the first is known, else a
    /// stray.
    #[cold]
    fn answered_again(&mut self, message: &Message<'_>) -> Option<ClientEvent<'static>> {
        let slots = self.slots.as_ref();
        let Some(ticket) = SocketSlot::of_answered(slots, message.id, message.token) else {
            self.counts.stray += 1;
            return None;
        };
        self.counts.duplicates += 1;
        Some(ClientEvent::Duplicate { ticket })
    }

    /// Keeps in mind that a request has its answer in its acknowledgement, if it was sent once: the
    /// answers to its copies are no second ones.
    #[inline]
    fn note_answered(&mut self, exchange: &Exchange, kind: Kind) {
        if kind == Kind::Acknowledgement && exchange.retries == 0 {
            SocketSlot::note(self.slots.as_mut(), exchange);
        }
    }

    /// A separate response (section 5.2.2): a CON is acknowledged, and rejected where nobody waits
    /// for it or it cannot be accepted.
    fn separate<'d>(
        &mut self,
        now: Micros,
        message: &Message<'d>,
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'d>> {
        let seen = self.seen.as_deref_mut();
        if let Some(answered) = seen.and_then(|seen| seen.find(now, message.id).copied()) {
            self.counts.duplicates += 1;
            reply(message, answered.reply, out);
            let ticket = answered.ticket?;
            return Some(ClientEvent::Duplicate { ticket });
        }
        let key = self.by_token(message.token);
        let is_acceptable = message.options.unacceptable().is_none();
        let exchange = key.and_then(|key| self.exchanges.get(key));
        let ticket = exchange.map(|exchange| exchange.ticket);
        let verdict = match ticket.filter(|_| is_acceptable) {
            Some(_) => Kind::Acknowledgement,
            None => Kind::Reset,
        };
        let answered = Verdict {
            reply: verdict,
            ticket,
        };
        self.remember(now, message, answered);
        reply(message, verdict, out);
        let Some(key) = key else {
            self.counts.stray += 1;
            return None;
        };
        self.answer(now, key, message)
    }

    /// Keeps what was answered, for duplicates (section 4.5).
    fn remember(&mut self, now: Micros, message: &Message<'_>, verdict: Verdict) {
        let transmission = &self.settings.transmission;
        let lifetime = match message.kind {
            Kind::NonConfirmable => transmission.non_lifetime,
            Kind::Confirmable | Kind::Acknowledgement | Kind::Reset => {
                transmission.exchange_lifetime
            }
        };
        let seen = self.seen.get_or_insert_default();
        seen.insert(now, now + lifetime, message.id, verdict);
        seen.keep(usize::from(self.settings.remembered_max));
    }

    #[inline]
    fn answer<'d>(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        message: &Message<'d>,
    ) -> Option<ClientEvent<'d>> {
        let exchange = self.exchanges.get_mut(key)?;
        let (ticket, stage) = (exchange.ticket, exchange.stage);
        if exchange.is(FORGOTTEN) {
            let ended = self.end(key)?;
            self.note_answered(&ended, message.kind);
            let code = Some(message.code);
            return Some(ClientEvent::AnsweredLate { ticket, code });
        }
        if let Some(number) = message.options.unacceptable() {
            return self.fail(key, Failure::BadOption(number));
        }
        let is_late_copy = stage == Stage::BlockDue;
        if is_late_copy {
            self.counts.stray += 1;
            return None;
        }
        self.advance(now, key, message)
    }

    #[inline]
    fn advance<'d>(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        message: &Message<'d>,
    ) -> Option<ClientEvent<'d>> {
        let exchange = self.exchanges.get_mut(key)?;
        let (ticket, expires) = (exchange.ticket, exchange.expires);
        match exchange.answer(message, &self.settings) {
            Step::Done if exchange.is(OBSERVES) => self.notified(now, key, message),
            // The rest of a notification would need an exchange of its own.
            Step::Part if exchange.is(OBSERVES) => self.fail(key, Failure::Block),
            Step::Done => {
                let ended = self.end(key)?;
                self.note_answered(&ended, message.kind);
                self.hold(now, ticket, message);
                Some(ClientEvent::Response(self.response(ticket, key, message)))
            }
            Step::Failed(cause) => self.fail(key, cause),
            Step::Earlier => {
                self.counts.duplicates += 1;
                Some(ClientEvent::Duplicate { ticket })
            }
            step @ (Step::Part | Step::NextBlock) => {
                // The place in the window stays: the next block follows at once.
                exchange.stage = Stage::BlockDue;
                self.unlist(key);
                self.exchanges.set_deadline(key, expires);
                if step == Step::Part {
                    return Some(ClientEvent::Part(self.response(ticket, key, message)));
                }
                let cause = Again::Block;
                Some(ClientEvent::Again { ticket, key, cause })
            }
        }
    }

    /// The first answer to an observer, or one of those that follow.
    fn notified<'d>(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        message: &Message<'d>,
    ) -> Option<ClientEvent<'d>> {
        let exchange = self.exchanges.get_mut(key)?;
        let ticket = exchange.ticket;
        let is_first = exchange.stage != Stage::Observing;
        let response = self.response(ticket, key, message);
        if response.is_observed() {
            if let Some(exchange) = self.exchanges.get_mut(key) {
                (exchange.stage, exchange.expires) = (Stage::Observing, Micros::MAX);
            }
            self.answered(key);
            self.exchanges.set_deadline(key, Micros::MAX);
        } else {
            self.end(key);
            self.hold(now, ticket, message);
        }
        Some(match is_first {
            true => ClientEvent::Response(response),
            false => ClientEvent::Notification(response),
        })
    }

    fn fail(&mut self, key: ExchangeKey, cause: Failure) -> Option<ClientEvent<'static>> {
        let ticket = self.end(key)?.ticket;
        Some(ClientEvent::Failed { ticket, cause })
    }

    /// 5.03 may ask the device for silence, by its Max-Age (section 5.9.3.4).
    fn hold(&mut self, now: Micros, ticket: Ticket, message: &Message<'_>) {
        if message.code != Code::SERVICE_UNAVAILABLE || !self.settings.obeys_max_age {
            return;
        }
        let slot = self.slots.as_mut().get_mut(ticket.slot as usize);
        if let (Some(slot), Some(seconds)) = (slot, message.options.max_age()) {
            slot.held = now + Micros::from_secs(u64::from(seconds));
        }
    }

    fn response<'d>(
        &self,
        ticket: Ticket,
        key: ExchangeKey,
        message: &Message<'d>,
    ) -> Response<'d> {
        Response {
            ticket,
            key,
            code: message.code,
            options: message.options,
            payload: message.payload,
            block: message.options.block(OptionNumber::BLOCK2).ok().flatten(),
            is_separate: message.kind != Kind::Acknowledgement,
        }
    }

    #[inline]
    fn by_id(&self, id: u16) -> Option<ExchangeKey> {
        self.by_id.find(&self.exchanges, id)
    }

    #[inline]
    fn by_token(&self, token: Token) -> Option<ExchangeKey> {
        let slot = *token.as_bytes().first_chunk::<SLOT_BYTES>()?;
        let (key, exchange) = self.exchanges.at(u16::from_be_bytes(slot))?;
        (exchange.token == token && !exchange.is(PING)).then_some(key)
    }
}

/// Answers a message of the server's own: a CON as the verdict says; a NON has no answer.
fn reply(message: &Message<'_>, verdict: Kind, out: &mut Vec<u8>) {
    if message.kind == Kind::Confirmable {
        Header::empty(verdict, message.id).write(out);
    }
}
