//! Fields of a client's CONNECT.

use crate::mqtt::packet::{self, Unwritable};
use crate::mqtt::property::present;
use crate::mqtt::{MAXIMUM_PACKET_SIZE, Properties, Property, Version, Will};

/// Fields of a CONNECT (section 3.1); those of MQTT 5 only are left out in 3.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Client id; empty if the server chooses.
    pub client_id: &'a str,
    /// True to discard an existing session.
    pub clean_start: bool,
    /// Seconds the session outlives the connection; all ones is for ever. MQTT 5 only.
    pub session_expiry: u32,
    /// Seconds; 0 switches it off.
    pub keep_alive: u16,
    /// Message that the server publishes when the connection ends without a DISCONNECT.
    pub will: Option<Will<'a>>,
    /// The user's name.
    pub user: Option<&'a str>,
    /// The password.
    pub password: Option<&'a [u8]>,
    /// Publishes the client takes before it has answered one; never zero. MQTT 5 only.
    pub receive_maximum: u16,
    /// Bytes of the largest packet the client takes; none: no bound. MQTT 5 only.
    pub maximum_packet_size: Option<u32>,
    /// Highest topic alias the client takes. MQTT 5 only.
    pub topic_alias_maximum: u16,
    /// True to request response information. MQTT 5 only.
    pub request_response_information: bool,
    /// True if refusals may bring reason strings and user properties. MQTT 5 only.
    pub request_problem_information: bool,
    /// The method of enhanced authentication and its first data. MQTT 5 only.
    pub authentication: Option<(&'a str, &'a [u8])>,
    /// Names and values. MQTT 5 only.
    pub user_properties: &'a [(&'a str, &'a str)],
}

impl<'a> Connect<'a> {
    /// A clean start with a keep-alive of a minute and the standard's defaults.
    pub const fn new(client_id: &'a str) -> Self {
        Self {
            client_id,
            clean_start: true,
            session_expiry: 0,
            keep_alive: 60,
            will: None,
            user: None,
            password: None,
            receive_maximum: u16::MAX,
            maximum_packet_size: None,
            topic_alias_maximum: 0,
            request_response_information: false,
            request_problem_information: true,
            authentication: None,
            user_properties: &[],
        }
    }

    pub(super) fn write(&self, version: Version, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        let (method, data) = self.authentication.unzip();
        let maximum = self.receive_maximum;
        let alias = self.topic_alias_maximum;
        let (fixed, count) = present([
            (self.session_expiry > 0).then_some(Property::SessionExpiry(self.session_expiry)),
            (maximum < u16::MAX).then_some(Property::ReceiveMaximum(maximum.max(1))),
            self.maximum_packet_size
                .filter(|bytes| *bytes < MAXIMUM_PACKET_SIZE)
                .map(|bytes| Property::MaximumPacketSize(bytes.max(1))),
            (alias > 0).then_some(Property::TopicAliasMaximum(alias)),
            self.request_response_information
                .then_some(Property::RequestResponseInformation(true)),
            (!self.request_problem_information)
                .then_some(Property::RequestProblemInformation(false)),
            method.map(Property::AuthenticationMethod),
            data.map(Property::AuthenticationData),
        ]);
        packet::Connect {
            version,
            client_id: self.client_id,
            clean_start: self.clean_start,
            keep_alive: self.keep_alive,
            will: self.will,
            user: self.user,
            password: self.password,
            properties: Properties::with_user(&fixed[..count], self.user_properties),
        }
        .write(out)
    }
}
