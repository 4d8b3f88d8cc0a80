//! Trusted certificates.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::client::TlsSpec;
use super::pem::{Pem, TransportError};

/// Checks the peer's certificate, unless any will do.
pub(crate) fn verifier(
    spec: &TlsSpec,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TransportError> {
    if spec.insecure {
        let schemes = provider.signature_verification_algorithms;
        return Ok(Arc::new(AnyCertificate(schemes.supported_schemes())));
    }
    let roots = match &spec.ca {
        Some(pem) => roots(pem)?,
        None => roots_of_machine()?,
    };
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = builder.build();
    let verifier = verifier.map_err(|error| TransportError::Tls(error.to_string()))?;
    Ok(verifier)
}

/// The certificates of a file, as those that are trusted.
pub(super) fn roots(pem: &Pem) -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    for certificate in pem.certificates()? {
        roots
            .add(certificate)
            .map_err(|error| pem.unusable(&error))?;
    }
    Ok(roots)
}

/// The certificates of those that are trusted: of a file, or whom this machine trusts.
///
/// # Errors
/// [`TransportError`] if the file holds none, or the machine trusts nobody.
pub fn trusted(ca: Option<&Pem>) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    if let Some(pem) = ca {
        // A certificate that cannot be used is found now, not at the first call.
        roots(pem)?;
        return pem.certificates();
    }
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() {
        return Err(TransportError::TrustsNobody);
    }
    Ok(certificates)
}

fn roots_of_machine() -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted(None)?);
    if roots.is_empty() {
        return Err(TransportError::TrustsNobody);
    }
    Ok(roots)
}

/// Takes every certificate: the run does not know whom it talks to, and its report says so.
#[derive(Debug)]
struct AnyCertificate(Vec<SignatureScheme>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
