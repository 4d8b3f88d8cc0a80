//! Records under keys: sealed and opened where they lie (RFC 6347 section 4.1.2, RFC 9146).

use super::crypto::Aead;
use super::record::{Content, HEADER, RecordHeader, SEQUENCE_MAX, VERSION};
use super::window::Window;

/// The one epoch with keys, since nothing is negotiated twice.
const EPOCH: u16 = 1;
/// The part of the nonce that travels in a record (RFC 5288 section 3, RFC 6655 section 3).
const NONCE: usize = 8;
/// Most bytes that a record's tag covers besides its content (RFC 9146 section 5.3).
const ASSOCIATED_MAX: usize = 8 + 1 + 1 + 1 + 2 + 8 + 255 + 2;

/// Keys of one direction, with the part of the nonce that does not travel.
#[derive(Debug)]
pub(super) struct Keys<A> {
    pub(super) aead: A,
    pub(super) salt: [u8; 4],
}

impl<A> Keys<A> {
    fn nonce(&self, explicit: [u8; NONCE]) -> [u8; 12] {
        let [a, b, c, d] = self.salt;
        let [e, f, g, h, i, j, k, l] = explicit;
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

#[derive(Debug)]
pub(super) struct Writer<A> {
    keys: Keys<A>,
    sequence: u64,
}

impl<A: Aead> Writer<A> {
    pub(super) const fn new(keys: Keys<A>) -> Self {
        let sequence = 0;
        Self { keys, sequence }
    }

    /// Bytes that a record adds to what it carries.
    pub(super) fn overhead(&self, id: &[u8]) -> usize {
        let hidden_type = usize::from(!id.is_empty());
        HEADER + id.len() + NONCE + hidden_type + self.keys.aead.tag_len()
    }

    /// Turns `out[from..]` into one record; whether a number was left for it.
    #[inline]
    pub(super) fn seal(
        &mut self,
        out: &mut Vec<u8>,
        from: usize,
        content: Content,
        id: &[u8],
    ) -> bool {
        if self.sequence > SEQUENCE_MAX {
            out.truncate(from);
            return false;
        }
        let explicit = numbered(self.sequence);
        self.sequence += 1;
        let plain = out.len() - from;
        let head = HEADER + id.len() + NONCE;
        out.resize(from + plain + self.overhead(id), 0);
        let record = &mut out[from..];
        record.copy_within(..plain, head);
        let mut inner = plain;
        let mut shown = content;
        if !id.is_empty() {
            record[head + plain] = content as u8;
            inner += 1;
            shown = Content::ConnectionId;
        }
        let length = (record.len() - HEADER - id.len()) as u16;
        record[0] = shown as u8;
        record[1..3].copy_from_slice(&VERSION.to_be_bytes());
        record[3..11].copy_from_slice(&explicit);
        record[11..11 + id.len()].copy_from_slice(id);
        record[11 + id.len()..HEADER + id.len()].copy_from_slice(&length.to_be_bytes());
        record[HEADER + id.len()..head].copy_from_slice(&explicit);
        let associated = Associated::new(shown, explicit, id, inner);
        let nonce = self.keys.nonce(explicit);
        self.keys
            .aead
            .seal(&nonce, associated.as_bytes(), &mut record[head..]);
        true
    }
}

#[derive(Debug)]
pub(super) struct Reader<A> {
    keys: Keys<A>,
    window: Window,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened<'a> {
    /// Authentic, and the first copy.
    Fresh {
        content: Content,
        plain: &'a mut [u8],
        /// True if it is newer than all before it.
        is_newest: bool,
    },
    /// A copy, or too old to be known as a first one.
    Replayed,
    /// Not authentic, or useless.
    Bad,
}

impl<A: Aead> Reader<A> {
    pub(super) fn new(keys: Keys<A>) -> Self {
        let window = Window::default();
        Self { keys, window }
    }

    /// Opens a record where it lies; `fragment` is what follows its header.
    #[inline]
    pub(super) fn open<'a>(
        &mut self,
        header: &RecordHeader<'_>,
        fragment: &'a mut [u8],
    ) -> Opened<'a> {
        if !self.window.is_fresh(header.sequence) {
            return Opened::Replayed;
        }
        let tag = self.keys.aead.tag_len();
        let Some((explicit, sealed)) = fragment.split_first_chunk_mut::<NONCE>() else {
            return Opened::Bad;
        };
        let Some(inner) = sealed.len().checked_sub(tag) else {
            return Opened::Bad;
        };
        let id = header.connection_id;
        let numbered = numbered(header.sequence);
        let associated = Associated::new(header.content, numbered, id, inner);
        let nonce = self.keys.nonce(*explicit);
        if !self.keys.aead.open(&nonce, associated.as_bytes(), sealed) {
            return Opened::Bad;
        }
        let is_newest = self.window.mark(header.sequence);
        let plain = &mut sealed[..inner];
        let (content, plain) = if header.content == Content::ConnectionId {
            let Some((hidden, length)) = unpad(plain) else {
                return Opened::Bad;
            };
            (hidden, &mut plain[..length])
        } else {
            (header.content, plain)
        };
        Opened::Fresh {
            content,
            plain,
            is_newest,
        }
    }
}

