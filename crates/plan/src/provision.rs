//! What the platform has to know before devices connect.

use std::fmt;

use muster_model::{Micros, Rate};

use crate::{PemFile, Secret};

/// How the devices of a plan come to be known to the platform.
///
/// It is no part of a plan's binary form: it holds secrets, and only whoever starts the run has a
/// use for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvisionPlan {
    /// What a run does of itself.
    pub mode: ProvisionMode,
    /// Whether a run removes at its end what it has created.
    pub remove: bool,
    /// The platform's management API; none is that of the embedded gateway.
    pub api: Option<WebAddress>,
    /// Which management API that is, with a platform that has had several.
    pub registry: RegistryApi,
    /// The connection string of the registry's database, where that is written to and no management
    /// API is called.
    pub mongodb: Option<Secret>,
    /// What authorises the calls.
    pub credential: Option<ApiCredential>,
    /// Whose certificate is taken there; none is whom this machine trusts.
    pub ca: Option<PemFile>,
    /// Whether any certificate will do there.
    pub insecure: bool,
    /// The platform's own name of the gateway that the devices belong to.
    pub gateway: String,
    /// Calls a second at the most.
    pub rate: Rate,
    /// Calls without an answer at the most; at least 1.
    pub pending: u16,
    /// How long one call may take.
    pub timeout: Micros,
}

impl ProvisionPlan {
    /// The most calls without an answer: each needs a connection and a thread.
    pub const PENDING_MAX: u16 = 64;

    /// Whether a run calls the management API of itself and takes any certificate there.
    pub fn trusts_anybody(&self) -> bool {
        let is_tls = self.api.as_ref().is_some_and(|api| api.is_tls);
        is_tls && self.insecure && self.mode != ProvisionMode::None
    }
}

/// What authorises the calls of a management API.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiCredential {
    /// A bearer token (RFC 6750).
    Bearer(Secret),
    /// HTTP Basic (RFC 7617).
    Basic {
        /// Without a colon.
        user: Secret,
        /// Its password.
        password: Secret,
    },
}

/// The management API of Hono's device registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegistryApi {
    /// Version 1, since release 1.0.
    #[default]
    V1,
    /// What was before it.
    Legacy,
}

/// What a run does about the devices before they connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProvisionMode {
    /// It creates those that are not there.
    Auto,
    /// It looks whether they are there.
    Verify,
    /// Nothing.
    None,
}

/// The address of an HTTP service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    /// Whether TLS carries it.
    pub is_tls: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; none is the scheme's own.
    pub port: Option<u16>,
    /// What stands before every path, without a slash at its end; may be empty.
    pub path: String,
}

impl WebAddress {
    /// Whether it is on this machine for certain.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.as_str();
        host == "localhost" || host == "::1" || host.starts_with("127.")
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        let host = &self.host;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]")?;
        } else {
            write!(f, "{scheme}://{host}")?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}
