//! The client end: requests of the devices behind one socket to one server.

mod answered;
mod by_id;
mod event;
mod exchange;
mod receive;
mod timer;

use std::sync::Arc;

use muster_model::Micros;

pub use event::{Again, ClientEvent, Failure, Response};

use self::by_id::ById;
use self::exchange::{
    CONFIRMABLE, COUNTED, Exchange, FORGOTTEN, OBSERVES, PING, RESEND_DUE, Stage,
};
use super::ids::MessageIds;
use super::request::out_of_order;
use super::seen::Seen;
use super::settings::Random;
use super::slab::Slab;
use super::{ClientSettings, ExchangeKey, Header, Kind, Refused, Request, Ticket, Token};

/// Bytes of a token that name the exchange.
const SLOT_BYTES: usize = 2;

/// State of one device on a shared socket, and one place for the last answered request there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketSlot {
    /// The server asked for silence until then.
    held: Micros,
    /// Interactions that wait for an answer (NSTART counts them).
    open: u16,
    /// The message id of a request on the socket that was answered in its acknowledgement.
    answered_id: u16,
    /// Stands for its token; 0 before there was one.
    answered_token: u32,
    answered: Ticket,
}

/// The answer to a message of the server's own.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    reply: Kind,
    /// Ticket of the exchange that it ended, if any.
    ticket: Option<Ticket>,
}

/// Counters that no event reports, since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounts {
    /// Copies of a CON after its first.
    pub retransmitted: u32,
    /// Responses that came again ([`ClientEvent::Duplicate`]), and others that nobody waits for.
    pub duplicates: u32,
    /// Answers nobody waited for.
    pub stray: u32,
    /// Messages of the server that a client has no use for: pings and requests; all are reset.
    pub unexpected: u32,
    /// Datagrams that are no message.
    pub malformed: u32,
}

/// The client end of one endpoint pair: our socket, the server's address.
///
/// It owns what RFC 7252 gives to the pair, message ids and tokens; devices that share the socket
/// have a [`SocketSlot`] each. Nothing of a request is kept: to send a copy or the next block of it, the
/// session asks the caller to render it again ([`ClientEvent::Again`]).
///
/// A call appends one datagram to `out`, or none. Call [`Endpoint::wake`] at
/// [`Endpoint::deadline`], until it returns none.
#[derive(Debug)]
pub struct Endpoint<L> {
    settings: Arc<ClientSettings>,
    random: Random,
    ids: MessageIds,
    exchanges: Slab<Exchange>,
    by_id: ById,
    /// Answers to messages of the server's own.
    seen: Option<Box<Seen<Verdict>>>,
    counts: ClientCounts,
    slots: L,
}

/// User memory in bytes that a session at rest keeps of its exchanges, without its own size: that of
/// the one exchange that a device has open at once by default.
pub const AT_REST_BYTES: usize = Slab::<Exchange>::ENTRY_BYTES;

/// The client end of one device that shares its socket with no other; its slot is 0.
pub type Client = Endpoint<[SocketSlot; 1]>;

/// The client end of many devices behind one socket.
pub type SharedClient = Endpoint<Vec<SocketSlot>>;

impl Client {
    /// A session on a new socket. Message ids and tokens follow from the seed; two sockets of one
    /// run need two seeds.
    pub fn new(settings: Arc<ClientSettings>, seed: u64) -> Self {
        Self::with_slots(settings, seed, [SocketSlot::default()])
    }
}

impl SharedClient {
    /// A session on a new socket that `slots` devices share.
    pub fn shared(settings: Arc<ClientSettings>, seed: u64, slots: u32) -> Self {
        Self::with_slots(settings, seed, vec![SocketSlot::default(); slots as usize])
    }
}

impl<L: AsRef<[SocketSlot]> + AsMut<[SocketSlot]>> Endpoint<L> {
    fn with_slots(settings: Arc<ClientSettings>, seed: u64, slots: L) -> Self {
        let mut random = Random::new(seed);
        let ids = MessageIds::new(random.draw() as u16);
        Self {
            settings,
            random,
            ids,
            exchanges: Slab::default(),
            by_id: ById::default(),
            seen: None,
            counts: ClientCounts::default(),
            slots,
        }
    }

    /// Sends a request; `ticket` names it in events, the key that is returned in calls.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    #[inline]
    pub fn request(
        &mut self,
        now: Micros,
        ticket: Ticket,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ExchangeKey, Refused> {
        self.check_request(request)?;
        let key = self.open(now, ticket)?;
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.begin(request);
            exchange.write(request, &self.settings, out);
        }
        self.start(now, key);
        Ok(key)
    }

