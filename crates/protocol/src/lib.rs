//! Protocol sessions without sockets: bytes in, events and bytes out.
//!
//! Layer 1. A session is a state machine: the caller passes it the time and the bytes that a
//! connection received, and it appends the bytes to send to a buffer of the caller. Both ends are
//! here: the device plays the client, the reference gateway the server. Layers such as TLS can lie
//! between a session and its socket: [`layer`] is their seam.
//!
//! In the straight line it lies between the device (which decides *what* to send) and the socket
//! (which carries it). It must never know a clock, a socket, a thread, a schedule, a platform's
//! topics or what a payload means.
//!
//! ```
//! use muster_model::Micros;
//! use muster_protocol::mqtt::{
//!     Client, ClientEvent, ClientLimits, Connect, Input, Publish, Qos, Token, Version,
//! };
//!
//! let mut client = Client::new(Version::V5, &ClientLimits::default());
//! let mut out = Vec::new();
//! client.connect(Micros::ZERO, &Connect::new("meter-7"), &mut out)?;
//!
//! // CONNACK: no session, success, no properties (MQTT 5 section 3.2).
//! let mut input = Input::new(&[0x20, 3, 0, 0, 0]);
//! let event = client.poll(Micros::ZERO, &mut input, &mut out);
//! assert!(matches!(event, Some(ClientEvent::Connected(_))));
//!
//! let publish = Publish { qos: Qos::AtLeastOnce, ..Publish::new("t/7", b"21.5") };
//! client.publish(Micros(5), Token(1), &publish, &mut out)?;
//!
//! // PUBACK for packet id 1 (section 3.4).
//! let mut input = Input::new(&[0x40, 2, 0, 1]);
//! let event = client.poll(Micros(9), &mut input, &mut out);
//! assert!(matches!(event, Some(ClientEvent::Accepted { token: Token(1), reason: 0 })));
//! # Ok::<(), muster_protocol::mqtt::Refused>(())
//! ```

pub mod coap;
pub mod dtls;
pub mod http;
pub mod layer;
pub mod mqtt;
pub mod websocket;
