//! Secrets as the registry has them.

#[cfg(feature = "mongodb")]
use std::sync::atomic::{AtomicU64, Ordering};

use ::bcrypt::{Version, non_truncating_hash_with_salt};
use aws_lc_rs::{digest, rand};
use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::records::Login;
use crate::ProvisionError;

const SALT_BYTES: usize = 8;

/// A password's hash: SHA-512 over the salt and the password, both as Base64 stands for them.
/// Adapters verify it with each request over HTTP, where bcrypt would be what is measured.
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

/// A password's hash by bcrypt, in the form that each release of Hono reads.
///
/// # Errors
/// [`ProvisionError::Random`] if the system has no random bytes, [`ProvisionError::LongPassword`] of one that
/// bcrypt would cut off.
pub(super) fn bcrypt(login: &Login, cost: u8) -> Result<String, ProvisionError> {
    let mut salt = [0; 16];
    rand::fill(&mut salt).map_err(|_| ProvisionError::Random)?;
    bcrypt_salted(salt, &login.secret, cost).ok_or_else(|| ProvisionError::LongPassword {
        auth_id: login.auth_id.clone(),
    })
}

fn bcrypt_salted(salt: [u8; 16], password: &[u8], cost: u8) -> Option<String> {
    let parts = non_truncating_hash_with_salt(password, cost.into(), salt);
    parts
        .ok()
        .map(|parts| parts.format_for_version(Version::TwoA))
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

    /// A test vector of crypt_blowfish 1.3, its salt decoded.
    #[test]
    fn a_hash_of_bcrypt_is_the_one_of_others() {
        let salt = [0x10, 0x41, 0x04].repeat(6);
        let salt = salt.first_chunk().copied().expect("it has more");
        assert_eq!(
            bcrypt_salted(salt, b"U*U", 5).as_deref(),
            Some("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
        );
        assert_eq!(bcrypt_salted(salt, &[b'x'; 72], 5), None);
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
