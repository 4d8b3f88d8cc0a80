//! A fleet: devices of one kind, their links and how these are opened.

use std::sync::Arc;

use muster_load::{Names, Octets, Table, Template};
use muster_model::{DeviceId, FleetId, LinkId, Micros, Rate};
use muster_platform::Roster;
use muster_protocol::mqtt::{Qos, Version};
use serde::{Deserialize, Serialize};

use crate::{CoapPlan, Secret, StreamPlan};

/// Devices that differ in nothing but their index and their row of the data file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetPlan {
    /// Its name in the result.
    pub name: String,
    /// Its place in the plan.
    pub id: FleetId,
    /// Its first device; the others follow without gaps.
    pub first_device: DeviceId,
    /// How many devices it has; at least 1.
    pub devices: u32,
    /// `${index}` of its first device.
    pub first_index: u32,
    /// Its first link; the others follow without gaps.
    pub first_link: LinkId,
    /// How many links it has: devices divided by `devices_per_link`, rounded up.
    pub links: u32,
    /// How many devices each link carries; the last one may carry fewer.
    pub devices_per_link: u32,
    /// Whether its links are gateways, which may carry several devices.
    pub is_gateway: bool,
    /// The names of its links, by their number from 0, where they have names of their own.
    pub link_names: Option<Names>,
    /// The names of its devices, from the index and back.
    pub names: Names,
    /// `${tenant}`; empty where the scenario names none.
    pub tenant: String,
    /// Its table, a row a device in their order; none where the scenario names no file.
    pub data: Option<Arc<Table>>,
    /// How its sessions are opened.
    pub client: ClientPlan,
    /// How its links prove who they are.
    pub credential: Credential,
    /// How its links are opened.
    pub connect: ConnectPlan,
    /// How its links are opened again.
    pub reconnect: ReconnectPlan,
    /// When its devices are offline on purpose; none: never.
    pub offline: Option<Absence>,
    /// What its devices send; may be empty (a connection test).
    pub streams: Vec<StreamPlan>,
}

impl FleetPlan {
    /// Whether a device is one of this fleet.
    pub fn contains(&self, device: DeviceId) -> bool {
        device
            .0
            .checked_sub(self.first_device.0)
            .is_some_and(|place| place < self.devices)
    }

    /// How many sockets its links have.
    pub fn sockets(&self) -> u32 {
        let coap = self.client.coap();
        coap.map_or(self.links, |coap| coap.sockets.of(self.links))
    }

    /// The link of one of this fleet's devices.
    pub fn link_of(&self, device: DeviceId) -> LinkId {
        LinkId(self.first_link.0 + (device.0 - self.first_device.0) / self.devices_per_link)
    }

    /// `${index}` of one of this fleet's devices.
    pub fn index_of(&self, device: DeviceId) -> u32 {
        self.first_index + (device.0 - self.first_device.0)
    }

    /// The first device that a link of this fleet carries; its name is the link's client id.
    pub fn first_device_of(&self, link: LinkId) -> DeviceId {
        DeviceId(self.first_device.0 + (link.0 - self.first_link.0) * self.devices_per_link)
    }

    /// True if its names are a list: a column of its table.
    pub const fn has_listed_names(&self) -> bool {
        matches!(self.names, Names::Listed(_))
    }

    /// Renders the name of the device at a place of the fleet into `out`, which is emptied first.
    pub fn render_name_at(&self, place: u32, out: &mut String) {
        out.clear();
        self.names.render(self.first_index + place, out);
    }

    /// The name of the device at a place of the fleet.
    pub fn name_at(&self, place: u32) -> String {
        let mut name = String::new();
        self.render_name_at(place, &mut name);
        name
    }

    /// The place of the device with this name.
    pub fn place_named(&self, name: &str) -> Option<u32> {
        let place = self.names.index_of(name)?.checked_sub(self.first_index)?;
        (place < self.devices).then_some(place)
    }

    /// What a link calls itself, into `out`, which is emptied first: the name of its own that `gateway.id`
    /// gives it, else that of its first device.
    pub fn render_link_name(&self, link: LinkId, roster: &Roster, out: &mut String) {
        let Some(names) = &self.link_names else {
            return roster.render_name(self.first_device_of(link), out);
        };
        out.clear();
        names.render(link.0 - self.first_link.0, out);
    }
}

