//! CoAP (RFC 7252), both ends, with block-wise transfer (RFC 7959).
//!
//! [`Message`] is the codec: a datagram read in place. [`Client`] is the end of one device with a
//! socket, [`SharedClient`] that of many devices behind one socket, [`Server`] the gateway's end
//! towards one peer. Sections are those of RFC 7252 unless another is named.
//!
//! # Datagrams
//!
//! A call passes one received datagram to a session, and appends at most one datagram to send to the
//! caller's buffer. A client keeps nothing of a request: if a copy of it or its next block is due,
//! the caller renders it again ([`ClientEvent::Again`]). So an idle device costs nothing but its
//! session. A server keeps its replies, within bounds, for requests that come again.
//!
//! ```
//! use std::sync::Arc;
//!
//! use muster_model::Micros;
//! use muster_protocol::coap::{
//!     Client, ClientEvent, ClientSettings, Code, Opt, OptionNumber, Reply, Request, Server,
//!     ServerEvent, ServerSettings, Ticket,
//! };
//!
//! let mut client = Client::new(Arc::new(ClientSettings::default()), 1);
//! let mut server = Server::new(Arc::new(ServerSettings::default()), 2);
//! let (mut up, mut down) = (Vec::new(), Vec::new());
//!
//! let ticket = Ticket { slot: 0, name: 7 };
//! let path = [Opt::text(OptionNumber::URI_PATH, "t")];
//! let request = Request::new(Code::POST, &path, b"21.5");
//! client.request(Micros(0), ticket, &request, &mut up)?;
//!
//! let event = server.receive(Micros(40), &up, &mut down);
//! let Some(ServerEvent::Request(incoming)) = event else { panic!("a request") };
//! assert_eq!(&*incoming.payload, b"21.5");
//! let reply = Reply::new(Code::CHANGED, &[], b"");
//! server.respond(Micros(50), incoming.pending, &reply, &mut down)?;
//!
//! let event = client.receive(Micros(90), &down, &mut up);
//! let Some(ClientEvent::Response(response)) = event else { panic!("a response") };
//! assert_eq!((response.ticket, response.code), (ticket, Code::CHANGED));
//! # Ok::<(), muster_protocol::coap::Refused>(())
//! ```

mod block;
mod client;
mod code;
mod ids;
mod malformed;
mod message;
mod option;
mod options;
mod reply;
mod request;
mod seen;
mod server;
mod settings;
mod slab;

pub use block::{Block, BlockSize, ReservedSize};
pub use client::{
    AT_REST_BYTES, Again, Client, ClientCounts, ClientEvent, Endpoint, Failure, Response,
    SharedClient, SocketSlot,
};
pub use code::{Class, Code};
pub use malformed::{Fault, Malformed};
pub use message::{Header, Kind, Message, Token};
pub use option::{Definition, Opt, OptionNumber, Uint, content_format};
pub use options::{OptionIter, Options};
pub use reply::Reply;
pub use request::{Refused, Request, Ticket};
pub use server::{Incoming, Pending, Server, ServerCounts, ServerEvent};
pub use settings::{ClientSettings, ServerSettings, Transmission};
pub use slab::ExchangeKey;
