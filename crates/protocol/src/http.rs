//! HTTP/1.1 (RFC 9112), both ends, one connection a value.
//!
//! A device plays the [`Client`]: it writes requests and reads responses in their order. The reference
//! gateway plays the [`Server`]. Neither knows a socket, a clock or a platform's paths.
//!
//! A message that lies whole in what came is lent from there; one that comes in pieces is collected
//! within a bound. Both ends refuse messages whose length is ambiguous, since two readers of such a
//! message may disagree on where the next one begins (RFC 9112 section 11.2).
//!
//! ```
//! use muster_protocol::http::{Client, ClientEvent, Request, Ticket};
//!
//! let mut client = Client::new(1, 4_096);
//! let mut out = Vec::new();
//! let request = Request { body: b"21.5", ..Request::new("POST", "/telemetry", "127.0.0.1:8080") };
//! client.submit(Ticket(7), &request, &mut out)?;
//! assert!(out.starts_with(b"POST /telemetry HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
//!
//! let mut input = &b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"[..];
//! let Some(ClientEvent::Answered { ticket, response }) = client.poll(&mut input) else { panic!() };
//! assert_eq!((ticket, response.status), (Ticket(7), 202));
//! # Ok::<(), muster_protocol::http::Refused>(())
//! ```

mod body;
mod client;
mod date;
mod head;
mod malformed;
mod message;
mod server;

pub use client::{Client, ClientEvent, LentResponse, Refused, Request, Response, Ticket};
pub use date::read_date;
pub use head::{Head, InvalidField, write_field};
pub use malformed::Malformed;
pub use server::{Reply, Server, ServerEvent, ServerRequest};
