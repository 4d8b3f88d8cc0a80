//! CoAP: the codec, both ends of a session, and the laws that hold between them.

mod codec;
mod golden;
