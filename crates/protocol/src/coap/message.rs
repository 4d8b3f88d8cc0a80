//! One message: the datagram's bytes, read in place, and written (RFC 7252 section 3).

use std::{fmt, iter};

use super::{Class, Code, Fault, Malformed, Opt, OptionNumber, Options};

/// Longest token, in bytes (section 3).
const TOKEN_MAX: usize = 8;
/// Bytes before the token (section 3).
const HEADER: usize = 4;
/// The only version, in its two bits (section 3).
const VERSION: u8 = 0x40;
/// Marker between options and payload (section 3).
pub(super) const PAYLOAD_MARKER: u8 = 0xff;

/// The type of a message (section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// CON: to be acknowledged.
    Confirmable,
    /// NON: not to be acknowledged.
    NonConfirmable,
    /// ACK.
    Acknowledgement,
    /// RST.
    Reset,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::Confirmable,
        Self::NonConfirmable,
        Self::Acknowledgement,
        Self::Reset,
    ];

    /// CON or NON.
    pub const fn of(is_confirmable: bool) -> Self {
        if is_confirmable {
            Self::Confirmable
        } else {
            Self::NonConfirmable
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Confirmable => 0,
            Self::NonConfirmable => 1,
            Self::Acknowledgement => 2,
            Self::Reset => 3,
        }
    }
}

/// Joins a response to its request: 0 to 8 bytes of the client's choice (section 5.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Token {
    bytes: [u8; TOKEN_MAX],
    length: u8,
}

impl Token {
    /// No bytes.
    pub const EMPTY: Self = Self {
        bytes: [0; TOKEN_MAX],
        length: 0,
    };

    /// A token of these bytes; none if they are more than 8.
    pub fn new(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; TOKEN_MAX];
        bytes.get_mut(..token.len())?.copy_from_slice(token);
        let length = token.len() as u8;
        Some(Self { bytes, length })
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:02x?})", self.as_bytes())
    }
}

/// Fields in front of a message's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The type.
    pub kind: Kind,
    /// Its method or response code.
    pub code: Code,
    /// The message id.
    pub id: u16,
    /// The token.
    pub token: Token,
}

impl Header {
    /// An empty message: ACK, RST, or the CON that asks for a sign of life (section 4.1).
    pub const fn empty(kind: Kind, id: u16) -> Self {
        Self {
            kind,
            code: Code::EMPTY,
            id,
            token: Token::EMPTY,
        }
    }

    /// Appends header and token.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let [high, low] = self.id.to_be_bytes();
        let first = VERSION | self.kind.bits() << 4 | self.token.length;
        out.extend_from_slice(&[first, self.code.0, high, low]);
        out.extend_from_slice(self.token.as_bytes());
    }

    /// Appends a whole message; its options stand in the order of their numbers.
    #[inline]
    pub fn write_with(&self, options: &[Opt<'_>], payload: &[u8], out: &mut Vec<u8>) {
        self.write(out);
        write_merged(options.iter().copied(), iter::empty(), payload, out);
    }
}

/// A message, borrowed from its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The type.
    pub kind: Kind,
    /// Its method or response code.
    pub code: Code,
    /// The message id.
    pub id: u16,
    /// The token.
    pub token: Token,
    /// The options, in order.
    pub options: Options<'a>,
    /// The payload; empty where there is none.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a datagram. What it accepts is right by sections 3 and 4.1 and table 1; whether
    /// options belong there is [`Options::unacceptable`]'s to say.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong and how to reject it.
    #[inline]
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = decode_header(datagram)?;
        let Header {
            kind,
            code,
            id,
            token,
        } = header;
        let malformed = |fault| Malformed {
            fault,
            header: Some((kind, id)),
        };
        check_kind(kind, code).map_err(malformed)?;
        let (options, payload) = Options::split(rest).map_err(malformed)?;
        Ok(Self {
            kind,
            code,
            id,
            token,
            options,
            payload,
        })
    }

    /// Reads a datagram, or counts it and appends the reset that rejects it.
    #[inline]
    pub(super) fn receive(
        datagram: &'a [u8],
        malformed_count: &mut u32,
        out: &mut Vec<u8>,
    ) -> Option<Self> {
        let decoded = Self::decode(datagram);
        if let Err(malformed) = decoded {
            *malformed_count += 1;
            if let Some(id) = malformed.reset() {
                Header::empty(Kind::Reset, id).write(out);
            }
        }
        decoded.ok()
    }

    /// Returns true if it carries neither request nor response.
    pub fn is_empty(&self) -> bool {
        self.code == Code::EMPTY
    }

    /// Appends the message as it would be written anew.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self {
            kind,
            code,
            id,
            token,
            ..
        } = *self;
        Header {
            kind,
            code,
            id,
            token,
        }
        .write(out);
        write_merged(self.options.iter(), iter::empty(), self.payload, out);
    }
}

