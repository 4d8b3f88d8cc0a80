//! Secrets as the registry has them.

#[cfg(feature = "mongodb")]
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::{digest, rand};
use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::ProvisionError;

const SALT_BYTES: usize = 8;

/// A password's hash: SHA-512 over the salt and the password, both as Base64 stands for them.
/// Adapters verify it with each request, where bcrypt would be what is measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hashed {
    pub(super) salt: String,
    pub(super) hash: String,
}

impl Hashed {
    pub(super) const FUNCTION: &str = "sha-512";

    /// # Errors
    /// [`ProvisionError::Random`] if the system has no random bytes.
    pub(super) fn of(password: &[u8]) -> Result<Self, ProvisionError> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| ProvisionError::Random)?;
        Ok(Self::salted(&salt, password))
    }

    fn salted(salt: &[u8], password: &[u8]) -> Self {
        let mut context = digest::Context::new(&digest::SHA512);
        context.update(salt);
        context.update(password);
        Self {
            salt: BASE64_STANDARD.encode(salt),
            hash: BASE64_STANDARD.encode(context.finish()),
        }
    }
}

/// Texts that differ from each other and from those of every other run: a random beginning and a count.
#[cfg(feature = "mongodb")]
#[derive(Debug)]
pub(super) struct Unique {
    beginning: [u8; 8],
    count: AtomicU64,
}

#[cfg(feature = "mongodb")]
impl Unique {
    /// # Errors
    /// [`ProvisionError::Random`] if the system has no random bytes.
    pub(super) fn new() -> Result<Self, ProvisionError> {
        let mut beginning = [0; 8];
        rand::fill(&mut beginning).map_err(|_| ProvisionError::Random)?;
        Ok(Self {
            beginning,
            count: AtomicU64::new(0),
        })
    }

    /// One of them, in the form of a UUID of version 4 (RFC 9562 section 5.4).
    pub(super) fn next(&self) -> String {
        let head = u64::from_be_bytes(self.beginning);
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            head >> 32,
            head >> 16 & 0xffff,
            head & 0xfff,
            head >> 12 & 0xf,
            count & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf 'AAAAhono-secret' | openssl dgst -sha512 -binary | base64 -w0` says.
    #[test]
    fn a_hash_is_over_the_salt_and_the_password() {
        let hashed = Hashed::salted(b"AAAA", b"hono-secret");
        assert_eq!(hashed.salt, "QUFBQQ==");
        assert_eq!(
            hashed.hash,
            "CjLWon3nq8chkneNRsb7el1YFx6YsUTFI8lso0k6luzcK5/D2XVyXlk167uVfZBGUCLtffAJDkEUIiV6akehRQ=="
        );
        assert_ne!(
            Hashed::of(b"x").expect("random"),
            Hashed::of(b"x").expect("random")
        );
    }

    #[cfg(feature = "mongodb")]
    #[test]
    fn unique_texts_are_uuids() {
        let (one, other) = (
            Unique::new().expect("random"),
            Unique::new().expect("random"),
        );
        let (a, b, c) = (one.next(), one.next(), other.next());
        assert!(a != b && a != c && a[..24] == b[..24]);
        assert_eq!(
            (a.len(), a.as_bytes()[14], a.as_bytes()[19]),
            (36, b'4', b'8')
        );
    }
}
