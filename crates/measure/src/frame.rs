//! The records of `windows.bin`.
//!
//! A record is framed as `len u32 | crc32 u32 | bytes`, both numbers little-endian, the check
//! being the CRC-32 of the bytes, which are the record in `postcard`. Records are only appended,
//! so a killed writer leaves at most one torn record, at the end.

use serde::{Deserialize, Serialize};

use crate::{Account, Identity, WindowDelta};

/// Bytes before a record's own.
const FRAME_BYTES: usize = 8;
/// No record is longer: the identity of 10^9 messages with random loss takes less.
const RECORD_BYTES_MOST: usize = 1 << 30;

/// One record of `windows.bin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Description of the run, first of all; written and read by others.
    Header(Vec<u8>),
    /// Windows touched since the record before.
    Windows(Box<WindowDelta>),
    /// The generator's own health; written and read by others.
    Health(Vec<u8>),
    /// Something that happened; written and read by others.
    Event(Vec<u8>),
    /// The identity sets, at the end.
    Identity(Box<Identity>),
    /// The session's own account, at the end.
    Account(Box<Account>),
    /// Result of the run, last of all; written and read by others.
    Footer(Vec<u8>),
}

/// Reasons for which a record could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The record has no binary form.
    #[error("encode a record: {0}")]
    Encode(#[from] postcard::Error),
    /// The record is longer than a reader accepts.
    #[error(
        "write a record of {0} bytes: at most {RECORD_BYTES_MOST} are read again; split the run into parts"
    )]
    TooLong(usize),
}

/// Appends a framed record.
///
/// # Errors
/// [`RecordError::TooLong`] for more than 1 GiB; `out` is then as it was.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let bytes = postcard::to_stdvec(record)?;
    if bytes.len() > RECORD_BYTES_MOST {
        return Err(RecordError::TooLong(bytes.len()));
    }
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Reads records until the bytes end or are torn.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    read: usize,
    is_torn: bool,
}

impl<'a> Records<'a> {
    /// The records of a file's bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            read: 0,
            is_torn: false,
        }
    }

    /// Returns whether the bytes end in an incomplete record: the writer was killed, or the file
    /// was altered from there on.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Number of bytes that whole records took.
    pub fn bytes_read(&self) -> usize {
        self.read
    }

    fn take(&mut self) -> Option<Record> {
        let (len, rest) = self.rest.split_first_chunk::<4>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len) as usize;
        if len > RECORD_BYTES_MOST {
            return None;
        }
        let (bytes, rest) = rest.split_at_checked(len)?;
        if crc32fast::hash(bytes) != u32::from_le_bytes(*check) {
            return None;
        }
        let record = postcard::from_bytes(bytes).ok()?;
        self.rest = rest;
        self.read += FRAME_BYTES + len;
        Some(record)
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.rest.is_empty() || self.is_torn {
            return None;
        }
        let record = self.take();
        self.is_torn = record.is_none();
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (Vec<Record>, Vec<u8>) {
        let records = vec![
            Record::Header(b"{}".to_vec()),
            Record::Windows(Box::default()),
            Record::Event(vec![0xff; 300]),
        ];
        let mut bytes = Vec::new();
        for record in &records {
            encode_record(record, &mut bytes).unwrap();
        }
        (records, bytes)
    }

    #[test]
    fn a_file_cut_anywhere_gives_its_whole_records() {
        let (records, bytes) = file();
        for cut in 0..=bytes.len() {
            let mut read = Records::new(&bytes[..cut]);
            let whole: Vec<_> = read.by_ref().collect();
            assert_eq!(whole[..], records[..whole.len()]);
            assert_eq!(read.is_torn(), read.bytes_read() != cut);
        }
        assert_eq!(Records::new(&bytes).count(), records.len());
    }

    #[test]
    fn an_altered_bit_ends_the_reading() {
        let (records, bytes) = file();
        for at in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[at / 8] ^= 1 << (at % 8);
            let mut read = Records::new(&altered);
            let whole: Vec<_> = read.by_ref().collect();
            assert!(
                read.is_torn() && whole[..] == records[..whole.len()],
                "bit {at}"
            );
        }
    }
}
