//! CoAP: the codec, both ends of a session, and the laws that hold between them.

mod client;
mod codec;
mod golden;
mod laws;
mod observing;
mod server;
mod world;
