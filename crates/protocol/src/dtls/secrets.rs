//! The secrets of a session, from what both ends know (RFC 5246 sections 6.3, 8.1, 7.4.9).

use zeroize::Zeroizing;

use super::crypto::Crypto;
use super::protection::Keys;
use super::suite::Cipher;

/// Bytes of a Finished message.
pub(super) const VERIFY_DATA: usize = 12;

pub(super) type Master = Zeroizing<[u8; 48]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Randoms {
    pub(super) client: [u8; 32],
    pub(super) server: [u8; 32],
}

/// Builds the premaster secret (RFC 4279 section 2, RFC 5489 section 2, RFC 8422 section 5.10):
/// from a shared key, an exchange, or both.
pub(super) fn premaster(psk: Option<&[u8]>, shared: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
    let Some(psk) = psk else {
        return Zeroizing::new(shared.unwrap_or_default().to_vec());
    };
    let other = shared.map_or(psk.len(), <[u8]>::len);
    // All room at once, so that no copy of it is left behind.
    let mut out = Zeroizing::new(Vec::with_capacity(4 + other + psk.len()));
    out.extend_from_slice(&(other as u16).to_be_bytes());
    match shared {
        Some(shared) => out.extend_from_slice(shared),
        None => out.resize(2 + other, 0),
    }
    out.extend_from_slice(&(psk.len() as u16).to_be_bytes());
    out.extend_from_slice(psk);
    out
}

/// The master secret; `session_hash` is that of the messages up to ClientKeyExchange if both ends
/// have the extended one (RFC 7627 section 4).
pub(super) fn master<C: Crypto>(
    crypto: &C,
    premaster: &[u8],
    randoms: &Randoms,
    session_hash: Option<&[u8; 32]>,
) -> Master {
    let mut out = Zeroizing::new([0; 48]);
    match session_hash {
        Some(hash) => crypto.prf(
            premaster,
            b"extended master secret",
            &[hash],
            out.as_mut_slice(),
        ),
        None => crypto.prf(
            premaster,
            b"master secret",
            &[&randoms.client, &randoms.server],
            out.as_mut_slice(),
        ),
    }
    out
}

/// Keys of both directions, the client's first.
pub(super) fn keys<C: Crypto>(
    crypto: &C,
    master: &Master,
    randoms: &Randoms,
    cipher: Cipher,
) -> (Keys<C::Aead>, Keys<C::Aead>) {
    let mut block = Zeroizing::new([0; 40]);
    let seed: [&[u8]; 2] = [&randoms.server, &randoms.client];
    crypto.prf(
        master.as_slice(),
        b"key expansion",
        &seed,
        block.as_mut_slice(),
    );
    let half = |key: usize, salt: usize| {
        let (mut bytes, mut rest) = (Zeroizing::new([0; 16]), [0; 4]);
        bytes.copy_from_slice(&block[key..key + 16]);
        rest.copy_from_slice(&block[salt..salt + 4]);
        let aead = crypto.aead(cipher, &bytes);
        Keys { aead, salt: rest }
    };
    (half(0, 32), half(16, 36))
}

pub(super) fn verify_data<C: Crypto>(
    crypto: &C,
    master: &Master,
    end: End,
    transcript: &[u8],
) -> [u8; VERIFY_DATA] {
    let label: &[u8] = match end {
        End::Client => b"client finished",
        End::Server => b"server finished",
    };
    let mut out = [0; VERIFY_DATA];
    let hash = crypto.sha256(transcript);
    crypto.prf(master.as_slice(), label, &[&hash], &mut out);
    out
}

/// Compares two texts in constant time.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4279_section_2_a_key_alone_is_joined_with_as_many_zeros() {
        let secret = premaster(Some(b"abc"), None);
        assert_eq!(secret.as_slice(), b"\x00\x03\x00\x00\x00\x00\x03abc");
    }

    #[test]
    fn rfc_5489_section_2_a_key_is_joined_with_what_was_exchanged() {
        let secret = premaster(Some(b"abc"), Some(b"zz"));
        assert_eq!(secret.as_slice(), b"\x00\x02zz\x00\x03abc");
        assert_eq!(premaster(None, Some(b"zz")).as_slice(), b"zz");
    }

    #[test]
    fn texts_are_the_same_if_all_of_them_is() {
        assert!(is_same(b"abc", b"abc"));
        assert!(!is_same(b"abc", b"abd") && !is_same(b"abc", b"ab"));
    }
}
