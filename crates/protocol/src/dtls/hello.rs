//! ClientHello, HelloVerifyRequest and ServerHello (RFC 5246 section 7.4.1, RFC 6347 section 4.2.1).

use super::Fault;
use super::extension::Extensions;
use super::message::{Kind, first};
use super::record::{VERSION, VERSION_1_0};
use super::wire::{Cursor, codes, put_u16, put_vec8, put_vec16};

/// Says in a ClientHello what renegotiation_info says (RFC 5746 section 3.3).
const RENEGOTIATION_SCSV: u16 = 0x00ff;
pub(super) const SESSION_ID_MAX: usize = 32;

/// A client's offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientHello<'a> {
    pub(super) random: [u8; 32],
    pub(super) session_id: &'a [u8],
    pub(super) cookie: &'a [u8],
    /// Codes of suites, in the client's order.
    pub(super) suites: &'a [u8],
    pub(super) extensions: Extensions<'a>,
    /// True if the client signals in either way that it knows RFC 5746.
    pub(super) is_renegotiation_safe: bool,
    /// Position of the cookie's vector in the body: a cookie covers the bytes around it.
    pub(super) cookie_at: usize,
}

impl<'a> ClientHello<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(body);
        // DTLS counts downwards: a version that is at least ours is at most this number.
        if cursor.u16()? > VERSION {
            return Err(Fault::Version);
        }
        let random = cursor.array()?;
        let session_id = cursor.vec8()?;
        let cookie_at = 2 + 32 + 1 + session_id.len();
        let cookie = cursor.vec8()?;
        let suites = cursor.vec16()?;
        let compressions = cursor.vec8()?;
        if session_id.len() > SESSION_ID_MAX || suites.is_empty() || !compressions.contains(&0) {
            return Err(Fault::Malformed);
        }
        let has_scsv = codes(suites)?.any(|suite| suite == RENEGOTIATION_SCSV);
        let extensions = Extensions::read(&mut cursor)?;
        cursor.end()?;
        Ok(Self {
            random,
            session_id,
            cookie,
            suites,
            is_renegotiation_safe: has_scsv || extensions.renegotiation,
            extensions,
            cookie_at,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_u16(out, VERSION);
        out.extend_from_slice(&self.random);
        put_vec8(out, self.session_id);
        put_vec8(out, self.cookie);
        put_vec16(out, |out| out.extend_from_slice(self.suites));
        put_vec8(out, &[0]);
        self.extensions.put(out);
    }

    pub(super) fn offers(&self, suite: u16) -> bool {
        codes(self.suites).is_ok_and(|mut offered| offered.any(|code| code == suite))
    }
}

/// A server's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerHello<'a> {
    pub(super) random: [u8; 32],
    pub(super) session_id: &'a [u8],
    pub(super) suite: u16,
    pub(super) extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(body);
        if cursor.u16()? != VERSION {
            return Err(Fault::Version);
        }
        let random = cursor.array()?;
        let session_id = cursor.vec8()?;
        let suite = cursor.u16()?;
        if session_id.len() > SESSION_ID_MAX {
            return Err(Fault::Malformed);
        }
        if cursor.u8()? != 0 {
            return Err(Fault::Illegal);
        }
        let extensions = Extensions::read(&mut cursor)?;
        cursor.end()?;
        Ok(Self {
            random,
            session_id,
            suite,
            extensions,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_u16(out, VERSION);
        out.extend_from_slice(&self.random);
        put_vec8(out, self.session_id);
        put_u16(out, self.suite);
        out.push(0);
        self.extensions.put(out);
    }
}

/// The random of the ServerHello that a datagram begins with, if it does with a whole one
/// (RFC 5246 section 7.4.1.3).
///
/// A server repeats its flight with the same random. A client that shares an address with others
/// knows by it the repeated flights of their handshakes.
pub fn server_random(datagram: &[u8]) -> Option<[u8; 32]> {
    let (_, message) = first(datagram, Kind::ServerHello)?;
    Some(ServerHello::read(message.bytes).ok()?.random)
}

