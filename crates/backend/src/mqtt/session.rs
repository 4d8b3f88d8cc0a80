//! Handles the platform's bytes for a consumer.

use std::fmt;

use muster_conduct::{CommandToken, Diagnostic, delivery_by_puback};
use muster_model::{Delivery, Micros, Reason};
use muster_platform::PROPERTY_NAME;
use muster_protocol::mqtt::{ClientEvent, Message, Version};

use super::consumer::State;
use super::driver::MqttConsumers;
use super::ending::REFUSED;
use crate::intake::Surfaced;
use crate::northbound::Context;

/// Keys of a scenario with a consumer's credentials.
const CREDENTIAL_KEYS: &str = "platform.backend.user and platform.backend.password";

/// A request that a platform can refuse.
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
    /// Returns the remedy in the scenario, if it may be the reason.
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

impl MqttConsumers {
    /// Acts on one event of a session; false if the connection is over.
    pub(super) fn happened(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        event: &ClientEvent<'_>,
    ) -> bool {
        match event {
            ClientEvent::Message(message) => self.arrived(cx, at, seen, message),
            ClientEvent::Connected(_) => {
                let consumer = &mut self.consumers[at];
                let plan = &self.plan.backends[consumer.seat.backend.index()];
                consumer.state = State::Subscribing;
                let issuer = self.issuer.as_ref();
                let beside = issuer.map_or(&[][..], |issuer| issuer.beside(at));
                consumer.render_subscribe(plan, beside, seen, &mut self.out);
                self.arm_session(cx, at);
            }
            ClientEvent::Subscribed { id: _, codes } => return self.granted(cx, at, codes),
            ClientEvent::Refused { reason, .. } => {
                let refusal = Refusal {
                    what: Request::Connect,
                    reason: *reason,
                    said: event.reason_string(),
                };
                return self.refused(cx, at, &refusal);
            }
            ClientEvent::KeepAliveExpired => {
                self.give_up(cx, at, "a ping had no answer in time");
                return false;
            }
            ClientEvent::Disconnected { reason, .. } => {
                let why = reason.in_words();
                let said = event.reason_string();
                let said = said.map_or(String::new(), |said| format!(", \"{said}\""));
                self.give_up(cx, at, &format!("DISCONNECT {why}{said}"));
                return false;
            }
            ClientEvent::Malformed(malformed) => {
                let mut why = malformed.to_string();
                if malformed.is_own_limit() {
                    self.away(cx, at, &why);
                } else if self.consumers[at].state != State::Up {
                    let hint = self.security(at).hint_on_nonsense();
                    why = format!("it answered in bytes of another protocol ({why}){hint}");
                }
                self.give_up(cx, at, &why);
                return false;
            }
            ClientEvent::Accepted { token, reason } => {
                let delivery = delivery_by_puback(*reason);
                self.with_commander(cx, at, |commander, sink| {
                    commander.learn(CommandToken(token.0), delivery, seen, sink);
                });
            }
            ClientEvent::Rejected { token, reason } => {
                let delivery = Delivery::Undeliverable(*reason);
                self.with_commander(cx, at, |commander, sink| {
                    commander.learn(CommandToken(token.0), delivery, seen, sink);
                });
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
    fn granted(&mut self, cx: &mut Context<'_>, at: usize, codes: &[u8]) -> bool {
        let refused = codes.iter().max().filter(|code| **code >= 0x80);
        let Some(code) = refused else {
            self.note_granted(cx, at, codes);
            self.subscribed(cx, at);
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
        self.refused(cx, at, &refusal)
    }

    /// One copy: counted before anything of it is decoded, then read.
    fn arrived(&self, cx: &mut Context<'_>, at: usize, seen: Micros, message: &Message<'_>) {
        let is_reply = self.with_commander(cx, at, |commander, sink| {
            commander.replied(message.topic.as_str(), message.payload, seen, sink)
        });
        if is_reply == Some(true) {
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
        if let Some(id) = cx.core.intake.take(&seat, seen, &surfaced, || false) {
            self.with_commander(cx, at, |commander, sink| commander.asked(&id, seen, sink));
        }
    }

    /// Reports a subscription that was granted at a lower QoS than was asked for.
    fn note_granted(&self, cx: &mut Context<'_>, at: usize, codes: &[u8]) {
        let consumer = &self.consumers[at];
        let asked = consumer.mqtt.qos.bits();
        let granted = codes.first().filter(|granted| **granted < asked);
        if let Some(granted) = granted.filter(|_| !consumer.was_up) {
            let name = self.name(at);
            let text = format!(
                "{name}: asked for QoS {asked} and was granted {granted}; see platform.backend.qos"
            );
            cx.core.diagnostics.push(Diagnostic::LowerQos(text));
        }
    }

    fn subscribed(&mut self, cx: &mut Context<'_>, at: usize) {
        let consumer = &mut self.consumers[at];
        consumer.state = State::Up;
        consumer.hears_since = cx.io.now();
        consumer.failures = 0;
        consumer.refused = None;
        if consumer.is_deaf() {
            self.stop_reading(cx, at);
        }
        let consumer = &mut self.consumers[at];
        if std::mem::replace(&mut consumer.was_up, true) {
            let name = self.name(at);
            cx.core.diagnostics.push(Diagnostic::ConsumerBack(name));
        }
    }

    fn refused(&mut self, cx: &mut Context<'_>, at: usize, refusal: &Refusal<'_>) -> bool {
        let Refusal { what, reason, said } = *refusal;
        // It tries again and again, and is told once.
        if self.consumers[at].refused != Some(reason) {
            self.consumers[at].refused = Some(reason);
            let remedy = what.remedy(reason);
            let see = remedy.map_or(String::new(), |keys| format!("; see {keys}"));
            let (name, why) = (self.name(at), reason.in_words());
            let said = said.map_or(String::new(), |said| format!(", \"{said}\""));
            let text = format!("{name}: {what} refused with {why}{said}{see}");
            cx.core.diagnostics.push(Diagnostic::ConsumerRefused(text));
        }
        self.give_up(cx, at, REFUSED);
        false
    }
}
