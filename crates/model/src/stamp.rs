//! The stamp: a message's id written into its payload.
//!
//! Layout, big-endian, 22 bytes: run 4, device 4, stream 1, seq 4, due 5, check 4. As text it is
//! 30 characters of base64url without padding (RFC 4648 section 5). `due` is in microseconds
//! since T0, or all ones where the schedule gives it. The check is the CRC-32 of the first 18
//! bytes followed by `covered`: the rest of the payload at integrity level *body*, nothing at
//! level *stamp*.

use crate::{DeviceId, MessageId, Micros, RunId, StreamId};

/// Length of a stamp in bytes.
pub const STAMP_BYTES: usize = 22;
/// Length of a stamp as base64url text.
pub const STAMP_TEXT: usize = 30;

/// Number of bytes in front of the check.
pub const STAMP_KEY_BYTES: usize = 18;
/// Number of characters in front of the check, which hold nothing of it.
pub const STAMP_KEY_TEXT: usize = STAMP_KEY_BYTES / 3 * 4;

const DUE_UNKNOWN: u64 = (1 << 40) - 1;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A message's id and, where the schedule does not give it, its due instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The message.
    pub id: MessageId,
    /// Its due instant; none where the schedule gives it.
    pub due: Option<Micros>,
}

/// Reason that bytes are no stamp, or no longer the stamp that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampError {
    /// Not 30 characters of base64url.
    NotText,
    /// The check does not hold; the id is what the bytes say.
    Check(Stamp),
}

impl Stamp {
    /// The stamp's bytes; `covered` are the further byte ranges that the check protects.
    pub fn encode(&self, covered: &[&[u8]]) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[0..4].copy_from_slice(&self.id.run.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.id.device.0.to_be_bytes());
        bytes[8] = self.id.stream.0;
        bytes[9..13].copy_from_slice(&self.id.seq.to_be_bytes());
        let due = self
            .due
            .map_or(DUE_UNKNOWN, |due| due.get().min(DUE_UNKNOWN - 1));
        bytes[13..18].copy_from_slice(&due.to_be_bytes()[3..]);
        let check = check(&bytes[..STAMP_KEY_BYTES], covered);
        bytes[STAMP_KEY_BYTES..].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// Reads a stamp.
    ///
    /// # Errors
    /// [`StampError::Check`] if the bytes, or what the check covers, were altered.
    pub fn decode(bytes: &[u8; STAMP_BYTES], covered: &[&[u8]]) -> Result<Self, StampError> {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let due = (u64::from(bytes[13]) << 32) | u64::from(word(14));
        let stamp = Stamp {
            id: MessageId {
                run: RunId(word(0)),
                device: DeviceId(word(4)),
                stream: StreamId(bytes[8]),
                seq: word(9),
            },
            due: (due != DUE_UNKNOWN).then_some(Micros(due)),
        };
        if word(STAMP_KEY_BYTES) == check(&bytes[..STAMP_KEY_BYTES], covered) {
            Ok(stamp)
        } else {
            Err(StampError::Check(stamp))
        }
    }

    /// The stamp as text.
    pub fn encode_text(&self, covered: &[&[u8]]) -> [u8; STAMP_TEXT] {
        let bytes = self.encode(covered);
        let mut text = [0; STAMP_TEXT];
        for (group, out) in bytes.chunks(3).zip(text.chunks_mut(4)) {
            let word = group
                .iter()
                .fold(0u32, |word, byte| (word << 8) | u32::from(*byte))
                << (8 * (3 - group.len()));
            for (place, out) in out.iter_mut().enumerate() {
                *out = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            }
        }
        text
    }

    /// Reads a stamp from text.
    ///
    /// # Errors
    /// [`StampError::NotText`] for a character outside the alphabet, else as [`Stamp::decode`].
    /// The last character has four bits to spare; if they are not zero it was altered.
    pub fn decode_text(text: &[u8; STAMP_TEXT], covered: &[&[u8]]) -> Result<Self, StampError> {
        let mut values = [0; STAMP_TEXT];
        let mut all = 0;
        for (symbol, value) in text.iter().zip(&mut values) {
            *value = SEXTETS[usize::from(*symbol)];
            all |= *value;
        }
        if all == NO_SEXTET {
            return Err(StampError::NotText);
        }
        let mut bytes = [0; STAMP_BYTES];
        for (group, out) in values.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
            out[0] = group[0] << 2 | group[1] >> 4;
            out[1] = group[1] << 4 | group[2] >> 2;
            out[2] = group[2] << 6 | group[3];
        }
        let [.., first, last] = values;
        bytes[STAMP_BYTES - 1] = first << 2 | last >> 4;
        let spare = last & 0x0f;
        match Self::decode(&bytes, covered) {
            Ok(stamp) if spare != 0 => Err(StampError::Check(stamp)),
            decoded => decoded,
        }
    }
}

/// Value of a character; [`NO_SEXTET`] for one outside the alphabet.
const SEXTETS: [u8; 256] = {
    let mut table = [NO_SEXTET; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        table[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    table
};
const NO_SEXTET: u8 = 0xff;

fn check(key: &[u8], covered: &[&[u8]]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(key);
    for part in covered {
        crc.update(part);
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp(run: u32, device: u32, stream: u8, seq: u32, due: Option<u64>) -> Stamp {
        let id = MessageId {
            run: RunId(run),
            device: DeviceId(device),
            stream: StreamId(stream),
            seq,
        };
        Stamp {
            id,
            due: due.map(Micros),
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = stamp(
            0x0102_0304,
            0x0506_0708,
            9,
            0x0a0b_0c0d,
            Some(0x0e_0f10_1112),
        )
        .encode(&[]);
        assert_eq!(bytes[..18], (1..=18).collect::<Vec<u8>>()[..]);
    }

    proptest! {
        /// decode(encode(x)) = x, as bytes and as text.
        #[test]
        fn a_stamp_survives_the_wire(
            run: u32, device: u32, stream: u8, seq: u32,
            due in proptest::option::of(0u64..(1 << 40) - 1),
            body: Vec<u8>,
        ) {
            let sent = stamp(run, device, stream, seq, due);
            prop_assert_eq!(Stamp::decode(&sent.encode(&[&body]), &[&body]), Ok(sent));
            prop_assert_eq!(Stamp::decode_text(&sent.encode_text(&[&body]), &[&body]), Ok(sent));
        }

        /// One altered bit of the stamp or of what it covers is always noticed.
        #[test]
        fn one_altered_bit_is_noticed(seq: u32, at in 0usize..(22 + 8) * 8, body: [u8; 8]) {
            let mut all = [0; 30];
            all[..22].copy_from_slice(&stamp(1, 2, 3, seq, None).encode(&[&body]));
            all[22..].copy_from_slice(&body);
            all[at / 8] ^= 1 << (at % 8);
            let mut bytes = [0; STAMP_BYTES];
            bytes.copy_from_slice(&all[..22]);
            prop_assert!(Stamp::decode(&bytes, &[&all[22..]]).is_err());
        }
    }

    #[test]
    fn the_last_character_has_one_spelling() {
        let stamp = stamp(1, 2, 3, 4, Some(5));
        let text = stamp.encode_text(&[]);
        let spellings = ALPHABET.iter().filter(|last| {
            let mut altered = text;
            altered[STAMP_TEXT - 1] = **last;
            Stamp::decode_text(&altered, &[]) == Ok(stamp)
        });
        assert_eq!(spellings.count(), 1);
    }
}
