//! The server end of a session.

mod accept;
mod event;
mod receive;

use muster_model::Micros;

pub use accept::Accept;
pub use event::{Incoming, Pending, ServerEvent};

use accept::{Terms, put_connack_v311};

use super::authentication::{Authentication, Step};
use super::outbound::{Peer, check_size, put_disconnect};
use super::packet::{Disconnect, Suback, kind};
use super::session::{Session, SessionState};
use super::{Properties, Publish, Qos, Refused, Token, Version, reason};

/// Milliseconds a server waits for each second of keep-alive: one and a half times
/// (MQTT-3.1.2-22).
const PATIENCE_MS: u64 = 1_500;

/// Bytes of the shortest CONNACK. A client that takes no packet of this size is not accepted, so
/// that every answer of fixed size is within what an accepted one takes.
const REFUSAL_SIZE: u32 = 5;

/// A server's limits for one client; announced in the CONNACK of MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of the largest packet.
    pub maximum_packet_size: u32,
    /// Publishes that may wait for an answer at once; never zero.
    pub receive_maximum: u16,
    /// Highest topic alias.
    pub topic_alias_maximum: u16,
}

impl Default for ServerLimits {
    /// 1 MiB, the standard's 65,535, and as many aliases as a client of ours uses.
    fn default() -> Self {
        Self {
            maximum_packet_size: 1 << 20,
            receive_maximum: u16::MAX,
            topic_alias_maximum: super::ALIAS_SLOTS,
        }
    }
}

/// Counters of a server session's own actions, since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounts {
    /// PUBLISH packets sent again with DUP.
    pub retransmitted: u32,
    /// Publishes at QoS 2 that came again and were kept from the caller.
    pub suppressed: u32,
    /// Answers to deliveries that were forgotten.
    pub answered_late: u32,
    /// Answers nobody waited for.
    pub stray: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// CONNECT is due.
    New,
    /// The caller decides on a CONNECT.
    Deciding,
    /// The client was asked for a further step of authentication.
    Challenged,
    /// The caller took the connection.
    Open,
    /// One side has ended the connection; the transport is to be closed.
    Ended,
}

/// The server end of one connection.
#[derive(Debug)]
pub struct Server {
    session: Session,
    peer: Peer,
    limits: ServerLimits,
    counts: ServerCounts,
    last_received: Micros,
    keep_alive: u16,
    maximum_qos: Qos,
    retain_available: bool,
    /// Quality of service and retain flag of the will, if there is one.
    will: Option<(Qos, bool)>,
    /// True if the client requested a session that outlives the connection.
    session_outlives: bool,
    is_resumed: bool,
    phase: Phase,
}

impl Server {
    /// A connection on which nothing has come yet.
    pub fn new(limits: &ServerLimits) -> Self {
        Self {
            session: Session::default(),
            peer: Peer::new(Version::V5, Properties::NONE),
            limits: *limits,
            counts: ServerCounts::default(),
            last_received: Micros::ZERO,
            keep_alive: 0,
            maximum_qos: Qos::ExactlyOnce,
            retain_available: true,
            will: None,
            session_outlives: false,
            is_resumed: false,
            phase: Phase::New,
        }
    }

    /// Returns the client's version of the standard; MQTT 5 until its CONNECT has come.
    pub const fn version(&self) -> Version {
        self.peer.version
    }

