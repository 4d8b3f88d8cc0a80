//! The client end of a session.

mod connect;
mod event;
mod keep_alive;
mod limits;
mod receive;

use muster_model::Micros;

pub use connect::Connect;
pub use event::{ClientEvent, Connected, Message};
pub use limits::{ClientCounts, ClientLimits};

use super::authentication::{Authentication, Step};
use super::inflight::Wait;
use super::outbound::{check_size, put_disconnect};
use super::packet::{self, Entry, Filter, List, PINGREQ};
use super::session::Session;
use super::{Properties, Property, Publish, Refused, Token, Version, reason};
use keep_alive::KeepAlive;

/// Progress of a publish in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Without an answer.
    Published,
    /// At QoS 2 the server took it (PUBREC); PUBCOMP is missing.
    Accepted,
}

/// A subscription request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// The caller's number of the request, given back with the answer.
    pub id: u32,
    /// At least one filter.
    pub filters: &'a [Filter<'a>],
    /// The number that messages of these subscriptions carry. MQTT 5 only.
    pub subscription_id: Option<u32>,
    /// Names and values. MQTT 5 only.
    pub user_properties: &'a [(&'a str, &'a str)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No transport, or one on which CONNECT was not sent.
    Closed,
    /// CONNACK is due.
    Connecting,
    /// The server took the connection.
    Open,
    /// One side has ended the connection; the transport is to be closed.
    Ended,
}

/// The client end of one session, over any number of connections one after the other.
#[derive(Debug)]
pub struct Client {
    session: Session,
    counts: ClientCounts,
    keep_alive: KeepAlive,
    maximum_packet_limit: u32,
    /// Of this connection: the limit, or less if less was announced.
    maximum_packet_size: u32,
    /// True if the server knows it.
    is_maximum_announced: bool,
    receive_maximum: u16,
    topic_alias_maximum: u16,
    version: Version,
    phase: Phase,
    clean_start: bool,
}

impl Client {
    /// A session that has never been connected.
    pub fn new(version: Version, limits: &ClientLimits) -> Self {
        Self {
            session: Session::default(),
            counts: ClientCounts::default(),
            keep_alive: KeepAlive::new(limits.ping_timeout),
            maximum_packet_limit: limits.maximum_packet_size,
            maximum_packet_size: limits.maximum_packet_size,
            is_maximum_announced: false,
            receive_maximum: u16::MAX,
            topic_alias_maximum: 0,
            version,
            phase: Phase::Closed,
            clean_start: true,
        }
    }

