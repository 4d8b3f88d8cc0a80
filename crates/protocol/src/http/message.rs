//! One message as it comes: lent where it lies whole, else collected.

use std::borrow::Cow;

use super::Malformed;
use super::body::Framing;
use super::head::{Head, Start};

/// A reader of the heads of one side: where a head ends and what it says, none while it is incomplete.
pub(super) type ReadHead = fn(&[u8]) -> Result<Option<Start>, Malformed>;

/// A complete message.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) start: Start,
    pub(super) head: Head<'a>,
    pub(super) body: Cow<'a, [u8]>,
}

/// The reader of one side's messages.
#[derive(Debug)]
pub(super) struct Reader {
    read_head: ReadHead,
    /// Longest body that is collected or lent, in bytes.
    body_max: u32,
    part: Option<Box<Part>>,
}

/// A message whose head is there, and whose body is not.
#[derive(Debug)]
struct Part {
    start: Start,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Reader {
    pub(super) const fn new(read_head: ReadHead, body_max: u32) -> Self {
        Self {
            read_head,
            body_max,
            part: None,
        }
    }

    /// Forgets a message that is not complete.
    pub(super) fn reset(&mut self) {
        self.part = None;
    }

    /// True if the head of a message was taken, and its body was not.
    pub(super) const fn is_inside(&self) -> bool {
        self.part.is_some()
    }

    /// Takes one message; none while it is incomplete. `waits` is called once a head is there whose
    /// body is not.
    pub(super) fn poll<'a>(
        &mut self,
        input: &mut &'a [u8],
        waits: impl FnOnce(&Start),
    ) -> Result<Option<Message<'a>>, Malformed> {
        if self.part.is_none() {
            // A line break too many before a message is passed over (section 2.2).
            while let [b'\r', b'\n', rest @ ..] = input {
                *input = rest;
            }
            let Some(start) = (self.read_head)(input)? else {
                return Ok(None);
            };
            let bytes = *input;
            let (head, rest) = bytes.split_at(start.len);
            match start.framing {
                Framing::Empty => {
                    *input = rest;
                    return Ok(Some(lent(start, head, &[])));
                }
                Framing::Length(length) if length > u64::from(self.body_max) => {
                    return Err(Malformed::BodyTooLong(self.body_max));
                }
                Framing::Length(length) if length <= rest.len() as u64 => {
                    let (body, rest) = rest.split_at(length as usize);
                    *input = rest;
                    return Ok(Some(lent(start, head, body)));
                }
                Framing::Length(_) | Framing::Chunked(_) | Framing::UntilClose => {
                    *input = rest;
                    waits(&start);
                    let (head, body) = (head.to_vec(), Vec::new());
                    self.part = Some(Box::new(Part { start, head, body }));
                }
            }
        }
        let Some(part) = &mut self.part else {
            return Ok(None);
        };
        let Part { start, body, .. } = &mut **part;
        match start.framing.read(input, body, self.body_max) {
            Ok(true) => Ok(self.take()),
            Ok(false) => Ok(None),
            Err(malformed) => {
                self.part = None;
                Err(malformed)
            }
        }
    }

    /// The message that ends with its connection; none if there is no such one.
    pub(super) fn end(&mut self) -> Option<Message<'static>> {
        let part = self.part.as_ref()?;
        (part.start.framing == Framing::UntilClose).then(|| self.take())?
    }

    fn take(&mut self) -> Option<Message<'static>> {
        let Part { start, head, body } = *self.part.take()?;
        Some(Message {
            start,
            head: Head(Cow::Owned(head)),
            body: Cow::Owned(body),
        })
    }
}

fn lent<'a>(start: Start, head: &'a [u8], body: &'a [u8]) -> Message<'a> {
    Message {
        start,
        head: Head(Cow::Borrowed(head)),
        body: Cow::Borrowed(body),
    }
}
