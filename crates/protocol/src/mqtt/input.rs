//! A cursor over received bytes, and the cut into packets.

use super::Malformed;

/// Longest fixed header: type and flags, and four bytes of remaining length (section 2.1).
const FIXED_HEADER_MAXIMUM: usize = 5;

/// The bytes a connection has received and the session has not yet taken.
///
/// A session takes whole packets only. What [`Input::rest`] holds when `poll` returns none is the
/// beginning of a packet: keep it and present it again with more.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl<'a> Input<'a> {
    /// A cursor at the first byte.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, taken: 0 }
    }

    /// Returns how many bytes the session has taken.
    pub const fn consumed(&self) -> usize {
        self.taken
    }

    /// The bytes not yet taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.taken..]
    }

    /// Takes one whole packet of at most `maximum` bytes; none while it is incomplete.
    ///
    /// The size is judged from the header, before the packet has to be kept.
    #[inline]
    pub(super) fn take(&mut self, maximum: u32) -> Result<Option<Frame<'a>>, Malformed> {
        let Some((frame, size)) = Frame::cut(self.rest(), maximum)? else {
            return Ok(None);
        };
        self.taken += size;
        Ok(Some(frame))
    }
}

/// One packet: the first byte, and all after the fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) first: u8,
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The packet at the start of `bytes` and its whole size; none while it is incomplete.
    ///
    /// A remaining length in more bytes than needed is taken: small senders patch a field of
    /// fixed size, and nothing becomes ambiguous by it.
    #[inline]
    pub(super) fn cut(bytes: &'a [u8], maximum: u32) -> Result<Option<(Self, usize)>, Malformed> {
        let mut length = 0usize;
        let mut header = 1;
        loop {
            let Some(byte) = bytes.get(header) else {
                return Ok(None);
            };
            length |= usize::from(byte & 0x7f) << (7 * (header - 1));
            header += 1;
            if byte & 0x80 == 0 {
                break;
            }
            if header == FIXED_HEADER_MAXIMUM {
                return Err(Malformed::Length);
            }
        }
        let size = header + length;
        if size as u64 > u64::from(maximum) {
            return Err(Malformed::TooLarge {
                size: size as u64,
                maximum,
            });
        }
        Ok(bytes.get(header..size).map(|body| {
            (
                Self {
                    first: bytes[0],
                    body,
                },
                size,
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        Frame::cut(bytes, 1_000).map(|cut| cut.map(|(_, size)| size))
    }

    #[test]
    fn a_packet_is_cut_where_its_length_says() {
        assert_eq!(cut(&[]), Ok(None));
        assert_eq!(cut(&[0xc0]), Ok(None));
        assert_eq!(cut(&[0xc0, 0]), Ok(Some(2)));
        assert_eq!(cut(&[0xc0, 1]), Ok(None));
        assert_eq!(cut(&[0xc0, 0x81, 0x00, 7]), Ok(Some(4)));
    }

    #[test]
    fn four_bytes_of_length_are_the_most() {
        assert_eq!(cut(&[0x30, 0xff, 0xff, 0xff]), Ok(None));
        assert_eq!(cut(&[0x30, 0xff, 0xff, 0xff, 0xff]), Err(Malformed::Length));
    }

    #[test]
    fn a_packet_too_large_is_refused_before_its_bytes_come() {
        let refused = Malformed::TooLarge {
            size: 2_002 + 1,
            maximum: 1_000,
        };
        assert_eq!(cut(&[0x30, 0xd0, 0x0f]), Err(refused));
    }

    #[test]
    fn the_cursor_keeps_an_incomplete_tail() {
        let mut input = Input::new(&[0xc0, 0, 0xd0]);
        assert_eq!(
            input.take(10),
            Ok(Some(Frame {
                first: 0xc0,
                body: &[]
            }))
        );
        assert_eq!(input.take(10), Ok(None));
        assert_eq!((input.consumed(), input.rest()), (2, &[0xd0][..]));
    }
}