    /// Returns the version of the standard.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Opens a connection: the first packet on a new transport.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] if the last connection was not [`Client::closed`],
    /// [`Refused::TextTooLong`].
    pub fn connect(
        &mut self,
        now: Micros,
        connect: &Connect<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if self.phase != Phase::Closed {
            return Err(Refused::NotConnected);
        }
        connect.write(self.version, out)?;
        let is_v5 = self.version == Version::V5;
        let announced = connect
            .maximum_packet_size
            .filter(|_| is_v5)
            .unwrap_or(u32::MAX);
        self.maximum_packet_size = self.maximum_packet_limit.min(announced);
        self.is_maximum_announced = announced <= self.maximum_packet_limit;
        self.receive_maximum = if is_v5 {
            connect.receive_maximum.max(1)
        } else {
            u16::MAX
        };
        self.topic_alias_maximum = if is_v5 {
            connect.topic_alias_maximum
        } else {
            0
        };
        let offered = connect.authentication.filter(|_| is_v5);
        let method = offered.map(|(method, _)| method);
        self.session.begin_authentication(method, now);
        self.keep_alive.begin(now, connect.keep_alive);
        self.clean_start = connect.clean_start;
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// Publishes; `token` names it in later events and means nothing at QoS 0.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    #[inline]
    pub fn publish(
        &mut self,
        now: Micros,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.begin_sending(now)?;
        self.session.outbound.publish(token, publish, out)?;
        self.keep_alive.sent(now);
        Ok(())
    }

    /// Sends a publish again after [`ClientEvent::Resend`], with DUP and its old packet id.
    ///
    /// # Errors
    /// [`Refused::Unknown`] if it is not to be sent again, else as [`Client::publish`].
    pub fn republish(
        &mut self,
        now: Micros,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.begin_sending(now)?;
        self.session.outbound.republish(token, publish, out)?;
        self.keep_alive.sent(now);
        Ok(())
    }

    /// Gives a publish up: its attempt has timed out. The packet id stays taken; a later answer is
    /// [`ClientEvent::AnsweredLate`]. Whether there was such a publish.
    pub fn forget(&mut self, token: Token) -> bool {
        self.session.outbound.forget(token)
    }

    /// Drops all that is in flight, because the server did not go on with the session; calls `each`
    /// for every publish that was not forgotten.
    pub fn drop_inflight(&mut self, mut each: impl FnMut(Token, Stage)) {
        self.session.outbound.drop_all(|token, wait| match wait {
            Wait::Pubcomp => each(token, Stage::Accepted),
            Wait::Puback | Wait::Pubrec | Wait::Suback | Wait::Unsuback => {
                each(token, Stage::Published);
            }
        });
    }

    /// Returns how many more publishes at QoS 1 and 2 may be sent now; none while publishes of a
    /// resumed session wait to be sent again.
    #[inline]
    pub fn window_free(&self) -> u16 {
        if self.phase == Phase::Open {
            self.session.outbound.window_free()
        } else {
            0
        }
    }

    /// Returns how many packet ids wait for an answer, including forgotten publishes.
    pub fn in_flight(&self) -> usize {
        self.session.outbound.in_flight()
    }

    /// Returns true if the server has accepted the connection and neither side has ended it.
    #[inline]
    pub fn is_connected(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Subscribes.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    pub fn subscribe(
        &mut self,
        now: Micros,
        subscribe: &Subscribe<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let id = subscribe.subscription_id.map(Property::SubscriptionId);
        let properties = Properties::with_user(id.as_slice(), subscribe.user_properties);
        let filters = List::new(subscribe.filters);
        self.request(
            now,
            (Wait::Suback, subscribe.id),
            (properties, filters),
            out,
        )
    }

    /// Ends subscriptions; `id` comes back with the answer.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    pub fn unsubscribe(
        &mut self,
        now: Micros,
        id: u32,
        filters: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let request = (Properties::NONE, List::new(filters));
        self.request(now, (Wait::Unsuback, id), request, out)
    }

    fn request<'a, T: Entry<'a>>(
        &mut self,
        now: Micros,
        (wait, id): (Wait, u32),
        (properties, filters): (Properties<'a>, List<'a, T>),
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.begin_sending(now)?;
        let version = self.version;
        self.session
            .outbound
            .request(wait, id, |packet_id, maximum| {
                let packet = packet::Request {
                    packet_id,
                    properties,
                    filters,
                };
                check_size(packet.remaining(version), maximum)?;
                Ok(packet.write(version, out)?)
            })?;
        self.keep_alive.sent(now);
        Ok(())
    }

    /// Answers a step of enhanced authentication with the method's next data (MQTT-4.12.0-3).
    ///
    /// # Errors
    /// [`Refused::NotConnected`] before CONNECT, [`Refused::Authentication`] if there is nothing to
    /// answer, [`Refused::TextTooLong`], [`Refused::TooLarge`].
    pub fn authenticate(
        &mut self,
        now: Micros,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if !matches!(self.phase, Phase::Connecting | Phase::Open) {
            return Err(Refused::NotConnected);
        }
        let known = self.session.authentication();
        if !known.is_some_and(Authentication::is_under_way) {
            return Err(Refused::Authentication);
        }
        self.put_step(now, (reason::CONTINUE_AUTHENTICATION, data), out)
    }

    /// Authenticates again on an open connection (MQTT-4.12.1-1).
    ///
    /// # Errors
    /// [`Refused::NotConnected`], [`Refused::Authentication`] if the CONNECT named no method,
    /// [`Refused::TextTooLong`], [`Refused::TooLarge`].
    pub fn reauthenticate(
        &mut self,
        now: Micros,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.check_open()?;
        if let Some(known) = self.session.authentication_mut() {
            known.begin_again(now);
        }
        self.put_step(now, (reason::REAUTHENTICATE, data), out)
    }

    /// Returns when the last authentication of this connection began, also by its CONNECT; none
    /// without a method.
    pub fn authentication_began(&self) -> Option<Micros> {
        let known = self.session.authentication();
        known.map(Authentication::began)
    }

    fn put_step(
        &mut self,
        now: Micros,
        (reason, data): (u8, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.end_silence(now);
        // Before CONNACK the server has not said what it takes.
        let maximum = match self.phase {
            Phase::Open => self.session.outbound.peer().maximum_packet_size,
            Phase::Closed | Phase::Connecting | Phase::Ended => u32::MAX,
        };
        let step = Step {
            reason,
            data: Some(data),
            maximum,
        };
        self.session.put_step(step, out)?;
        self.keep_alive.sent(now);
        Ok(())
    }

    /// Pings, in addition to keep-alive. Does nothing without a connection.
    pub fn ping(&mut self, now: Micros, out: &mut Vec<u8>) {
        if self.begin_sending(now).is_ok() {
            out.extend_from_slice(&PINGREQ);
            self.keep_alive.pinged(now);
        }
    }

    /// Pings without waiting for the answer: for a caller that reads nothing just now, and finds it
    /// later. Does nothing without a connection.
    pub fn ping_unawaited(&mut self, now: Micros, out: &mut Vec<u8>) {
        if self.begin_sending(now).is_ok() {
            out.extend_from_slice(&PINGREQ);
            self.keep_alive.pinged_unawaited(now);
        }
    }

    /// Ends the connection with a DISCONNECT; the caller then closes the transport. Does nothing
    /// without a connection.
    pub fn disconnect(&mut self, reason: u8, out: &mut Vec<u8>) {
        self.end(packet::Disconnect::new(reason), out);
    }

    /// As [`Client::disconnect`] without a complaint, and ends the session with the connection: the
    /// server keeps nothing for this client (section 3.14.2.2.2). MQTT 3.1.1 has no word for it.
    pub fn end_session(&mut self, out: &mut Vec<u8>) {
        let packet = packet::Disconnect {
            reason: reason::SUCCESS,
            properties: Properties::new(&[Property::SessionExpiry(0)]),
        };
        self.end(packet, out);
    }

    fn end(&mut self, packet: packet::Disconnect<'_>, out: &mut Vec<u8>) {
        if self.phase == Phase::Open {
            put_disconnect(self.version, packet, out);
            self.phase = Phase::Ended;
        }
    }

    /// Returns when to call [`Client::timer`]; none without keep-alive.
    #[inline]
    pub fn deadline(&self) -> Option<Micros> {
        if self.phase != Phase::Open {
            return None;
        }
        self.keep_alive.deadline()
    }

    /// Sends the ping that is due, or says that the last one was not answered. Calls before the
    /// deadline do nothing.
    pub fn timer(&mut self, now: Micros, out: &mut Vec<u8>) -> Option<ClientEvent<'static>> {
        if self.phase != Phase::Open {
            return None;
        }
        if self.keep_alive.is_expired(now) {
            self.phase = Phase::Ended;
            return Some(ClientEvent::KeepAliveExpired);
        }
        if self.keep_alive.is_ping_due(now) {
            self.ping(now, out);
        }
        None
    }

    /// Returns true if the server may have ended this connection because nothing was sent on it for
    /// one and a half keep-alives.
    pub fn has_missed_keep_alive(&self, now: Micros) -> bool {
        self.keep_alive.is_missed(now)
    }

    /// Returns when the last bytes came on this connection; none while a ping has no answer.
    pub fn last_received(&self) -> Option<Micros> {
        self.keep_alive.last_received()
    }

    /// The transport has ended; the session's state is kept for the next [`Client::connect`].
    pub fn closed(&mut self) {
        self.phase = Phase::Closed;
        self.session.closed();
    }

    /// Returns the counters that no event reports.
    pub const fn counts(&self) -> ClientCounts {
        self.counts
    }

    /// Something is about to be sent. If that ends a silence of one and a half keep-alives, answers
    /// to what was sent before do not show that the server accepted the silence.
    #[inline]
    fn end_silence(&mut self, now: Micros) {
        if self.keep_alive.is_overslept(now) {
            self.session.outbound.age();
        }
    }

    #[inline]
    fn note_answer(&mut self, packet_id: u16) {
        if self.keep_alive.is_in_doubt() && self.session.outbound.is_recent(packet_id) {
            self.keep_alive.answered();
        }
    }

    #[inline]
    fn check_open(&self) -> Result<(), Refused> {
        let is_open = self.phase == Phase::Open;
        is_open.then_some(()).ok_or(Refused::NotConnected)
    }

    #[inline]
    fn begin_sending(&mut self, now: Micros) -> Result<(), Refused> {
        self.check_open()?;
        self.end_silence(now);
        Ok(())
    }
}
