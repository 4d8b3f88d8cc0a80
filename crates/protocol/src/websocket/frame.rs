//! Heads of frames, read and written, and the mask (RFC 6455 section 5).

use super::Fault;

/// Longest head: two bytes, a length of eight, a masking key of four (section 5.2).
pub(super) const HEAD_MAX: usize = 14;
/// Longest payload of a control frame, in bytes (section 5.5).
pub(super) const CONTROL_MAX: usize = 125;

/// The bit of a message's last fragment.
const FIN: u8 = 0x80;
/// The bits that extensions may use.
const RESERVED: u8 = 0x70;
/// The bit that says that a masking key follows.
const MASKED: u8 = 0x80;
/// The length that says that two bytes of length follow, and the one for eight.
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = ControlKind::Close as u8;
const PING: u8 = ControlKind::Ping as u8;
const PONG: u8 = ControlKind::Pong as u8;

/// The kinds of control frames, with their opcodes (section 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ControlKind {
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xa,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes for the side above, of a message that ends here or goes on.
    Data { is_last: bool },
    /// Something between the two ends.
    Control(ControlKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) length: u32,
    /// The masking key; zeros where there is none, which unmask to the same bytes.
    pub(super) key: [u8; 4],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// True if the peer is a client, whose frames have to be masked.
    pub(super) is_masked: bool,
    /// True if the last fragment was not the last of its message.
    pub(super) in_message: bool,
    pub(super) maximum: u32,
}

impl Head {
    /// The head at the start of `bytes` and its size; none while it is incomplete.
    ///
    /// It is judged byte by byte, so that one fault is found however the bytes are cut.
    #[inline]
    pub(super) fn read(bytes: &[u8], rules: Rules) -> Result<Option<(Self, usize)>, Fault> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let kind = kind(first, rules.in_message)?;
        let Some(&second) = bytes.get(1) else {
            return Ok(None);
        };
        match (second & MASKED != 0, rules.is_masked) {
            (true, false) => return Err(Fault::Masked),
            (false, true) => return Err(Fault::Unmasked),
            (true, true) | (false, false) => {}
        }
        let Some((length, at)) = length(second & !MASKED, kind, &bytes[2..])? else {
            return Ok(None);
        };
        let maximum = rules.maximum;
        if length > u64::from(maximum) && matches!(kind, Kind::Data { .. }) {
            return Err(Fault::FrameTooLarge {
                size: length,
                maximum,
            });
        }
        let length = length as u32;
        if !rules.is_masked {
            let key = [0; 4];
            return Ok(Some((Self { kind, length, key }, 2 + at)));
        }
        let key = bytes[2 + at..].first_chunk();
        Ok(key.map(|&key| (Self { kind, length, key }, 2 + at + 4)))
    }
}

#[inline]
fn kind(first: u8, in_message: bool) -> Result<Kind, Fault> {
    if first & RESERVED != 0 {
        return Err(Fault::ReservedBits);
    }
    let is_last = first & FIN != 0;
    let control = match first & 0x0f {
        CONTINUATION if in_message => return Ok(Kind::Data { is_last }),
        CONTINUATION => return Err(Fault::Continuation),
        BINARY if in_message => return Err(Fault::Interleaved),
        BINARY => return Ok(Kind::Data { is_last }),
        TEXT => return Err(Fault::Text),
        CLOSE => ControlKind::Close,
        PING => ControlKind::Ping,
        PONG => ControlKind::Pong,
        unknown => return Err(Fault::Opcode(unknown)),
    };
    if is_last {
        Ok(Kind::Control(control))
    } else {
        Err(Fault::ControlFragment)
    }
}

/// The length that `short` and the bytes after it say, and how many bytes after it that takes.
#[inline]
fn length(short: u8, kind: Kind, rest: &[u8]) -> Result<Option<(u64, usize)>, Fault> {
    if usize::from(short) <= CONTROL_MAX {
        return Ok(Some((u64::from(short), 0)));
    }
    if matches!(kind, Kind::Control(_)) {
        return Err(Fault::ControlTooLong);
    }
    let (length, size, least) = if short == LENGTH_16 {
        let length = rest
            .first_chunk()
            .map(|&two| u16::from_be_bytes(two).into());
        (length, 2, u64::from(LENGTH_16))
    } else {
        (
            rest.first_chunk().map(|&eight| u64::from_be_bytes(eight)),
            8,
            1 << 16,
        )
    };
    match length {
        Some(length) if length < least => Err(Fault::Length),
        Some(length) => Ok(Some((length, size))),
        None => Ok(None),
    }
}

