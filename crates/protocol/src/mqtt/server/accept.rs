//! A server's acceptance of a connection.

use super::ServerLimits;
use crate::mqtt::outbound::{Peer, check_size};
use crate::mqtt::packet::{Connack, kind};
use crate::mqtt::property::present;
use crate::mqtt::{MAXIMUM_PACKET_SIZE, Properties, Property, Qos, Refused, Version, reason};

/// A server's acceptance of a connection, in addition to its [`ServerLimits`]; all is MQTT 5 only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept<'a> {
    /// Seconds the session outlives the connection, if not what the client asked for.
    pub session_expiry: Option<u32>,
    /// The client id chosen for a client that had none.
    pub assigned_client_id: Option<&'a str>,
    /// Seconds of keep-alive that hold instead of the client's.
    pub server_keep_alive: Option<u16>,
    /// Highest QoS that is served.
    pub maximum_qos: Qos,
    /// True if the server retains.
    pub retain_available: bool,
    /// True if the server shares subscriptions.
    pub shared_available: bool,
    /// The last data of enhanced authentication (section 4.12); the method is that of the CONNECT,
    /// and without one this is left out.
    pub authentication_data: Option<&'a [u8]>,
    /// Names and values; left out if the client does not take a packet so large (MQTT-3.2.2-20).
    pub user_properties: &'a [(&'a str, &'a str)],
}

/// The connection's own part of a CONNACK.
pub(super) struct Terms<'a> {
    pub(super) peer: &'a Peer,
    pub(super) session_present: bool,
    pub(super) limits: &'a ServerLimits,
    /// Method that the CONNECT named.
    pub(super) method: Option<&'a str>,
}

impl Default for Accept<'_> {
    /// Everything is served and nothing changed.
    fn default() -> Self {
        Self {
            session_expiry: None,
            assigned_client_id: None,
            server_keep_alive: None,
            maximum_qos: Qos::ExactlyOnce,
            retain_available: true,
            shared_available: true,
            authentication_data: None,
            user_properties: &[],
        }
    }
}

impl<'a> Accept<'a> {
    /// Checks that a will needs nothing that is not served (MQTT-3.2.2-12, MQTT-3.2.2-13).
    pub(super) fn check(&self, version: Version, will: Option<(Qos, bool)>) -> Result<(), Refused> {
        match will {
            Some((qos, _)) if version == Version::V5 && qos > self.maximum_qos => {
                Err(Refused::QosUnavailable)
            }
            Some((_, true)) if version == Version::V5 && !self.retain_available => {
                Err(Refused::RetainUnavailable)
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn write(&self, terms: &Terms<'a>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let limits = terms.limits;
        let method = terms.method;
        let data = self.authentication_data.filter(|_| method.is_some());
        let window = limits.receive_maximum;
        let size = limits.maximum_packet_size;
        let alias = limits.topic_alias_maximum;
        let qos = self.maximum_qos;
        // Those that differ from the standard's defaults.
        let (fixed, count) = present([
            self.session_expiry.map(Property::SessionExpiry),
            self.assigned_client_id.map(Property::AssignedClientId),
            self.server_keep_alive.map(Property::ServerKeepAlive),
            (window < u16::MAX).then_some(Property::ReceiveMaximum(window.max(1))),
            // No packet is larger, and some clients take no larger number.
            (size < MAXIMUM_PACKET_SIZE).then_some(Property::MaximumPacketSize(size.max(1))),
            (alias > 0).then_some(Property::TopicAliasMaximum(alias)),
            (qos < Qos::ExactlyOnce).then_some(Property::MaximumQos(qos)),
            (!self.retain_available).then_some(Property::RetainAvailable(false)),
            (!self.shared_available).then_some(Property::SharedAvailable(false)),
            method.map(Property::AuthenticationMethod),
            data.map(Property::AuthenticationData),
        ]);
        let connack = |user_properties| Connack {
            session_present: terms.session_present,
            code: reason::SUCCESS,
            properties: Properties::with_user(&fixed[..count], user_properties),
        };
        let (version, maximum) = (terms.peer.version, terms.peer.maximum_packet_size);
        let mut answer = connack(self.user_properties);
        if check_size(answer.remaining(version), maximum).is_err() {
            answer = connack(&[]);
            check_size(answer.remaining(version), maximum)?;
        }
        Ok(answer.write(version, out)?)
    }
}

/// Appends a CONNACK of MQTT 3.1.1 that refuses.
pub(super) fn put_connack_v311(code: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind::CONNACK << 4, 2, 0, code]);
}
