//! The algorithms of handshakes, by aws-lc-rs.

use std::fmt;

use aws_lc_rs::agreement::{Algorithm, ECDH_P256, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::{agreement, digest, hmac, rand};
use muster_model::mix;
use muster_protocol::dtls::{Cipher, Crypto, Group, PublicKey};
use zeroize::Zeroizing;

use super::RecordKey;

/// Most random numbers tried for a secret of P-256; one in 2^32 is none.
const SECRET_TRIES: usize = 8;

/// Algorithms by aws-lc-rs, AES-CCM by RustCrypto, and the randomness of the system.
#[derive(Debug, Default)]
pub struct AwsLc {
    /// None takes the system's randomness.
    seeded: Option<Seeded>,
}

/// Numbers that follow from a seed.
struct Seeded {
    seed: u64,
    count: u64,
}

impl fmt::Debug for Seeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seeded")
    }
}

impl AwsLc {
    /// With the system's randomness.
    pub const fn new() -> Self {
        Self { seeded: None }
    }

    /// With randomness that follows from a seed, so that a handshake can be made again byte by byte:
    /// for tests and simulation. It protects nothing.
    pub const fn seeded(seed: u64) -> Self {
        let count = 0;
        Self {
            seeded: Some(Seeded { seed, count }),
        }
    }
}

impl Crypto for AwsLc {
    type Aead = RecordKey;
    type Secret = GroupSecret;

    fn random(&mut self, bytes: &mut [u8]) -> bool {
        let Some(Seeded { seed, count }) = &mut self.seeded else {
            return rand::fill(bytes).is_ok();
        };
        for chunk in bytes.chunks_mut(8) {
            *count += 1;
            let number = mix(*seed, *count).to_be_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
        true
    }

    fn sha256(&self, bytes: &[u8]) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        out
    }

    fn prf(&self, secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]) {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let start = || {
            let mut hmac = hmac::Context::with_key(&key);
            hmac.update(label);
            seed.iter().for_each(|part| hmac.update(part));
            hmac
        };
        let mut chain = start().sign();
        for chunk in out.chunks_mut(32) {
            let mut hmac = hmac::Context::with_key(&key);
            hmac.update(chain.as_ref());
            hmac.update(label);
            seed.iter().for_each(|part| hmac.update(part));
            chunk.copy_from_slice(&hmac.sign().as_ref()[..chunk.len()]);
            chain = hmac::sign(&key, chain.as_ref());
        }
    }

    fn aead(&self, cipher: Cipher, key: &[u8; 16]) -> RecordKey {
        RecordKey::new(cipher, key)
    }

    fn secret(&mut self, group: Group) -> Option<(GroupSecret, PublicKey)> {
        for _ in 0..SECRET_TRIES {
            let mut bytes = Zeroizing::new([0; 32]);
            if !self.random(bytes.as_mut_slice()) {
                return None;
            }
            if let Some(secret) = GroupSecret::new(group, &bytes) {
                let public = secret.key.compute_public_key().ok()?;
                return Some((secret, PublicKey::new(public.as_ref())?));
            }
        }
        None
    }

    fn agree(&self, secret: GroupSecret, peer: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        let GroupSecret { key, group } = secret;
        let peer = UnparsedPublicKey::new(algorithm(group), peer);
        agreement::agree(&key, peer, (), |shared| {
            <[u8; 32]>::try_from(shared)
                .map(Zeroizing::new)
                .map_err(|_| ())
        })
        .ok()
    }
}

/// The secret half of an exchange, which aws-lc-rs wipes.
pub struct GroupSecret {
    key: PrivateKey,
    group: Group,
}

impl GroupSecret {
    /// The secret of these bytes, unless they are none of the group.
    pub(super) fn new(group: Group, bytes: &[u8; 32]) -> Option<Self> {
        let key = PrivateKey::from_private_key(algorithm(group), bytes).ok()?;
        Some(Self { key, group })
    }
}

/// Hides the secret.
impl fmt::Debug for GroupSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupSecret({:?})", self.group)
    }
}

const fn algorithm(group: Group) -> &'static Algorithm {
    match group {
        Group::P256 => &ECDH_P256,
        Group::X25519 => &X25519,
    }
}
