//! Handles the platform's bytes for a consumer.

use muster_conduct::{
    CommandToken, Diagnostic, RefusalCause, RefusalKind, Remedy, delivery_by_puback,
};
use muster_model::{Delivery, Micros, Reason};
use muster_platform::PROPERTY_NAME;
use muster_protocol::mqtt::{ClientEvent, Malformed, Message, Token, Version};

use super::connection::Stage;
use super::driver::{MqttConsumers, is_deaf};
use super::ending::Loss;
use crate::intake::Surfaced;
use crate::northbound::Context;

/// Keys of a scenario with a consumer's credentials.
const CREDENTIAL_KEYS: &str = "platform.backend.user and platform.backend.password";
/// Key of a scenario with a consumer's filter.
const FILTER_KEY: &str = "platform.backend.filter";

/// The loss of a consumer whose packet the platform refused. `text` is the platform's own explanation.
fn refusal(packet: &str, reason: Reason, remedy: Remedy, text: Option<&str>) -> Loss {
    let (why, text) = (reason.in_words(), quoted(text));
    Loss {
        cause: RefusalCause {
            kind: RefusalKind::Refused,
            reason: Some(reason),
            what: format!("{packet} refused with {why}{text}"),
            remedy,
        },
        is_final: reason.is_final(),
    }
}

/// Passes the platform's answer to a command on to the commander.
fn learn(cx: &mut Context<'_>, at: usize, token: Token, delivery: Delivery, seen: Micros) {
    cx.core.with_commander(at, |commander, sink| {
        commander.learn(CommandToken(token.0), delivery, seen, sink);
    });
}

/// Returns the platform's explanation as the end of a sentence; empty if it gave none.
fn quoted(text: Option<&str>) -> String {
    text.map_or(String::new(), |text| format!(", \"{text}\""))
}

impl MqttConsumers {
    /// Handles one event of a session. Returns false if the connection is over.
    pub(super) fn handle(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        seen: Micros,
        event: &ClientEvent<'_>,
    ) -> bool {
        let loss = match event {
            ClientEvent::Connected(_) => {
                self.subscribe(cx, at, seen);
                None
            }
            ClientEvent::Subscribed { id: _, codes } => self.granted(cx, at, codes),
            ClientEvent::Refused { reason, .. } => {
                let remedy = match reason.is_of_credentials() {
                    true => Remedy::see(CREDENTIAL_KEYS),
                    false => Remedy::None,
                };
                Some(refusal("CONNECT", *reason, remedy, event.reason_string()))
            }
            ClientEvent::KeepAliveExpired => Some(Loss::silent("a ping had no answer in time")),
            ClientEvent::Disconnected { reason, .. } => {
                let text = quoted(event.reason_string());
                let why = format!("DISCONNECT {}{text}", reason.in_words());
                Some(Loss::silent(why))
            }
            ClientEvent::Malformed(malformed) => Some(self.malformed(cx, at, malformed)),
            ClientEvent::Message(message) => {
                self.arrived(cx, at, seen, message);
                None
            }
            ClientEvent::Accepted { token, reason } => {
                learn(cx, at, *token, delivery_by_puback(*reason), seen);
                None
            }
            ClientEvent::Rejected { token, reason } => {
                learn(cx, at, *token, Delivery::Undeliverable(*reason), seen);
                None
            }
            ClientEvent::Completed { .. }
            | ClientEvent::AnsweredLate { .. }
            | ClientEvent::Resend { .. }
            | ClientEvent::Unsubscribed { .. }
            | ClientEvent::Pong
            | ClientEvent::Auth { .. } => None,
        };
        if let Some(loss) = &loss {
            self.give_up(cx, at, loss);
        }
        loss.is_none()
    }

    fn subscribe(&mut self, cx: &mut Context<'_>, at: usize, now: Micros) {
        let link = &mut self.links[at];
        let plan = &self.plan.backends[link.consumer.backend.index()];
        link.connection.reach(Stage::Subscribing);
        let issuer = self.issuer.as_ref();
        let further = issuer.map_or(&[][..], |issuer| issuer.further_filters(at));
        link.session.subscribe(plan, further, now, &mut self.out);
        self.arm_session(cx, at);
    }

    /// Returns the loss by an answer that is no valid MQTT, or is beyond our limits.
    fn malformed(&self, cx: &mut Context<'_>, at: usize, malformed: &Malformed) -> Loss {
        let mut loss = Loss::silent(malformed);
        if malformed.is_own_limit() {
            cx.core.consumer(at).away(&loss.cause.what);
        } else if self.links[at].connection.stage() != Stage::Up {
            let hint = self.security(at).hint_on_nonsense();
            let what = format!("it answered in bytes of another protocol ({malformed}){hint}");
            loss.cause = RefusalCause::new(RefusalKind::OtherProtocol, what);
        }
        loss
    }

    /// Acts on the codes of a SUBACK. Returns the loss, if one of them refuses.
    fn granted(&mut self, cx: &mut Context<'_>, at: usize, codes: &[u8]) -> Option<Loss> {
        let refused = codes.iter().max().filter(|code| **code >= 0x80);
        let Some(code) = refused else {
            self.report_lower_qos(cx, at, codes);
            self.subscribed(cx, at);
            return None;
        };
        let reason = match self.links[at].session.version() {
            Version::V311 => Reason::MqttSuback(*code),
            Version::V5 => Reason::Mqtt(*code),
        };
        let remedy = Remedy::see(FILTER_KEY);
        Some(refusal("SUBSCRIBE", reason, remedy, None))
    }

    /// Passes a copy to the commander if it is a reply, else to the intake.
    fn arrived(&self, cx: &mut Context<'_>, at: usize, seen: Micros, message: &Message<'_>) {
        let is_reply = cx.core.with_commander(at, |commander, sink| {
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
        cx.core.receive(at, seen, &surfaced, || false);
    }

    /// Reports a subscription that was granted at a lower QoS than was asked for.
    fn report_lower_qos(&self, cx: &mut Context<'_>, at: usize, codes: &[u8]) {
        let asked = self.links[at].session.qos().bits();
        let granted = codes.first().filter(|granted| **granted < asked);
        let consumer = cx.core.consumer(at);
        if let Some(granted) = granted.filter(|_| !consumer.was_up()) {
            let what = format!(
                "asked for QoS {asked} and was granted {granted}; see platform.backend.qos"
            );
            consumer.report(Diagnostic::LowerQos, what);
        }
    }

    fn subscribed(&mut self, cx: &mut Context<'_>, at: usize) {
        self.links[at].connection.reach(Stage::Up);
        let now = cx.io.now();
        cx.core.consumer(at).up(now);
        if is_deaf(cx, at) {
            self.stop_reading(cx, at);
        }
    }
}
