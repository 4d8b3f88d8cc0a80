//! Handles the packets that a client receives.

use muster_model::{Micros, Reason};

use super::{Client, ClientEvent, Connected, Message, Phase};
use crate::mqtt::answer::Answer;
use crate::mqtt::inbound::Arrived;
use crate::mqtt::inflight::Wait;
use crate::mqtt::input::Frame;
use crate::mqtt::outbound::{Peer, put_disconnect};
use crate::mqtt::packet::{Acknowledge, Connack, Disconnect, Publish, Suback, check_flags, kind};
use crate::mqtt::{Input, Malformed, Qos, Version, reason};

impl Client {
    /// Takes the next whole packet of `input`; call it until it is none. Answers go to `out`.
    #[inline]
    pub fn poll<'a>(
        &mut self,
        now: Micros,
        input: &mut Input<'a>,
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'a>> {
        while matches!(self.phase, Phase::Connecting | Phase::Open) {
            if self.phase == Phase::Open
                && let Some(token) = self.session.outbound.next_resend(out)
            {
                return Some(ClientEvent::Resend { token });
            }
            let taken = match input.take(self.maximum_packet_size) {
                Ok(Some(frame)) => self.receive(now, frame, out),
                Ok(None) => {
                    // A large packet that is still coming is a sign of life as well.
                    if !input.rest().is_empty() {
                        self.keep_alive.received(now);
                    }
                    return None;
                }
                Err(malformed) => Err(malformed.unless_announced(self.is_maximum_announced)),
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
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        check_flags(frame.first)?;
        // Any packet is a sign of life.
        self.keep_alive.received(now);
        let packet_kind = frame.first >> 4;
        if self.phase == Phase::Connecting {
            return self.receive_first(packet_kind, frame.body).map(Some);
        }
        match packet_kind {
            kind::PUBACK | kind::PUBREC | kind::PUBCOMP => {
                self.receive_answer(now, packet_kind, frame.body, out)
            }
            kind::PUBLISH => self.receive_publish(now, frame, out),
            kind::PUBREL => {
                self.receive_release(now, frame.body, out)?;
                Ok(None)
            }
            _ => self.receive_other(packet_kind, frame.body),
        }
    }

    /// Before CONNACK only CONNACK and AUTH may come (section 4.12).
    fn receive_first<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<ClientEvent<'a>, Malformed> {
        match (packet_kind, self.version) {
            (kind::CONNACK, version) => self.receive_connack(&Connack::read(version, body)?),
            (kind::AUTH, Version::V5) => self.receive_auth(body),
            _ => Err(Malformed::Unexpected(packet_kind)),
        }
    }

