//! MQTT: the sessions of links over streams of bytes.
//!
//! It owns all that lies between CONNECT and a link that may publish: SUBSCRIBE, the announcement
//! of devices, authentication.

mod announcing;
mod authenticate;
mod connect;
mod subscribing;
mod takeover;

use muster_measure::LinkAccount;
use muster_model::{Cause, ConnectFailure, Micros, Outcome};
use muster_plan::{ClientPlan, MqttSettings};
use muster_platform::{PROPERTY_NAME, Protocol, SUBSCRIPTIONS_MAX, UplinkScratch};
use muster_protocol::mqtt::{self, ClientEvent, Stage, reason};
use rustc_hash::FxHashMap;

pub use self::connect::Hello;

use self::announcing::Announced;
use super::{Context, Downlink, Event, Input, Outgoing, Session, Transport, Unsent};
use crate::Qos;
use crate::class::Class;
use crate::client::Client;
use crate::token::{Token, nobody};

/// MQTT, with buffers that all links render in.
#[derive(Debug, Default)]
pub struct Mqtt {
    hello: Hello,
    /// A device's name.
    name: String,
    /// The filters that a link subscribes to.
    filters: [String; SUBSCRIPTIONS_MAX],
    /// The announcement of a device.
    announcement: Vec<u8>,
    /// Links that the platform has accepted and that are not ready yet; few at a time.
    steps: FxHashMap<u32, Step>,
}

/// The session of one link.
#[derive(Debug)]
pub struct MqttState {
    client: mqtt::Client,
}

/// The progress of an accepted link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The filters of the link are subscribed to.
    Subscribing,
    /// The link announces its devices to the platform.
    Announcing(Announced),
}

impl Session for Mqtt {
    type Settings = MqttSettings;
    type State = MqttState;
    type Key = ();
    type Unfit = mqtt::Refused;

    const PROTOCOL: Protocol = Protocol::Mqtt;
    const TRANSPORT: Transport = Transport::Stream;

    fn settings(client: &ClientPlan) -> Option<&MqttSettings> {
        client.mqtt()
    }

    fn is_resumable(settings: &MqttSettings) -> bool {
        settings.is_resumable()
    }

    fn state(&self, client: &Client<MqttSettings>, _link: u32, _seed: u64) -> MqttState {
        let settings = &client.settings;
        let limits = mqtt::ClientLimits {
            ping_timeout: client.handshake_timeout,
            maximum_packet_size: settings.maximum_packet_size,
        };
        MqttState {
            client: mqtt::Client::new(settings.version, &limits),
        }
    }

