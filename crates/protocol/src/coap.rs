//! CoAP (RFC 7252), both ends, with block-wise transfer (RFC 7959) and observe (RFC 7641).
//!
//! [`Message`] is the codec: a datagram read in place. Sections are those of RFC 7252 unless
//! another is named.

mod block;
mod code;
mod malformed;
mod message;
mod option;
mod options;

pub use block::{Block, BlockSize};
pub use code::{Class, Code};
pub use malformed::{Fault, Malformed};
pub use message::{Header, Kind, Message, Token};
pub use option::{Definition, Opt, OptionNumber, Uint, content_format};
pub use options::{OptionIter, Options};
