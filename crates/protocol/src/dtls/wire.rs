//! Reading and writing the presentation language of TLS (RFC 5246 section 4).

use super::Fault;

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u24(&mut self) -> Result<usize, Fault> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]) as usize)
    }

    /// A vector whose length is one byte.
    pub(super) fn vec8(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.u8()?;
        self.take(usize::from(length))
    }

    pub(super) fn vec16(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    pub(super) fn vec24(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.u24()?;
        self.take(length)
    }

    pub(super) fn end(self) -> Result<(), Fault> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Fault::Malformed)
        }
    }
}

/// The numbers of a list of 16-bit codes; half a number at the end is an error.
pub(super) fn codes(list: &[u8]) -> Result<impl Iterator<Item = u16> + '_, Fault> {
    let (pairs, rest) = list.as_chunks();
    if rest.is_empty() {
        Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)))
    } else {
        Err(Fault::Malformed)
    }
}

pub(super) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_u24(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u32).to_be_bytes()[1..]);
}

/// A vector with one byte of length; what `write` writes has at most 255 bytes.
pub(super) fn put_vec8(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(u8::try_from(bytes.len()).is_ok());
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// A vector with two bytes of length, whatever `write` writes.
pub(super) fn put_vec16(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    put_u16(out, 0);
    write(out);
    let length = (out.len() - at - 2) as u16;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
}

/// A vector with three bytes of length, whatever `write` writes.
pub(super) fn put_vec24(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    put_u24(out, 0);
    write(out);
    let length = (out.len() - at - 3) as u32;
    out[at..at + 3].copy_from_slice(&length.to_be_bytes()[1..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_read_as_they_were_written() {
        let mut out = Vec::new();
        put_vec8(&mut out, b"ab");
        put_vec16(&mut out, |out| out.extend_from_slice(b"cde"));
        put_vec24(&mut out, |out| put_vec16(out, |_| {}));
        let mut cursor = Cursor::new(&out);
        assert_eq!(cursor.vec8(), Ok(&b"ab"[..]));
        assert_eq!(cursor.vec16(), Ok(&b"cde"[..]));
        assert_eq!(cursor.vec24(), Ok(&[0, 0][..]));
        assert_eq!(cursor.end(), Ok(()));
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_malformed() {
        assert_eq!(Cursor::new(&[3, 1, 2]).vec8(), Err(Fault::Malformed));
        assert_eq!(Cursor::new(&[0]).u16(), Err(Fault::Malformed));
        assert_eq!(Cursor::new(&[0]).end(), Err(Fault::Malformed));
        assert!(codes(&[1, 2, 3]).is_err());
    }
}
