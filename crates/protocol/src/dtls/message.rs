//! Messages of the handshake and their fragments (RFC 6347 section 4.2.2).

use super::Fault;
use super::record::{Content, RecordHeader, peek};
use super::wire::{Cursor, put_u16, put_u24};

/// Bytes of the header of a message or fragment.
pub(super) const HEADER: usize = 12;

/// Kind of a message (RFC 5246 section 7.4, RFC 6347 section 4.3.2, RFC 5077 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    HelloRequest = 0,
    ClientHello = 1,
    ServerHello = 2,
    HelloVerifyRequest = 3,
    NewSessionTicket = 4,
    Certificate = 11,
    ServerKeyExchange = 12,
    CertificateRequest = 13,
    ServerHelloDone = 14,
    CertificateVerify = 15,
    ClientKeyExchange = 16,
    Finished = 20,
}

impl Kind {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::HelloRequest,
            1 => Self::ClientHello,
            2 => Self::ServerHello,
            3 => Self::HelloVerifyRequest,
            4 => Self::NewSessionTicket,
            11 => Self::Certificate,
            12 => Self::ServerKeyExchange,
            13 => Self::CertificateRequest,
            14 => Self::ServerHelloDone,
            15 => Self::CertificateVerify,
            16 => Self::ClientKeyExchange,
            20 => Self::Finished,
            _ => return None,
        })
    }
}

/// A piece of a message, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    pub(super) kind: Kind,
    pub(super) sequence: u16,
    /// Bytes of the whole message.
    pub(super) length: usize,
    pub(super) offset: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The next one of a record; one that goes beyond its message is malformed, as is one of no
    /// kind that we know.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let kind = Kind::from_code(cursor.u8()?).ok_or(Fault::Malformed)?;
        let length = cursor.u24()?;
        let sequence = cursor.u16()?;
        let offset = cursor.u24()?;
        let bytes = cursor.vec24()?;
        if offset + bytes.len() > length {
            return Err(Fault::Malformed);
        }
        Ok(Self {
            kind,
            sequence,
            length,
            offset,
            bytes,
        })
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.bytes.len() == self.length
    }

    pub(super) const fn is_last(&self) -> bool {
        self.offset + self.bytes.len() == self.length
    }
}

/// The first record of a datagram and the message in it, if that is whole, in the clear and of a kind.
pub(super) fn first(datagram: &[u8], kind: Kind) -> Option<(RecordHeader<'_>, Fragment<'_>)> {
    let header = peek(datagram, 0)?;
    if header.epoch != 0 || header.content != Content::Handshake {
        return None;
    }
    let record = &datagram[header.size()..][..usize::from(header.length)];
    let fragment = Fragment::read(&mut Cursor::new(record)).ok()?;
    let is_it = fragment.kind == kind && fragment.is_whole();
    is_it.then_some((header, fragment))
}

/// Appends a message as it counts for the transcript: in one piece (RFC 6347 section 4.2.6).
pub(super) fn put_message(out: &mut Vec<u8>, kind: Kind, sequence: u16, body: &[u8]) {
    out.push(kind as u8);
    put_u24(out, body.len());
    put_u16(out, sequence);
    put_u24(out, 0);
    put_u24(out, body.len());
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_message_is_one_fragment() {
        let mut out = Vec::new();
        put_message(&mut out, Kind::Finished, 3, b"abc");
        let mut cursor = Cursor::new(&out);
        let fragment = Fragment::read(&mut cursor).expect("it is whole");
        assert!(cursor.is_empty() && fragment.is_whole() && fragment.is_last());
        assert_eq!((fragment.kind, fragment.sequence), (Kind::Finished, 3));
        assert_eq!(fragment.bytes, b"abc");
    }

    #[test]
    fn a_fragment_beyond_its_message_is_malformed() {
        let beyond = [20, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0, 2, 1, 1];
        assert!(Fragment::read(&mut Cursor::new(&beyond)).is_err());
        let unknown = [99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(Fragment::read(&mut Cursor::new(&unknown)).is_err());
    }
}