    /// Returns true if the connection was accepted and neither side has ended it.
    pub fn is_connected(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Goes on with a session that an earlier connection left; call it before
    /// [`Server::accept`], which then says that a session is present.
    pub fn resume(&mut self, state: SessionState) {
        self.session.restore(state);
        self.is_resumed = true;
    }

    /// Takes the connection.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] unless a CONNECT waits; [`Refused::QosUnavailable`] and
    /// [`Refused::RetainUnavailable`] if the will asks for what is not served, and
    /// [`Refused::TooLarge`] if the client takes no CONNACK of this size: the connection is then
    /// to be refused (MQTT-3.2.2-12, MQTT-3.2.2-13, MQTT-3.1.2-24); [`Refused::TextTooLong`].
    pub fn accept(
        &mut self,
        now: Micros,
        accept: &Accept<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if self.phase != Phase::Deciding {
            return Err(Refused::NotConnected);
        }
        accept.check(self.peer.version, self.will)?;
        let known = self.session.authentication();
        let terms = Terms {
            peer: &self.peer,
            session_present: self.is_resumed,
            limits: &self.limits,
            method: known.map(Authentication::method),
        };
        accept.write(&terms, out)?;
        if let Some(known) = self.session.authentication_mut() {
            known.finish();
        }
        if self.peer.version == Version::V5 {
            self.keep_alive = accept.server_keep_alive.unwrap_or(self.keep_alive);
            self.maximum_qos = accept.maximum_qos;
            self.retain_available = accept.retain_available;
        }
        self.session.opened(self.peer, self.is_resumed);
        self.phase = Phase::Open;
        self.last_received = now;
        Ok(())
    }

    /// Refuses the connection with a reason code of MQTT 5, which is translated for 3.1.1; the
    /// caller then closes the transport.
    pub fn refuse(&mut self, code: u8, out: &mut Vec<u8>) {
        if self.phase != Phase::Deciding {
            return;
        }
        self.phase = Phase::Ended;
        match self.peer.version {
            Version::V311 => put_connack_v311(reason::v311_connack(code), out),
            Version::V5 if self.peer.maximum_packet_size < REFUSAL_SIZE => {}
            Version::V5 => out.extend_from_slice(&[kind::CONNACK << 4, 3, 0, code, 0]),
        }
    }

    /// Answers a publish with PUBACK or PUBREC, as often as it is called. MQTT 3.1.1 has no refusal:
    /// it is written as an acceptance. Does nothing without a connection.
    #[inline]
    pub fn ack(&mut self, pending: Pending, reason: u8, out: &mut Vec<u8>) {
        if self.phase != Phase::Open {
            return;
        }
        let Pending { packet_id, qos } = pending;
        let is_refusal = self.peer.version == Version::V5 && reason >= reason::UNSPECIFIED_ERROR;
        self.session.inbound().answered(packet_id, is_refusal);
        let packet_kind = if qos == Qos::ExactlyOnce {
            kind::PUBREC
        } else {
            kind::PUBACK
        };
        let outbound = &self.session.outbound;
        outbound.acknowledge(packet_kind, packet_id, reason, out);
    }

    /// Answers a SUBSCRIBE with one code a filter: the QoS granted, or 0x80 and above.
    ///
    /// # Errors
    /// [`Refused::NotConnected`]; [`Refused::TooLarge`] if the client asked for more than it takes
    /// an answer to, so that the connection can only be ended.
    pub fn suback(
        &mut self,
        packet_id: u16,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.put_codes(kind::SUBACK, packet_id, codes, out)
    }

    /// Answers an UNSUBSCRIBE with one code a filter, left out in MQTT 3.1.1.
    ///
    /// # Errors
    /// As [`Server::suback`].
    pub fn unsuback(
        &mut self,
        packet_id: u16,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.put_codes(kind::UNSUBACK, packet_id, codes, out)
    }

    /// Delivers a message; `token` names it in later events and means nothing at QoS 0.
    ///
    /// # Errors
    /// [`Refused`] says why nothing was written.
    #[inline]
    pub fn deliver(
        &mut self,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.check_open()?;
        self.session.outbound.publish(token, publish, out)
    }

    /// Delivers again after [`ServerEvent::Resend`], with DUP and its old packet id.
    ///
    /// # Errors
    /// [`Refused::Unknown`] if it is not to be sent again, else as [`Server::deliver`].
    pub fn redeliver(
        &mut self,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.check_open()?;
        self.session.outbound.republish(token, publish, out)?;
        self.counts.retransmitted += 1;
        Ok(())
    }

    /// Gives a delivery up; a later answer is counted only. Whether there was such a delivery.
    pub fn forget(&mut self, token: Token) -> bool {
        self.session.outbound.forget(token)
    }

    /// Returns how many more deliveries at QoS 1 and 2 may be sent now; none while deliveries of a
    /// resumed session wait to be sent again.
    #[inline]
    pub fn window_free(&self) -> u16 {
        if self.phase == Phase::Open {
            self.session.outbound.window_free()
        } else {
            0
        }
    }

    /// Returns how many packet ids wait for an answer, including forgotten deliveries.
    pub fn in_flight(&self) -> usize {
        self.session.outbound.in_flight()
    }

    /// Asks for a further step of enhanced authentication (MQTT-4.12.0-2); before CONNACK nothing
    /// but that step, or a DISCONNECT, is taken next.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] unless a CONNECT waits or the connection is open,
    /// [`Refused::Authentication`] if the client began none (MQTT-4.12.0-6),
    /// [`Refused::TextTooLong`], [`Refused::TooLarge`].
    pub fn challenge(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        self.put_step((reason::CONTINUE_AUTHENTICATION, Some(data)), out)?;
        if self.phase == Phase::Deciding {
            self.phase = Phase::Challenged;
        }
        Ok(())
    }

    /// Says that a further authentication on an open connection has succeeded; if it failed, call
    /// [`Server::disconnect`] (section 4.12.1).
    ///
    /// # Errors
    /// As [`Server::challenge`].
    pub fn authenticated(&mut self, out: &mut Vec<u8>) -> Result<(), Refused> {
        self.check_open()?;
        self.put_step((reason::SUCCESS, None), out)
    }

    fn put_step(
        &mut self,
        (reason, data): (u8, Option<&[u8]>),
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if !matches!(self.phase, Phase::Deciding | Phase::Open) {
            return Err(Refused::NotConnected);
        }
        let known = self.session.authentication();
        if !known.is_some_and(Authentication::is_under_way) {
            return Err(Refused::Authentication);
        }
        let step = Step {
            reason,
            data,
            maximum: self.peer.maximum_packet_size,
        };
        self.session.put_step(step, out)
    }

    /// Ends the connection; in MQTT 5 with a DISCONNECT. The caller then closes the transport.
    pub fn disconnect(&mut self, reason: u8, out: &mut Vec<u8>) {
        if self.phase == Phase::Open && self.peer.version == Version::V5 {
            put_disconnect(self.peer.version, Disconnect::new(reason), out);
        }
        self.phase = Phase::Ended;
    }

    /// Returns when to call [`Server::timer`]; none without keep-alive.
    #[inline]
    pub fn deadline(&self) -> Option<Micros> {
        let is_on = self.phase == Phase::Open && self.keep_alive > 0;
        let patience = Micros::from_millis(u64::from(self.keep_alive) * PATIENCE_MS);
        is_on.then(|| self.last_received + patience)
    }

    /// Says that nothing came for one and a half times the keep-alive, if so.
    pub fn timer(&mut self, now: Micros, out: &mut Vec<u8>) -> Option<ServerEvent<'static>> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        self.disconnect(reason::KEEP_ALIVE_TIMEOUT, out);
        Some(ServerEvent::KeepAliveExpired)
    }

    /// The transport has ended: hands out what outlives it.
    pub fn take_session(&mut self) -> SessionState {
        self.phase = Phase::Ended;
        self.session.take()
    }

    /// Returns the counters of the session's own actions.
    pub const fn counts(&self) -> ServerCounts {
        self.counts
    }

    #[inline]
    fn check_open(&self) -> Result<(), Refused> {
        let is_open = self.phase == Phase::Open;
        is_open.then_some(()).ok_or(Refused::NotConnected)
    }

    fn put_codes(
        &self,
        packet_kind: u8,
        packet_id: u16,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.check_open()?;
        let Peer {
            version,
            maximum_packet_size,
            ..
        } = self.peer;
        let suback = Suback {
            packet_id,
            properties: Properties::NONE,
            codes,
        };
        check_size(suback.remaining(version, packet_kind), maximum_packet_size)?;
        Ok(suback.write(version, packet_kind, out)?)
    }
}
