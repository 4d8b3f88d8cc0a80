//! The session of a link: one of the protocols that devices speak.

use std::fmt;

use muster_model::Micros;
use muster_protocol::{coap, mqtt};

use crate::client::{Client, Protocol, SocketUse};
use crate::link::Writing;
use crate::slots::SlotId;
use crate::sockets::{Exchanges, exchanges};
use crate::{Shard, Sink};

/// One session.
#[derive(Debug)]
pub(crate) enum Session {
    /// MQTT, whose packets are a stream of bytes.
    Mqtt(mqtt::Client),
    /// CoAP, as an endpoint of its own.
    Coap(coap::Client),
    /// CoAP, with message ids and tokens of the socket that it shares ([`crate::sockets`]).
    Shared,
}

/// Why a message can never go on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// In MQTT.
    Mqtt(mqtt::Refused),
    /// In CoAP.
    Coap(coap::Refused),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mqtt(why) => why.fmt(f),
            Self::Coap(why) => why.fmt(f),
        }
    }
}

impl Session {
    /// The session of a link that is down; `seed` is the link's own.
    pub(crate) fn new(client: &Client, seed: u64) -> Self {
        match &client.protocol {
            Protocol::Mqtt(settings) => {
                let limits = mqtt::ClientLimits {
                    ping_timeout: client.handshake_timeout,
                    maximum_packet_size: settings.maximum_packet_size,
                };
                Self::Mqtt(mqtt::Client::new(settings.version, &limits))
            }
            Protocol::Coap { settings, sockets } => match sockets {
                SocketUse::Own | SocketUse::SharedPort { .. } => {
                    Self::Coap(coap::Client::new(settings.clone(), seed))
                }
                SocketUse::SharedEndpoint { .. } => Self::Shared,
            },
        }
    }

    /// That of MQTT; none with another protocol.
    pub(crate) fn mqtt(&mut self) -> Option<&mut mqtt::Client> {
        match self {
            Self::Mqtt(client) => Some(client),
            Self::Coap(_) | Self::Shared => None,
        }
    }

    /// Counters of an MQTT session that no event reports.
    pub(crate) fn mqtt_counts(&self) -> Option<mqtt::ClientCounts> {
        match self {
            Self::Mqtt(client) => Some(client.counts()),
            Self::Coap(_) | Self::Shared => None,
        }
    }

    /// What it counted of which no event tells. Those of a shared socket are the socket's.
    pub(crate) fn counts(&self) -> Option<&coap::ClientCounts> {
        match self {
            Self::Coap(client) => Some(client.counts()),
            Self::Mqtt(_) | Self::Shared => None,
        }
    }

    /// When its timer is to be called. What is due on a shared socket is the socket's.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Mqtt(client) => client.deadline(),
            Self::Coap(client) => client.deadline(),
            Self::Shared => None,
        }
    }

    /// Whether the platform may have ended the link because nothing was sent on it for too long.
    pub(crate) fn has_missed_keep_alive(&self, now: Micros) -> bool {
        match self {
            Self::Mqtt(client) => client.has_missed_keep_alive(now),
            Self::Coap(_) | Self::Shared => false,
        }
    }

    /// When an authentication began, where there is one.
    pub(crate) fn authentication_began(&self) -> Option<Micros> {
        match self {
            Self::Mqtt(client) => client.authentication_began(),
            Self::Coap(_) | Self::Shared => None,
        }
    }

    /// Says goodbye, where the protocol has one.
    pub(crate) fn disconnect(&mut self, reason: u8, out: &mut Vec<u8>) {
        match self {
            Self::Mqtt(client) => client.disconnect(reason, out),
            Self::Coap(_) | Self::Shared => {}
        }
    }
}

impl<S: Sink> Shard<S> {
    /// The answer to an attempt is not waited for any more.
    pub(crate) fn forget(&mut self, link: u32, id: SlotId) {
        let token = self.token(id);
        let exchange = self.slots.get_mut(id).exchange.take();
        if let Session::Mqtt(client) = &mut self.links[link as usize].session {
            client.forget(token);
        } else if let (Some(key), Some(mut exchanges)) = (exchange, self.exchanges(link)) {
            exchanges.forget(key);
        }
    }

    /// What carried a session is gone. Whoever waits for an answer is told apart from this.
    pub(crate) fn close_session(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        state.waits_for_silence = false;
        match &mut state.session {
            Session::Mqtt(client) => client.closed(),
            Session::Coap(client) => client.drop_all(|_| {}),
            Session::Shared => self.abandon_all(link),
        }
    }

    /// What secures a link is a new session, to which nothing of the last one belongs.
    pub fn secured(&mut self, link: u32) {
        match &mut self.links[link as usize].session {
            Session::Coap(client) => client.begin_session(),
            Session::Mqtt(_) | Session::Shared => {}
        }
    }

    /// Ends the exchanges of a link on a socket that goes on.
    fn abandon_all(&mut self, link: u32) {
        let state = &self.links[link as usize];
        let written = match state.writing {
            Writing::Message(id) => Some(id),
            Writing::Nothing | Writing::Orphan => None,
        };
        let mut next = state.flight.first();
        while let Some(id) = next {
            next = self.slots.after(id);
            self.abandon(link, id);
        }
        if let Some(id) = written {
            self.abandon(link, id);
        }
    }

    /// No answer to an attempt can come any more.
    pub(crate) fn abandon(&mut self, link: u32, id: SlotId) {
        let exchange = self.slots.get_mut(id).exchange.take();
        if let (Some(key), Some(mut exchanges)) = (exchange, self.exchanges(link)) {
            exchanges.abandon(key);
        }
    }

    pub(crate) fn exchanges(&mut self, link: u32) -> Option<Exchanges<'_>> {
        exchanges(&mut self.links, &mut self.sockets, link)
    }

    /// How many more messages may be sent on a link that are answered.
    #[inline]
    pub(crate) fn window_free(&self, link: u32) -> u16 {
        let state = &self.links[link as usize];
        match &state.session {
            Session::Mqtt(client) => client.window_free(),
            Session::Coap(client) => client.window_free(0),
            Session::Shared => self.sockets.window_free(state.class, link),
        }
    }

    /// Until when the platform asked a link for silence.
    pub(crate) fn silent_until(&self, link: u32) -> Micros {
        let state = &self.links[link as usize];
        match &state.session {
            Session::Mqtt(_) => Micros::ZERO,
            Session::Coap(client) => client.held_until(0),
            Session::Shared => self.sockets.silent_until(state.class, link),
        }
    }

    /// When the silence ends that something waits for.
    #[inline]
    pub(crate) fn silence_ends(&self, link: u32) -> Option<Micros> {
        let waits = self.links[link as usize].waits_for_silence;
        waits.then(|| self.silent_until(link))
    }

    /// Whether what a link says goes in datagrams, each a message of its own.
    #[must_use]
    #[inline]
    pub fn is_in_datagrams(&self, link: u32) -> bool {
        match self.links[link as usize].session {
            Session::Mqtt(_) => false,
            Session::Coap(_) | Session::Shared => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_mqtt_is_larger_for_coap_by_a_tag_at_the_most() {
        assert!(size_of::<Session>() <= size_of::<mqtt::Client>() + size_of::<u64>());
    }
}
