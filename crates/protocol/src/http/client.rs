//! The client end: requests in order, and the responses to them in the same order.

use std::borrow::Cow;
use std::collections::VecDeque;

use thiserror::Error;

use super::Malformed;
use super::head::{self, Head};
use super::message::{Message, Reader};

/// The caller's name of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Host and port of the server.
    pub host: &'a str,
    /// Further fields, as [`write_field`](super::write_field) writes them.
    pub fields: &'a [u8],
    /// The body; without bytes there is none.
    pub body: &'a [u8],
    /// True if no other request follows on the connection.
    pub is_last: bool,
}

impl<'a> Request<'a> {
    /// A request without further fields and without a body.
    pub const fn new(method: &'a str, target: &'a str, host: &'a str) -> Self {
        Self {
            method,
            target,
            host,
            fields: &[],
            body: &[],
            is_last: false,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let parts = [
            self.method,
            " ",
            self.target,
            " HTTP/1.1\r\nHost: ",
            self.host,
            "\r\n",
        ];
        for part in parts {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(self.fields);
        if self.is_last {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        // RFC 9110 section 8.6: methods that anticipate content give its length, even if it is zero.
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH") {
            write_length(out, self.body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }
}

pub(super) fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"Content-Length: ");
    write_number(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal digits.
pub(super) fn write_number(out: &mut Vec<u8>, number: usize) {
    const DIGITS_MAX: usize = 20;
    let (mut digits, mut left) = ([0; DIGITS_MAX], number);
    let mut from = DIGITS_MAX;
    loop {
        from -= 1;
        digits[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// The status, 200 to 599 where the server keeps to RFC 9110.
    pub status: u16,
    /// Its fields.
    pub head: Head<'a>,
    /// The body, without transfer coding.
    pub body: Cow<'a, [u8]>,
    /// True if the server takes no further request on the connection.
    pub is_last: bool,
}

/// A response all of whose bytes lie elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LentResponse<'a> {
    /// The status.
    pub status: u16,
    head: &'a [u8],
    /// The body, without transfer coding.
    pub body: &'a [u8],
}

impl<'a> Response<'a> {
    /// The same response, whose bytes `keep` keeps if they came in pieces: the head and the body.
    pub fn lent(self, keep: impl FnOnce(Vec<u8>) -> &'a [u8]) -> LentResponse<'a> {
        let (head, body) = match (self.head.0, self.body) {
            (Cow::Borrowed(head), Cow::Borrowed(body)) => (head, body),
            (head, body) => {
                let mut bytes = head.into_owned();
                let length = bytes.len();
                bytes.extend_from_slice(&body);
                keep(bytes).split_at(length)
            }
        };
        let status = self.status;
        LentResponse { status, head, body }
    }
}

impl<'a> LentResponse<'a> {
    /// Names and values of its fields; values without the white space around them.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        head::fields_of(self.head)
    }

    /// The first value of a field, whose name may have letters of any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        let mut fields = self.fields();
        let found = fields.find(|(of, _)| of.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value)
    }
}

/// Something that came from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The response to the oldest request without one.
    Answered {
        /// The request's.
        ticket: Ticket,
        /// The response.
        response: Response<'a>,
    },
    /// A response to no request, such as 408 before an idle connection is closed; the connection is at
    /// its end.
    Unasked(Response<'a>),
    /// Bytes that cannot be read; the connection is at its end.
    Malformed(Malformed),
}

/// A request that was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// As many requests as the window allows wait for their responses.
    #[error("the window of requests without a response is full")]
    Window,
    /// One side has announced that it closes the connection.
    #[error("the connection takes no further request")]
    Closing,
}

/// Requests in their order. The first one lies in the session itself: without pipelining there is no other, and a
/// link needs no memory elsewhere.
#[derive(Debug)]
struct Waiting {
    first: Option<Ticket>,
    /// Requests behind it.
    rest: VecDeque<Ticket>,
}

impl Waiting {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    fn push(&mut self, ticket: Ticket) {
        match self.first {
            None => self.first = Some(ticket),
            Some(_) => self.rest.push_back(ticket),
        }
    }

    fn pop(&mut self) -> Option<Ticket> {
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }

    fn clear(&mut self) {
        self.first = None;
        self.rest.clear();
    }
}

/// The client end of one connection.
#[derive(Debug)]
pub struct Client {
    reader: Reader,
    waiting: Waiting,
    window: u16,
    is_closing: bool,
    /// True if a part of a head came, and not its end.
    is_in_head: bool,
    /// The status of the last answer on the connection; 0 before the first.
    last: u16,
}

impl Client {
    /// A client on a connection that stands. At most `window` requests wait for their responses: 1 is
    /// no pipelining. A response whose body has more than `body_max` bytes is malformed.
    pub const fn new(window: u16, body_max: u32) -> Self {
        Self {
            reader: Reader::new(head::response, body_max),
            waiting: Waiting {
                first: None,
                rest: VecDeque::new(),
            },
            window,
            is_closing: false,
            is_in_head: false,
            last: 0,
        }
    }

    /// Begins anew on another connection; requests without a response are forgotten.
    pub fn reopen(&mut self) {
        self.reader.reset();
        self.waiting.clear();
        (self.is_closing, self.is_in_head, self.last) = (false, false, 0);
    }

    /// The number of requests that may be written now.
    pub fn window_free(&self) -> u16 {
        if self.is_closing {
            return 0;
        }
        self.window.saturating_sub(self.waiting.len() as u16)
    }

    /// True if the connection takes no further request.
    pub const fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The requests that wait for their responses, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = Ticket> {
        let Waiting { first, rest } = &self.waiting;
        first.iter().chain(rest).copied()
    }

    /// Writes a request.
    ///
    /// # Errors
    /// [`Refused`] if it may not be written now; then nothing is.
    pub fn submit(
        &mut self,
        ticket: Ticket,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        if self.is_closing {
            return Err(Refused::Closing);
        }
        if self.window_free() == 0 {
            return Err(Refused::Window);
        }
        request.write(out);
        self.waiting.push(ticket);
        self.is_closing = request.is_last;
        Ok(())
    }

    /// Takes what came until there is an event; none once all is read. What is left of `input` is to be
    /// presented again with more.
    pub fn poll<'a>(&mut self, input: &mut &'a [u8]) -> Option<ClientEvent<'a>> {
        loop {
            let message = match self.reader.poll(input, |_| {}) {
                Ok(Some(message)) => message,
                Ok(None) => {
                    self.is_in_head = !input.is_empty();
                    return None;
                }
                Err(malformed) => {
                    self.is_closing = true;
                    return Some(ClientEvent::Malformed(self.blamed(malformed, input)));
                }
            };
            match message.start.status {
                101 => {
                    self.is_closing = true;
                    return Some(ClientEvent::Malformed(Malformed::Switched));
                }
                // An interim response says nothing of the request (RFC 9110 section 15.2).
                100..=199 => {}
                _ => return Some(self.answered(message)),
            }
        }
    }

    /// The response that ended with the connection, as one without a length does.
    pub fn end(&mut self) -> Option<ClientEvent<'static>> {
        let message = self.reader.end()?;
        Some(self.answered(message))
    }

