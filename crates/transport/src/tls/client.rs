//! Source of the TLS ends of links, with their identities.

use std::sync::Arc;

use muster_model::TlsFailure;
use muster_protocol::layer::{LayerError, Layers};
use rustls::client::{ClientConfig, Resumption, UnbufferedClientConnection};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};

use super::pem::{Own, Pem, TransportError};
use super::sessions::OwnSession;
use super::{TlsClient, trust};
use crate::Peer;

/// Settings of TLS.
#[derive(Debug, Clone)]
pub struct TlsSpec {
    /// Trusted authorities; none for those of this machine.
    pub ca: Option<Pem>,
    /// True to accept any certificate.
    pub insecure: bool,
    /// The versions that may be spoken.
    pub versions: Versions,
    /// The protocol that is offered by ALPN (RFC 7301).
    pub alpn: Option<String>,
    /// True if a link that connects again resumes its own session.
    pub resumption: bool,
}

impl Default for TlsSpec {
    fn default() -> Self {
        Self {
            ca: None,
            insecure: false,
            versions: Versions::Both,
            alpn: None,
            resumption: true,
        }
    }
}

impl TlsSpec {
    /// Returns the settings that all links share.
    ///
    /// # Errors
    /// [`TransportError`] if the trusted certificates cannot be used.
    pub fn client_config(&self) -> Result<ClientConfig, TransportError> {
        let provider = provider();
        let verifier = trust::verifier(self, &provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions.list())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        if let Some(protocol) = &self.alpn {
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        }
        Ok(config)
    }
}

/// The versions of TLS that may be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

impl Versions {
    pub(super) fn list(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&TLS13, &TLS12],
            Self::Only12 => vec![&TLS12],
            Self::Only13 => vec![&TLS13],
        }
    }
}

/// The one stack of cryptography. What devices offer first is the suite that all must have (RFC 8446
/// section 9.1) and that those with small processors choose; its hash is also the one that a
/// generator's processor has instructions for.
pub fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    let is_first =
        |suite: &SupportedCipherSuite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.sort_by_key(is_first);
    Arc::new(provider)
}

/// Source of the TLS ends of links. Common parts are held once; a link has its own if it shows a
/// certificate, or once it has a session to resume.
#[derive(Debug)]
pub struct TlsLinks {
    common: Arc<ClientConfig>,
    names: Vec<ServerName<'static>>,
    resumption: bool,
    /// By the link's number, in its order.
    own: Vec<(u32, Arc<ClientConfig>)>,
}

impl TlsLinks {
    pub(crate) fn new(
        spec: &TlsSpec,
        peers: &[Peer],
        own: Vec<(u32, Own)>,
    ) -> Result<Self, TransportError> {
        let common = Arc::new(spec.client_config()?);
        let names = peers.iter().map(|peer| {
            ServerName::try_from(peer.name.clone())
                .map_err(|_| TransportError::Name(peer.name.clone()))
        });
        let mut links = Self {
            names: names.collect::<Result<_, _>>()?,
            resumption: spec.resumption,
            own: Vec::with_capacity(own.len()),
            common,
        };
        for (link, own) in own {
            let config = links.config_of(Some(own));
            links.own.push((link, config));
        }
        links.own.sort_by_key(|(link, _)| *link);
        Ok(links)
    }

    /// Returns the private part of one link: its certificate, and its store of sessions. Tickets
    /// are never shared, or one device would connect in another's name.
    fn config_of(&self, own: Option<Own>) -> Arc<ClientConfig> {
        let mut config = (*self.common).clone();
        if self.resumption {
            config.resumption = Resumption::store(Arc::new(OwnSession::default()));
        }
        if let Some(own) = own {
            config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(own.0));
        }
        Arc::new(config)
    }

    /// Returns the settings of one link, and the name that its peer's certificate must have.
    pub(crate) fn settings(&mut self, link: u32) -> (Arc<ClientConfig>, ServerName<'static>) {
        let name = self.names[link as usize % self.names.len()].clone();
        (self.config(link), name)
    }

    fn config(&mut self, link: u32) -> Arc<ClientConfig> {
        match self.own.binary_search_by_key(&link, |(link, _)| *link) {
            Ok(at) => Arc::clone(&self.own[at].1),
            Err(_) if !self.resumption => Arc::clone(&self.common),
            Err(at) => {
                let config = self.config_of(None);
                self.own.insert(at, (link, Arc::clone(&config)));
                config
            }
        }
    }
}

impl Layers for TlsLinks {
    type Layer = TlsClient;

    fn layer(&mut self, link: u32) -> Result<TlsClient, LayerError> {
        let (config, name) = self.settings(link);
        let connection = UnbufferedClientConnection::new(config, name);
        // What a configuration lacks was found when it was made.
        connection
            .map(TlsClient::new)
            .map_err(|_| LayerError::Tls(TlsFailure::OwnCredential))
    }
}
