//! The body of a message: where it ends, and what is in it (RFC 9112 sections 6 and 7).

use httparse::Status;

use super::Malformed;
use super::head::{HEAD_MAX, members};

/// Longest line with the size of a chunk, with its extensions, in bytes.
const SIZE_LINE_MAX: usize = 1_024;

/// The end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// No body.
    Empty,
    /// Bytes that are still to come.
    Length(u64),
    /// Chunks follow.
    Chunked(Chunk),
    /// All until the connection closes.
    UntilClose,
}

/// The place of a reader in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Before the line with a chunk's size.
    Size,
    /// Bytes of a chunk that are still to come.
    Data(u64),
    /// Before the CR LF behind a chunk.
    End,
    /// In the trailer; the bytes of it so far.
    Trailer(usize),
}

/// Length of a body, as its head gives it.
#[derive(Debug)]
pub(super) struct Lengths {
    is_current: bool,
    length: Option<u64>,
    codings: u32,
    is_last_chunked: bool,
}

impl Lengths {
    /// Nothing yet; `is_current` for HTTP/1.1.
    pub(super) const fn new(is_current: bool) -> Self {
        Self {
            is_current,
            length: None,
            codings: 0,
            is_last_chunked: false,
        }
    }

    /// Takes a `Content-Length`; repeated values are one if they are equal (section 6.3, rule 5).
    pub(super) fn add_length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let mut is_empty = true;
        for member in members(value) {
            is_empty = false;
            let length = number(member).ok_or(Malformed::Length)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Malformed::TwoLengths);
            }
            self.length = Some(length);
        }
        if is_empty {
            return Err(Malformed::Length);
        }
        Ok(())
    }

    /// Takes the codings of a `Transfer-Encoding`.
    pub(super) fn add_codings<'a>(&mut self, codings: impl Iterator<Item = &'a [u8]>) {
        for coding in codings {
            self.codings += 1;
            self.is_last_chunked = coding.eq_ignore_ascii_case(b"chunked");
        }
    }

    /// The end of a request's body (section 6.3).
    pub(super) fn of_request(&self) -> Result<Framing, Malformed> {
        match (self.codings, self.length) {
            (0, None | Some(0)) => Ok(Framing::Empty),
            (0, Some(length)) => Ok(Framing::Length(length)),
            (_, Some(_)) => Err(Malformed::TwoLengths),
            (1, None) if self.is_last_chunked && self.is_current => {
                Ok(Framing::Chunked(Chunk::Size))
            }
            _ => Err(Malformed::Coding),
        }
    }

    /// The end of a response's body (section 6.3).
    pub(super) fn of_response(&self) -> Result<Framing, Malformed> {
        match (self.codings, self.length) {
            (0, None) => Ok(Framing::UntilClose),
            (_, Some(_)) if self.codings > 0 => Err(Malformed::TwoLengths),
            (_, Some(0)) => Ok(Framing::Empty),
            (_, Some(length)) => Ok(Framing::Length(length)),
            _ if !self.is_current => Err(Malformed::Coding),
            (1, None) if self.is_last_chunked => Ok(Framing::Chunked(Chunk::Size)),
            // A content coding as a transfer coding was not asked for, and is not undone.
            (_, None) if self.is_last_chunked => Err(Malformed::Coding),
            (_, None) => Ok(Framing::UntilClose),
        }
    }
}

/// A number in digits alone (RFC 9110 section 8.6).
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Framing {
    /// Moves what is there of the body from `input` to `body`, of at most `max` bytes; whether the
    /// body is complete. What is left of `input` is to be presented again with more.
    pub(super) fn read(
        &mut self,
        input: &mut &[u8],
        body: &mut Vec<u8>,
        max: u32,
    ) -> Result<bool, Malformed> {
        match self {
            Self::Empty => Ok(true),
            Self::Length(left) => {
                append(left, input, body, max)?;
                Ok(*left == 0)
            }
            Self::UntilClose => {
                append(&mut u64::MAX.clone(), input, body, max)?;
                Ok(false)
            }
            Self::Chunked(chunk) => loop {
                match chunk.step(input, body, max)? {
                    Step::On => {}
                    Step::Waits => return Ok(false),
                    Step::Complete => return Ok(true),
                }
            },
        }
    }
}

enum Step {
    On,
    Waits,
    Complete,
}

impl Chunk {
    fn step(&mut self, input: &mut &[u8], body: &mut Vec<u8>, max: u32) -> Result<Step, Malformed> {
        match self {
            Self::Size => match httparse::parse_chunk_size(input) {
                Ok(Status::Complete((used, size))) if used <= SIZE_LINE_MAX => {
                    *input = &input[used..];
                    *self = match size {
                        0 => Self::Trailer(0),
                        _ => Self::Data(size),
                    };
                    Ok(Step::On)
                }
                Ok(Status::Partial) if input.len() <= SIZE_LINE_MAX => Ok(Step::Waits),
                Ok(Status::Complete(_) | Status::Partial) | Err(_) => Err(Malformed::Chunk),
            },
            Self::Data(left) => {
                append(left, input, body, max)?;
                if *left > 0 {
                    return Ok(Step::Waits);
                }
                *self = Self::End;
                Ok(Step::On)
            }
            Self::End => match input {
                [b'\r', b'\n', rest @ ..] => {
                    *input = rest;
                    *self = Self::Size;
                    Ok(Step::On)
                }
                [] | [b'\r'] => Ok(Step::Waits),
                _ => Err(Malformed::Chunk),
            },
            Self::Trailer(before) => {
                let line = input.iter().position(|&byte| byte == b'\n');
                let used = line.map_or(input.len(), |end| end + 1);
                if *before + used > HEAD_MAX {
                    return Err(Malformed::HeadTooLong(HEAD_MAX));
                }
                let Some(end) = line else {
                    return Ok(Step::Waits);
                };
                let text = &input[..end];
                *input = &input[used..];
                *before += used;
                match text.strip_suffix(b"\r") {
                    None => Err(Malformed::Chunk),
                    Some([]) => Ok(Step::Complete),
                    Some(_) => Ok(Step::On),
                }
            }
        }
    }
}

/// Moves up to `left` bytes.
fn append(
    left: &mut u64,
    input: &mut &[u8],
    body: &mut Vec<u8>,
    max: u32,
) -> Result<(), Malformed> {
    let most = u64::from(max).saturating_sub(body.len() as u64);
    let count = (*left).min(input.len() as u64);
    if count > most {
        return Err(Malformed::BodyTooLong(max));
    }
    let (head, rest) = input.split_at(count as usize);
    body.extend_from_slice(head);
    *input = rest;
    *left -= count;
    Ok(())
}
