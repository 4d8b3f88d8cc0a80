//! The head of a message: its start line and its fields.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Response, Status};
use thiserror::Error;

use super::Malformed;
use super::body::{Framing, Lengths};

/// Longest head that is read, in bytes.
pub(super) const HEAD_MAX: usize = 16_384;
/// Most fields of a head.
const FIELDS_MAX: usize = 100;

/// The head of a message that was checked: a start line, and fields in the order of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head<'a>(pub(super) Cow<'a, [u8]>);

/// Names and values of the fields of a head that was checked; values without the white space around them.
pub(super) fn fields_of(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|&byte| byte == b'\n');
    // The parser passes over empty lines before a start line.
    let lines = lines.skip_while(|line| line.trim_ascii().is_empty());
    let lines = lines.skip(1);
    lines.filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

impl Head<'_> {
    /// Names and values of its fields; values without the white space around them.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        fields_of(&self.0)
    }

    /// The first value of a field, whose name may have letters of any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.fields();
        let found = fields.find(|(of, _)| of.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value)
    }

    /// The words of the start line that come before its last one.
    pub(super) fn start(&self) -> (&[u8], &[u8]) {
        let line = self.0.split(|&byte| byte == b'\r').next().unwrap_or(b"");
        let mut words = line.split(|&byte| byte == b' ');
        (words.next().unwrap_or(b""), words.next().unwrap_or(b""))
    }
}

/// A field that no head can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidField {
    /// The name is empty, or has a byte that is not of a token (RFC 9110 section 5.1).
    #[error("the name of a header has a byte that is not allowed there")]
    Name,
    /// The value has CR, LF or another control byte (RFC 9110 section 5.5).
    #[error("the value of a header has a line break or another control byte")]
    Value,
}

/// Appends a line with a field, for [`Request::fields`](super::Request).
///
/// # Errors
/// [`InvalidField`] if the line would not be one field; then nothing is appended.
pub fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), InvalidField> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(InvalidField::Name);
    }
    if value
        .iter()
        .any(|&byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err(InvalidField::Value);
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Facts of a head on its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// Bytes of the head.
    pub(super) len: usize,
    /// The status of a response; 0 of a request.
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// True if the connection goes on after the message (section 9.3).
    pub(super) persists: bool,
    /// True if the sender waits for an interim response before it sends the body.
    pub(super) expects_continue: bool,
}

type Space<'a> = [MaybeUninit<Header<'a>>; FIELDS_MAX];

/// Reads the head of a response; none while it is incomplete.
pub(super) fn response(bytes: &[u8]) -> Result<Option<Start>, Malformed> {
    let mut space: Space<'_> = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut space,
    );
    let Some(len) = whole(bytes, parsed)? else {
        return Ok(None);
    };
    let status = response.code.ok_or(Malformed::Head)?;
    let fields = Fields::read(response.headers, response.version)?;
    let framing = match status {
        // Sections 6.3.1 and 15.2: none of these has a body.
        100..=199 | 204 | 304 => Framing::Empty,
        _ => fields.lengths.of_response()?,
    };
    Ok(Some(Start {
        len,
        status,
        framing,
        persists: fields.persists && framing != Framing::UntilClose,
        expects_continue: false,
    }))
}

/// Reads the head of a request; none while it is incomplete.
pub(super) fn request(bytes: &[u8]) -> Result<Option<Start>, Malformed> {
    let mut space: Space<'_> = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut request = Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut space);
    let Some(len) = whole(bytes, parsed)? else {
        return Ok(None);
    };
    let is_bare = |pair: &[u8]| pair[1] == b'\n' && pair[0] != b'\r';
    if bytes[0] == b'\n' || bytes[..len].windows(2).any(is_bare) {
        return Err(Malformed::BareLineFeed);
    }
    let fields = Fields::read(request.headers, request.version)?;
    if fields.hosts > 1 || (fields.hosts == 0 && request.version == Some(1)) {
        return Err(Malformed::Host);
    }
    Ok(Some(Start {
        len,
        status: 0,
        framing: fields.lengths.of_request()?,
        persists: fields.persists,
        expects_continue: fields.expects_continue && request.version == Some(1),
    }))
}

fn whole(bytes: &[u8], parsed: httparse::Result<usize>) -> Result<Option<usize>, Malformed> {
    match parsed {
        Ok(Status::Complete(len)) if len <= HEAD_MAX => Ok(Some(len)),
        Ok(Status::Partial) if bytes.len() <= HEAD_MAX => Ok(None),
        Ok(_) => Err(Malformed::HeadTooLong(HEAD_MAX)),
        Err(httparse::Error::TooManyHeaders) => Err(Malformed::TooManyFields(FIELDS_MAX)),
        Err(_) => Err(Malformed::Head),
    }
}

/// The fields that say where a message ends and whether another may follow.
#[derive(Debug)]
struct Fields {
    lengths: Lengths,
    persists: bool,
    expects_continue: bool,
    hosts: u32,
}

impl Fields {
    fn read(headers: &[Header<'_>], version: Option<u8>) -> Result<Self, Malformed> {
        let is_current = version == Some(1);
        let mut fields = Self {
            lengths: Lengths::new(is_current),
            persists: is_current,
            expects_continue: false,
            hosts: 0,
        };
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                fields.lengths.add_length(header.value)?;
            } else if is("transfer-encoding") {
                fields.lengths.add_codings(members(header.value));
            } else if is("connection") {
                for option in members(header.value) {
                    if option.eq_ignore_ascii_case(b"close") {
                        fields.persists = false;
                        break;
                    }
                    fields.persists |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is("expect") {
                fields.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
            } else if is("host") {
                fields.hosts += 1;
            }
        }
        Ok(fields)
    }
}

/// The members of a field that is a list (RFC 9110 section 5.6.1).
pub(super) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    all.filter(|member| !member.is_empty())
}
