//! The header of a record (RFC 6347 section 4.1, RFC 9146 section 4).

use super::wire::put_u16;

/// Bytes of a record's header without a connection id.
pub(super) const HEADER: usize = 13;
/// Sequence numbers have 48 bits.
pub(super) const SEQUENCE_MAX: u64 = (1 << 48) - 1;
/// DTLS 1.2 on the wire.
pub(super) const VERSION: u16 = 0xfefd;
/// DTLS 1.0, which the header of a first ClientHello and a HelloVerifyRequest may say
/// (RFC 6347 section 4.2.1).
pub(super) const VERSION_1_0: u16 = 0xfeff;

/// Content type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Content {
    /// change_cipher_spec.
    ChangeCipherSpec = 20,
    /// alert.
    Alert = 21,
    /// handshake.
    Handshake = 22,
    /// application_data.
    Data = 23,
    /// tls12_cid: the true type is encrypted (RFC 9146 section 4).
    ConnectionId = 25,
}

impl Content {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            20 => Self::ChangeCipherSpec,
            21 => Self::Alert,
            22 => Self::Handshake,
            23 => Self::Data,
            25 => Self::ConnectionId,
            _ => return None,
        })
    }

    /// The type that a record with a connection id hides; it never hides another such.
    pub(super) fn hidden(code: u8) -> Option<Self> {
        Self::from_code(code).filter(|content| *content != Self::ConnectionId)
    }
}

/// Visible header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// Its content type, if visible.
    pub content: Content,
    /// 0 in the clear, 1 once there are keys.
    pub epoch: u16,
    /// Of 48 bits.
    pub sequence: u64,
    /// The receiver's connection id; empty if there is none.
    pub connection_id: &'a [u8],
    /// Bytes behind the header.
    pub length: u16,
}

impl<'a> RecordHeader<'a> {
    /// Reads a header, whatever follows it.
    pub(super) fn read(bytes: &'a [u8], id_len: usize) -> Option<Self> {
        let (&fixed, rest) = bytes.split_first_chunk::<11>()?;
        let [kind, major, minor, epoch_high, epoch_low, sequence @ ..] = fixed;
        let content = Content::from_code(kind)?;
        let epoch = u16::from_be_bytes([epoch_high, epoch_low]);
        // Once there are keys the version is settled, and their tags cover it.
        let is_spoken = match u16::from_be_bytes([major, minor]) {
            VERSION => true,
            VERSION_1_0 => epoch == 0,
            _ => false,
        };
        if !is_spoken {
            return None;
        }
        let has_id = content == Content::ConnectionId;
        let (connection_id, rest) = rest.split_at_checked(if has_id { id_len } else { 0 })?;
        let length = u16::from_be_bytes(*rest.first_chunk()?);
        let [a, b, c, d, e, f] = sequence;
        Some(Self {
            content,
            epoch,
            sequence: u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            connection_id,
            length,
        })
    }

    pub(super) const fn size(&self) -> usize {
        HEADER + self.connection_id.len()
    }
}

/// The header of a datagram's first record, for whoever has to find the session that it is for.
///
/// A record does not say how long its connection id is: `id_len` is the length of all ids that the
/// receiver has given out. None is what no session could use: a datagram that is too short for
/// what its header says, another version, another type.
pub fn peek(datagram: &[u8], id_len: usize) -> Option<RecordHeader<'_>> {
    let header = RecordHeader::read(datagram, id_len)?;
    let end = header.size() + usize::from(header.length);
    (datagram.len() >= end).then_some(header)
}

/// Returns true if a connection id has a valid length (RFC 9146 section 3).
pub(super) const fn is_id(id: &[u8]) -> bool {
    id.len() <= 255
}

/// Appends a record in the clear, of epoch 0.
pub(super) fn put_plain(out: &mut Vec<u8>, content: Content, sequence: u64, body: &[u8]) {
    put_head(out, content, sequence);
    put_u16(out, body.len() as u16);
    out.extend_from_slice(body);
}

fn put_head(out: &mut Vec<u8>, content: Content, sequence: u64) {
    out.push(content as u8);
    put_u16(out, VERSION);
    out.extend_from_slice(&sequence.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let mut out = Vec::new();
        put_plain(&mut out, Content::Handshake, 0x0102_0304_0506, b"abc");
        assert_eq!(out.len(), HEADER + 3);
        let header = peek(&out, 8).expect("it is whole");
        assert_eq!(header.content, Content::Handshake);
        assert_eq!((header.epoch, header.sequence), (0, 0x0102_0304_0506));
        assert_eq!((header.connection_id, header.length), (&[][..], 3));
    }

    #[test]
    fn a_connection_id_has_the_length_that_its_receiver_knows() {
        let datagram = [
            25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 9, 0xa, 0xb, 0xc, 0, 2, 7, 7,
        ];
        let header = peek(&datagram, 3).expect("it is whole");
        assert_eq!(header.connection_id, [0xa, 0xb, 0xc]);
        assert_eq!((header.epoch, header.sequence, header.length), (1, 9, 2));
        assert_eq!(header.size(), 16);
    }

    #[test]
    fn what_no_session_could_use_has_no_header() {
        let mut out = Vec::new();
        put_plain(&mut out, Content::Data, 0, b"abc");
        for end in 0..out.len() {
            assert_eq!(peek(&out[..end], 0), None, "cut at {end}");
        }
        for (at, value) in [(0, 24), (1, 3), (2, 0xfc)] {
            let mut other = out.clone();
            other[at] = value;
            assert_eq!(peek(&other, 0), None);
        }
    }
}
