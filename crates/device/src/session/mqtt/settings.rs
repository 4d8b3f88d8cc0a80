//! The CONNECT fields of a fleet's links.

use muster_load::{Octets, Template};
use muster_model::Micros;
use muster_protocol::mqtt;

/// The CONNECT fields of a fleet's links.
#[derive(Debug)]
pub struct MqttSettings {
    /// The protocol's version.
    pub version: mqtt::Version,
    /// The client ids of links.
    pub client_id: ClientId,
    /// True if the platform forgets an earlier session first.
    pub clean_start: bool,
    /// The time that the platform keeps the session after the link ended, in seconds.
    pub session_expiry_s: u32,
    /// The keep-alive in seconds; 0 switches it off.
    pub keep_alive_s: u16,
    /// The receive maximum that the devices announce.
    pub receive_maximum: Option<u16>,
    /// Bytes of the largest packet that the devices receive, as they announce it.
    pub maximum_packet_size: u32,
    /// User name and password.
    pub login: Option<Login>,
    /// A proof beyond these, by a method of MQTT 5.
    pub authentication: Option<Authentication>,
    /// The message that the platform publishes when a link ends unasked.
    pub will: Option<Will>,
}

/// The client ids of a fleet's links.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientId {
    /// The link's name.
    Name,
    /// A text for each link.
    Template(Template),
    /// None: the platform assigns one with each CONNECT.
    Assigned,
}

impl MqttSettings {
    /// True if the platform keeps a session over the end of a link, so that attempts in flight
    /// may still be answered on the next one.
    pub fn is_resumable(&self) -> bool {
        match self.version {
            mqtt::Version::V311 => !self.clean_start,
            mqtt::Version::V5 => self.session_expiry_s > 0,
        }
    }
}

/// User name and password of a fleet's links, as templates.
pub struct Login {
    /// The user name; never printed, since it may be an access token.
    pub user: Template,
    /// The password, if there is one; never printed.
    pub password: Option<Octets>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// Enhanced authentication of a fleet's links (MQTT 5 section 4.12).
pub struct Authentication {
    /// The method that the CONNECT names.
    pub method: String,
    /// The data that goes with the CONNECT and begins a further authentication; never printed.
    pub data: Octets,
    /// The data that answers each challenge of the platform; never printed.
    pub answer: Octets,
    /// True if the challenge itself stands before the answer.
    pub echo: bool,
    /// The time from an authentication to the next one that an open link begins.
    pub again: Option<Micros>,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authentication")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// The will of a fleet's links.
#[derive(Debug)]
pub struct Will {
    /// Its topic.
    pub topic: Template,
    /// Its payload.
    pub payload: Template,
    /// Its quality of service.
    pub qos: mqtt::Qos,
    /// True if it is retained.
    pub retain: bool,
    /// The will delay interval (MQTT 5 section 3.1.3.2.2), where there is one.
    pub delay: Option<mqtt::Property<'static>>,
}
