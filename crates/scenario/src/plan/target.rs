//! The system under test and the business application behind it.

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use muster_platform::Dialect;
use muster_protocol::mqtt::{Qos, Version};
use serde::{Deserialize, Serialize};

use super::{Endpoint, Scheme, Secret, TlsPlan};

/// The system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlatformPlan {
    /// What it is.
    pub kind: PlatformKind,
    /// Where devices connect; several are spread over the links. Never empty.
    /// All of one scheme.
    pub endpoints: Vec<Endpoint>,
    /// How its certificate is checked, where the scheme has TLS.
    pub tls: TlsPlan,
    /// A file that says what the target is: its name and text, copied into the result.
    pub about: Option<(String, String)>,
}

/// What the system under test is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PlatformKind {
    /// The reference gateway, started by the run itself.
    Gateway {
        /// What it speaks.
        dialect: Dialect,
        /// How it misbehaves (DESIGN section 9).
        behaviour: Box<Behaviour>,
    },
    /// A platform that runs elsewhere.
    Deployed {
        /// What it speaks.
        dialect: Dialect,
    },
}

impl PlatformPlan {
    /// How its devices and it speak to each other.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        match self.kind {
            PlatformKind::Gateway { dialect, .. } | PlatformKind::Deployed { dialect } => dialect,
        }
    }
}

impl PlatformPlan {
    /// The scheme of all addresses of the devices.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        let first = self.endpoints.first();
        first.map_or(Scheme::Mqtt, |endpoint| endpoint.scheme)
    }
}

/// One northbound account: what the business application sees.
///
/// Plain subscribers are accounts of their own, so `consumers` is above one only with `shared`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendPlan {
    /// Its name in the result.
    pub name: String,
    /// Where it connects; the embedded gateway's own address where the port is 0.
    pub endpoint: Endpoint,
    /// How the certificate there is checked, where the scheme has TLS.
    pub tls: TlsPlan,
    /// The version of MQTT its consumers speak.
    pub version: Version,
    /// Its user name.
    pub user: Option<Secret>,
    /// Its password.
    pub password: Option<Secret>,
    /// The topic filter it subscribes to, without the `$share` prefix.
    pub filter: String,
    /// The quality of service it subscribes with.
    pub qos: Qos,
    /// How many consumer sessions share the account's messages; at least 1.
    pub consumers: u16,
    /// The group of its shared subscription (MQTT 5 section 4.8.2).
    pub shared: Option<String>,
    /// When its consumers stop reading.
    pub pause: Vec<Pause>,
    /// Whether its consumer issues the commands of the run.
    pub issues_commands: bool,
}

impl BackendPlan {
    /// The filter as it goes into SUBSCRIBE.
    #[must_use]
    pub fn subscription(&self) -> String {
        match &self.shared {
            Some(group) => format!("$share/{group}/{}", self.filter),
            None => self.filter.clone(),
        }
    }
}

/// A stretch in which a consumer does not read. `at` counts from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it stops.
    pub at: Micros,
    /// For how long.
    pub lasts: Micros,
}