    fn opened(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>> {
        self.render_connect(at, out);
        None
    }

    fn go_on(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>> {
        self.subscribe(at, out)
    }

    #[inline]
    fn poll<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &mut Input<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        loop {
            if !self.steps.is_empty()
                && let Some(event) = self.announce_more(at, out)
            {
                return Some(event);
            }
            let mut rest = mqtt::Input::new(input.rest());
            let event = at.state.client.poll(at.now, &mut rest, out);
            input.advance(rest.consumed());
            if let Some(event) = self.received(at, event?, out) {
                return Some(event);
            }
        }
    }

    fn timer(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>> {
        let settings = &at.class.client.settings;
        if at
            .state
            .next_authentication(settings)
            .is_some_and(|next| next <= at.now)
        {
            self.authenticate_again(at, out);
            return None;
        }
        let expired = at.state.client.timer(at.now, out);
        expired.map(|_| Event::Lost(Cause::PingUnanswered))
    }

    #[inline]
    fn deadline(settings: &MqttSettings, state: &MqttState) -> Option<Micros> {
        let both = [state.next_authentication(settings), state.client.deadline()];
        both.into_iter().flatten().min()
    }

    #[inline]
    fn submit(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>, Unsent<mqtt::Refused>> {
        let token = match message.is_tracked {
            true => at.messages.slots.token(message.slot),
            false => nobody(at.messages.slots.get(message.slot).stream),
        };
        let (client, now) = (&mut at.state.client, at.now);
        let uplink = &at.messages.scratch.uplink;
        at.class.publish(message.stream_index, uplink, |publish| {
            client.publish(now, mqtt::Token(token.0), publish, out)
        })?;
        Ok(Some(()))
    }

    fn resubmit(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent<mqtt::Refused>> {
        let token = at.messages.slots.token(message.slot);
        let (client, now) = (&mut at.state.client, at.now);
        let uplink = &at.messages.scratch.uplink;
        at.class.publish(message.stream_index, uplink, |publish| {
            client.republish(now, mqtt::Token(token.0), publish, out)
        })?;
        Ok(())
    }

    #[inline]
    fn window_free(&self, state: &MqttState) -> u16 {
        state.client.window_free()
    }

    fn forget(&mut self, state: &mut MqttState, token: Token, _key: Option<()>) {
        state.client.forget(mqtt::Token(token.0));
    }

    fn closed(&mut self, link: u32, state: &mut MqttState, _open: impl Iterator<Item = ()>) {
        self.steps.remove(&link);
        state.client.closed();
    }

    fn drop_exchanges(&mut self, state: &mut MqttState, mut incomplete: impl FnMut(Token)) {
        state.client.drop_inflight(|token, stage| match stage {
            Stage::Published => {}
            Stage::Accepted => incomplete(Token(token.0)),
        });
    }

    fn disconnect(&mut self, state: &mut MqttState, out: &mut Vec<u8>) {
        state.client.disconnect(reason::SUCCESS, out);
    }

    fn unanswered(&self, link: u32) -> ConnectFailure {
        match self.steps.get(&link) {
            Some(Step::Announcing(_)) => ConnectFailure::AnnouncementUnanswered,
            Some(Step::Subscribing) => ConnectFailure::SubscribeUnanswered,
            None => ConnectFailure::TimedOut,
        }
    }

    fn note_failure(&self, at: &mut Context<'_, Self>, failure: ConnectFailure) {
        if failure == ConnectFailure::AnnouncementUnanswered {
            return self.note_unannounced(at);
        }
        if failure == ConnectFailure::SubscribeUnanswered {
            return subscribing::note_unanswered(at);
        }
        let (packet, reason) = if let ConnectFailure::Rejected(reason) = failure {
            ("CONNECT", reason)
        } else if let ConnectFailure::SubscribeRejected(reason) = failure {
            ("SUBSCRIBE", reason)
        } else {
            return;
        };
        let (class, id) = (at.class, at.id);
        at.refusals.note_link(packet, reason, || class.name_of(id));
    }

    fn note_end(&self, at: &mut Context<'_, Self>, cause: Cause, brief_lives: u8) {
        takeover::note(at, cause, brief_lives);
    }

    fn blamed(state: &MqttState, cause: Cause, now: Micros) -> Cause {
        let is_by_peer = matches!(
            cause,
            Cause::PeerClosed | Cause::Reset | Cause::PeerDisconnect(_)
        );
        if is_by_peer && state.client.has_missed_keep_alive(now) {
            Cause::KeepAliveMissed
        } else {
            cause
        }
    }

    fn account<'a>(&'a self, states: impl Iterator<Item = &'a MqttState>, sum: &mut LinkAccount) {
        for counts in states.map(|state| state.client.counts()) {
            sum.counters.mqtt_again += u64::from(counts.again);
            sum.counters.mqtt_unknown += u64::from(counts.unknown);
        }
    }
}

impl Mqtt {
    /// The meaning of one packet; none if it is the session's own affair.
    #[inline]
    fn received<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        event: ClientEvent<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        let event = match event {
            ClientEvent::Accepted { token, reason } => {
                if self.takes_announcement(at.link, token) {
                    return None;
                }
                Event::Accepted {
                    token: Token(token.0),
                    has_subscriber: reason != reason::NO_MATCHING_SUBSCRIBERS,
                }
            }
            ClientEvent::Rejected { token, reason } => {
                if self.takes_announcement(at.link, token) {
                    return Some(refuse(at, ConnectFailure::Rejected(reason), out));
                }
                Event::Failed {
                    token: Token(token.0),
                    outcome: Outcome::Rejected(reason),
                }
            }
            ClientEvent::Completed { token } => Event::Completed {
                token: Token(token.0),
            },
            ClientEvent::AnsweredLate { token, reason } => Event::AnsweredLate {
                token: Token(token.0),
                is_accepted: reason < 0x80,
            },
            ClientEvent::Resend { token } => Event::Resend {
                token: Token(token.0),
            },
            ClientEvent::Message(message) => Event::Message(downlink(message)),
            ClientEvent::Connected(connected) => return Some(accepted(at, &connected, out)),
            ClientEvent::Subscribed { id: _, codes } => return self.subscribed(at, codes, out),
            ClientEvent::Auth(auth) => {
                self.answer_challenge(at, &auth, out);
                return None;
            }
            ClientEvent::Refused { reason, .. } => {
                let failure = ConnectFailure::Rejected(reason);
                note_said(at, &failure, &event);
                Event::Refused(failure)
            }
            ClientEvent::KeepAliveExpired => Event::Lost(Cause::PingUnanswered),
            ClientEvent::Disconnected { reason, .. } => {
                let cause = Cause::PeerDisconnect(reason);
                note_said(at, &cause, &event);
                Event::Lost(cause)
            }
            ClientEvent::Malformed(malformed) if malformed.is_own_limit() => {
                at.refusals.note_limit(&malformed);
                Event::Lost(Cause::OwnLimit)
            }
            ClientEvent::Malformed(_) => Event::Lost(Cause::Malformed),
            ClientEvent::Unsubscribed { .. } | ClientEvent::Pong => Event::Alive,
        };
        Some(event)
    }
}

impl From<mqtt::Refused> for Unsent<mqtt::Refused> {
    fn from(why: mqtt::Refused) -> Self {
        use mqtt::Refused;
        match why {
            Refused::Window | Refused::PacketIds | Refused::NotConnected => Self::Waits,
            Refused::TooLarge { .. }
            | Refused::TextTooLong
            | Refused::RetainUnavailable
            | Refused::QosUnavailable => Self::Never(why),
            Refused::Unknown | Refused::Authentication => Self::SessionLost,
        }
    }
}

impl From<mqtt::Qos> for Qos {
    fn from(qos: mqtt::Qos) -> Self {
        match qos {
            mqtt::Qos::AtMostOnce => Self::AtMostOnce,
            mqtt::Qos::AtLeastOnce => Self::AtLeastOnce,
            mqtt::Qos::ExactlyOnce => Self::ExactlyOnce,
        }
    }
}

impl From<Qos> for mqtt::Qos {
    fn from(qos: Qos) -> Self {
        match qos {
            Qos::AtMostOnce => Self::AtMostOnce,
            Qos::AtLeastOnce => Self::AtLeastOnce,
            Qos::ExactlyOnce => Self::ExactlyOnce,
        }
    }
}

/// Says goodbye on a link that cannot be used.
fn refuse<'a>(at: &mut Context<'_, Mqtt>, failure: ConnectFailure, out: &mut Vec<u8>) -> Event<'a> {
    at.state.client.disconnect(reason::SUCCESS, out);
    Event::Refused(failure)
}

