//! State for DTLS, of a thread and of a peer.

use std::sync::Arc;

use muster_protocol::dtls::{Context, CookieSecret, Crypto, Datagrams, Dtls, Settings};
use muster_transport::{AwsLc, DtlsCertificates, TransportError};

use crate::client_certificates::dtls_certificates;
use crate::config::{GatewayConfig, GatewayDtls};
use crate::resumable::Resumable;
use crate::secrets::Secrets;

/// Credentials of the gateway and its devices for DTLS.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    secrets: Arc<Secrets>,
    /// Own and devices' certificates, where there are any.
    certificates: Option<Arc<DtlsCertificates>>,
    /// The sessions that devices may resume.
    resumable: Resumable,
}

impl Credentials {
    /// # Errors
    /// [`TransportError`], which names the certificate or key that cannot be used.
    pub(crate) fn new(config: &GatewayConfig) -> Result<Self, TransportError> {
        let dtls = config.coaps.as_ref();
        let of_others = dtls.and_then(|dtls| dtls.secret.as_deref());
        Ok(Self {
            secrets: Arc::new(Secrets::new(&config.users, of_others)),
            certificates: dtls_certificates(config)?.map(Arc::new),
            resumable: Resumable::default(),
        })
    }
}

/// State of a thread for DTLS.
pub(crate) struct Secure {
    crypto: AwsLc,
    settings: Settings,
    credentials: Credentials,
    /// True if connection ids are agreed upon.
    pub(super) gives_ids: bool,
    /// Datagrams of handshakes and alerts that are to be sent.
    pub(super) out: Datagrams,
    /// A message on its way into a record.
    sealed: Vec<u8>,
}

/// One peer's session, and what it began with.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) dtls: Dtls<AwsLc>,
    /// Of its ClientHello.
    pub(super) random: [u8; 32],
}

impl std::fmt::Debug for Secure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secure").finish_non_exhaustive()
    }
}

impl Secure {
    /// None if the system gives no randomness.
    pub(crate) fn new(dtls: &GatewayDtls, credentials: &Credentials) -> Option<Self> {
        let tls = dtls.certificate.as_ref();
        let mut crypto = AwsLc::new();
        let mut secret = [0; 32];
        if !crypto.random(&mut secret) {
            return None;
        }
        Some(Self {
            crypto,
            settings: Settings {
                cookie_secret: Some(CookieSecret::new(secret)),
                client_certificate: tls.is_some_and(|tls| tls.needs_client_cert),
                ..Settings::default()
            },
            credentials: credentials.clone(),
            gives_ids: dtls.connection_id,
            out: Datagrams::new(),
            sealed: Vec::new(),
        })
    }

    /// The context for a call to a session, and the datagrams it writes to.
    pub(super) fn parts(&mut self) -> (Context<'_, AwsLc>, &mut Datagrams) {
        let Credentials {
            secrets,
            certificates,
            resumable,
        } = &mut self.credentials;
        let context = Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: certificates.as_deref().map(|it| it as _),
            keys: (!secrets.is_empty()).then_some(&**secrets as _),
            sessions: Some(resumable),
        };
        (context, &mut self.out)
    }

    /// The record of a message; none if the session cannot say anything any more.
    pub(super) fn seal(&mut self, guard: &mut Guard, message: &[u8]) -> Option<&[u8]> {
        self.sealed.clear();
        self.sealed.extend_from_slice(message);
        let is_sealed = guard.dtls.wrap(&mut self.sealed, 0);
        is_sealed.then_some(&self.sealed[..])
    }
}