/// Makes `wire[from..]` one unfragmented binary frame, masked if there is a key.
#[inline]
pub(super) fn wrap(wire: &mut Vec<u8>, from: usize, key: Option<[u8; 4]>) {
    let said = wire.len() - from;
    let (head, size) = head(FIN | BINARY, said as u64, key);
    let head = &head[..size];
    wire.extend_from_slice(head);
    wire.copy_within(from..from + said, from + size);
    wire[from..from + size].copy_from_slice(head);
    if let Some(key) = key {
        mask(&mut wire[from + size..], key);
    }
}

/// Appends one control frame with a payload of at most [`CONTROL_MAX`] bytes.
pub(super) fn put_control(
    kind: ControlKind,
    body: &[u8],
    key: Option<[u8; 4]>,
    wire: &mut Vec<u8>,
) {
    let (head, size) = head(FIN | kind as u8, body.len() as u64, key);
    wire.extend_from_slice(&head[..size]);
    let from = wire.len();
    wire.extend_from_slice(body);
    if let Some(key) = key {
        mask(&mut wire[from..], key);
    }
}

/// A head with its length in the fewest bytes, as section 5.2 wants it, and its size.
#[inline]
fn head(first: u8, length: u64, key: Option<[u8; 4]>) -> ([u8; HEAD_MAX], usize) {
    let mut head = [0; HEAD_MAX];
    head[0] = first;
    let mut size = 2;
    if let Ok(length) = u16::try_from(length) {
        head[1] = LENGTH_16;
        head[2..4].copy_from_slice(&length.to_be_bytes());
        size = 4;
        if usize::from(length) <= CONTROL_MAX {
            head[1] = length as u8;
            size = 2;
        }
    } else {
        head[1] = LENGTH_64;
        head[2..10].copy_from_slice(&length.to_be_bytes());
        size += 8;
    }
    if let Some(key) = key {
        head[1] |= MASKED;
        head[size..size + 4].copy_from_slice(&key);
        size += 4;
    }
    (head, size)
}

/// Masks or unmasks in place (section 5.3). The key applies from the first byte on; where the
/// payload goes on later, it does so with the key turned by [`turned`].
#[inline]
pub(super) fn mask(bytes: &mut [u8], key: [u8; 4]) {
    let word = u32::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut();
    for four in words {
        *four = (u32::from_ne_bytes(*four) ^ word).to_ne_bytes();
    }
    rest.iter_mut()
        .zip(key)
        .for_each(|(byte, key)| *byte ^= key);
}