/// Keeps the platform's own words for a cause, the first of each.
fn note_said(at: &mut Context<'_, Mqtt>, cause: &dyn std::fmt::Display, event: &ClientEvent<'_>) {
    if let Some(text) = event.reason_string() {
        at.refusals.note_said(cause, text);
    }
}

/// The meaning of a CONNACK: a link does not come up whose messages the platform would not take.
fn accepted<'a>(
    at: &mut Context<'_, Mqtt>,
    connected: &mqtt::Connected<'_>,
    out: &mut Vec<u8>,
) -> Event<'a> {
    let (class, id, most) = (at.class, at.id, connected.maximum_packet_size);
    if most >= class.client.settings.needed_packet {
        let is_kept = connected.session_present;
        return Event::Connected { is_kept };
    }
    at.refusals.note_once("CONNACK", || {
        format!(
            "device `{}`: its CONNACK allows packets of at most {most} bytes, and payloads of this fleet \
             need more; use a smaller `payload`, or raise the platform's limit",
            class.name_of(id)
        )
    });
    refuse(at, ConnectFailure::Unsendable, out)
}

fn downlink(message: mqtt::Message<'_>) -> Downlink<'_> {
    let mut properties = message.properties.user();
    let property = properties.find(|(name, _)| *name == PROPERTY_NAME);
    Downlink {
        topic: message.topic,
        payload: message.payload,
        property: property.map(|(_, text)| text),
    }
}

impl Class<MqttSettings> {
    /// Hands the message in the scratch buffers to a session.
    #[inline]
    fn publish<T>(
        &self,
        stream_index: u8,
        scratch: &UplinkScratch,
        submit: impl FnOnce(&mqtt::Publish<'_>) -> T,
    ) -> T {
        let stream = &self.streams[stream_index as usize];
        // An alias stands for one topic as long as the session lives, which on a link with many
        // devices a stream is not, nor is one of replies, or of requests that the topic numbers.
        let is_one = !stream.is_command() && stream.uplink.has_one_topic();
        let has_one_topic = self.devices_per_link == 1 && is_one;
        let alias = u16::from(stream_index) < mqtt::ALIAS_SLOTS && has_one_topic;
        scratch.with_property(|user_properties| {
            submit(&mqtt::Publish {
                alias_slot: alias.then_some(u16::from(stream_index)),
                qos: stream.qos.into(),
                retain: stream.retain,
                content_type: stream.content_type.as_deref(),
                user_properties,
                ..mqtt::Publish::new(scratch.topic(), &scratch.payload)
            })
        })
    }
}
