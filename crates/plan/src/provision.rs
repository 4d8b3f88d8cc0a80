//! Registration of devices with the platform before they connect.

use std::fmt;

use muster_model::{Micros, Rate};

use crate::{PemFile, Secret};

/// Registration of a plan's devices with the platform.
///
/// Not part of a plan's binary form: it holds secrets, and only whoever starts the run has a
/// use for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvisionPlan {
    /// Action that a run takes by itself.
    pub mode: ProvisionMode,
    /// True if a run removes at its end what it has created.
    pub remove: bool,
    /// The platform's management API; none is that of the embedded gateway.
    pub api: Option<WebAddress>,
    /// Version of that management API, with a platform that has had several.
    pub registry: RegistryApi,
    /// The connection string of the registry's database, where that is written to and no management
    /// API is called.
    pub mongodb: Option<Secret>,
    /// Authorisation of the calls.
    pub credential: Option<ApiCredential>,
    /// Authorities that are trusted there; none stands for those of this machine.
    pub ca: Option<PemFile>,
    /// True if any certificate is accepted there.
    pub insecure: bool,
    /// The platform's own name of the gateway that the devices belong to.
    pub gateway: String,
    /// Hash of passwords, with a platform that is sent hashes.
    pub password_hash: PasswordHash,
    /// Things of ThingsBoard besides devices, and the way in which devices are created there.
    pub board: BoardProvision,
    /// Calls a second at the most.
    pub rate: Rate,
    /// Calls without an answer at the most; at least 1.
    pub pending: u16,
    /// Longest time that one call may take.
    pub timeout: Micros,
}

impl ProvisionPlan {
    /// The most calls without an answer: each needs a connection and a thread.
    pub const PENDING_MAX: u16 = 64;

    /// Returns true if a run takes any certificate of the management API that it calls by itself, or of the database that it
    /// reads.
    pub fn trusts_anybody(&self) -> bool {
        let is_tls = self.api.as_ref().is_some_and(|api| api.is_tls);
        let is_called = is_tls && self.mode != ProvisionMode::None;
        let database = self.board.database.as_ref();
        let check = database.and_then(|database| database.tls.as_ref());
        is_called && self.insecure || check.is_some_and(|check| check.insecure)
    }
}

/// Provisioning of a tenant of ThingsBoard.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoardProvision {
    /// The profile of new devices, created if it is missing; none is the default profile.
    pub profile: Option<String>,
    /// Number of customers that the devices are distributed to.
    pub customers: u32,
    /// Devices that one import creates at the most; none creates each by one call.
    pub bulk: Option<u16>,
    /// True if messages are counted in the rule engine, by a copy of the root rule chain.
    pub count: bool,
    /// True if the stored time series are read when the load has ended.
    pub read_back: bool,
    /// The platform's database, where they are read from that; none where the REST API is called.
    pub database: Option<DatabasePlan>,
}

impl BoardProvision {
    /// The most devices of one import: it is answered when all are created.
    pub const BULK_MAX: u16 = 10_000;
    /// The most customers.
    pub const CUSTOMERS_MAX: u32 = 10_000;
}

/// A PostgreSQL database that is read.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabasePlan {
    /// Name or address of the server; an IPv6 address without its brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Name of the database.
    pub name: String,
    /// Its user, who only reads.
    pub user: String,
    /// Password of the user; none where the server asks for none.
    pub password: Option<Secret>,
    /// Check of the server's certificate; none without TLS.
    pub tls: Option<CertificateCheck>,
}

impl fmt::Display for DatabasePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port, name) = (&self.host, self.port, &self.name);
        match host.contains(':') {
            true => write!(f, "postgresql://[{host}]:{port}/{name}"),
            false => write!(f, "postgresql://{host}:{port}/{name}"),
        }
    }
}

/// Check of a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateCheck {
    /// Authorities that are trusted; none stands for those of this machine.
    pub ca: Option<PemFile>,
    /// True if any certificate is accepted.
    pub insecure: bool,
}

/// Authorisation of the calls of a management API.
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

/// Hash of a device's password in Hono's device registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PasswordHash {
    /// SHA-512 over salt and password.
    #[default]
    Sha512,
    /// bcrypt, with which one check takes an adapter tens of milliseconds.
    Bcrypt {
        /// Binary logarithm of its rounds.
        cost: u8,
    },
}

impl PasswordHash {
    /// Cost of bcrypt where a scenario has none: the highest that Hono takes by default.
    pub const BCRYPT_COST: u8 = 10;
    /// The lowest cost that bcrypt has.
    pub const BCRYPT_COST_MIN: u8 = 4;
    /// The highest cost: one hash takes a second of a CPU, and each device needs one.
    pub const BCRYPT_COST_MAX: u8 = 14;
}

/// The management API of Hono's device registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegistryApi {
    /// Version 1, since release 1.0.
    #[default]
    V1,
    /// The API before version 1.
    Legacy,
}

/// Action of a run on the devices before they connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProvisionMode {
    /// Creates the devices that are missing.
    Auto,
    /// Checks that the devices are there.
    Verify,
    /// Creates a device when the platform refuses it, while the run goes on.
    OnRefusal,
    /// Nothing.
    None,
}

/// The address of an HTTP service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    /// True if TLS carries it.
    pub is_tls: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; none is the scheme's own.
    pub port: Option<u16>,
    /// Beginning of every path, without a slash at its end; may be empty.
    pub path: String,
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
