//! The data representation of section 1.5: integers, text and binary data.

use super::Malformed;

/// Largest value of a variable byte integer (section 1.5.5).
pub(super) const VARINT_MAXIMUM: usize = 268_435_455;

/// Longest text or binary data: its length has two bytes (section 1.5.4).
pub(super) const TEXT_MAXIMUM: usize = u16::MAX as usize;

#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Trailing)
        }
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    #[inline]
    pub(super) fn word(&mut self) -> Result<u16, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*word))
    }

    pub(super) fn long(&mut self) -> Result<u32, Malformed> {
        let (long, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*long))
    }

    /// A packet id, which is never zero (MQTT-2.2.1-3).
    #[inline]
    pub(super) fn packet_id(&mut self) -> Result<u16, Malformed> {
        match self.word()? {
            0 => Err(Malformed::PacketId),
            id => Ok(id),
        }
    }

    /// A variable byte integer in its shortest form (MQTT-1.5.5-1).
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0;
        for place in 0..4 {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || place == 0;
                return if is_shortest {
                    Ok(value)
                } else {
                    Err(Malformed::Integer)
                };
            }
        }
        Err(Malformed::Integer)
    }

    #[inline]
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.word()?;
        self.take(usize::from(length))
    }

    /// Text without U+0000 (MQTT-1.5.4-2).
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.binary()?;
        if bytes.contains(&0) {
            return Err(Malformed::Text);
        }
        str::from_utf8(bytes).map_err(|_| Malformed::Text)
    }
}

#[inline]
pub(super) const fn varint_size(value: usize) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        _ => 4,
    }
}

/// Appends a variable byte integer; the caller has checked it against [`VARINT_MAXIMUM`].
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    debug_assert!(
        value <= VARINT_MAXIMUM,
        "lengths are checked before they are written"
    );
    while value > 0x7f {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(super) fn put_word(out: &mut Vec<u8>, word: u16) {
    out.extend_from_slice(&word.to_be_bytes());
}

/// Appends binary data or text; the caller has checked it against [`TEXT_MAXIMUM`].
#[inline]
pub(super) fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(
        bytes.len() <= TEXT_MAXIMUM,
        "lengths are checked before they are written"
    );
    put_word(out, bytes.len() as u16);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn varint(bytes: &[u8]) -> Result<u32, Malformed> {
        Reader::new(bytes).varint()
    }

    /// MQTT-1.5.5-1.
    #[test]
    fn integers_are_those_of_the_standards_table() {
        // Table 1-1 of section 1.5.5.
        let table: [(&[u8], u32); 8] = [
            (&[0x00], 0),
            (&[0x7f], 127),
            (&[0x80, 0x01], 128),
            (&[0xff, 0x7f], 16_383),
            (&[0x80, 0x80, 0x01], 16_384),
            (&[0xff, 0xff, 0x7f], 2_097_151),
            (&[0x80, 0x80, 0x80, 0x01], 2_097_152),
            (&[0xff, 0xff, 0xff, 0x7f], 268_435_455),
        ];
        for (bytes, value) in table {
            assert_eq!(varint(bytes), Ok(value));
            let mut out = Vec::new();
            put_varint(&mut out, value as usize);
            assert_eq!(
                (out.as_slice(), varint_size(value as usize)),
                (bytes, bytes.len())
            );
        }
    }

    #[test]
    fn an_integer_longer_than_needed_is_malformed() {
        assert_eq!(varint(&[0x80, 0x00]), Err(Malformed::Integer));
        assert_eq!(
            varint(&[0xff, 0xff, 0xff, 0xff, 0x01]),
            Err(Malformed::Integer)
        );
        assert_eq!(varint(&[0x80]), Err(Malformed::Truncated));
    }

    /// MQTT-1.5.4-1, MQTT-1.5.4-2.
    #[test]
    fn text_with_a_null_or_a_surrogate_is_malformed() {
        // Section 1.5.4: "A" and U+2A6D4 is the standard's example.
        let example = [0, 5, 0x41, 0xf0, 0xaa, 0x9b, 0x94];
        assert_eq!(Reader::new(&example).text(), Ok("A\u{2a6d4}"));
        assert_eq!(Reader::new(&[0, 1, 0]).text(), Err(Malformed::Text));
        assert_eq!(
            Reader::new(&[0, 3, 0xed, 0xa0, 0x80]).text(),
            Err(Malformed::Text)
        );
    }

    proptest! {
        /// read(put(x)) = x for every integer the form can hold.
        #[test]
        fn an_integer_survives_the_wire(value in 0..=VARINT_MAXIMUM) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(varint(&out), Ok(value as u32));
            prop_assert_eq!(out.len(), varint_size(value));
        }
    }
}