fn decode_header(datagram: &[u8]) -> Result<(Header, &[u8]), Malformed> {
    let Some((&[first, code, high, low], rest)) = datagram.split_first_chunk::<HEADER>() else {
        let fault = Fault::Header(datagram.len());
        return Err(Malformed {
            fault,
            header: None,
        });
    };
    if first & 0xc0 != VERSION {
        let fault = Fault::Version(first >> 6);
        return Err(Malformed {
            fault,
            header: None,
        });
    }
    let kind = Kind::ALL[usize::from(first >> 4 & 0x03)];
    let (code, id) = (Code(code), u16::from_be_bytes([high, low]));
    let length = first & 0x0f;
    let malformed = |fault| {
        let header = Some((kind, id));
        Err(Malformed { fault, header })
    };
    if code == Code::EMPTY && (length > 0 || !rest.is_empty()) {
        return malformed(Fault::NotEmpty);
    }
    if usize::from(length) > TOKEN_MAX {
        return malformed(Fault::TokenLength(length));
    }
    let Some((token, rest)) = rest.split_at_checked(usize::from(length)) else {
        return malformed(Fault::Token);
    };
    let token = Token::new(token).unwrap_or_default();
    Ok((
        Header {
            kind,
            code,
            id,
            token,
        },
        rest,
    ))
}

/// Table 1: which types carry what.
fn check_kind(kind: Kind, code: Code) -> Result<(), Fault> {
    let fits = match code.class() {
        Class::Reserved => return Err(Fault::ReservedClass(code.digit())),
        Class::Empty => kind != Kind::NonConfirmable,
        Class::Request => matches!(kind, Kind::Confirmable | Kind::NonConfirmable),
        Class::Success | Class::ClientError | Class::ServerError => kind != Kind::Reset,
    };
    if fits { Ok(()) } else { Err(Fault::KindOfCode) }
}

/// Appends options of two origins, each in the order of its numbers, and the payload.
#[inline]
pub(super) fn write_merged<'a, 'b>(
    options: impl Iterator<Item = Opt<'a>>,
    own: impl Iterator<Item = Opt<'b>>,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let mut last = OptionNumber(0);
    let mut own = own.peekable();
    for option in options {
        while let Some(first) = own.next_if(|first| first.number < option.number) {
            write_option(&mut last, first, out);
        }
        write_option(&mut last, option, out);
    }
    for option in own {
        write_option(&mut last, option, out);
    }
    write_payload(payload, out);
}

/// Appends one option behind the one with the number `last`, which is no greater.
#[inline]
fn write_option(last: &mut OptionNumber, option: Opt<'_>, out: &mut Vec<u8>) {
    debug_assert!(*last <= option.number, "options are written in order");
    let delta = u32::from(option.number.0 - last.0);
    let length = option.value.len() as u32;
    *last = option.number;
    out.push(nibble(delta) << 4 | nibble(length));
    write_extended(delta, out);
    write_extended(length, out);
    out.extend_from_slice(option.value);
}

/// Appends the payload with its marker; nothing if it is empty.
#[inline]
fn write_payload(payload: &[u8], out: &mut Vec<u8>) {
    if !payload.is_empty() {
        out.push(PAYLOAD_MARKER);
        out.extend_from_slice(payload);
    }
}

/// The four bits of a delta or length (section 3.1).
#[inline]
fn nibble(value: u32) -> u8 {
    match value {
        0..=12 => value as u8,
        13..=268 => 13,
        269.. => 14,
    }
}

/// The bytes that follow for a delta or length that does not fit into four bits (section 3.1).
#[inline]
fn write_extended(value: u32, out: &mut Vec<u8>) {
    match value {
        0..=12 => {}
        13..=268 => out.push((value - 13) as u8),
        269.. => out.extend_from_slice(&((value - 269) as u16).to_be_bytes()),
    }
}
