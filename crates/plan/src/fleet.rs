//! A fleet: devices of one kind, their links and how these are opened.

use std::sync::Arc;

use muster_load::{Names, Octets, Table, Template};
use muster_model::{DeviceId, FleetId, LinkId, Micros, Rate};
use muster_platform::{Directory, Protocol};
use serde::{Deserialize, Serialize};

use crate::{BackOff, CoapSettings, HttpSettings, MqttSettings, Offline, Secret, StreamPlan};

/// Devices that differ in nothing but their index and their row of the data file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetPlan {
    /// Its name in the result.
    pub name: String,
    /// Its place in the plan.
    pub id: FleetId,
    /// Its first device; the others follow without gaps.
    pub first_device: DeviceId,
    /// Number of its devices; at least 1.
    pub devices: u32,
    /// `${index}` of its first device.
    pub first_index: u32,
    /// Its first link; the others follow without gaps.
    pub first_link: LinkId,
    /// Number of its links: devices divided by `devices_per_link`, rounded up.
    pub links: u32,
    /// Number of devices that each link carries; the last one may carry fewer.
    pub devices_per_link: u32,
    /// True if its links are gateways, which may carry several devices.
    pub is_gateway: bool,
    /// The names of its links, by their number from 0, where `gateway.id` gives them names.
    pub link_names: Option<Names>,
    /// The names of its devices, from the index and back.
    pub names: Names,
    /// `${tenant}`; empty where the scenario names none.
    pub tenant: String,
    /// Its table, a row a device in their order; none where the scenario names no file.
    pub data: Option<Arc<Table>>,
    /// Settings of its sessions.
    pub client: ClientPlan,
    /// Credential of its links.
    pub credential: Credential,
    /// Settings for opening its links.
    pub connect: ConnectPlan,
    /// Waits before its links are opened again.
    pub reconnect: BackOff,
    /// Time in which its devices are offline on purpose; none: never.
    pub offline: Option<Offline>,
    /// Its streams; may be empty (a connection test).
    pub streams: Vec<StreamPlan>,
}

impl FleetPlan {
    /// Returns true if a device is one of this fleet.
    pub fn contains(&self, device: DeviceId) -> bool {
        device
            .0
            .checked_sub(self.first_device.0)
            .is_some_and(|place| place < self.devices)
    }

    /// Number of sockets of its links.
    pub fn sockets(&self) -> u32 {
        let coap = self.client.coap();
        coap.map_or(self.links, |coap| coap.sockets.sockets(self.links))
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

    /// Renders a link's name into `out`, which is emptied first: the name that `gateway.id` gives
    /// it, else that of its first device.
    pub fn render_link_name(&self, link: LinkId, directory: &Directory, out: &mut String) {
        let Some(names) = &self.link_names else {
            return directory.render_name(self.first_device_of(link), out);
        };
        out.clear();
        names.render(link.0 - self.first_link.0, out);
    }
}

/// The settings of a fleet's sessions, by the protocol that the devices' addresses name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientPlan {
    /// MQTT.
    Mqtt(Box<MqttSettings>),
    /// CoAP.
    Coap(CoapSettings),
    /// HTTP.
    Http(HttpSettings),
}

impl ClientPlan {
    /// The protocol of the sessions.
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::Mqtt(_) => Protocol::Mqtt,
            Self::Coap(_) => Protocol::Coap,
            Self::Http(_) => Protocol::Http,
        }
    }

    /// The settings of MQTT; none with another protocol.
    pub const fn mqtt(&self) -> Option<&MqttSettings> {
        if let Self::Mqtt(settings) = self {
            return Some(settings);
        }
        None
    }

    /// The settings of CoAP; none with another protocol.
    pub const fn coap(&self) -> Option<&CoapSettings> {
        if let Self::Coap(settings) = self {
            return Some(settings);
        }
        None
    }

    /// The settings of HTTP; none with another protocol.
    pub const fn http(&self) -> Option<&HttpSettings> {
        if let Self::Http(settings) = self {
            return Some(settings);
        }
        None
    }

    /// Leaves of the settings only what connecting needs.
    pub(crate) fn only_connecting(&mut self, needed_packet: u32, is_plain: bool) {
        match self {
            Self::Mqtt(mqtt) => {
                mqtt.needed_packet = needed_packet;
                mqtt.will = None;
            }
            Self::Coap(coap) => {
                coap.pings = is_plain;
                coap.sockets = coap.sockets.apart();
            }
            Self::Http(_) => {}
        }
    }

    /// Bounds what a session receives, in bytes of a packet or body.
    pub fn limit(&mut self, bytes: u32) {
        match self {
            Self::Mqtt(settings) => settings.maximum_packet_size = bytes,
            Self::Coap(settings) => Arc::make_mut(&mut settings.client).body_max = bytes,
            Self::Http(settings) => settings.body_max = bytes,
        }
    }
}

/// Proof of a link's identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Credential {
    /// No proof.
    None,
    /// By user name and password.
    Password {
        /// The user name, per link.
        user: Template,
        /// The password, per link.
        secret: Secret<Octets>,
    },
    /// By an access token, sent as the user name.
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
        /// The place of the paths in the scenario, such as `scenario.yaml:12`.
        place: String,
    },
    /// By a shared key, whose owner DTLS names by an identity (RFC 4279).
    Psk {
        /// The identity, per link.
        identity: Octets,
        /// The key, per link.
        secret: Secret<Octets>,
    },
}

/// User name and password of a fleet's links, as templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// The user name; it may be an access token.
    pub user: Secret<Template>,
    /// The password, if there is one.
    pub password: Option<Secret<Octets>>,
}

impl Credential {
    /// The user name and password that it stands for.
    pub fn login(&self) -> Option<Login> {
        match self {
            Self::None | Self::Certificate { .. } | Self::Psk { .. } => None,
            Self::Password { user, secret } => Some(Login {
                user: Secret::new(user.clone()),
                password: Some(secret.clone()),
            }),
            Self::Token { token } => Some(Login {
                user: token.clone(),
                password: None,
            }),
        }
    }
}

/// Settings for opening links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectPlan {
    /// New links a second, of the whole fleet.
    pub rate: Rate,
    /// Links that connect at the same instant; at least 1.
    pub pack: u32,
    /// The bound on handshakes under way, of the whole fleet.
    pub pending: u32,
    /// Longest time that a handshake may take.
    pub timeout: Micros,
    /// A link is closed on purpose after this long; none keeps it.
    pub lifetime: Option<Micros>,
    /// Addresses of this machine that links come from, in turn; empty leaves it to the kernel.
    pub from: Vec<String>,
}