/// How a fleet's sessions are opened, by the protocol that the devices' addresses name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientPlan {
    /// MQTT.
    Mqtt(Box<MqttPlan>),
    /// CoAP.
    Coap(CoapPlan),
}

impl ClientPlan {
    /// How MQTT sessions are opened; none with another protocol.
    pub const fn mqtt(&self) -> Option<&MqttPlan> {
        match self {
            Self::Mqtt(plan) => Some(plan),
            Self::Coap(_) => None,
        }
    }

    /// How devices speak CoAP; none with another protocol.
    pub const fn coap(&self) -> Option<&CoapPlan> {
        match self {
            Self::Coap(plan) => Some(plan),
            Self::Mqtt(_) => None,
        }
    }
}

/// How MQTT sessions are opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MqttPlan {
    /// The protocol's version.
    pub version: Version,
    /// What links call their sessions.
    pub client_id: ClientIdPlan,
    /// Whether the platform forgets an earlier session first.
    pub clean_start: bool,
    /// How long the platform keeps the session after the link ended; whole seconds.
    pub session_expiry: Micros,
    /// The keep-alive; whole seconds, 0 switches it off.
    pub keep_alive: Micros,
    /// The receive maximum that the devices announce (MQTT 5 section 3.1.2.11.3).
    pub receive_maximum: Option<u16>,
    /// What the platform publishes when a link ends unasked.
    pub will: Option<WillPlan>,
    /// What links prove beyond their credential.
    pub authentication: Option<AuthenticationPlan>,
}

/// The client ids of a fleet's links (MQTT 5 section 3.1.3.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientIdPlan {
    /// The link's name: its own, or that of its first device.
    LinkName,
    /// A text for each link, by its first device.
    Template(Template),
    /// None: the server assigns one with each CONNECT.
    Assigned,
}

/// Enhanced authentication (MQTT 5 section 4.12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthenticationPlan {
    /// The method that the CONNECT names.
    pub method: String,
    /// What goes with the CONNECT, and begins a further authentication.
    pub data: Secret<Octets>,
    /// What answers each challenge of the platform.
    pub answer: Secret<Octets>,
    /// Whether the challenge itself stands before the answer.
    pub echo: bool,
    /// How long after an authentication an open link begins another; none: never.
    pub again: Option<Micros>,
}

/// The will of a session (MQTT 5 section 3.1.2.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WillPlan {
    /// Its topic.
    pub topic: Template,
    /// Its payload.
    pub payload: Template,
    /// Its quality of service.
    pub qos: Qos,
    /// Whether it is retained.
    pub retain: bool,
    /// How long after the end of the link the platform publishes it (MQTT 5); whole seconds.
    pub delay: Micros,
}

/// How a link proves who it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Credential {
    /// Not at all.
    None,
    /// By user name and password.
    Password {
        /// The user name, per link.
        user: Template,
        /// The password, per link.
        secret: Secret<Octets>,
    },
    /// By an access token, which stands in the place of the user name.
    Token {
        /// The token, per link.
        token: Secret<Template>,
    },
    /// By a certificate, shown when TLS is opened.
    Certificate {
        /// The path of the file that holds it and its chain, per link.
        cert: Template,
        /// The path of the file that holds its key, per link.
        key: Template,
    },
    /// By a key that both ends know, of which DTLS names the owner (RFC 4279).
    Psk {
        /// The identity, per link.
        identity: Octets,
        /// The key, per link.
        secret: Secret<Octets>,
    },
}

/// A stretch in which the devices of a fleet are offline on purpose. `at` counts from the start of the
/// warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// When they leave.
    pub at: Micros,
    /// For how long.
    pub lasts: Micros,
    /// Whether links are reset, without a word of farewell.
    pub is_abrupt: bool,
}

/// How links are opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectPlan {
    /// New links a second, of the whole fleet.
    pub rate: Rate,
    /// The bound on handshakes under way, of the whole fleet.
    pub pending: u32,
    /// How long a handshake may take.
    pub timeout: Micros,
    /// A link is closed on purpose after this long; none keeps it.
    pub lifetime: Option<Micros>,
    /// Addresses of this machine that links come from, in turn; empty leaves it to the kernel.
    pub from: Vec<String>,
}

/// How links are opened again: exponential back-off between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReconnectPlan {
    /// The first wait.
    pub min: Micros,
    /// The longest wait.
    pub max: Micros,
    /// The share of each wait that is drawn at random, 0 to 1.
    pub jitter: f64,
}