pub(super) fn read_verify_request(body: &[u8]) -> Result<&[u8], Fault> {
    let mut cursor = Cursor::new(body);
    // A server may say either (RFC 6347 section 4.2.1).
    if !matches!(cursor.u16()?, VERSION | VERSION_1_0) {
        return Err(Fault::Version);
    }
    let cookie = cursor.vec8()?;
    cursor.end()?;
    Ok(cookie)
}

pub(super) fn put_verify_request(out: &mut Vec<u8>, cookie: &[u8]) {
    put_u16(out, VERSION_1_0);
    put_vec8(out, cookie);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::put_message;
    use super::super::record::{Content, put_plain};
    use super::*;

    #[test]
    fn a_client_hello_reads_as_it_was_written() {
        let hello = ClientHello {
            random: [7; 32],
            session_id: b"session",
            cookie: b"cookie",
            suites: &[0xc0, 0xa8, 0, 0xff],
            extensions: Extensions::default(),
            is_renegotiation_safe: true,
            cookie_at: 2 + 32 + 1 + 7,
        };
        let mut out = Vec::new();
        hello.put(&mut out);
        assert_eq!(ClientHello::read(&out), Ok(hello));
        assert_eq!(&out[hello.cookie_at..][..7], b"\x06cookie");
        assert!(hello.offers(0xc0a8) && !hello.offers(0xa800));
    }

    #[test]
    fn a_server_hello_reads_as_it_was_written() {
        let hello = ServerHello {
            random: [7; 32],
            session_id: &[],
            suite: 0xc0a8,
            extensions: Extensions {
                connection_id: Some(&[]),
                ..Extensions::default()
            },
        };
        let mut out = Vec::new();
        hello.put(&mut out);
        assert_eq!(ServerHello::read(&out), Ok(hello));
    }

    #[test]
    fn another_version_or_compression_is_refused() {
        let hello = ServerHello {
            random: [0; 32],
            session_id: &[],
            suite: 1,
            extensions: Extensions::default(),
        };
        let mut out = Vec::new();
        hello.put(&mut out);
        out[1] = 0xff;
        assert_eq!(ServerHello::read(&out), Err(Fault::Version));
        (out[1], out[37]) = (0xfd, 1);
        assert_eq!(ServerHello::read(&out), Err(Fault::Illegal));
        assert_eq!(ClientHello::read(&[0xfe, 0xff]), Err(Fault::Version));
        assert_eq!(read_verify_request(&[3, 3, 0]), Err(Fault::Version));
        assert_eq!(read_verify_request(&[0xfe, 0xff, 1, 9]), Ok(&[9][..]));
    }

    fn datagram(kind: Kind, random: [u8; 32]) -> Vec<u8> {
        let hello = ServerHello {
            random,
            session_id: b"session",
            suite: 0xc0a8,
            extensions: Extensions::default(),
        };
        let (mut body, mut message, mut out) = (Vec::new(), Vec::new(), Vec::new());
        hello.put(&mut body);
        put_message(&mut message, kind, 1, &body);
        put_plain(&mut out, Content::Handshake, 7, &message);
        out
    }

    proptest! {
        /// The random that was said is read, whatever follows; a datagram cut within has none.
        #[test]
        fn the_random_of_a_server_hello_is_read(
            random: [u8; 32], rest in prop::collection::vec(any::<u8>(), 0..60), cut: prop::sample::Index,
        ) {
            let whole = datagram(Kind::ServerHello, random);
            prop_assert_eq!(server_random(&whole[..cut.index(whole.len())]), None);
            prop_assert_eq!(server_random(&[whole, rest].concat()), Some(random));
            prop_assert_eq!(server_random(&datagram(Kind::ClientHello, random)), None);
        }
    }
}
