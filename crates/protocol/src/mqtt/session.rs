//! The parts of a session that follow the same rules at both ends: publishes in both directions, and
//! authentication.

use std::mem;

use muster_model::Micros;

use super::authentication::{Authentication, Step, check_method};
use super::inbound::{Inbound, alias_of};
use super::outbound::{Outbound, Peer};
use super::packet::{Acknowledge, Auth, Publish, kind};
use super::{Malformed, Refused, Topic, reason};

/// Publishes in both directions and authentication, over connections one after the other.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) outbound: Outbound,
    /// Publishes received and not settled; boxed, since many sessions receive none.
    inbound: Option<Box<Inbound>>,
    authentication: Option<Box<Authentication>>,
}

/// State that outlives a connection (section 4.1): deliveries without their last answer, and the
/// ids of publishes at QoS 2 that were accepted and not yet released.
#[derive(Debug, Default)]
pub struct SessionState {
    outbound: Outbound,
    inbound: Option<Box<Inbound>>,
}

impl SessionState {
    /// Returns how many deliveries have no last answer.
    pub fn in_flight(&self) -> usize {
        self.outbound.in_flight()
    }
}

impl Session {
    /// A connection is open, with the state of the last one or without it.
    pub(super) fn opened(&mut self, peer: Peer, is_resumed: bool) {
        self.outbound.opened(peer);
        if is_resumed {
            self.outbound.resume();
        } else if let Some(inbound) = &mut self.inbound {
            inbound.forget();
        }
    }

    pub(super) fn closed(&mut self) {
        self.outbound.closed();
        if let Some(inbound) = &mut self.inbound {
            inbound.closed();
        }
    }

    /// Takes over what an earlier connection left.
    pub(super) fn restore(&mut self, state: SessionState) {
        self.outbound = state.outbound;
        self.inbound = state.inbound;
    }

    /// Hands out what outlives the connection.
    pub(super) fn take(&mut self) -> SessionState {
        self.closed();
        SessionState {
            outbound: mem::take(&mut self.outbound),
            inbound: self.inbound.take(),
        }
    }

    #[inline]
    pub(super) fn inbound(&mut self) -> &mut Inbound {
        self.inbound.get_or_insert_default()
    }

    /// The topic of a publish, with an alias of at most `maximum` resolved.
    #[inline]
    pub(super) fn topic<'a>(
        &mut self,
        publish: &Publish<'a>,
        maximum: u16,
    ) -> Result<Topic<'a>, Malformed> {
        if !publish.topic.is_empty() && alias_of(publish.properties).is_none() {
            return Ok(Topic::Wire(publish.topic));
        }
        let inbound = self.inbound();
        inbound.topic(publish.topic, publish.properties, maximum)
    }

    pub(super) fn release(&mut self, release: &Acknowledge<'_>, out: &mut Vec<u8>) {
        let id = release.packet_id;
        let inbound = self.inbound.as_mut();
        let code = if inbound.is_some_and(|inbound| inbound.released(id)) {
            reason::SUCCESS
        } else {
            reason::PACKET_ID_NOT_FOUND
        };
        self.outbound.acknowledge(kind::PUBCOMP, id, code, out);
    }

    /// A CONNECT begins an authentication by a method, or none.
    pub(super) fn begin_authentication(&mut self, method: Option<&str>, now: Micros) {
        Authentication::begin(&mut self.authentication, method, now);
    }

    /// Ends the authentication of a CONNECT, whose CONNACK names the same method.
    pub(super) fn finish_authentication(&mut self, method: Option<&str>) -> Result<(), Malformed> {
        check_method(self.authentication(), method)?;
        if let Some(known) = self.authentication_mut() {
            known.finish();
        }
        Ok(())
    }

    /// Returns the authentication of this connection; none if the CONNECT named no method.
    pub(super) fn authentication(&self) -> Option<&Authentication> {
        self.authentication.as_deref()
    }

    pub(super) fn authentication_mut(&mut self) -> Option<&mut Authentication> {
        self.authentication.as_deref_mut()
    }

    /// Reads a step of the peer. Without a method in the CONNECT no AUTH may come (MQTT-4.12.0-6,
    /// MQTT-4.12.0-7).
    pub(super) fn read_step<'a>(
        &mut self,
        body: &'a [u8],
        note: impl FnOnce(&mut Authentication, &Auth<'a>) -> Result<(), Malformed>,
    ) -> Result<Auth<'a>, Malformed> {
        let auth = Auth::read(body)?;
        let known = self.authentication_mut();
        note(known.ok_or(Malformed::Unexpected(kind::AUTH))?, &auth)?;
        Ok(auth)
    }

    pub(super) fn put_step(&mut self, step: Step<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let known = self.authentication_mut();
        known.ok_or(Refused::Authentication)?.put(step, out)
    }
}
