//! Both ends of WebSocket against the text of RFC 6455, and laws that hold for any bytes.

mod close;
mod ends;
mod frames;
mod handshake;
mod laws;