/// The key for what follows after `done` bytes.
#[inline]
pub(super) fn turned(mut key: [u8; 4], done: usize) -> [u8; 4] {
    key.rotate_left(done % 4);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM_SERVER: Rules = Rules {
        is_masked: false,
        in_message: false,
        maximum: 1 << 20,
    };
    const FROM_CLIENT: Rules = Rules {
        is_masked: true,
        ..FROM_SERVER
    };

    fn fault(bytes: &[u8], rules: Rules) -> Fault {
        Head::read(bytes, rules).expect_err("the head is faulty")
    }

    fn size(bytes: &[u8], rules: Rules) -> (u32, usize) {
        let (head, size) = Head::read(bytes, rules)
            .expect("the head is right")
            .expect("the head is complete");
        (head.length, size)
    }

    #[test]
    fn section_5_2_a_length_has_two_four_or_ten_bytes_and_no_more_than_it_needs() {
        assert_eq!(size(&[0x82, 0], FROM_SERVER), (0, 2));
        assert_eq!(size(&[0x82, 125], FROM_SERVER), (125, 2));
        assert_eq!(size(&[0x82, 126, 0, 126], FROM_SERVER), (126, 4));
        assert_eq!(size(&[0x82, 126, 255, 255], FROM_SERVER), (65_535, 4));
        let smallest = [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0];
        assert_eq!(size(&smallest, FROM_SERVER), (65_536, 10));
        assert_eq!(fault(&[0x82, 126, 0, 125], FROM_SERVER), Fault::Length);
        let wide = [0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255];
        assert_eq!(fault(&wide, FROM_SERVER), Fault::Length);
    }

    #[test]
    fn section_5_2_the_most_significant_bit_of_a_length_is_zero() {
        let frame = [0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0];
        let refused = Fault::FrameTooLarge {
            size: (1 << 63) + 65_536,
            maximum: 1 << 20,
        };
        assert_eq!(fault(&frame, FROM_SERVER), refused);
    }

    #[test]
    fn section_10_4_a_frame_too_large_is_refused_before_its_bytes_come() {
        let rules = Rules {
            maximum: 200,
            ..FROM_SERVER
        };
        assert_eq!(size(&[0x82, 126, 0, 200], rules), (200, 4));
        let refused = Fault::FrameTooLarge {
            size: 201,
            maximum: 200,
        };
        assert_eq!(fault(&[0x82, 126, 0, 201], rules), refused);
    }

    #[test]
    fn section_5_2_reserved_bits_and_opcodes_are_refused() {
        for bit in [0x40, 0x20, 0x10] {
            assert_eq!(fault(&[0x82 | bit], FROM_SERVER), Fault::ReservedBits);
        }
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            assert_eq!(fault(&[0x80 | opcode], FROM_SERVER), Fault::Opcode(opcode));
        }
    }

    #[test]
    fn mqtt_6_0_0_1_a_text_frame_is_refused() {
        assert_eq!(fault(&[0x81], FROM_SERVER), Fault::Text);
    }

    #[test]
    fn section_5_1_a_client_masks_and_a_server_does_not() {
        assert_eq!(fault(&[0x82, 0x81], FROM_SERVER), Fault::Masked);
        assert_eq!(fault(&[0x82, 0x01], FROM_CLIENT), Fault::Unmasked);
        assert_eq!(size(&[0x82, 0x81, 1, 2, 3, 4], FROM_CLIENT), (1, 6));
    }

    #[test]
    fn section_5_5_a_control_frame_is_whole_and_short() {
        for opcode in [CLOSE, PING, PONG] {
            assert_eq!(size(&[FIN | opcode, 125], FROM_SERVER), (125, 2));
            assert_eq!(fault(&[opcode], FROM_SERVER), Fault::ControlFragment);
            let long = [FIN | opcode, 126];
            assert_eq!(fault(&long, FROM_SERVER), Fault::ControlTooLong);
        }
    }

    #[test]
    fn section_5_4_a_message_is_continued_by_continuations_only() {
        let inside = Rules {
            in_message: true,
            ..FROM_SERVER
        };
        assert_eq!(fault(&[0x80], FROM_SERVER), Fault::Continuation);
        assert_eq!(fault(&[0x82], inside), Fault::Interleaved);
        assert_eq!(size(&[0x00, 3], inside), (3, 2));
        assert_eq!(size(&[0x80, 3], inside), (3, 2));
        assert_eq!(size(&[0x89, 3], inside), (3, 2), "a control frame between");
    }

    #[test]
    fn a_head_that_is_cut_anywhere_waits_for_the_rest() {
        let whole = [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 9, 8, 7, 6];
        for cut in 0..whole.len() {
            assert_eq!(Head::read(&whole[..cut], FROM_CLIENT), Ok(None), "{cut}");
        }
        assert_eq!(size(&whole, FROM_CLIENT), (65_536, HEAD_MAX));
    }

    #[test]
    fn a_written_head_reads_back_in_the_fewest_bytes() {
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 20];
        for (length, key) in lengths
            .into_iter()
            .flat_map(|length| [(length, None), (length, Some([1, 2, 3, 4]))])
        {
            let rules = if key.is_some() {
                FROM_CLIENT
            } else {
                FROM_SERVER
            };
            let (bytes, size) = head(FIN | BINARY, length, key);
            let read = Head {
                kind: Kind::Data { is_last: true },
                length: length as u32,
                key: key.unwrap_or_default(),
            };
            assert_eq!(Head::read(&bytes[..size], rules), Ok(Some((read, size))));
        }
    }

    #[test]
    fn section_5_3_masking_twice_gives_the_same_bytes_wherever_it_is_cut() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let bytes: Vec<u8> = (0..40).collect();
        let mut whole = bytes.clone();
        mask(&mut whole, key);
        for cut in 0..bytes.len() {
            let mut pieces = whole.clone();
            let (front, back) = pieces.split_at_mut(cut);
            mask(front, key);
            mask(back, turned(key, cut));
            assert_eq!(pieces, bytes, "cut at {cut}");
        }
    }
}
