//! Handles the packets that a server receives.

use muster_model::Micros;

use super::accept::put_connack_v311;
use super::{Incoming, Pending, Phase, Server, ServerEvent};
use crate::mqtt::answer::Answer;
use crate::mqtt::inbound::Arrived;
use crate::mqtt::input::Frame;
use crate::mqtt::outbound::Peer;
use crate::mqtt::packet::{
    Acknowledge, Connect, Disconnect, PINGRESP, Publish, Subscribe, Unsubscribe, check_flags, kind,
};
use crate::mqtt::{Input, Malformed, Version, reason};

/// The number of the property that only a server may put into a PUBLISH (section 3.3.2.3.8).
const SUBSCRIPTION_ID: u8 = 11;
/// The number of the property session expiry.
const SESSION_EXPIRY: u8 = 17;

impl Server {
    /// Takes the next whole packet of `input`; call it until it is none, and again after
    /// [`Server::accept`]. Answers that need no decision (PUBREL, PUBCOMP, PINGRESP, DISCONNECT)
    /// go to `out`.
    #[inline]
    pub fn poll<'a>(
        &mut self,
        now: Micros,
        input: &mut Input<'a>,
        out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'a>> {
        while matches!(self.phase, Phase::New | Phase::Challenged | Phase::Open) {
            if self.phase == Phase::Open
                && let Some(token) = self.session.outbound.next_resend(out)
            {
                return Some(ServerEvent::Resend { token });
            }
            let taken = match input.take(self.limits.maximum_packet_size) {
                Ok(Some(frame)) => self.receive(now, frame, out),
                Ok(None) => return None,
                Err(malformed) => {
                    let is_announced =
                        self.phase == Phase::Open && self.peer.version == Version::V5;
                    Err(malformed.unless_announced(is_announced))
                }
            };
            match taken {
                Ok(None) => {}
                Ok(event) => return event,
                Err(malformed) => return Some(self.fail(malformed, out)),
            }
        }
        None
    }

    #[inline]
    fn receive<'a>(
        &mut self,
        now: Micros,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerEvent<'a>>, Malformed> {
        check_flags(frame.first)?;
        self.last_received = now;
        let packet_kind = frame.first >> 4;
        if self.phase == Phase::New {
            return self.receive_connect(packet_kind, frame.body).map(Some);
        }
        if self.phase == Phase::Challenged {
            return self.receive_challenged(packet_kind, frame.body).map(Some);
        }
        match packet_kind {
            kind::PUBLISH => self.receive_publish(frame, out),
            kind::PUBACK | kind::PUBREC | kind::PUBCOMP => {
                self.receive_answer(packet_kind, frame.body, out)
            }
            kind::PUBREL => {
                let release = Acknowledge::read(self.peer.version, frame.body)?;
                self.session.release(&release, out);
                Ok(None)
            }
            _ => self.receive_other(packet_kind, frame.body, out).map(Some),
        }
    }

    /// The first packet must be a CONNECT (MQTT-3.1.0-1).
    fn receive_connect<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<ServerEvent<'a>, Malformed> {
        if packet_kind != kind::CONNECT {
            return Err(Malformed::Unexpected(packet_kind));
        }
        let connect = Connect::read(body)?;
        self.keep_alive = connect.keep_alive;
        self.session_outlives = connect.session_expiry() > 0;
        self.peer = Peer::new(connect.version, connect.properties);
        self.will = connect.will.map(|will| (will.qos, will.retain));
        let method = connect.authentication_method();
        self.session
            .begin_authentication(method, self.last_received);
        self.phase = Phase::Deciding;
        Ok(ServerEvent::Connect(connect))
    }

    /// Before CONNACK a client that authenticates may only go on with that, or end the connection
    /// (MQTT-3.1.2-30).
    fn receive_challenged<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<ServerEvent<'a>, Malformed> {
        match packet_kind {
            kind::AUTH => {
                let event = self.receive_auth(body)?;
                self.phase = Phase::Deciding;
                Ok(event)
            }
            kind::DISCONNECT => self.receive_disconnect(self.peer.version, body),
            _ => Err(Malformed::Unexpected(packet_kind)),
        }
    }

    fn receive_auth<'a>(&mut self, body: &'a [u8]) -> Result<ServerEvent<'a>, Malformed> {
        let is_open = self.phase == Phase::Open;
        let auth = self
            .session
            .read_step(body, |known, auth| known.by_client(auth, is_open))?;
        Ok(ServerEvent::Auth(auth))
    }

    #[inline]
    fn receive_publish<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerEvent<'a>>, Malformed> {
        let publish = Publish::read(self.peer.version, frame.first, frame.body)?;
        self.check_served(&publish)?;
        let maximum = self.limits.topic_alias_maximum;
        let topic = self.session.topic(&publish, maximum)?;
        let qos = publish.qos;
        let pending = publish
            .packet_id
            .map(|packet_id| Pending { packet_id, qos });
        if let Some(pending) = pending
            && !self.is_fresh(pending, out)?
        {
            return Ok(None);
        }
        Ok(Some(ServerEvent::Publish(Incoming {
            topic,
            payload: publish.payload,
            qos,
            retain: publish.retain,
            dup: publish.dup,
            pending,
            properties: publish.properties,
        })))
    }

    #[inline]
    fn check_served(&self, publish: &Publish<'_>) -> Result<(), Malformed> {
        if publish.qos > self.maximum_qos {
            return Err(Malformed::QosNotServed);
        }
        if publish.retain && !self.retain_available {
            return Err(Malformed::RetainNotServed);
        }
        if !publish.properties.is_empty() && publish.properties.subscription_ids().next().is_some()
        {
            return Err(Malformed::PropertyPlace(SUBSCRIPTION_ID));
        }
        Ok(())
    }

    /// Returns true if a publish must be reported; one that was answered before is answered again.
    #[inline]
    fn is_fresh(&mut self, pending: Pending, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        let Pending { packet_id, qos } = pending;
        let maximum = match self.peer.version {
            Version::V311 => u16::MAX,
            Version::V5 => self.limits.receive_maximum.max(1),
        };
        match self.session.inbound().publish(packet_id, qos, maximum)? {
            Arrived::Fresh => return Ok(true),
            Arrived::Undecided => {}
            Arrived::Answered => {
                let outbound = &self.session.outbound;
                outbound.acknowledge(kind::PUBREC, packet_id, reason::SUCCESS, out);
            }
        }
        self.counts.suppressed += 1;
        Ok(false)
    }

    #[inline]
    fn receive_answer<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerEvent<'a>>, Malformed> {
        let ack = Acknowledge::read(self.peer.version, body)?;
        Ok(
            match self.session.outbound.answered(packet_kind, &ack, out)? {
                Answer::Accepted { token, reason } | Answer::Rejected { token, reason } => {
                    Some(ServerEvent::Acked { token, reason })
                }
                Answer::Completed { token } => Some(ServerEvent::Completed { token }),
                Answer::Late { .. } => {
                    self.counts.answered_late += 1;
                    None
                }
                Answer::Stray { was_used: _ } => {
                    self.counts.stray += 1;
                    None
                }
                Answer::Silent => None,
            },
        )
    }

    fn receive_other<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<ServerEvent<'a>, Malformed> {
        Ok(match (packet_kind, self.peer.version) {
            (kind::SUBSCRIBE, version) => ServerEvent::Subscribe(Subscribe::read(version, body)?),
            (kind::UNSUBSCRIBE, version) => {
                ServerEvent::Unsubscribe(Unsubscribe::read(version, body)?)
            }
            (kind::PINGREQ, _) if body.is_empty() => {
                out.extend_from_slice(&PINGRESP);
                ServerEvent::Ping
            }
            (kind::PINGREQ, _) => return Err(Malformed::Trailing),
            (kind::DISCONNECT, version) => self.receive_disconnect(version, body)?,
            (kind::AUTH, Version::V5) => self.receive_auth(body)?,
            _ => return Err(Malformed::Unexpected(packet_kind)),
        })
    }

    fn receive_disconnect<'a>(
        &mut self,
        version: Version,
        body: &'a [u8],
    ) -> Result<ServerEvent<'a>, Malformed> {
        let disconnect = Disconnect::read(version, body)?;
        let session_expiry = disconnect.session_expiry();
        // A session that ends with the connection cannot be prolonged (section 3.14.2.2.2).
        if !self.session_outlives && session_expiry.is_some_and(|seconds| seconds > 0) {
            return Err(Malformed::PropertyValue(SESSION_EXPIRY));
        }
        self.phase = Phase::Ended;
        let reason = disconnect.reason;
        // Only a normal disconnection deletes the will (MQTT-3.14.4-3).
        let with_will = reason != reason::SUCCESS;
        Ok(ServerEvent::Disconnect {
            reason,
            with_will,
            session_expiry,
        })
    }

    /// Ends the connection over the client's fault; MQTT 5 lets us say which (section 4.13.1).
    fn fail(&mut self, malformed: Malformed, out: &mut Vec<u8>) -> ServerEvent<'static> {
        if self.phase == Phase::New && malformed == Malformed::ProtocolVersion {
            // Of whatever version the client is, this form is the one it can read.
            put_connack_v311(reason::V311_UNACCEPTABLE_VERSION, out);
        }
        self.disconnect(malformed.code(), out);
        ServerEvent::Malformed(malformed)
    }
}
