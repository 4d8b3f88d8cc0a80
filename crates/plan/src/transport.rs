//! Transport between a session and the network: addresses, and TLS.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Scheme, Secret};

/// An address to connect to. The host may still need to be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// The protocol.
    pub scheme: Scheme,
    /// A name or an address; an IPv6 address without its brackets, with its zone behind a `%`.
    pub host: String,
    /// The port; 0 (kind gateway only) is a free port chosen when the gateway starts.
    pub port: u16,
    /// The path and query of a WebSocket address, or the path before those of all requests over HTTP,
    /// beginning with a slash; empty for others.
    pub path: String,
}

impl Endpoint {
    /// Addresses in words, each once: one with a weight stands there several times.
    pub fn each_once<'a>(endpoints: impl Iterator<Item = &'a Self>) -> Vec<String> {
        let mut addresses: Vec<String> = Vec::new();
        for address in endpoints.map(ToString::to_string) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }

    /// Host and port as a URL writes them, with a zone as RFC 6874 has it.
    pub fn authority(&self) -> String {
        self.with_port(&self.host.replace('%', "%25"))
    }

    /// The host without its zone, which means something on this machine only.
    pub fn host_name(&self) -> &str {
        self.host.split('%').next().unwrap_or_default()
    }

    /// Host and port as they are sent to a peer, without a zone (RFC 6874 section 4).
    pub fn authority_without_zone(&self) -> String {
        self.with_port(self.host_name())
    }

    /// Host and port as libraries take them, with a zone as the system writes it.
    pub fn socket_authority(&self) -> String {
        self.with_port(&self.host)
    }

    /// Host and port as a request of HTTP names them: without the scheme's own port, and without a free
    /// one that is not chosen yet.
    pub fn http_host(&self) -> String {
        let is_usual = self.port == self.scheme.default_port() || self.port == 0;
        let authority = self.authority_without_zone();
        let port = authority.rfind(':').filter(|_| is_usual);
        port.map_or(&authority[..], |port| &authority[..port])
            .to_owned()
    }

    fn with_port(&self, host: &str) -> String {
        let port = self.port;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, path) = (self.scheme.name(), &self.path);
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

/// Returns true if a host is this machine for certain: `localhost` or a loopback address, IPv6 without brackets.
pub fn is_loopback(host: &str) -> bool {
    let is_byte = |part: &str| part.parse::<u8>().is_ok();
    let is_ipv4 = host.split('.').count() == 4 && host.split('.').all(is_byte);
    matches!(host, "localhost" | "::1") || is_ipv4 && host.starts_with("127.")
}

/// A file of certificates or a key (RFC 7468), as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PemFile {
    /// The file's name, as the scenario has it.
    pub name: String,
    /// Its content.
    pub text: Vec<u8>,
}

/// The versions of TLS that may be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

/// Settings of TLS, among them the checks of the peer's certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsPlan {
    /// Authorities that we trust; none stands for those of this machine.
    pub ca: Option<PemFile>,
    /// The name that the certificate must have; none is the address's host.
    pub server_name: Option<String>,
    /// True if any certificate is accepted.
    pub insecure: bool,
    /// The versions that may be spoken.
    pub versions: TlsVersions,
    /// The protocol that is offered by ALPN (RFC 7301).
    pub alpn: Option<String>,
    /// True if a link that connects again resumes its own session; none leaves it to what carries
    /// the link ([`TlsPlan::resumes`]).
    pub resumption: Option<bool>,
    /// The certificate and the key of a backend's consumers.
    pub own: Option<(PemFile, Secret<PemFile>)>,
    /// Authorities that the embedded gateway trusts when a device shows a certificate.
    pub client_ca: Option<PemFile>,
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self {
            ca: None,
            server_name: None,
            insecure: false,
            versions: TlsVersions::Both,
            alpn: None,
            resumption: None,
            own: None,
            client_ca: None,
        }
    }
}

impl TlsPlan {
    /// Returns true if a link over this scheme that connects again resumes its own session. By
    /// default it does over TLS, and not over DTLS, where a device at rest would need half as
    /// much memory again.
    pub fn resumes(&self, scheme: Scheme) -> bool {
        self.resumption.unwrap_or(!scheme.is_dtls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_weight_is_listed_once() {
        let at = |host: &str| Endpoint {
            scheme: Scheme::Http,
            host: host.to_owned(),
            port: 80,
            path: String::new(),
        };
        let weighted = [at("a"), at("b"), at("a"), at("a")];
        let listed = ["http://a:80", "http://b:80"];
        assert_eq!(Endpoint::each_once(weighted.iter()), listed);
    }

    #[test]
    fn only_localhost_and_loopback_addresses_are_this_machine_for_certain() {
        for host in ["localhost", "127.0.0.1", "127.0.0.2", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["127.db.example", "127.0.0.1.example", "10.0.0.1", "::2", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
