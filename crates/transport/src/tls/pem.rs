//! Certificates and keys as files hold them (RFC 7468).

use std::fmt;
use std::sync::Arc;

use muster_protocol::websocket::UpgradeError;
use rustls::SignatureScheme;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::client::provider;

/// A file of certificates or a key, as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// Its name in messages.
    pub name: String,
    text: Vec<u8>,
}

/// Hides the content, which may be a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({})", self.name)
    }
}

/// Error of a certificate or key, with the file or name and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// A file cannot be read.
    #[error("read {file}: {why}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        why: std::io::Error,
    },
    /// A file holds no certificate that can be used.
    #[error("{file} holds no certificate that can be used: {why}")]
    Certificate {
        /// The file.
        file: String,
        /// Its error.
        why: String,
    },
    /// A file holds no key that can be used.
    #[error("{file} holds no private key that can be used: {why}")]
    Key {
        /// The file.
        file: String,
        /// Its error.
        why: String,
    },
    /// A key is not that of the certificate.
    #[error("the key in {key} is not that of the certificate in {cert}")]
    Mismatch {
        /// The file of the certificate.
        cert: String,
        /// The file of the key.
        key: String,
    },
    /// A key is of a kind that DTLS here does not sign with.
    #[error(
        "the key in {0} is not of P-256, with which alone it is signed over DTLS: make one by \
         `openssl ecparam -name prime256v1 -genkey -noout`, and a certificate for it"
    )]
    NotP256(String),
    /// This machine trusts nobody.
    #[error("this machine has no list of trusted certificates: name one by `tls.ca`")]
    TrustsNobody,
    /// No certificate can have this name.
    #[error("`{0}` is no name that a certificate can have: give another by `tls.server-name`")]
    Name(String),
    /// The request for WebSocket cannot be written.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// TLS cannot be set up.
    #[error("set TLS up: {0}")]
    Tls(String),
    /// The certificate for one run cannot be made.
    #[error("make a certificate for the run: {0}")]
    Throwaway(String),
}

/// The byte-order mark of UTF-8, with which some editors begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl From<rustls::Error> for TransportError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error.to_string())
    }
}

impl Pem {
    /// A file's text; a byte-order mark is no part of it.
    pub fn new(name: &str, mut text: Vec<u8>) -> Self {
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        let name = name.to_owned();
        Self { name, text }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`TransportError::Read`] with the system's reason.
    pub fn read(path: &str) -> Result<Self, TransportError> {
        match std::fs::read(path) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(why) => Err(TransportError::Read {
                file: path.to_owned(),
                why,
            }),
        }
    }

    /// Returns its content.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its certificates, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TransportError> {
        let found = CertificateDer::pem_slice_iter(&self.text).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| self.unusable(&words(&error)))?;
        if found.is_empty() {
            return Err(self.unusable(&"there is none"));
        }
        Ok(found)
    }

    pub(super) fn unusable(&self, why: &impl fmt::Display) -> TransportError {
        TransportError::Certificate {
            file: self.name.clone(),
            why: why.to_string(),
        }
    }

    /// Explains why no key was found: an encrypted one does not look like a key.
    fn why_no_key(&self, error: &pem::Error) -> String {
        let is_encrypted = |marker: &[u8]| self.text.windows(marker.len()).any(|at| at == marker);
        let markers: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
        if markers.into_iter().any(is_encrypted) {
            return "it is encrypted; write it without a password by `openssl pkey -in FILE -out PLAIN`"
                .to_owned();
        }
        words(error)
    }

    fn no_key(&self, why: &impl fmt::Display) -> TransportError {
        TransportError::Key {
            file: self.name.clone(),
            why: why.to_string(),
        }
    }
}

/// Describes an error in a file of PEM.
fn words(error: &pem::Error) -> String {
    if let pem::Error::MissingSectionEnd { end_marker } = error {
        let marker = String::from_utf8_lossy(end_marker);
        return format!(
            "it is cut short: `-----END {}-----` is missing",
            marker.trim_end()
        );
    }
    if let pem::Error::IllegalSectionStart { line } = error {
        let line = String::from_utf8_lossy(line);
        return format!("a section begins by the wrong line `{}`", line.trim_end());
    }
    if matches!(error, pem::Error::NoItemsFound) {
        return "there is none".to_owned();
    }
    error.to_string()
}

/// A certificate with its chain and its key: who somebody is.
#[derive(Debug, Clone)]
pub struct Own(pub(super) Arc<CertifiedKey>);

impl Own {
    /// The certificate of one file and the key of another, or of the same.
    ///
    /// # Errors
    /// [`TransportError`] if either cannot be used, or the two do not belong together.
    pub fn new(cert: &Pem, key: &Pem) -> Result<Self, TransportError> {
        let chain = cert.certificates()?;
        let secret = PrivateKeyDer::from_pem_slice(&key.text);
        let secret = secret.map_err(|error| key.no_key(&key.why_no_key(&error)))?;
        let provider = provider();
        let secret = provider.key_provider.load_private_key(secret);
        let secret = secret.map_err(|error| key.no_key(&error))?;
        let own = CertifiedKey::new(chain, secret);
        match own.keys_match() {
            Ok(()) => Ok(Self(Arc::new(own))),
            Err(rustls::Error::InconsistentKeys(_)) => Err(TransportError::Mismatch {
                cert: cert.name.clone(),
                key: key.name.clone(),
            }),
            Err(error) => Err(cert.unusable(&error)),
        }
    }

    /// Reads both from files.
    ///
    /// # Errors
    /// As [`Own::new`], and [`TransportError::Read`].
    pub fn read(cert: &str, key: &str) -> Result<Self, TransportError> {
        let cert = Pem::read(cert)?;
        if cert.name == key {
            return Self::new(&cert, &cert);
        }
        Self::new(&cert, &Pem::read(key)?)
    }

    /// Its certificates in DER, leaf first.
    pub(crate) fn chain(&self) -> Vec<Box<[u8]>> {
        self.0.cert.iter().map(|der| (**der).into()).collect()
    }

    /// Itself, if it can be shown over DTLS.
    ///
    /// # Errors
    /// [`TransportError::NotP256`], which names `key`, the file of its key.
    pub fn for_dtls(self, key: &str) -> Result<Self, TransportError> {
        let scheme = [SignatureScheme::ECDSA_NISTP256_SHA256];
        match self.0.key.choose_scheme(&scheme) {
            Some(_) => Ok(self),
            None => Err(TransportError::NotP256(key.to_owned())),
        }
    }

    /// Signs by ecdsa_secp256r1_sha256; none if the key is of another kind.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let scheme = [SignatureScheme::ECDSA_NISTP256_SHA256];
        self.0.key.choose_scheme(&scheme)?.sign(message).ok()
    }
}
