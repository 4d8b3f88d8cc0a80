//! How a server takes a connection.

use super::ServerLimits;
use crate::mqtt::packet::{Connack, Unwritable, kind};
use crate::mqtt::{Properties, Property, Qos, Version, reason};

/// Properties other than user properties that a CONNACK can bring.
const FIXED_PROPERTIES: usize = 11;

/// How a server takes a connection, beside its [`ServerLimits`]; all is MQTT 5 only.
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
    /// Whether the server retains.
    pub retain_available: bool,
    /// Whether the server shares subscriptions.
    pub shared_available: bool,
    /// The method of enhanced authentication and its last data (section 4.12).
    pub authentication: Option<(&'a str, &'a [u8])>,
    /// Names and values.
    pub user_properties: &'a [(&'a str, &'a str)],
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
            authentication: None,
            user_properties: &[],
        }
    }
}

impl<'a> Accept<'a> {
    pub(super) fn write(
        &self,
        version: Version,
        session_present: bool,
        limits: &ServerLimits,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let mut fixed = [Property::SessionExpiry(0); FIXED_PROPERTIES];
        let count = self.collect(limits, &mut fixed);
        let properties = Properties::with_user(&fixed[..count], self.user_properties);
        Connack {
            session_present,
            code: reason::SUCCESS,
            properties,
        }
        .write(version, out)
    }

    /// Puts the properties that differ from the standard's defaults at the front of `fixed`, and
    /// says how many.
    fn collect(
        &self,
        limits: &ServerLimits,
        fixed: &mut [Property<'a>; FIXED_PROPERTIES],
    ) -> usize {
        let (method, data) = self.authentication.unzip();
        let window = limits.receive_maximum;
        let size = limits.maximum_packet_size;
        let alias = limits.topic_alias_maximum;
        let qos = self.maximum_qos;
        let all = [
            self.session_expiry.map(Property::SessionExpiry),
            self.assigned_client_id.map(Property::AssignedClientId),
            self.server_keep_alive.map(Property::ServerKeepAlive),
            (window < u16::MAX).then_some(Property::ReceiveMaximum(window.max(1))),
            (size < u32::MAX).then_some(Property::MaximumPacketSize(size.max(1))),
            (alias > 0).then_some(Property::TopicAliasMaximum(alias)),
            (qos < Qos::ExactlyOnce).then_some(Property::MaximumQos(qos)),
            (!self.retain_available).then_some(Property::RetainAvailable(false)),
            (!self.shared_available).then_some(Property::SharedAvailable(false)),
            method.map(Property::AuthenticationMethod),
            data.map(Property::AuthenticationData),
        ];
        let mut count = 0;
        for property in all.into_iter().flatten() {
            fixed[count] = property;
            count += 1;
        }
        count
    }
}

/// Appends a CONNACK of MQTT 3.1.1 that refuses.
pub(super) fn put_connack_v311(code: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind::CONNACK << 4, 2, 0, code]);
}