    fn receive_connack<'a>(&mut self, connack: &Connack<'a>) -> Result<ClientEvent<'a>, Malformed> {
        if connack.code != reason::SUCCESS {
            self.phase = Phase::Ended;
            return Ok(ClientEvent::Refused {
                reason: match self.version {
                    Version::V311 => Reason::MqttConnack(connack.code),
                    Version::V5 => Reason::Mqtt(connack.code),
                },
                properties: connack.properties,
            });
        }
        if connack.session_present && self.clean_start {
            return Err(Malformed::SessionPresent);
        }
        let method = connack.authentication_method();
        self.session.finish_authentication(method)?;
        let peer = Peer::new(self.version, connack.properties);
        self.session.opened(peer, connack.session_present);
        self.phase = Phase::Open;
        if let Some(seconds) = connack.server_keep_alive() {
            self.keep_alive.set_interval(seconds);
        }
        Ok(ClientEvent::Connected(Connected {
            session_present: connack.session_present,
            keep_alive: self.keep_alive.interval_s(),
            maximum_packet_size: peer.maximum_packet_size,
            properties: connack.properties,
        }))
    }

    #[inline]
    fn receive_answer<'a>(
        &mut self,
        now: Micros,
        packet_kind: u8,
        body: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        let ack = Acknowledge::read(self.version, body)?;
        self.note_answer(ack.packet_id);
        if packet_kind == kind::PUBREC {
            self.end_silence(now);
            self.keep_alive.sent(now);
        }
        Ok(
            match self.session.outbound.answered(packet_kind, &ack, out)? {
                Answer::Accepted { token, reason } => Some(ClientEvent::Accepted { token, reason }),
                Answer::Rejected { token, reason } => Some(ClientEvent::Rejected {
                    token,
                    reason: Reason::Mqtt(reason),
                }),
                Answer::Completed { token } => Some(ClientEvent::Completed { token }),
                Answer::Late { token, reason } => Some(ClientEvent::AnsweredLate { token, reason }),
                Answer::Stray { was_used } => {
                    self.counts.again += u32::from(was_used);
                    self.counts.unknown += u32::from(!was_used);
                    None
                }
                Answer::Silent => None,
            },
        )
    }

    #[inline]
    fn receive_publish<'a>(
        &mut self,
        now: Micros,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        let publish = Publish::read(self.version, frame.first, frame.body)?;
        let topic = self.session.topic(&publish, self.topic_alias_maximum)?;
        if let Some(id) = publish.packet_id {
            self.end_silence(now);
            self.keep_alive.sent(now);
            if !self.acknowledge(id, publish.qos, out)? {
                return Ok(None);
            }
        }
        Ok(Some(ClientEvent::Message(Message {
            topic,
            payload: publish.payload,
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            properties: publish.properties,
        })))
    }

    /// Answers a message; whether it is one to be reported.
    #[inline]
    fn acknowledge(&mut self, id: u16, qos: Qos, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        if qos == Qos::AtLeastOnce {
            let outbound = &self.session.outbound;
            outbound.acknowledge(kind::PUBACK, id, reason::SUCCESS, out);
            return Ok(true);
        }
        let inbound = self.session.inbound();
        let arrived = inbound.publish(id, qos, u16::MAX)?;
        // The standard asks for the end of the connection (section 3.3.4). Brokers in wide use go
        // beyond (Mosquitto 2.0.11 does when it empties a queue), and a consumer that hangs up
        // would measure nothing more, so this is counted; packet ids bound what is remembered.
        self.counts.over_window += u32::from(inbound.used() > self.receive_maximum);
        inbound.answered(id, false);
        let outbound = &self.session.outbound;
        outbound.acknowledge(kind::PUBREC, id, reason::SUCCESS, out);
        Ok(arrived == Arrived::Fresh)
    }

    fn receive_release(
        &mut self,
        now: Micros,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let release = Acknowledge::read(self.version, body)?;
        self.end_silence(now);
        self.session.release(&release, out);
        self.keep_alive.sent(now);
        Ok(())
    }

    fn receive_other<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        Ok(match (packet_kind, self.version) {
            (kind::SUBACK, _) => {
                let (id, codes) = self.receive_codes(Wait::Suback, packet_kind, body)?;
                id.map(|id| ClientEvent::Subscribed { id, codes })
            }
            (kind::UNSUBACK, _) => {
                let (id, codes) = self.receive_codes(Wait::Unsuback, packet_kind, body)?;
                id.map(|id| ClientEvent::Unsubscribed { id, codes })
            }
            (kind::PINGRESP, _) if body.is_empty() => {
                self.keep_alive.answered();
                Some(ClientEvent::Pong)
            }
            (kind::PINGRESP, _) => return Err(Malformed::Trailing),
            (kind::DISCONNECT, Version::V5) => Some(self.receive_disconnect(body)?),
            (kind::AUTH, Version::V5) => Some(self.receive_auth(body)?),
            _ => return Err(Malformed::Unexpected(packet_kind)),
        })
    }

    /// The caller's number of the request that is answered, and the codes; no number if there was
    /// no such request.
    fn receive_codes<'a>(
        &mut self,
        wait: Wait,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<(Option<u32>, &'a [u8]), Malformed> {
        let suback = Suback::read(self.version, packet_kind, body)?;
        self.note_answer(suback.packet_id);
        let settled = self.session.outbound.settle(wait, suback.packet_id)?;
        self.counts.unknown += u32::from(settled.is_none());
        Ok((settled.map(|entry| entry.name), suback.codes))
    }

    fn receive_auth<'a>(&mut self, body: &'a [u8]) -> Result<ClientEvent<'a>, Malformed> {
        let is_open = self.phase == Phase::Open;
        let auth = self
            .session
            .read_step(body, |known, auth| known.by_server(auth, is_open))?;
        Ok(ClientEvent::Auth(auth))
    }

    fn receive_disconnect<'a>(&mut self, body: &'a [u8]) -> Result<ClientEvent<'a>, Malformed> {
        let Disconnect { reason, properties } = Disconnect::read(self.version, body)?;
        self.phase = Phase::Ended;
        Ok(ClientEvent::Disconnected {
            reason: Reason::Mqtt(reason),
            properties,
        })
    }

    /// Ends the connection over the server's fault; MQTT 5 lets us say which (section 4.13.1).
    fn fail(&mut self, malformed: Malformed, out: &mut Vec<u8>) -> ClientEvent<'static> {
        if self.phase == Phase::Open && self.version == Version::V5 {
            put_disconnect(self.version, Disconnect::new(malformed.code()), out);
        }
        self.phase = Phase::Ended;
        ClientEvent::Malformed(malformed)
    }
}
