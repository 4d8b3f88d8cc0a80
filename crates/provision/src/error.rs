//! Errors of provisioning.

use std::time::Duration;

use muster_transport::TransportError;

use crate::rest::PRECONDITION_FAILED;

/// Error of provisioning, with the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The certificates of the management API cannot be checked.
    #[error("call the management API: {0}")]
    Transport(#[from] TransportError),
    /// No answer came.
    #[error("{call}: {why}; look whether {look}")]
    Silent {
        /// The method and the address.
        call: String,
        /// The system's reason.
        why: String,
        /// The condition to check.
        look: &'static str,
    },
    /// The answer is no.
    #[error("{call}: status {status}, {said}; {remedy}")]
    Refused {
        /// The method and the address.
        call: String,
        /// The status (RFC 9110 section 15).
        status: u16,
        /// Text of the answer.
        said: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The answer cannot be read.
    #[error(
        "{call}: the answer is not what this call is answered with: {why}; look whether \
         `provision.url` is the base of the management API"
    )]
    Unreadable {
        /// The method and the address.
        call: String,
        /// Its error.
        why: String,
    },
    /// A thing of this name is there, with another content.
    #[error(
        "{call}: the {kind} `{key}` is there already and differs: {how}; remove it there, or give \
         the scenario's devices another `id`"
    )]
    Differs {
        /// The method and the address of the call that found it.
        call: String,
        /// Its kind.
        kind: &'static str,
        /// Its name.
        key: String,
        /// In what it differs.
        how: String,
    },
    /// Single devices cannot be registered there while a run goes on.
    #[error(
        "register a refused device: this platform has no call for it; use `provision.mode: auto`"
    )]
    NoRegistration,
    /// The platform does not know the gateway.
    #[error(
        "{call}: there is no gateway whose alternate id is `{gateway}`; name one that is there by \
         `provision.gateway`"
    )]
    NoGateway {
        /// The method and the address of the call that looked for it.
        call: String,
        /// Its alternate id.
        gateway: String,
    },
    /// The platform does not know the tenant, and the run creates none.
    #[error(
        "{call}: there is no tenant `{tenant}`, and `provision.mode: verify` creates none; create it and its devices, \
         such as by `muster provision SCENARIO create`, or name a `tenant` that is there"
    )]
    NoTenant {
        /// The method and the address of the call that looked for it.
        call: String,
        /// Its name.
        tenant: String,
    },
    /// The user has no right to manage devices.
    #[error(
        "{call}: `{user}` is a {authority}, who may not create devices and rule chains; give the login of a \
         tenant administrator by `provision.user` and `provision.password`"
    )]
    Rights {
        /// The method and the address of the call that asked.
        call: String,
        /// The user.
        user: String,
        /// Its kind.
        authority: &'static str,
    },
    /// The server has no such call.
    #[error("{call}: status {status}: this server has no such call; {remedy}")]
    Lacks {
        /// The method and the address.
        call: String,
        /// The status (RFC 9110 section 15).
        status: u16,
        /// The remedy.
        remedy: &'static str,
    },
    /// An import of many devices failed in part.
    #[error(
        "{call}: {errors} of {of} devices were not created: {reasons}; those that were are recorded, and the \
         same can be tried again"
    )]
    Import {
        /// The method and the address.
        call: String,
        /// Devices that failed.
        errors: u64,
        /// Devices of the import.
        of: usize,
        /// The platform's reasons.
        reasons: String,
    },
    /// A fleet does not log in by access tokens.
    #[error(
        "create the devices of fleet `{fleet}`: only devices with access tokens can be created; write \
         `credential: {{ kind: token }}`, or create them by other means and write `provision: {{ mode: none }}`"
    )]
    NoToken {
        /// Its name.
        fleet: String,
    },
    /// Messages cannot be counted, or the rule chain cannot be put back.
    #[error("count messages at {target}: {why}")]
    RuleChain {
        /// The address.
        target: String,
        /// The reason, with the remedy.
        why: String,
    },
    /// The credential of a link is not of its tenant.
    #[error(
        "the identity `{identity}` is not `<auth-id>@{tenant}`, as which Hono knows a device of that \
         tenant: write `credential: {{ user: \"${{id}}@${{tenant}}\" }}`"
    )]
    Identity {
        /// Its identity.
        identity: String,
        /// The fleet's tenant.
        tenant: String,
    },
    /// Two devices prove themselves as the same one.
    #[error(
        "distinguish the devices `{one}` and `{other}` of tenant `{tenant}`: both log in as `{auth_id}`, and Hono \
         knows only one device by that: write `credential: {{ user: \"${{id}}@${{tenant}}\" }}`, and give each device its own `id`"
    )]
    SameLogin {
        /// Their tenant.
        tenant: String,
        /// The identity of both.
        auth_id: String,
        /// A device or gateway.
        one: String,
        /// Another one.
        other: String,
    },
    /// A database rejects a call.
    #[error("{call}: {why}; {remedy}")]
    Database {
        /// The call and its address.
        call: String,
        /// The database's reason.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The registry's database takes too long.
    #[error(
        "{call}: no answer within {} s; look whether the database is busy or lacks the registry's indexes, \
         or raise `provision.timeout`; what was done until now is recorded, and the same can be tried again",
        timeout.as_secs_f64()
    )]
    Late {
        /// The call and its address.
        call: String,
        /// For how long its answer was waited for.
        timeout: Duration,
    },
    /// This build does not speak to databases.
    #[error(
        "write into the registry's database: this build has no MongoDB; build it with `cargo build \
         --release --features mongodb`, or use `provision.url`"
    )]
    NoMongo,
    /// This build reads no database of ThingsBoard.
    #[error(
        "read what is stored from the database: this build has no PostgreSQL; build it with `cargo build --release \
         --features postgresql`, or use `read-back` without `from`"
    )]
    NoPostgres,
    /// The system has no random bytes.
    #[error("the system has no random bytes for the salt of a password")]
    Random,
    /// bcrypt hashes no more than the beginning of a password.
    #[error(
        "hash the password of `{auth_id}`: it is longer than the 71 bytes that bcrypt takes; shorten `credential.secret`, \
         or write `provision.password-hash: sha-512`"
    )]
    LongPassword {
        /// The device's identity.
        auth_id: String,
    },
    /// The record of what was created cannot be kept.
    #[error("keep the record {path}: {why}")]
    Journal {
        /// The file.
        path: String,
        /// Its error.
        why: String,
    },
    /// The system gives no thread.
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
    /// The watcher has ended it.
    #[error("provision the devices: it was interrupted; it can be continued")]
    Interrupted,
}

impl ProvisionError {
    /// Returns true if no answer came at all.
    pub const fn is_silence(&self) -> bool {
        matches!(self, Self::Silent { .. })
    }

    /// Returns true if a thing was changed by others after it was read, and was not written therefore.
    pub(crate) const fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: PRECONDITION_FAILED,
                ..
            }
        )
    }
}
