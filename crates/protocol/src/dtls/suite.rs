//! The cipher suites that are spoken.

/// A cipher suite, by its code in IANA's registry.
///
/// All of them use SHA-256 for the PRF (RFC 5487, RFC 6655, RFC 7251, RFC 8442).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Suite {
    /// TLS_PSK_WITH_AES_128_CCM_8 (RFC 6655), which CoAP makes mandatory (RFC 7252
    /// section 9.1.3.1).
    PskCcm8 = 0xc0a8,
    /// TLS_PSK_WITH_AES_128_CCM (RFC 6655).
    PskCcm = 0xc0a4,
    /// TLS_PSK_WITH_AES_128_GCM_SHA256 (RFC 5487).
    PskGcm = 0x00a8,
    /// TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256 (RFC 8442).
    EcdhePskCcm8 = 0xd003,
    /// TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256 (RFC 8442).
    EcdhePskCcm = 0xd005,
    /// TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256 (RFC 8442).
    EcdhePskGcm = 0xd001,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8 (RFC 7251), which CoAP makes mandatory with
    /// certificates (RFC 7252 section 9.1.3.2).
    EcdheEcdsaCcm8 = 0xc0ae,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_CCM (RFC 7251).
    EcdheEcdsaCcm = 0xc0ac,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (RFC 5289).
    EcdheEcdsaGcm = 0xc02b,
}

impl Suite {
    /// All that are spoken: by key exchange, and within one, what devices have first.
    pub const ALL: [Self; 9] = [
        Self::PskCcm8,
        Self::PskGcm,
        Self::PskCcm,
        Self::EcdhePskCcm8,
        Self::EcdhePskGcm,
        Self::EcdhePskCcm,
        Self::EcdheEcdsaCcm8,
        Self::EcdheEcdsaGcm,
        Self::EcdheEcdsaCcm,
    ];

    /// Its code on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The suite of a code, if it is spoken.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.code() == code)
    }

    /// Returns its key exchange.
    pub const fn key_exchange(self) -> KeyExchange {
        match self {
            Self::PskCcm8 | Self::PskCcm | Self::PskGcm => KeyExchange::Psk,
            Self::EcdhePskCcm8 | Self::EcdhePskCcm | Self::EcdhePskGcm => KeyExchange::EcdhePsk,
            Self::EcdheEcdsaCcm8 | Self::EcdheEcdsaCcm | Self::EcdheEcdsaGcm => {
                KeyExchange::EcdheEcdsa
            }
        }
    }

    /// Returns its cipher.
    pub const fn cipher(self) -> Cipher {
        match self {
            Self::PskCcm8 | Self::EcdhePskCcm8 | Self::EcdheEcdsaCcm8 => Cipher::Aes128Ccm8,
            Self::PskCcm | Self::EcdhePskCcm | Self::EcdheEcdsaCcm => Cipher::Aes128Ccm,
            Self::PskGcm | Self::EcdhePskGcm | Self::EcdheEcdsaGcm => Cipher::Aes128Gcm,
        }
    }
}

/// Key exchange and authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyExchange {
    /// A key that both know (RFC 4279 section 2).
    Psk,
    /// A key that both know, and an ephemeral exchange (RFC 5489).
    EcdhePsk,
    /// An ephemeral exchange, signed with the key of a certificate (RFC 8422).
    EcdheEcdsa,
}

impl KeyExchange {
    /// Returns true if a shared key is part of it.
    pub const fn has_psk(self) -> bool {
        matches!(self, Self::Psk | Self::EcdhePsk)
    }

    /// Returns true if an ephemeral exchange is part of it.
    pub const fn has_ecdhe(self) -> bool {
        matches!(self, Self::EcdhePsk | Self::EcdheEcdsa)
    }
}

/// An authenticated cipher with a key of 16 bytes and a nonce of 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-CCM with a tag of 8 bytes (RFC 6655 section 3).
    Aes128Ccm8,
    /// AES-CCM with a tag of 16 bytes.
    Aes128Ccm,
    /// AES-GCM with a tag of 16 bytes (RFC 5288).
    Aes128Gcm,
}

impl Cipher {
    /// Bytes of its tag.
    pub const fn tag_len(self) -> usize {
        match self {
            Self::Aes128Ccm8 => 8,
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
        }
    }
}

/// A group for an ephemeral exchange, by its code (RFC 8422 section 5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Group {
    /// secp256r1, whose points travel uncompressed.
    P256 = 23,
    /// x25519.
    X25519 = 29,
}

impl Group {
    /// Both, what devices have first.
    pub const ALL: [Self; 2] = [Self::P256, Self::X25519];

    /// Its code on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The group of a code, if it is spoken.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_and_group_is_found_by_its_code() {
        for suite in Suite::ALL {
            assert_eq!(Suite::from_code(suite.code()), Some(suite));
        }
        for group in Group::ALL {
            assert_eq!(Group::from_code(group.code()), Some(group));
        }
        assert_eq!(Suite::from_code(0x00ae), None);
        assert_eq!(Group::from_code(24), None);
    }
}
