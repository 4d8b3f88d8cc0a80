//! Cryptography of a session: the seam to the one stack.

use std::fmt;

use zeroize::Zeroizing;

use super::suite::{Cipher, Group};
use super::{CertificateFault, Session};

/// Algorithms and randomness. A session computes nothing of the kind itself.
pub trait Crypto {
    /// The key of one direction, which wipes itself.
    type Aead: Aead;
    /// The secret half of an ephemeral exchange.
    type Secret;

    /// Fills the bytes with what nobody can foresee; whether it could. If it could not, what is left
    /// in `bytes` is of no use, and the handshake ends as [`Fault::NoRandomness`](super::Fault).
    fn random(&mut self, bytes: &mut [u8]) -> bool;

    /// SHA-256 of the bytes.
    fn sha256(&self, bytes: &[u8]) -> [u8; 32];

    /// The PRF of TLS 1.2 with SHA-256 (RFC 5246 section 5): fills `out` from the secret, the
    /// label, and the seed in parts.
    fn prf(&self, secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]);

    /// A key for records.
    fn aead(&self, cipher: Cipher, key: &[u8; 16]) -> Self::Aead;

    /// A fresh secret of the group and its public half; none if it cannot be made.
    fn secret(&mut self, group: Group) -> Option<(Self::Secret, PublicKey)>;

    /// Computes the shared secret; none if the peer's half is no element of the group.
    fn agree(&self, secret: Self::Secret, peer: &[u8]) -> Option<Zeroizing<[u8; 32]>>;
}

/// A key that protects records of one direction in place.
pub trait Aead {
    /// Encrypts all but the last bytes and writes the tag into those.
    fn seal(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]);

    /// Decrypts all but the last bytes, which are the tag; whether it is right. If it is not, what
    /// is left in `bytes` is of no use.
    fn open(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]) -> bool;

    /// Bytes of the tag.
    fn tag_len(&self) -> usize;
}

/// The public half of an exchange: a point of P-256, uncompressed, or 32 bytes of X25519.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey {
    bytes: [u8; 65],
    length: u8,
}

impl PublicKey {
    /// A public half of at most 65 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; 65];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        let length = key.len() as u8;
        Some(Self { bytes, length })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Own and peers' certificates (X.509), for the suites with ECDSA.
pub trait Certificates {
    /// Our own certificate in DER and those of its issuers, leaf first; empty if we have none.
    fn chain(&self) -> &[Box<[u8]>];

    /// Signs with the key of our own certificate by ecdsa_secp256r1_sha256.
    fn sign(&self, message: &[u8]) -> Option<Vec<u8>>;

    /// Judges the peer's certificate, leaf first, and for a server whether it has this name.
    ///
    /// # Errors
    /// [`CertificateFault`] if the peer is not to be trusted.
    fn judge(&self, chain: &[&[u8]], peer: Peer<'_>) -> Result<(), CertificateFault>;

    /// Returns the client's identity by its certificate, which was judged before, if it has one.
    fn identity(&self, leaf: &[u8]) -> Option<Box<[u8]>>;

    /// Returns true if the signature over the message is of this certificate's key; `scheme` is the
    /// code of RFC 8446 section 4.2.3.
    fn verify(&self, leaf: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> bool;
}

/// Peer of the certificate to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// A server's, which must have this name: a host's, or an IP address as text (RFC 6125
    /// section 6). None if the client has no name for it ([`Opening::server_name`]);
    /// [`Certificates::judge`] decides then, and `transport` rejects every certificate.
    ///
    /// [`Opening::server_name`]: super::Opening::server_name
    Server(Option<&'a str>),
    /// A client's, which may have any name.
    Client,
}

/// The keys that a server shares with its clients.
pub trait Keys {
    /// The key of a client, by what it calls itself.
    fn find(&self, identity: &[u8]) -> Found;
}

/// Result of looking up an identity.
pub enum Found {
    /// Its key.
    Key(Zeroizing<Vec<u8>>),
    /// No key: the client receives the alert unknown_psk_identity (RFC 4279 section 2).
    Unknown,
    /// No key, and the client receives no answer, as from servers that look keys up elsewhere.
    Silent,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Unknown => "Unknown",
            Self::Silent => "Silent",
        })
    }
}

/// Sessions that a server keeps for clients to resume, by their ids; how many and for how long is
/// its own matter.
pub trait Sessions {
    /// Keeps a session.
    fn keep(&mut self, session: &Session);

    /// The session of an id, if it is kept still.
    fn find(&self, id: &[u8]) -> Option<Session>;
}
