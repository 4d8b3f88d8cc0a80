//! One received datagram, cut into records.

use super::record::{RecordHeader, peek};

/// A datagram that was received, on its way through a session. What it carries is decrypted where
/// it lies.
#[derive(Debug)]
pub struct Incoming<'a> {
    rest: &'a mut [u8],
    pub(super) is_newest: bool,
}

impl<'a> Incoming<'a> {
    /// A datagram.
    pub const fn new(datagram: &'a mut [u8]) -> Self {
        Self {
            rest: datagram,
            is_newest: false,
        }
    }

    /// Returns true if it held a record of this session's peer that is newer than all before it:
    /// only then may its source address become the peer's (RFC 9146 section 6).
    pub const fn is_newest(&self) -> bool {
        self.is_newest
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next record: its header, and what follows it. What cannot be one ends the datagram.
    pub(super) fn next(&mut self, id_len: usize) -> Option<(RecordHeader<'a>, &'a mut [u8])> {
        let rest = std::mem::take(&mut self.rest);
        let (size, length) = {
            let header = peek(rest, id_len)?;
            (header.size(), usize::from(header.length))
        };
        let (record, rest) = rest.split_at_mut(size + length);
        self.rest = rest;
        let (head, fragment) = record.split_at_mut(size);
        RecordHeader::read(head, id_len).map(|header| (header, fragment))
    }
}