    /// The fault of bytes that cannot be read: those behind an answer may be too much of its body.
    fn blamed(&self, malformed: Malformed, bytes: &[u8]) -> Malformed {
        let is_other = malformed == Malformed::Head && !bytes.starts_with(b"HTTP/");
        match self.last {
            204 | 304 if is_other => Malformed::NoBody,
            1.. if is_other && self.waiting.first.is_none() => Malformed::Surplus,
            _ => malformed,
        }
    }

    /// True if a response has begun that is not complete: a part of its head came, or of its body.
    pub const fn is_begun(&self) -> bool {
        self.is_in_head || self.is_inside()
    }

    /// True if a response has begun whose body is not complete.
    pub const fn is_inside(&self) -> bool {
        self.reader.is_inside()
    }

    fn answered<'a>(&mut self, message: Message<'a>) -> ClientEvent<'a> {
        let ticket = self.waiting.pop();
        (self.is_in_head, self.last) = (false, message.start.status);
        self.is_closing |= !message.start.persists || ticket.is_none();
        let response = Response {
            status: message.start.status,
            head: message.head,
            body: message.body,
            is_last: !message.start.persists,
        };
        match ticket {
            Some(ticket) => ClientEvent::Answered { ticket, response },
            None => ClientEvent::Unasked(response),
        }
    }
}
