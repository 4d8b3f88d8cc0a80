//! Source of the layers of a gateway's links.

use std::sync::Arc;

use muster_protocol::layer::{Plain, Stack};
use muster_protocol::websocket::WebSocket;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    ClientCertVerifierBuilder, ServerConfig, UnbufferedServerConnection, WebPkiClientVerifier,
};
use rustls::{CommonState, HandshakeKind};

use super::client::{Versions, provider};
use super::pem::{Own, Pem, TransportError};
use super::{TlsServer, subject, trust};
use crate::Any;

/// Inputs of a gateway's layers; the default is none.
#[derive(Debug, Clone, Default)]
pub struct ServerSpec {
    /// Settings of TLS, if there is any.
    pub tls: Option<ServerTls>,
    /// True if there is WebSocket; any path is served.
    pub is_websocket: bool,
}

/// Settings of a gateway's TLS.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// Its certificate and chain.
    pub cert: Pem,
    /// Its key.
    pub key: Pem,
    /// Trusted authorities of client certificates; none requests no certificate.
    pub client_ca: Option<Pem>,
    /// True to reject clients without a certificate.
    pub is_client_cert_needed: bool,
    /// The versions that may be spoken.
    pub versions: Versions,
}

impl ServerTls {
    /// Clients are asked for nothing.
    pub const fn new(cert: Pem, key: Pem) -> Self {
        Self {
            cert,
            key,
            client_ca: None,
            is_client_cert_needed: false,
            versions: Versions::Both,
        }
    }
}

/// Source of the layers of a gateway's links.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    tls: Option<Arc<ServerConfig>>,
    is_websocket: bool,
}

impl Servers {
    /// Returns the source of the layers of a gateway's links.
    ///
    /// # Errors
    /// [`TransportError`], which names the file that cannot be used.
    pub fn new(spec: &ServerSpec) -> Result<Self, TransportError> {
        let tls = spec.tls.as_ref().map(config).transpose()?;
        Ok(Self {
            tls: tls.map(Arc::new),
            is_websocket: spec.is_websocket,
        })
    }

    /// The settings of TLS, for an end that drives it with a library; none without TLS.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.clone()
    }

    /// The layer of a connection that was accepted, not opened yet. A connection for which TLS
    /// gives none is over from the start.
    pub fn layer(&self) -> Any<TlsServer> {
        let websocket = || WebSocket::server(None);
        let tls = |config: &Arc<ServerConfig>| {
            UnbufferedServerConnection::new(Arc::clone(config))
                .map_or_else(|_| TlsServer::default(), TlsServer::new)
        };
        match (&self.tls, self.is_websocket) {
            (None, false) => Any::Plain(Plain),
            (None, true) => Any::WebSocket(websocket()),
            (Some(config), false) => Any::Tls(tls(config)),
            (Some(config), true) => Any::Both(Stack::new(websocket(), tls(config))),
        }
    }
}

fn config(spec: &ServerTls) -> Result<ServerConfig, TransportError> {
    let own = Own::new(&spec.cert, &spec.key)?;
    let provider = provider();
    let clients = match &spec.client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(ca) => {
            let builder = client_verifiers(ca, &provider)?;
            let builder = if spec.is_client_cert_needed {
                builder
            } else {
                builder.allow_unauthenticated()
            };
            builder.build().map_err(|error| ca.unusable(&error))?
        }
    };
    let resolver = rustls::sign::SingleCertAndKey::from(own.0);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&spec.versions.list())?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(resolver));
    // Tickets carry the session themselves, so that no number of clients fills a store.
    config.ticketer = Ticketer::new()?;
    config.send_tls13_tickets = 1;
    Ok(config)
}

/// Checks certificates of clients, which must have one.
pub(crate) fn client_verifier(
    ca: &Pem,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TransportError> {
    let builder = client_verifiers(ca, provider)?;
    builder.build().map_err(|error| ca.unusable(&error))
}

fn client_verifiers(
    ca: &Pem,
    provider: &Arc<CryptoProvider>,
) -> Result<ClientCertVerifierBuilder, TransportError> {
    let roots = Arc::new(trust::roots(ca)?);
    let provider = Arc::clone(provider);
    Ok(WebPkiClientVerifier::builder_with_provider(roots, provider))
}

/// Identity of a client by its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The subject of its certificate, in the manner of RFC 4514 but in the certificate's order.
    pub subject: String,
    /// True if its session was resumed, so that the certificate is that of the session.
    pub is_resumed: bool,
}

impl PeerIdentity {
    /// The identity of the client of an open connection, if it showed a certificate.
    pub fn new(connection: &CommonState) -> Option<Self> {
        let certificate = connection.peer_certificates()?.first()?;
        Some(Self {
            subject: subject::of(certificate)?,
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        })
    }
}

impl TlsServer {
    /// Returns the client's identity, once the connection is open and if it showed a certificate.
    pub fn peer(&self) -> Option<PeerIdentity> {
        PeerIdentity::new(self.connection()?)
    }

    /// Returns true if the session of an open connection was resumed; none before.
    pub fn is_resumed(&self) -> Option<bool> {
        let kind = self.connection()?.handshake_kind()?;
        Some(kind == HandshakeKind::Resumed)
    }
}
