//! Own and peers' certificates for DTLS, judged as for TLS.

use std::sync::Arc;

use muster_model::TlsFailure;
use muster_protocol::dtls::{CertificateFault, Certificates, Peer};
use rustls::SignatureScheme;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use webpki::EndEntityCert;

use crate::tls::{
    Own, Pem, TlsSpec, TransportError, cause_of, client_verifier, crypto_provider, server_verifier,
    subject_of,
};

/// Our own certificate, and whom we trust.
#[derive(Debug)]
pub struct DtlsCertificates {
    own: Option<Own>,
    chain: Vec<Box<[u8]>>,
    servers: Arc<dyn ServerCertVerifier>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    is_known: fn(Option<&str>) -> bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl DtlsCertificates {
    /// Our own certificate, if there is one; the servers that we trust, as for TLS; and the issuers
    /// of clients' certificates.
    ///
    /// # Errors
    /// [`TransportError`] if a file cannot be used.
    pub fn new(
        own: Option<Own>,
        servers: &TlsSpec,
        clients: Option<&Pem>,
    ) -> Result<Self, TransportError> {
        let provider = crypto_provider();
        let chain = own.as_ref().map(Own::chain).unwrap_or_default();
        Ok(Self {
            chain,
            own,
            servers: server_verifier(servers, &provider)?,
            clients: clients
                .map(|pem| client_verifier(pem, &provider))
                .transpose()?,
            is_known: |_| true,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl DtlsCertificates {
    /// Rejects clients whose subject is not known.
    pub fn with_known_subjects(self, is_known: fn(Option<&str>) -> bool) -> Self {
        Self { is_known, ..self }
    }

    /// The same trust, with a certificate of somebody else's own.
    pub fn of(&self, own: Own) -> Self {
        Self {
            chain: own.chain(),
            own: Some(own),
            servers: Arc::clone(&self.servers),
            clients: self.clients.clone(),
            is_known: self.is_known,
            algorithms: self.algorithms,
        }
    }
}

impl Certificates for DtlsCertificates {
    fn chain(&self) -> &[Box<[u8]>] {
        &self.chain
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.own.as_ref()?.sign(message)
    }

    fn judge(&self, chain: &[&[u8]], peer: Peer<'_>) -> Result<(), CertificateFault> {
        let (leaf, rest) = chain.split_first().ok_or(CertificateFault::Missing)?;
        let leaf = CertificateDer::from(*leaf);
        let rest: Vec<_> = rest.iter().map(|der| CertificateDer::from(*der)).collect();
        let now = UnixTime::now();
        let judged = match peer {
            Peer::Server(name) => {
                // Without a name of its own a server's is not known by anything.
                let name = ServerName::try_from(name.unwrap_or_default());
                let name = name.map_err(|_| CertificateFault::WrongName)?;
                self.servers
                    .verify_server_cert(&leaf, &rest, &name, &[], now)
                    .map(|_| ())
            }
            Peer::Client => {
                let clients = self.clients.as_ref();
                let clients = clients.ok_or(CertificateFault::UnknownIssuer)?;
                let verified = clients.verify_client_cert(&leaf, &rest, now);
                if verified.is_ok() && !(self.is_known)(subject_of(&leaf).as_deref()) {
                    return Err(CertificateFault::WrongName);
                }
                verified.map(|_| ())
            }
        };
        judged.map_err(|error| fault(cause_of(&error)))
    }

    fn identity(&self, leaf: &[u8]) -> Option<Box<[u8]>> {
        let subject = subject_of(&CertificateDer::from(leaf))?;
        Some(subject.into_bytes().into())
    }

    fn verify(&self, leaf: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> bool {
        let leaf = CertificateDer::from(leaf);
        let Ok(leaf) = EndEntityCert::try_from(&leaf) else {
            return false;
        };
        let scheme = SignatureScheme::from(scheme);
        let known = self.algorithms.mapping.iter();
        known
            .filter(|(of, _)| *of == scheme)
            .flat_map(|(_, algorithms)| algorithms.iter())
            .any(|algorithm| {
                leaf.verify_signature(*algorithm, message, signature)
                    .is_ok()
            })
    }
}

fn fault(cause: TlsFailure) -> CertificateFault {
    match cause {
        TlsFailure::UnknownIssuer => CertificateFault::UnknownIssuer,
        TlsFailure::Expired => CertificateFault::Expired,
        TlsFailure::NotYetValid => CertificateFault::NotYetValid,
        TlsFailure::WrongName => CertificateFault::WrongName,
        TlsFailure::BadCertificate
        | TlsFailure::NothingInCommon
        | TlsFailure::Alert(_)
        | TlsFailure::Malformed
        | TlsFailure::OwnCredential => CertificateFault::Bad,
    }
}