    /// Sends a request that observes (RFC 7641): its options hold Observe 0. If the response has Observe, too, the
    /// exchange stays open for [`ClientEvent::Notification`], until [`Endpoint::abandon`] or an end by the server.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    pub fn observe(
        &mut self,
        now: Micros,
        ticket: Ticket,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ExchangeKey, Refused> {
        let key = self.request(now, ticket, request, out)?;
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.set(OBSERVES, true);
        }
        Ok(key)
    }

    /// Asks for a sign of life: an empty CON, which a server answers with a reset (section 4.3).
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    pub fn ping(
        &mut self,
        now: Micros,
        ticket: Ticket,
        out: &mut Vec<u8>,
    ) -> Result<ExchangeKey, Refused> {
        let key = self.open(now, ticket)?;
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.set(PING, true);
            exchange.set(CONFIRMABLE, true);
            Header::empty(Kind::Confirmable, exchange.id).write(out);
        }
        self.start(now, key);
        Ok(key)
    }

    /// Sends a copy of a request, or its next block, after [`ClientEvent::Again`] or
    /// [`ClientEvent::Part`]. `request` must be what it was, body and all.
    ///
    /// # Errors
    /// [`Refused::NothingDue`] if an answer came in between, [`Refused::NoMessageId`], else as
    /// [`Endpoint::request`].
    pub fn again(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.check_request(request)?;
        let exchange = self.exchanges.get_mut(key).ok_or(Refused::NothingDue)?;
        match exchange.stage {
            Stage::Sent if exchange.is(RESEND_DUE) => {
                exchange.set(RESEND_DUE, false);
                exchange.write(request, &self.settings, out);
                self.counts.retransmitted += 1;
                Ok(())
            }
            Stage::BlockDue => self.restart(now, key, request, out),
            Stage::Sent | Stage::Acknowledged | Stage::Observing => Err(Refused::NothingDue),
        }
    }

    /// Gives an exchange up: nothing is sent again, and an answer to it is
    /// [`ClientEvent::AnsweredLate`]. An observation that has begun ends at once: its notifications are reset.
    /// Returns true if there was such an exchange.
    pub fn forget(&mut self, key: ExchangeKey) -> bool {
        let Some(exchange) = self.exchanges.get_mut(key) else {
            return false;
        };
        let was_forgotten = exchange.is(FORGOTTEN);
        exchange.set(FORGOTTEN, true);
        let (stage, expires) = (exchange.stage, exchange.expires);
        match stage {
            Stage::Sent | Stage::Acknowledged => {
                self.count(key, false);
                self.exchanges.set_deadline(key, expires);
            }
            // Neither waits for an answer.
            Stage::BlockDue | Stage::Observing => {
                self.end(key);
            }
        }
        !was_forgotten
    }

    /// Gives an exchange up from its start: up to `until` an answer to it is
    /// [`ClientEvent::AnsweredLate`], then a stray. It makes room for others before that.
    pub fn leave(&mut self, key: ExchangeKey, until: Micros) {
        if self.forget(key) {
            self.exchanges.set_deadline(key, until);
        }
    }

    /// Ends an exchange whose answer nobody wants: an answer counts as stray, without an event.
    pub fn abandon(&mut self, key: ExchangeKey) {
        self.end(key);
    }

    /// The socket is gone: ends all exchanges, and calls `each` for those that were not forgotten.
    /// Message ids and tokens go on, so that a new socket may have the same session.
    pub fn drop_all(&mut self, mut each: impl FnMut(Ticket)) {
        while let Some((key, _)) = self.exchanges.first() {
            let ended = self.end(key);
            if let Some(exchange) = ended.filter(|exchange| !exchange.is(FORGOTTEN)) {
                each(exchange.ticket);
            }
        }
    }

    /// Message ids and tokens are a session's (RFC 7252 section 9.1.1): with a new one of DTLS, after
    /// [`Endpoint::drop_all`], nothing is remembered of what came. A new socket alone changes nothing.
    pub fn begin_session(&mut self) {
        self.seen = None;
        self.slots
            .as_mut()
            .iter_mut()
            .for_each(SocketSlot::forget_answered);
    }

    /// Returns how many more interactions a device may open now.
    #[inline]
    pub fn window_free(&self, slot: u32) -> u16 {
        let slot = self.slots.as_ref().get(slot as usize);
        slot.map_or(0, |slot| self.settings.nstart.saturating_sub(slot.open))
    }

    /// Instant up to which the server asked a device for silence.
    pub fn held_until(&self, slot: u32) -> Micros {
        let slot = self.slots.as_ref().get(slot as usize);
        slot.map_or(Micros::ZERO, |slot| slot.held)
    }

    /// Returns when to call [`Endpoint::wake`]; none while nothing is open that ends by itself.
    #[inline]
    pub fn deadline(&self) -> Option<Micros> {
        let first = self.exchanges.first().map(|(_, deadline)| deadline);
        first.filter(|deadline| *deadline < Micros::MAX)
    }

    /// The number of open exchanges, forgotten ones among them.
    pub fn open_exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns the counters that no event reports.
    pub const fn counts(&self) -> &ClientCounts {
        &self.counts
    }

    fn check_request(&self, request: &Request<'_>) -> Result<(), Refused> {
        if !request.method.is_request() {
            return Err(Refused::Method(request.method));
        }
        if let Some(number) = out_of_order(request.options) {
            return Err(Refused::OptionOrder(number));
        }
        let (size, maximum) = (request.payload.len(), self.settings.body_max);
        if size > maximum as usize {
            return Err(Refused::BodyTooLarge { size, maximum });
        }
        Ok(())
    }

    /// A new exchange of a device that may have one more, with its message id and token.
    #[inline]
    fn open(&mut self, now: Micros, ticket: Ticket) -> Result<ExchangeKey, Refused> {
        let slot = self.slots.as_ref().get(ticket.slot as usize);
        let slot = slot.ok_or(Refused::NoSlot(ticket.slot))?;
        if slot.held > now {
            return Err(Refused::Held { until: slot.held });
        }
        if slot.open >= self.settings.nstart {
            return Err(Refused::Window);
        }
        let is_full = self.exchanges.len() >= usize::from(self.settings.exchanges_max)
            && !self.drop_forgotten();
        let key = self.exchanges.next_key().filter(|_| !is_full);
        let key = key.ok_or(Refused::Full)?;
        let lifetime = self.settings.transmission.exchange_lifetime;
        let id = self.ids.take(now, lifetime)?;
        let exchange = Exchange::new(ticket, id, self.token(key), &self.settings);
        self.exchanges
            .insert(Micros::MAX, exchange)
            .ok_or(Refused::Full)
    }

    /// Makes room for one exchange where some are only kept to know a late answer by; whether there
    /// is room now.
    #[cold]
    fn drop_forgotten(&mut self) -> bool {
        let slots = 0..self.settings.exchanges_max;
        let mut kept = slots.filter_map(|slot| self.exchanges.at(slot));
        let forgotten = kept.find(|(_, exchange)| exchange.is(FORGOTTEN));
        let key = forgotten.map(|(key, _)| key);
        key.and_then(|key| self.end(key)).is_some()
    }

    /// A token that no other exchange has: the exchange's slot, and random bytes, so that only a
    /// receiver of the request can answer it (section 5.3.1).
    #[inline]
    fn token(&mut self, key: ExchangeKey) -> Token {
        let mut bytes = self.random.draw().to_be_bytes();
        bytes[..SLOT_BYTES].copy_from_slice(&key.slot().to_be_bytes());
        Token::new(&bytes).unwrap_or_default()
    }

    fn restart(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let lifetime = self.settings.transmission.exchange_lifetime;
        let id = self.ids.take(now, lifetime)?;
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.id = id;
            exchange.write(request, &self.settings, out);
        }
        self.start(now, key);
        Ok(())
    }

    /// Starts the clock of a message with a new id, and makes it known by that.
    #[inline]
    fn start(&mut self, now: Micros, key: ExchangeKey) {
        let random = self.random.draw();
        let Some(exchange) = self.exchanges.get_mut(key) else {
            return;
        };
        exchange.start(now, random, &self.settings.transmission);
        let deadline = exchange.next_copy(now);
        self.exchanges.set_deadline(key, deadline);
        self.by_id.list(&mut self.exchanges, key);
        self.count(key, true);
    }

    /// Takes a place in the window of the exchange's slot, or gives it back.
    #[inline]
    fn count(&mut self, key: ExchangeKey, is_counted: bool) {
        let Some(exchange) = self.exchanges.get_mut(key) else {
            return;
        };
        if exchange.is(COUNTED) == is_counted || is_counted && exchange.is(FORGOTTEN) {
            return;
        }
        exchange.set(COUNTED, is_counted);
        if let Some(slot) = self.slots.as_mut().get_mut(exchange.ticket.slot as usize) {
            slot.open = if is_counted {
                slot.open + 1
            } else {
                slot.open - 1
            };
        }
    }

    /// The message that was sent last has its answer.
    #[inline]
    fn answered(&mut self, key: ExchangeKey) {
        self.count(key, false);
        self.unlist(key);
    }

    /// Nothing more can be said to the message id that was used last.
    #[inline]
    fn unlist(&mut self, key: ExchangeKey) {
        self.by_id.unlist(&mut self.exchanges, key);
    }

    #[inline]
    fn end(&mut self, key: ExchangeKey) -> Option<Exchange> {
        self.answered(key);
        self.exchanges.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_takes_little_memory() {
        assert_eq!(size_of::<SocketSlot>(), 24);
    }

    #[test]
    fn a_client_of_one_device_is_small() {
        assert!(size_of::<Client>() <= 128, "{}", size_of::<Client>());
    }
}
