//! Both halves of a session's records, and the connection ids in them.

use super::Fault;
use super::crypto::Aead;
use super::protection::{Keys, Opened, Reader, Writer};
use super::record::{Content, RecordHeader};

/// Both halves, once there are keys.
#[derive(Debug)]
pub(super) struct Records<A> {
    writer: Option<Writer<A>>,
    reader: Option<Reader<A>>,
    /// Connection id that the peer writes into its records; empty for none.
    pub(super) own_id: Box<[u8]>,
    /// Connection id that the peer expects.
    pub(super) peer_id: Box<[u8]>,
}

impl<A> Default for Records<A> {
    fn default() -> Self {
        Self {
            writer: None,
            reader: None,
            own_id: Box::default(),
            peer_id: Box::default(),
        }
    }
}

impl<A: Aead> Records<A> {
    pub(super) fn set_keys(&mut self, write: Keys<A>, read: Keys<A>) {
        self.writer = Some(Writer::new(write));
        self.reader = Some(Reader::new(read));
    }

    pub(super) const fn has_keys(&self) -> bool {
        self.reader.is_some()
    }

    /// Bytes that a record adds to what it carries; 0 without keys.
    pub(super) fn overhead(&self) -> usize {
        self.writer
            .as_ref()
            .map_or(0, |writer| writer.overhead(&self.peer_id))
    }

    /// Turns `out[from..]` into one record under keys.
    #[inline]
    pub(super) fn seal(
        &mut self,
        out: &mut Vec<u8>,
        from: usize,
        content: Content,
    ) -> Result<(), Fault> {
        let writer = self.writer.as_mut().ok_or(Fault::UsedUp)?;
        if writer.seal(out, from, content, &self.peer_id) {
            Ok(())
        } else {
            Err(Fault::UsedUp)
        }
    }

    /// Opens a record of epoch 1. Where a connection id was agreed upon, a record without it is
    /// discarded (RFC 9146 section 6).
    #[inline]
    pub(super) fn open<'a>(
        &mut self,
        header: &RecordHeader<'_>,
        fragment: &'a mut [u8],
    ) -> Opened<'a> {
        let has_id = header.content == Content::ConnectionId;
        if has_id == self.own_id.is_empty() || header.connection_id != &*self.own_id {
            return Opened::Bad;
        }
        match &mut self.reader {
            Some(reader) => reader.open(header, fragment),
            None => Opened::Bad,
        }
    }
}
