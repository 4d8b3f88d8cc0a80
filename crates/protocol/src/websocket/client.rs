//! The client's handshake: its request, and what it demands of the answer (RFC 6455 section 4.1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::http::{AcceptKey, Fields, accept_key, read_answer};
use super::{Fault, SUBPROTOCOL};

/// Fields that are written here, and those that would change what they mean.
const OWN_FIELDS: [&str; 5] = [
    "host",
    "upgrade",
    "connection",
    "content-length",
    "transfer-encoding",
];
const OWN_PREFIX: &str = "sec-websocket-";

/// A client's request for an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upgrade<'a> {
    /// The server, with its port unless that is the scheme's own, as in `example.com:8080`
    /// (section 4.1, item 4).
    pub host: &'a str,
    /// The path and query, as in `/mqtt` (section 3).
    pub path: &'a str,
    /// Further fields, such as `Authorization` (section 4.1, item 12).
    pub fields: &'a [(&'a str, &'a str)],
}

impl<'a> Upgrade<'a> {
    /// Without further fields.
    pub const fn new(host: &'a str, path: &'a str) -> Self {
        Self {
            host,
            path,
            fields: &[],
        }
    }

    /// Checks that it can be written as an HTTP/1.1 request.
    ///
    /// # Errors
    /// [`UpgradeError`], which names what cannot.
    pub fn check(&self) -> Result<(), UpgradeError> {
        if self.host.is_empty() || !is_graphic(self.host) {
            return Err(UpgradeError::Host(self.host.to_owned()));
        }
        if !self.path.starts_with('/') || self.path.contains('#') || !is_graphic(self.path) {
            return Err(UpgradeError::Path(self.path.to_owned()));
        }
        self.fields.iter().try_for_each(check_field)
    }

    fn render(&self, nonce: &str) -> Vec<u8> {
        let Self { host, path, fields } = self;
        let mut text = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
        );
        for (name, value) in *fields {
            text.extend([*name, ": ", *value, "\r\n"]);
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// Reason that an [`Upgrade`] cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpgradeError {
    /// The host is empty, or holds what a host cannot.
    #[error("`{0}` is no host: write it as example.com or example.com:8080")]
    Host(String),
    /// The path is not absolute, or holds what a path cannot.
    #[error("`{0}` is no path: write it as /mqtt, with spaces and the like as %20, without #")]
    Path(String),
    /// The name of a further field is not a token (RFC 9110 section 5.6.2), or is written by the
    /// handshake itself.
    #[error("`{0}` cannot be a further field: choose a name that the handshake does not use")]
    FieldName(String),
    /// The value of a further field holds control characters (RFC 9110 section 5.5).
    #[error("the value of the field `{0}` holds a line break or another control character")]
    FieldValue(String),
}

fn check_field(&(name, value): &(&str, &str)) -> Result<(), UpgradeError> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    let is_own = OWN_FIELDS.contains(&lower.as_str()) || lower.starts_with(OWN_PREFIX);
    if name.is_empty() || !name.bytes().all(is_token) || is_own {
        return Err(UpgradeError::FieldName(name.to_owned()));
    }
    if value
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err(UpgradeError::FieldValue(name.to_owned()));
    }
    Ok(())
}

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A client's handshake under way.
#[derive(Debug)]
pub(super) struct Asking {
    /// The request; empty once it was said.
    pub(super) request: Vec<u8>,
    accept: AcceptKey,
}

impl Asking {
    pub(super) fn new(upgrade: &Upgrade<'_>, nonce: [u8; 16]) -> Self {
        let nonce = STANDARD.encode(nonce);
        Self {
            request: upgrade.render(&nonce),
            accept: accept_key(nonce.as_bytes()),
        }
    }

    /// Judges the complete answer, in the order of section 4.1.
    pub(super) fn judge(&self, head: &[u8]) -> Result<(), Fault> {
        read_answer(head, |status, fields| match status {
            101 => self.judge_switch(fields),
            other => Err(Fault::Refused(other)),
        })
    }

    fn judge_switch(&self, fields: &Fields<'_>) -> Result<(), Fault> {
        let upgrades = fields.single("upgrade")?.unwrap_or_default();
        if !upgrades.eq_ignore_ascii_case(b"websocket") || !fields.lists("connection", "upgrade") {
            return Err(Fault::NotUpgraded);
        }
        if fields.single("sec-websocket-accept")? != Some(&self.accept) {
            return Err(Fault::AcceptKey);
        }
        if fields.has("sec-websocket-extensions") {
            return Err(Fault::Extension);
        }
        if fields.single("sec-websocket-protocol")? != Some(SUBPROTOCOL.as_bytes()) {
            return Err(Fault::Subprotocol);
        }
        Ok(())
    }
}
