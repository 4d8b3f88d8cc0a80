//! What the platform's bytes mean for a consumer.

use std::fmt;

use muster_conduct::{Trouble, delivery_by_puback};
use muster_model::{Delivery, Micros, Reason};
use muster_net::Io;
use muster_platform::PROPERTY_NAME;
use muster_protocol::mqtt::{ClientEvent, Message, Version};

use crate::consumers::State;
use crate::driver::Driver;
use crate::ending::REFUSED;
use crate::intake::Surfaced;

/// Where a scenario says what a consumer proves itself with.
pub const CREDENTIAL_KEYS: &str = "platform.backend.user and platform.backend.password";

/// What a platform can refuse.
#[derive(Debug, Clone, Copy)]
enum Request {
    Connect,
    Subscribe,
}

/// A refusal of a consumer by the platform.
#[derive(Debug, Clone, Copy)]
struct Refusal<'a> {
    what: Request,
    reason: Reason,
    /// In the platform's own words, if it gave any.
    said: Option<&'a str>,
}

impl Request {
    /// What a scenario says of it, as far as it may be the reason.
    fn remedy(self, reason: Reason) -> Option<&'static str> {
        match self {
            Self::Subscribe => Some("platform.backend.filter"),
            Self::Connect if reason.is_of_credentials() => Some(CREDENTIAL_KEYS),
            Self::Connect => None,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "CONNECT",
            Self::Subscribe => "SUBSCRIBE",
        })
    }
}

impl Driver {
    /// Acts on one event of a session; false if the connection is over.
    pub(crate) fn happened(
        &mut self,
        io: &mut Io,
        at: usize,
        seen: Micros,
        event: &ClientEvent<'_>,
    ) -> bool {
        match event {
            ClientEvent::Message(message) => self.arrived(at, seen, message),
            ClientEvent::Connected(_) => {
                let consumer = &mut self.consumers[at];
                let plan = &self.plan.backends[consumer.seat.backend.index()];
                consumer.state = State::Subscribing;
                let commanding = self.commanding.as_ref();
                let beside = commanding.map_or(&[][..], |commanding| commanding.beside(at));
                consumer.render_subscribe(plan, beside, seen, &mut self.out);
                self.arm_session(io, at);
            }
            ClientEvent::Subscribed { id: _, codes } => return self.granted(io, at, codes),
            ClientEvent::Refused { reason, .. } => {
                let refusal = Refusal {
                    what: Request::Connect,
                    reason: *reason,
                    said: event.reason_string(),
                };
                return self.refused(io, at, &refusal);
            }
            ClientEvent::KeepAliveExpired => {
                self.give_up(io, at, "a ping had no answer in time");
                return false;
            }
            ClientEvent::Disconnected { reason, .. } => {
                let why = reason.in_words();
                let said = event.reason_string();
                let said = said.map_or(String::new(), |said| format!(", \"{said}\""));
                self.give_up(io, at, &format!("DISCONNECT {why}{said}"));
                return false;
            }
            ClientEvent::Malformed(malformed) => {
                if malformed.is_own_limit() {
                    self.away(at, &malformed.to_string());
                }
                self.give_up(io, at, &malformed.to_string());
                return false;
            }
            ClientEvent::Accepted { token, reason } => {
                self.command_known(at, *token, delivery_by_puback(*reason), seen);
            }
            ClientEvent::Rejected { token, reason } => {
                self.command_known(at, *token, Delivery::Undeliverable(*reason), seen);
            }
            ClientEvent::Completed { .. }
            | ClientEvent::AnsweredLate { .. }
            | ClientEvent::Resend { .. }
            | ClientEvent::Unsubscribed { .. }
            | ClientEvent::Pong
            | ClientEvent::Auth { .. } => {}
        }
        true
    }

    /// Acts on the codes of a SUBACK; false if the connection is over.
    fn granted(&mut self, io: &mut Io, at: usize, codes: &[u8]) -> bool {
        let refused = codes.iter().max().filter(|code| **code >= 0x80);
        let Some(code) = refused else {
            self.note_granted(at, codes);
            self.subscribed(io, at);
            return true;
        };
        let reason = match self.consumers[at].mqtt.version {
            Version::V311 => Reason::MqttSuback(*code),
            Version::V5 => Reason::Mqtt(*code),
        };
        let refusal = Refusal {
            what: Request::Subscribe,
            reason,
            said: None,
        };
        self.refused(io, at, &refusal)
    }

    /// One copy: counted before anything of it is decoded, then read.
    fn arrived(&mut self, at: usize, seen: Micros, message: &Message<'_>) {
        if self.is_reply(at, seen, message) {
            return;
        }
        let property = message
            .properties
            .user()
            .find(|(name, _)| *name == PROPERTY_NAME);
        let surfaced = Surfaced {
            topic: message.topic.as_str(),
            payload: message.payload,
            property: property.map(|(_, text)| text),
        };
        let seat = self.consumers[at].seat;
        if let Some(id) = self.intake.take(&seat, seen, &surfaced, || false) {
            self.command_asked(at, &id, seen);
        }
    }

    /// Reports a subscription that was granted at a lower QoS than was asked for.
    fn note_granted(&mut self, at: usize, codes: &[u8]) {
        let consumer = &self.consumers[at];
        let asked = consumer.mqtt.qos.bits();
        let granted = codes.first().filter(|granted| **granted < asked);
        if let Some(granted) = granted.filter(|_| !consumer.was_up) {
            let name = self.name(at);
            let text = format!(
                "{name}: asked for QoS {asked} and was granted {granted}; see platform.backend.qos"
            );
            self.troubles.push(Trouble::LowerQos(text));
        }
    }

    fn subscribed(&mut self, io: &mut Io, at: usize) {
        let consumer = &mut self.consumers[at];
        consumer.state = State::Up;
        consumer.hears_since = io.now();
        consumer.failures = 0;
        consumer.refused = None;
        if consumer.is_deaf() {
            self.stop_reading(io, at);
        }
        let consumer = &mut self.consumers[at];
        if std::mem::replace(&mut consumer.was_up, true) {
            let name = self.name(at);
            self.troubles.push(Trouble::ConsumerBack(name));
        }
    }

    fn refused(&mut self, io: &mut Io, at: usize, refusal: &Refusal<'_>) -> bool {
        let Refusal { what, reason, said } = *refusal;
        // It tries again and again, and is told once.
        if self.consumers[at].refused != Some(reason) {
            self.consumers[at].refused = Some(reason);
            let remedy = what.remedy(reason);
            let see = remedy.map_or(String::new(), |keys| format!("; see {keys}"));
            let (name, why) = (self.name(at), reason.in_words());
            let said = said.map_or(String::new(), |said| format!(", \"{said}\""));
            let text = format!("{name}: {what} refused with {why}{said}{see}");
            self.troubles.push(Trouble::ConsumerRefused(text));
        }
        self.give_up(io, at, REFUSED);
        false
    }
}