/// The true type and the length of what a record with a connection id carries: the last byte that
/// is not zero is the type (RFC 9146 section 4).
fn unpad(inner: &[u8]) -> Option<(Content, usize)> {
    let length = inner.iter().rposition(|byte| *byte != 0)?;
    Content::hidden(inner[length]).map(|content| (content, length))
}

/// Epoch and sequence number, as headers and nonces have them.
const fn numbered(sequence: u64) -> [u8; NONCE] {
    ((EPOCH as u64) << 48 | sequence).to_be_bytes()
}

/// Bytes that a record's tag covers besides its content.
struct Associated {
    bytes: [u8; ASSOCIATED_MAX],
    length: usize,
}

impl Associated {
    /// Of a record that shows this type; `inner` is the length of what is encrypted.
    #[inline]
    fn new(shown: Content, numbered: [u8; NONCE], id: &[u8], inner: usize) -> Self {
        let mut this = Self {
            bytes: [0; ASSOCIATED_MAX],
            length: 0,
        };
        let is_numbered_first = shown != Content::ConnectionId;
        if is_numbered_first {
            // RFC 5246 section 6.2.3.3, with the epoch of RFC 6347 section 4.1.2.1.
            this.put(&numbered);
            this.put(&[shown as u8]);
        } else {
            // RFC 9146 section 5.3.
            this.put(&[0xff; 8]);
            this.put(&[shown as u8, id.len() as u8, shown as u8]);
        }
        this.put(&VERSION.to_be_bytes());
        if !is_numbered_first {
            this.put(&numbered);
            this.put(id);
        }
        this.put(&(inner as u16).to_be_bytes());
        this
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::peek;
    use super::*;

    /// Covers what it is told to by a sum, so that tests need no cryptography: it is the shape of
    /// records that is tested here.
    #[derive(Debug, Clone, Copy)]
    struct Sum;

    impl Sum {
        fn of(nonce: &[u8], associated: &[u8], bytes: &[u8]) -> u64 {
            let all = nonce.iter().chain(associated).chain(bytes);
            all.fold(7, |sum: u64, byte| {
                sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
            })
        }
    }

    impl Aead for Sum {
        fn seal(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]) {
            let (plain, tag) = bytes.split_last_chunk_mut().expect("there is room");
            plain.iter_mut().for_each(|byte| *byte ^= 0xff);
            *tag = Self::of(nonce, associated, plain).to_be_bytes();
        }

        fn open(&self, nonce: &[u8; 12], associated: &[u8], bytes: &mut [u8]) -> bool {
            let (plain, tag) = bytes.split_last_chunk_mut().expect("there is a tag");
            let is_right = *tag == Self::of(nonce, associated, plain).to_be_bytes();
            plain.iter_mut().for_each(|byte| *byte ^= 0xff);
            is_right
        }

        fn tag_len(&self) -> usize {
            8
        }
    }

