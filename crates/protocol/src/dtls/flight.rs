//! Messages that one end sends in a row, kept for a retransmission (RFC 6347 section 4.2.4).

use super::Fault;
use super::crypto::Aead;
use super::datagrams::Datagrams;
use super::message::{self, Kind};
use super::record::{self, Content, put_plain};
use super::records::Records;
use super::settings::DATAGRAM_MIN;
use super::wire::put_u24;

/// Messages in their order; from some point on, under keys.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// Whole messages with their headers.
    bytes: Vec<u8>,
    /// Position of change_cipher_spec between them.
    change_at: Option<usize>,
    next_message: u16,
    next_record: u64,
}

impl Flight {
    /// An empty flight, and the numbers of the first message and record.
    pub(super) fn new(next_message: u16, next_record: u64) -> Self {
        Self {
            next_message,
            next_record,
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.change_at = None;
    }

    /// Adds a message, and gives it as it counts for the transcript.
    pub(super) fn add(&mut self, kind: Kind, body: &[u8]) -> &[u8] {
        let at = self.bytes.len();
        message::put_message(&mut self.bytes, kind, self.next_message, body);
        self.next_message = self.next_message.wrapping_add(1);
        &self.bytes[at..]
    }

    pub(super) const fn change(&mut self) {
        self.change_at = Some(self.bytes.len());
    }

    pub(super) const fn has_changed(&self) -> bool {
        self.change_at.is_some()
    }

    pub(super) fn put_plain(&mut self, content: Content, body: &[u8], out: &mut Datagrams) {
        put_plain(out.buffer(), content, self.next_record, body);
        self.next_record += 1;
    }

    /// Sends it all, with new sequence numbers, in datagrams of at most `datagram_max` bytes.
    pub(super) fn send<A: Aead>(
        &mut self,
        records: &mut Records<A>,
        datagram_max: usize,
        out: &mut Datagrams,
    ) -> Result<(), Fault> {
        let datagram_max = datagram_max.max(DATAGRAM_MIN);
        let mut sender = Sender {
            sequence: &mut self.next_record,
            records,
            datagram_max,
            out,
        };
        let plain = self.change_at.unwrap_or(self.bytes.len());
        let (plain, sealed) = self.bytes.split_at(plain);
        sender.messages(plain, false)?;
        if self.change_at.is_some() {
            sender.change();
            sender.messages(sealed, true)?;
        }
        out.cut();
        Ok(())
    }
}

/// Puts messages into records and records into datagrams.
struct Sender<'a, A> {
    sequence: &'a mut u64,
    records: &'a mut Records<A>,
    datagram_max: usize,
    out: &'a mut Datagrams,
}

impl<A: Aead> Sender<'_, A> {
    fn messages(&mut self, mut messages: &[u8], is_sealed: bool) -> Result<(), Fault> {
        while let Some((header, rest)) = messages.split_first_chunk::<{ message::HEADER }>() {
            let [_, a, b, c, ..] = *header;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let (body, rest) = rest.split_at(length);
            self.message(header, body, is_sealed)?;
            messages = rest;
        }
        Ok(())
    }

    fn message(
        &mut self,
        header: &[u8; message::HEADER],
        body: &[u8],
        is_sealed: bool,
    ) -> Result<(), Fault> {
        let mut offset = 0;
        loop {
            let left = body.len() - offset;
            let room = self.room(is_sealed, left);
            let piece = &body[offset..offset + left.min(room)];
            self.fragment(header, offset, piece, is_sealed)?;
            offset += piece.len();
            if offset == body.len() {
                return Ok(());
            }
        }
    }

    /// Bytes of a message for which the datagram has room; one that is begun is ended if the rest
    /// does not fit.
    fn room(&mut self, is_sealed: bool, wanted: usize) -> usize {
        let around = message::HEADER
            + if is_sealed {
                self.records.overhead()
            } else {
                record::HEADER
            };
        let room = self
            .datagram_max
            .saturating_sub(self.out.open_len() + around);
        if room >= wanted {
            return room;
        }
        self.out.cut();
        // The least datagram has room for more than what stands around, whatever the id.
        self.datagram_max - around.min(self.datagram_max - 1)
    }

    fn fragment(
        &mut self,
        header: &[u8; message::HEADER],
        offset: usize,
        piece: &[u8],
        is_sealed: bool,
    ) -> Result<(), Fault> {
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(&header[..6]);
            put_u24(out, offset);
            put_u24(out, piece.len());
            out.extend_from_slice(piece);
        };
        if is_sealed {
            let out = self.out.buffer();
            let from = out.len();
            write(out);
            return self.records.seal(out, from, Content::Handshake);
        }
        let mut body = Vec::with_capacity(message::HEADER + piece.len());
        write(&mut body);
        self.plain(Content::Handshake, &body);
        Ok(())
    }

    fn change(&mut self) {
        if self.out.open_len() + record::HEADER + 1 > self.datagram_max {
            self.out.cut();
        }
        self.plain(Content::ChangeCipherSpec, &[1]);
    }

    fn plain(&mut self, content: Content, body: &[u8]) {
        put_plain(self.out.buffer(), content, *self.sequence, body);
        *self.sequence += 1;
    }
}
