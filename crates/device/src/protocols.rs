//! The session of a link: one of the protocols that devices speak.

use std::fmt;

use muster_model::Micros;
use muster_protocol::{coap, mqtt};

use crate::class::{Client, Protocol};
use crate::slots::SlotId;
use crate::{Shard, Sink};

/// One session.
#[derive(Debug)]
pub(crate) enum Session {
    /// MQTT, whose packets are a stream of bytes.
    Mqtt(mqtt::Client),
    /// CoAP, on a socket of the link's own.
    Coap(coap::Client),
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
            Protocol::Mqtt => {
                let limits = mqtt::ClientLimits::default();
                Self::Mqtt(mqtt::Client::new(client.version, &limits))
            }
            Protocol::Coap(settings) => Self::Coap(coap::Client::new(settings.clone(), seed)),
        }
    }

    /// That of MQTT; none with another protocol.
    pub(crate) fn mqtt(&mut self) -> Option<&mut mqtt::Client> {
        match self {
            Self::Mqtt(client) => Some(client),
            Self::Coap(_) => None,
        }
    }

    /// That of CoAP; none with another protocol.
    pub(crate) fn coap(&mut self) -> Option<&mut coap::Client> {
        match self {
            Self::Coap(client) => Some(client),
            Self::Mqtt(_) => None,
        }
    }

    /// How many more messages may be sent that are answered.
    #[inline]
    pub(crate) fn window_free(&self) -> u16 {
        match self {
            Self::Mqtt(client) => client.window_free(),
            Self::Coap(client) => client.window_free(0),
        }
    }

    /// When its timer is to be called.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Mqtt(client) => client.deadline(),
            Self::Coap(client) => client.deadline(),
        }
    }

    /// Until when the platform asked for silence.
    pub(crate) fn silent_until(&self) -> Micros {
        match self {
            Self::Mqtt(_) => Micros::ZERO,
            Self::Coap(client) => client.held_until(0),
        }
    }

    /// When an authentication began, where there is one.
    pub(crate) fn authentication_began(&self) -> Option<Micros> {
        match self {
            Self::Mqtt(client) => client.authentication_began(),
            Self::Coap(_) => None,
        }
    }

    /// Says goodbye, where the protocol has one.
    pub(crate) fn disconnect(&mut self, reason: u8, out: &mut Vec<u8>) {
        match self {
            Self::Mqtt(client) => client.disconnect(reason, out),
            Self::Coap(_) => {}
        }
    }

    /// What carried it is gone.
    pub(crate) fn closed(&mut self) {
        match self {
            Self::Mqtt(client) => client.closed(),
            // Whoever waits for an answer is told by the shard.
            Self::Coap(client) => client.drop_all(|_| {}),
        }
    }
}

impl<S: Sink> Shard<S> {
    /// The answer to an attempt is not waited for any more.
    pub(crate) fn forget(&mut self, link: u32, id: SlotId) {
        let token = self.token(id);
        let exchange = self.slots.get_mut(id).exchange.take();
        match &mut self.links[link as usize].session {
            Session::Mqtt(client) => {
                client.forget(token);
            }
            Session::Coap(client) => {
                if let Some(key) = exchange {
                    client.forget(key);
                }
            }
        }
    }

    /// Whether what a link says goes in datagrams, each a message of its own.
    #[must_use]
    #[inline]
    pub fn is_in_datagrams(&self, link: u32) -> bool {
        match self.links[link as usize].session {
            Session::Mqtt(_) => false,
            Session::Coap(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_mqtt_is_no_larger_for_coap() {
        assert_eq!(size_of::<Session>(), size_of::<mqtt::Client>());
    }
}
