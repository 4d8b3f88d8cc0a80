//! The key of records in one direction.

use std::fmt;

use aes::Aes128Enc;
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ccm::Ccm;
use ccm::aead::array::typenum::Unsigned;
use ccm::aead::inout::InOutBuf;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U8, U12, U16};
use muster_protocol::dtls::{Aead, Cipher};
use zeroize::Zeroizing;

/// A key and the cipher it is for.
///
/// It is kept as it is, 16 bytes, and expanded for each record: an expanded one has 700 bytes and
/// more in either library, which is most of what a session at rest may have, and expanding it costs
/// a tenth of what the system call for the record does.
pub struct RecordKey {
    cipher: Cipher,
    key: Zeroizing<[u8; 16]>,
}

/// Hides the key.
impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordKey({:?})", self.cipher)
    }
}

impl RecordKey {
    pub(super) fn new(cipher: Cipher, key: &[u8; 16]) -> Self {
        let key = Zeroizing::new(*key);
        Self { cipher, key }
    }

    /// None cannot be: the key has the length that the cipher wants.
    fn gcm(&self) -> Option<LessSafeKey> {
        let key = UnboundKey::new(&AES_128_GCM, self.key.as_slice());
        key.ok().map(LessSafeKey::new)
    }

    fn ccm_8(&self) -> Ccm<Aes128Enc, U8, U12> {
        Ccm::new((&*self.key).into())
    }

    fn ccm(&self) -> Ccm<Aes128Enc, U16, U12> {
        Ccm::new((&*self.key).into())
    }
}

impl Aead for RecordKey {
    fn seal(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]) {
        let (plain, tag) = bytes.split_at_mut(bytes.len() - self.tag_len());
        match self.cipher {
            Cipher::Aes128Ccm8 => seal_ccm(&self.ccm_8(), nonce, associated, (plain, tag)),
            Cipher::Aes128Ccm => seal_ccm(&self.ccm(), nonce, associated, (plain, tag)),
            Cipher::Aes128Gcm => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let sealed = self.gcm().and_then(|key| {
                    key.seal_in_place_separate_tag(nonce, Aad::from(associated), plain)
                        .ok()
                });
                put_tag(sealed.as_ref().map(AsRef::as_ref), plain, tag);
            }
        }
    }

    fn open(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]) -> bool {
        let Some(length) = bytes.len().checked_sub(self.tag_len()) else {
            return false;
        };
        match self.cipher {
            Cipher::Aes128Ccm8 => open_ccm(&self.ccm_8(), nonce, associated, bytes),
            Cipher::Aes128Ccm => open_ccm(&self.ccm(), nonce, associated, bytes),
            Cipher::Aes128Gcm => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let associated = Aad::from(associated);
                self.gcm().is_some_and(|key| {
                    key.open_in_place(nonce, associated, bytes)
                        .is_ok_and(|plain| plain.len() == length)
                })
            }
        }
    }

    fn tag_len(&self) -> usize {
        self.cipher.tag_len()
    }
}

fn seal_ccm(
    key: &impl AeadInOut<NonceSize = U12>,
    nonce: &[u8; 12],
    associated: &[u8],
    (plain, tag): (&mut [u8], &mut [u8]),
) {
    let sealed = key.encrypt_inout_detached(nonce.into(), associated, InOutBuf::from(&mut *plain));
    put_tag(sealed.as_deref().ok(), plain, tag);
}

fn open_ccm<K: AeadInOut<NonceSize = U12>>(
    key: &K,
    nonce: &[u8; 12],
    associated: &[u8],
    bytes: &mut [u8],
) -> bool {
    let (sealed, tag) = bytes.split_at_mut(bytes.len() - K::TagSize::USIZE);
    let Ok(tag) = (&*tag).try_into() else {
        return false;
    };
    key.decrypt_inout_detached(nonce.into(), associated, InOutBuf::from(sealed), tag)
        .is_ok()
}

/// Writes the tag. Were there none, nothing of what was to be hidden may leave: a record of zeros
/// is discarded by whoever gets it.
fn put_tag(made: Option<&[u8]>, plain: &mut [u8], tag: &mut [u8]) {
    match made {
        Some(made) => tag.copy_from_slice(made),
        None => plain.fill(0),
    }
}
