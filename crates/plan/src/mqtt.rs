//! The MQTT of a fleet's links: the fields of its CONNECT.

use muster_load::{Octets, Template};
use muster_model::Micros;
use muster_protocol::mqtt::{Qos, Version};
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The CONNECT fields of a fleet's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MqttSettings {
    /// The protocol's version.
    pub version: Version,
    /// The client ids of links.
    pub client_id: ClientId,
    /// True if the platform forgets an earlier session first.
    pub clean_start: bool,
    /// The time that the platform keeps the session after the link ended, in seconds.
    pub session_expiry_s: u32,
    /// The keep-alive in seconds; 0 switches it off.
    pub keep_alive_s: u16,
    /// The receive maximum that the devices announce (MQTT 5 section 3.1.2.11.3).
    pub receive_maximum: Option<u16>,
    /// Bytes of the largest packet that the devices receive, as they announce it.
    pub maximum_packet_size: u32,
    /// Bytes of a packet that the platform has to take, or the link does not come up; 0 for any.
    pub needed_packet: u32,
    /// A proof beyond the credential, by a method of MQTT 5.
    pub authentication: Option<Authentication>,
    /// The message that the platform publishes when a link ends unasked.
    pub will: Option<Will>,
    /// True if links subscribe to the refusals of what they publish.
    pub error_topic: bool,
}

impl MqttSettings {
    /// True if the platform keeps a session over the end of a link, so that attempts in flight
    /// may still be answered on the next one.
    pub fn is_resumable(&self) -> bool {
        match self.version {
            Version::V311 => !self.clean_start,
            Version::V5 => self.session_expiry_s > 0,
        }
    }
}

/// The client ids of a fleet's links (MQTT 5 section 3.1.3.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientId {
    /// The link's name: its own, or that of its first device.
    Name,
    /// A text for each link, by its first device.
    Template(Template),
    /// None: the platform assigns one with each CONNECT.
    Assigned,
}

/// Enhanced authentication of a fleet's links (MQTT 5 section 4.12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Authentication {
    /// The method that the CONNECT names.
    pub method: String,
    /// The data that goes with the CONNECT and begins a further authentication.
    pub data: Secret<Octets>,
    /// The data that answers each challenge of the platform.
    pub answer: Secret<Octets>,
    /// True if the challenge itself stands before the answer.
    pub echo: bool,
    /// The time from an authentication to the next one that an open link begins.
    pub again: Option<Micros>,
}

/// The will of a fleet's links (MQTT 5 section 3.1.2.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Will {
    /// Its topic.
    pub topic: Template,
    /// Its payload.
    pub payload: Template,
    /// Its quality of service.
    pub qos: Qos,
    /// True if it is retained.
    pub retain: bool,
    /// The will delay interval (MQTT 5 section 3.1.3.2.2), in seconds.
    pub delay_s: u32,
}
