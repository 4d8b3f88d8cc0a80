//! Signatures of certificates: ed25519 (RFC 8032), with keys in PEM as `openssl genpkey -algorithm ed25519`
//! writes them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

/// Everything of a public key of ed25519 before its 32 bytes (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Command that makes a key, for errors.
const REMEDY: &str = "make a key with `openssl genpkey -algorithm ed25519 -out key.pem`, and its public part with \
                      `openssl pkey -in key.pem -pubout -out pub.pem`";

/// A private key.
pub(crate) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Reads a private key.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let context = || format!("read the private key {}; {REMEDY}", path.display());
        let der = PrivatePkcs8KeyDer::from_pem_file(path).with_context(context)?;
        match Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()) {
            Ok(key) => Ok(Self(key)),
            Err(_) => bail!("{}", context() + " (it is no key of ed25519)"),
        }
    }

    /// The signature of a text.
    pub(crate) fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.0.sign(text).as_ref().to_vec()
    }
}

/// A public key.
pub(crate) struct VerifyingKey(Vec<u8>);

impl VerifyingKey {
    /// Reads a public key.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let context = || format!("read the public key {}; {REMEDY}", path.display());
        let der = SubjectPublicKeyInfoDer::from_pem_file(path).with_context(context)?;
        match der.as_ref().strip_prefix(&SPKI_PREFIX) {
            Some(key) => Ok(Self(key.to_vec())),
            None => bail!("{}", context() + " (it is no key of ed25519)"),
        }
    }

    /// Returns whether the holder of the private key signed the text.
    pub(crate) fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(text, signature)
            .is_ok()
    }
}
