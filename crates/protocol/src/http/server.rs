//! The server end: requests as they come, and replies to them in the same order.

use std::borrow::Cow;

use super::Malformed;
use super::client::{write_length, write_number};
use super::head::{self, Head};
use super::message::Reader;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRequest<'a> {
    /// Its start line and fields.
    pub head: Head<'a>,
    /// The body, without transfer coding.
    pub body: Cow<'a, [u8]>,
    /// True if no other request follows.
    pub is_last: bool,
}

impl ServerRequest<'_> {
    /// The method; one that is not ASCII is empty.
    pub fn method(&self) -> &str {
        std::str::from_utf8(self.head.start().0).unwrap_or_default()
    }

    /// Path and query; a target that is not UTF-8 is empty.
    pub fn target(&self) -> &str {
        std::str::from_utf8(self.head.start().1).unwrap_or_default()
    }
}

/// Something that came from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A request; it is to be replied to before the next one is.
    Request(ServerRequest<'a>),
    /// Bytes that cannot be read; the refusal is written, and the connection is at its end.
    Malformed(Malformed),
}

/// A reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The status, 200 to 599.
    pub status: u16,
    /// Further fields, as [`write_field`](super::write_field) writes them.
    pub fields: &'a [u8],
    /// The body.
    pub body: &'a [u8],
    /// True if the connection is closed behind it.
    pub is_last: bool,
}

impl Reply<'_> {
    /// A reply without further fields and without a body.
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            fields: &[],
            body: &[],
            is_last: false,
        }
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        write_number(out, self.status.into());
        out.push(b' ');
        out.extend_from_slice(reason(self.status).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.fields);
        if self.is_last {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        // RFC 9110 section 8.6: none with 204.
        if self.status != 204 {
            write_length(out, self.body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }
}

/// The phrase of a status (RFC 9110 section 15, RFC 6585); empty if it has none here.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "",
    }
}

/// The server end of one connection.
#[derive(Debug)]
pub struct Server {
    reader: Reader,
    is_over: bool,
}

impl Server {
    /// A server on a connection that stands; a request whose body has more than `body_max` bytes is
    /// refused with 413.
    pub const fn new(body_max: u32) -> Self {
        Self {
            reader: Reader::new(head::request, body_max),
            is_over: false,
        }
    }

    /// Takes what came until there is an event; none once all is read. What is left of `input` is to be
    /// presented again with more. Interim responses and refusals are appended to `out`.
    pub fn poll<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Option<ServerEvent<'a>> {
        if self.is_over {
            *input = &[];
            return None;
        }
        let waits = |start: &head::Start| {
            if start.expects_continue {
                out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        };
        match self.reader.poll(input, waits) {
            Ok(message) => {
                let message = message?;
                self.is_over = !message.start.persists;
                Some(ServerEvent::Request(ServerRequest {
                    head: message.head,
                    body: message.body,
                    is_last: self.is_over,
                }))
            }
            Err(malformed) => {
                self.is_over = true;
                let refusal = Reply {
                    is_last: true,
                    ..Reply::new(malformed.status())
                };
                refusal.write(out);
                Some(ServerEvent::Malformed(malformed))
            }
        }
    }

    /// True if the head of a request was taken, and its body was not.
    pub const fn is_inside(&self) -> bool {
        self.reader.is_inside()
    }

    /// True if no further request is read.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }
}
