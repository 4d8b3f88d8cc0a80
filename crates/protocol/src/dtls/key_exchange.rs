//! Messages that agree on a secret: Certificate, ServerKeyExchange, CertificateRequest,
//! ClientKeyExchange, CertificateVerify (RFC 5246 section 7.4, RFC 8422 section 5, RFC 4279 section
//! 2, RFC 5489 section 2).

use super::Fault;
use super::crypto::PublicKey;
use super::extension::ECDSA_P256_SHA256;
use super::secrets::Randoms;
use super::suite::Group;
use super::wire::{Cursor, codes, put_u16, put_vec8, put_vec16, put_vec24};

/// The type of a named curve (RFC 8422 section 5.4).
const NAMED_CURVE: u8 = 3;
/// A client's certificate with an ECDSA key (RFC 8422 section 5.5).
const ECDSA_SIGN: u8 = 64;
/// Most certificates of a chain that are looked at.
const CHAIN_MAX: usize = 16;

/// A server's half of an ephemeral exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) group: Group,
    pub(super) public: &'a [u8],
    /// Bytes of the message that the signature covers.
    params: &'a [u8],
}

impl<'a> Exchange<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let mut params = *cursor;
        if cursor.u8()? != NAMED_CURVE {
            return Err(Fault::Illegal);
        }
        let group = Group::from_code(cursor.u16()?).ok_or(Fault::Illegal)?;
        let public = cursor.vec8()?;
        let params = params.take(4 + public.len())?;
        Ok(Self {
            group,
            public,
            params,
        })
    }

    /// Returns the bytes that the server's signature covers (RFC 8422 section 5.4).
    pub(super) fn signed(&self, randoms: &Randoms) -> Vec<u8> {
        [&randoms.client[..], &randoms.server, self.params].concat()
    }
}

pub(super) fn put_exchange(out: &mut Vec<u8>, group: Group, public: &PublicKey) {
    out.push(NAMED_CURVE);
    put_u16(out, group.code());
    put_vec8(out, public.as_bytes());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature<'a> {
    pub(super) scheme: u16,
    pub(super) bytes: &'a [u8],
}

impl<'a> Signature<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let scheme = cursor.u16()?;
        let bytes = cursor.vec16()?;
        Ok(Self { scheme, bytes })
    }
}

pub(super) fn put_signature(out: &mut Vec<u8>, signature: &[u8]) {
    put_u16(out, ECDSA_P256_SHA256);
    put_vec16(out, |out| out.extend_from_slice(signature));
}

/// The certificates of a Certificate message, leaf first.
pub(super) fn read_chain(body: &[u8]) -> Result<Vec<&[u8]>, Fault> {
    let mut cursor = Cursor::new(body);
    let mut list = Cursor::new(cursor.vec24()?);
    cursor.end()?;
    let mut chain = Vec::new();
    while !list.is_empty() {
        if chain.len() == CHAIN_MAX {
            return Err(Fault::TooLong);
        }
        chain.push(list.vec24()?);
    }
    Ok(chain)
}

pub(super) fn put_chain(out: &mut Vec<u8>, chain: &[Box<[u8]>]) {
    put_vec24(out, |out| {
        for certificate in chain {
            put_vec24(out, |out| out.extend_from_slice(certificate));
        }
    });
}

/// Returns true if a CertificateRequest can be answered with a certificate of P-256.
pub(super) fn read_request(body: &[u8]) -> Result<bool, Fault> {
    let mut cursor = Cursor::new(body);
    let kinds = cursor.vec8()?;
    let mut schemes = codes(cursor.vec16()?)?;
    let has_scheme = schemes.any(|scheme| scheme == ECDSA_P256_SHA256);
    // Names of authorities: we have one certificate or none.
    cursor.vec16()?;
    cursor.end()?;
    Ok(kinds.contains(&ECDSA_SIGN) && has_scheme)
}

pub(super) fn put_request(out: &mut Vec<u8>, schemes: &[u16]) {
    put_vec8(out, &[ECDSA_SIGN]);
    put_vec16(out, |out| {
        for scheme in schemes {
            put_u16(out, *scheme);
        }
    });
    put_vec16(out, |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_reads_as_it_was_written() {
        let mut out = Vec::new();
        put_chain(&mut out, &[[1, 2].into(), [3].into()]);
        assert_eq!(read_chain(&out), Ok(vec![&[1, 2][..], &[3]]));
        out.clear();
        put_chain(&mut out, &[]);
        assert_eq!((read_chain(&out), &out[..]), (Ok(vec![]), &[0; 3][..]));
    }

    #[test]
    fn an_exchange_reads_as_it_was_written_and_its_signature_covers_the_randoms() {
        let public = PublicKey::new(&[9; 32]).expect("it is short enough");
        let mut out = Vec::new();
        put_exchange(&mut out, Group::X25519, &public);
        out.push(0xff);
        let exchange = Exchange::read(&mut Cursor::new(&out)).expect("it is whole");
        assert_eq!(
            (exchange.group, exchange.public),
            (Group::X25519, &[9; 32][..])
        );
        let randoms = Randoms {
            client: [1; 32],
            server: [2; 32],
        };
        let signed = exchange.signed(&randoms);
        assert_eq!(signed, [&[1; 32][..], &[2; 32], &out[..36]].concat());
    }

    #[test]
    fn a_request_is_for_a_certificate_that_we_could_have() {
        let mut out = Vec::new();
        put_request(&mut out, &[0x0401]);
        assert_eq!(read_request(&out), Ok(false));
        out.clear();
        put_request(&mut out, &[0x0401, ECDSA_P256_SHA256]);
        assert_eq!(read_request(&out), Ok(true));
    }
}