    fn keys() -> Keys<Sum> {
        let (aead, salt) = (Sum, *b"salt");
        Keys { aead, salt }
    }

    fn open<'a>(reader: &mut Reader<Sum>, record: &'a mut [u8], id_len: usize) -> Opened<'a> {
        let seen = record.to_vec();
        let header = peek(&seen, id_len).expect("it is whole");
        reader.open(&header, &mut record[header.size()..])
    }

    proptest! {
        /// Law: a sealed record opens once, with its type and content; behind other bytes they
        /// stay.
        #[test]
        fn what_is_sealed_opens_once(
            plain in prop::collection::vec(any::<u8>(), 0..300),
            id in prop::collection::vec(any::<u8>(), 0..40),
            before in prop::collection::vec(any::<u8>(), 0..5),
        ) {
            let (mut writer, mut reader) = (Writer::new(keys()), Reader::new(keys()));
            let mut out = [before.clone(), plain.clone()].concat();
            prop_assert!(writer.seal(&mut out, before.len(), Content::Data, &id));
            prop_assert_eq!(&out[..before.len()], &before[..]);
            let mut record = out.split_off(before.len());
            prop_assert_eq!(record.len(), plain.len() + writer.overhead(&id));
            let (mut first, mut again) = (record.clone(), record.clone());
            record[11 + id.len() / 2] ^= 1;
            let opened = open(&mut reader, &mut first, id.len());
            let mut expected = plain;
            let expected = Opened::Fresh { content: Content::Data, plain: &mut expected, is_newest: true };
            prop_assert_eq!(opened, expected);
            prop_assert_eq!(open(&mut reader, &mut again, id.len()), Opened::Replayed);
        }

        /// A record with any one byte altered does not open.
        #[test]
        fn what_is_altered_does_not_open(at in 0_usize..60, flip in 1_u8..=255) {
            let mut out = b"content".to_vec();
            prop_assert!(Writer::new(keys()).seal(&mut out, 0, Content::Alert, b"id"));
            let at = at % out.len();
            out[at] ^= flip;
            let seen = out.clone();
            if let Some(header) = peek(&seen, 2) && header.epoch == EPOCH {
                let fragment = &mut out[header.size()..][..usize::from(header.length)];
                let opened = Reader::new(keys()).open(&header, fragment);
                prop_assert_eq!(opened, Opened::Bad);
            }
        }
    }

    #[test]
    fn padding_is_taken_off_and_nothing_but_padding_is_bad() {
        assert_eq!(unpad(&[5, 6, 23, 0, 0]), Some((Content::Data, 2)));
        assert_eq!(unpad(&[21]), Some((Content::Alert, 0)));
        for bad in [&[][..], &[0, 0], &[1, 25], &[1, 99]] {
            assert_eq!(unpad(bad), None);
        }
    }

    #[test]
    fn without_a_number_left_nothing_is_sealed() {
        let mut writer = Writer::new(keys());
        writer.sequence = SEQUENCE_MAX;
        let mut out = b"ab".to_vec();
        assert!(writer.seal(&mut out, 1, Content::Data, b""));
        out.truncate(2);
        assert!(!writer.seal(&mut out, 1, Content::Data, b""));
        assert_eq!(out, b"a");
    }

    #[test]
    fn rfc_9146_section_5_3_what_a_tag_covers_with_a_connection_id() {
        let covered = Associated::new(
            Content::ConnectionId,
            numbered(0x0a0b),
            &[0xc1, 0xc2],
            0x0102,
        );
        let wanted = [
            &[0xff; 8][..],
            &[
                25, 2, 25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0x0a, 0x0b, 0xc1, 0xc2, 1, 2,
            ],
        ];
        assert_eq!(covered.as_bytes(), wanted.concat());
        let covered = Associated::new(Content::Data, numbered(5), &[], 9);
        let wanted = [0, 1, 0, 0, 0, 0, 0, 5, 23, 0xfe, 0xfd, 0, 9];
        assert_eq!(covered.as_bytes(), wanted);
    }
}
