//! Handles the packets that a client receives.

use muster_model::{Micros, Reason};

use super::{Client, ClientEvent, Connected, Message, Phase};
use crate::mqtt::answer::Answer;
use crate::mqtt::authentication::check_method;
use crate::mqtt::inbound::{Arrived, alias_of};
use crate::mqtt::inflight::Wait;
use crate::mqtt::input::Frame;
use crate::mqtt::outbound::{Peer, put_acknowledge, put_disconnect};
use crate::mqtt::packet::{
    Acknowledge, Auth, Connack, Disconnect, Publish, Suback, check_flags, kind,
};
use crate::mqtt::{Input, Malformed, Qos, Topic, Version, reason};

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
            if self.outbound.has_lost()
                && self.phase == Phase::Open
                && let Some(token) = self.outbound.next_resend(self.version, out)
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
        check_method(self.authentication(), connack.authentication_method())?;
        if let Some(known) = self.authentication_mut() {
            known.finish();
        }
        let peer = Peer {
            receive_maximum: connack.receive_maximum(),
            maximum_packet_size: connack.maximum_packet_size(),
            topic_alias_maximum: connack.topic_alias_maximum(),
            maximum_qos: connack.maximum_qos(),
            retain_available: connack.retain_available(),
        };
        self.open(connack.session_present, peer);
        if let Some(seconds) = connack.server_keep_alive() {
            self.keep_alive.set_interval(seconds);
        }
        Ok(ClientEvent::Connected(Connected {
            session_present: connack.session_present,
            keep_alive: self.keep_alive.interval_s(),
            receive_maximum: peer.receive_maximum,
            maximum_packet_size: peer.maximum_packet_size,
            topic_alias_maximum: peer.topic_alias_maximum,
            maximum_qos: peer.maximum_qos,
            retain_available: peer.retain_available,
            properties: connack.properties,
        }))
    }

    fn open(&mut self, session_present: bool, peer: Peer) {
        self.phase = Phase::Open;
        self.outbound.opened(peer);
        if session_present {
            self.outbound.resume();
        } else if let Some(rare) = &mut self.rare {
            rare.inbound.forget();
        }
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
        let answer = match packet_kind {
            kind::PUBACK => self.outbound.puback(&ack)?,
            kind::PUBREC => {
                self.end_silence(now);
                self.keep_alive.sent(now);
                self.outbound.pubrec(self.version, &ack, out)?
            }
            _ => self.outbound.pubcomp(&ack)?,
        };
        Ok(self.tell(answer))
    }

    /// Makes an event of an answer if it is of interest.
    #[inline]
    fn tell(&mut self, answer: Answer) -> Option<ClientEvent<'static>> {
        match answer {
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
        }
    }

    #[inline]
    fn receive_publish<'a>(
        &mut self,
        now: Micros,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        let publish = Publish::read(self.version, frame.first, frame.body)?;
        let topic = self.topic(&publish)?;
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

    #[inline]
    fn topic<'a>(&mut self, publish: &Publish<'a>) -> Result<Topic<'a>, Malformed> {
        if !publish.topic.is_empty() && alias_of(publish.properties).is_none() {
            return Ok(Topic::Wire(publish.topic));
        }
        let maximum = self.topic_alias_maximum;
        let inbound = &mut self.rare.get_or_insert_default().inbound;
        inbound.topic(publish.topic, publish.properties, maximum)
    }

    /// Answers a message; whether it is one to be told.
    #[inline]
    fn acknowledge(&mut self, id: u16, qos: Qos, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        if qos == Qos::AtLeastOnce {
            put_acknowledge(self.version, kind::PUBACK, (id, reason::SUCCESS), out);
            return Ok(true);
        }
        let inbound = &mut self.rare.get_or_insert_default().inbound;
        let arrived = inbound.publish(id, qos, u16::MAX)?;
        // The standard asks for the end of the connection (section 3.3.4). Brokers in wide use go
        // beyond (Mosquitto 2.0.11 does when it empties a queue), and a consumer that hangs up
        // would measure nothing more, so this is counted; packet ids bound what is remembered.
        self.counts.over_window += u32::from(inbound.used() > self.receive_maximum);
        inbound.answered(id, false);
        put_acknowledge(self.version, kind::PUBREC, (id, reason::SUCCESS), out);
        Ok(arrived == Arrived::Fresh)
    }

    fn receive_release(
        &mut self,
        now: Micros,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let id = Acknowledge::read(self.version, body)?.packet_id;
        let is_known = self
            .rare
            .as_mut()
            .is_some_and(|rare| rare.inbound.released(id));
        let code = if is_known {
            reason::SUCCESS
        } else {
            reason::PACKET_ID_NOT_FOUND
        };
        self.end_silence(now);
        put_acknowledge(self.version, kind::PUBCOMP, (id, code), out);
        self.keep_alive.sent(now);
        Ok(())
    }

    fn receive_other<'a>(
        &mut self,
        packet_kind: u8,
        body: &'a [u8],
    ) -> Result<Option<ClientEvent<'a>>, Malformed> {
        Ok(match (packet_kind, self.version) {
            (kind::SUBACK, version) => {
                let Suback {
                    packet_id, codes, ..
                } = Suback::read(version, body)?;
                self.note_answer(packet_id);
                let id = self.outbound.answered_request(Wait::Suback, packet_id)?;
                self.counts.unknown += u32::from(id.is_none());
                id.map(|id| ClientEvent::Subscribed { id, codes })
            }
            (kind::UNSUBACK, version) => {
                let Suback {
                    packet_id, codes, ..
                } = Suback::read_unsuback(version, body)?;
                self.note_answer(packet_id);
                let id = self.outbound.answered_request(Wait::Unsuback, packet_id)?;
                self.counts.unknown += u32::from(id.is_none());
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

    /// Without a method in the CONNECT no AUTH may come (MQTT-4.12.0-6).
    fn receive_auth<'a>(&mut self, body: &'a [u8]) -> Result<ClientEvent<'a>, Malformed> {
        let auth = Auth::read(body)?;
        let is_open = self.phase == Phase::Open;
        let known = self.authentication_mut();
        let known = known.ok_or(Malformed::Unexpected(kind::AUTH))?;
        known.by_server(&auth, is_open)?;
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
