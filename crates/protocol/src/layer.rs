//! The seam between a socket's bytes and a session's: the place of TLS and WebSocket.
//!
//! *Wire* is what the side below carries, *plain* what the side above says. A [`Layer`] turns one
//! into the other, both ways, with no clock, socket or buffer; [`Stack`] puts one
//! on another, as in `Stack<WebSocket, Tls>`; [`Plain`] is none at all.
//!
//! # Bytes are turned in place
//!
//! [`Layer::feed`] leaves the plain bytes at the front of those that were read, [`Layer::wrap`] turns
//! the tail of the output into a frame or a record: no layer here makes fewer wire bytes of more plain
//! ones. So [`Plain`] costs nothing, and stacked layers need no buffer between them. What a session
//! leaves (the beginning of a packet) stays in the one buffer that the event loop lends to a link, in
//! front of wire bytes that are not turned yet; [`Pipe`] remembers the border.
//!
//! # Example: how a driver reads and answers
//!
//! ```
//! use muster_protocol::layer::{Ended, Layer, Pipe};
//!
//! /// What the event loop calls with the bytes of a link: how many are used up.
//! fn received<L: Layer>(pipe: &mut Pipe<L>, bytes: &mut [u8], out: &mut Vec<u8>) -> usize {
//!     let fed = pipe.receive(bytes, out);
//!     let from = out.len();
//!     let taken = session(&bytes[..fed.plain], out);
//!     pipe.layer.wrap(out, from);
//!     match fed.end {
//!         None => {}
//!         Some(Ended::Closed(_code)) => {} // Send `out`, then close the socket.
//!         Some(Ended::Failed(_error)) => {} // The same, and count the cause.
//!     }
//!     pipe.keep(bytes, &fed, taken)
//! }
//!
//! /// Stands for a session: takes whole pairs of bytes, says one byte for each.
//! fn session(plain: &[u8], out: &mut Vec<u8>) -> usize {
//!     out.resize(out.len() + plain.len() / 2, b'!');
//!     plain.len() / 2 * 2
//! }
//!
//! let mut pipe = Pipe::new(muster_protocol::layer::Plain);
//! let mut out = Vec::new();
//! assert_eq!(received(&mut pipe, &mut *b"abc".to_vec(), &mut out), 2);
//! assert_eq!(out, b"!");
//! ```

use std::fmt::Debug;

use muster_model::TlsFailure;
use thiserror::Error;

use crate::{dtls, websocket};

/// A protocol between a byte stream below and a session above; one value is one end of one
/// connection.
pub trait Layer {
    /// A [`Pipe`]'s border between bytes that are turned and those that are not: a number, or
    /// nothing where there is none.
    type Border: Border;

    /// The side below is open: appends what is to be said first.
    fn open(&mut self, wire: &mut Vec<u8>);

    /// Turns the bytes that came into plain ones, in place, and appends the layer's own answers
    /// (of a handshake, to a ping) to `wire`.
    ///
    /// The first `held` bytes are plain already and are left alone. Bytes behind [`Fed::used`] are
    /// the beginning of something: they are to be presented again with more. The upper layer of a
    /// [`Stack`] has to use all that it is given.
    fn feed(&mut self, bytes: &mut [u8], held: usize, wire: &mut Vec<u8>) -> Fed;

    /// Returns the state of the layer between its beginning and its end.
    fn standing(&self) -> Standing;

    /// Returns true if the handshake is over and the side above may send.
    #[inline]
    fn is_open(&self) -> bool {
        self.standing() == Standing::Open
    }

    /// Turns what the side above said, `wire[from..]`, into one frame or record (several, where
    /// one cannot hold it). Nothing said stays nothing. Where the layer is not open, above had no
    /// right to speak, and what it said is dropped.
    fn wrap(&mut self, wire: &mut Vec<u8>, from: usize);

    /// Appends the layer's goodbye, once; from then on the side above may not speak.
    fn close(&mut self, wire: &mut Vec<u8>);

    /// Returns a detail of a reported failure, such as the instant at which a certificate expired.
    fn detail(&self) -> Option<&str> {
        None
    }
}

/// Result of [`Layer::feed`]: `held <= plain <= used <= bytes.len()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Fed {
    /// Number of bytes, from the first, that the layer has handled.
    pub used: usize,
    /// Number of bytes, from the first, that are now plain: those held, and those turned.
    pub plain: usize,
    /// The end, reported once, after the plain bytes before it. Output in `wire` must still be
    /// sent.
    pub end: Option<Ended>,
}

/// State of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The handshake is under way: the side above may not speak yet.
    Opening,
    /// Both sides may speak.
    Open,
    /// We said goodbye: the side above may listen only.
    Closing,
    /// Nothing more is sent or received; the connection below is to be closed.
    Over,
}

/// End of a layer's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The peer said goodbye in order, with its status code where it gave one (RFC 6455
    /// section 7.1.5).
    Closed(Option<u16>),
    /// The peer refused, or broke the protocol.
    Failed(LayerError),
}

/// Reason that a layer's connection cannot continue: the cause that a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum LayerError {
    /// A fault of the peer in WebSocket, or its refusal.
    #[error("WebSocket: {0}")]
    WebSocket(#[from] websocket::Fault),
    /// TLS could not be agreed upon, or cannot go on.
    #[error("{0}")]
    Tls(TlsFailure),
    /// DTLS could not be agreed upon, or cannot go on.
    #[error("DTLS: {0}")]
    Dtls(#[from] dtls::Fault),
}

/// No layer: plain is wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plain;

/// Remembers how many bytes were left that are plain already.
pub trait Border: Copy + Default + Debug {
    /// Returns their number.
    fn get(self) -> usize;

    /// Sets their number.
    fn set(&mut self, held: usize);
}

/// All bytes are plain.
impl Border for () {
    #[inline]
    fn get(self) -> usize {
        0
    }

    #[inline]
    fn set(&mut self, _held: usize) {}
}

impl Border for u32 {
    #[inline]
    fn get(self) -> usize {
        self as usize
    }

    #[inline]
    fn set(&mut self, held: usize) {
        *self = held as u32;
    }
}

impl Layer for Plain {
    type Border = ();

    #[inline]
    fn open(&mut self, _wire: &mut Vec<u8>) {}

    #[inline]
    fn feed(&mut self, bytes: &mut [u8], _held: usize, _wire: &mut Vec<u8>) -> Fed {
        Fed {
            used: bytes.len(),
            plain: bytes.len(),
            end: None,
        }
    }

    #[inline]
    fn standing(&self) -> Standing {
        Standing::Open
    }

    #[inline]
    fn wrap(&mut self, _wire: &mut Vec<u8>, _from: usize) {}

    #[inline]
    fn close(&mut self, _wire: &mut Vec<u8>) {}
}

/// One layer on another: what `upper` says is plain to `lower`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stack<U, L> {
    /// The layer next to the session, such as WebSocket; it uses all bytes that it is given.
    pub upper: U,
    /// The layer next to the socket, such as TLS.
    pub lower: L,
}

impl<U: Layer, L: Layer> Stack<U, L> {
    /// `upper` on `lower`, neither of them opened.
    pub const fn new(upper: U, lower: L) -> Self {
        Self { upper, lower }
    }

    /// Lets the upper layer speak, and turns what it said into the lower one's wire bytes.
    #[inline]
    fn above<T>(&mut self, wire: &mut Vec<u8>, speak: impl FnOnce(&mut U, &mut Vec<u8>) -> T) -> T {
        let from = wire.len();
        let answer = speak(&mut self.upper, wire);
        self.lower.wrap(wire, from);
        answer
    }
}

impl<U: Layer, L: Layer> Layer for Stack<U, L> {
    type Border = u32;

    #[inline]
    fn open(&mut self, wire: &mut Vec<u8>) {
        self.lower.open(wire);
        if self.lower.is_open() {
            self.above(wire, U::open);
        }
    }

    #[inline]
    fn feed(&mut self, bytes: &mut [u8], held: usize, wire: &mut Vec<u8>) -> Fed {
        let was_opening = self.lower.standing() == Standing::Opening;
        let below = self.lower.feed(bytes, held, wire);
        if was_opening && self.lower.is_open() {
            self.above(wire, U::open);
        }
        let turned = &mut bytes[..below.plain];
        let above = self.above(wire, |upper, wire| upper.feed(turned, held, wire));
        debug_assert_eq!(above.used, below.plain, "an upper layer uses all bytes");
        if above.end.is_some() {
            self.lower.close(wire);
        }
        Fed {
            used: below.used,
            plain: above.plain,
            end: above.end.or(below.end),
        }
    }

    #[inline]
    fn standing(&self) -> Standing {
        match self.lower.standing() {
            Standing::Opening => Standing::Opening,
            Standing::Open | Standing::Closing => self.upper.standing(),
            Standing::Over => Standing::Over,
        }
    }

    #[inline]
    fn wrap(&mut self, wire: &mut Vec<u8>, from: usize) {
        self.upper.wrap(wire, from);
        self.lower.wrap(wire, from);
    }

    #[inline]
    fn close(&mut self, wire: &mut Vec<u8>) {
        self.above(wire, U::close);
        self.lower.close(wire);
    }

    fn detail(&self) -> Option<&str> {
        self.upper.detail().or_else(|| self.lower.detail())
    }
}

/// A layer on a link, and how many bytes at the front of the link's unread input it has turned
/// already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pipe<L: Layer> {
    /// The layer: to open, to wrap, to close.
    pub layer: L,
    held: L::Border,
}

impl<L: Layer> Pipe<L> {
    /// A link on which nothing has come yet.
    pub fn new(layer: L) -> Self {
        let held = L::Border::default();
        Self { layer, held }
    }

    /// Turns the link's unread input: what [`Pipe::keep`] left, and what came after it. The bytes
    /// up to [`Fed::plain`] are for the session, which may take some of them; say how many with
    /// [`Pipe::keep`], always.
    #[inline]
    pub fn receive(&mut self, bytes: &mut [u8], wire: &mut Vec<u8>) -> Fed {
        let held = self.held.get();
        self.layer.feed(bytes, held, wire)
    }

    /// The session took `taken` plain bytes: sets what it left directly before the wire bytes that
    /// are not turned yet, and says how many bytes, from the first, need not be presented again.
    #[inline]
    pub fn keep(&mut self, bytes: &mut [u8], fed: &Fed, taken: usize) -> usize {
        let left = fed.plain - taken;
        if left > 0 && fed.plain < fed.used {
            bytes.copy_within(taken..fed.plain, fed.used - left);
        }
        self.held.set(left);
        fed.used - left
    }
}

/// Source of the layers of links: a new one for each connection.
///
/// The default of a layer is one whose connection is over; it stands for a link that is down.
pub trait Layers: Debug {
    /// Layer between sockets and sessions.
    type Layer: Layer + Default + Debug;

    /// The layer of a new connection of link `link` of the run, not opened yet.
    ///
    /// # Errors
    /// [`LayerError`] if this link can have none.
    fn layer(&mut self, link: u32) -> Result<Self::Layer, LayerError>;
}

impl Layers for Plain {
    type Layer = Self;

    #[inline]
    fn layer(&mut self, _link: u32) -> Result<Self, LayerError> {
        Ok(Self)
    }
}

impl<U: Layers, L: Layers> Layers for Stack<U, L> {
    type Layer = Stack<U::Layer, L::Layer>;

    fn layer(&mut self, link: u32) -> Result<Self::Layer, LayerError> {
        let (upper, lower) = (self.upper.layer(link)?, self.lower.layer(link)?);
        Ok(Stack { upper, lower })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of a length byte and that many bytes, each flipped; begun by a greeting of each
    /// side. It leaves an incomplete record to its caller, as TLS does.
    #[derive(Debug, Default)]
    struct Records {
        has_heard: bool,
        is_over: bool,
    }

    impl Layer for Records {
        type Border = u32;

        fn open(&mut self, wire: &mut Vec<u8>) {
            wire.push(b'?');
        }

        fn feed(&mut self, bytes: &mut [u8], held: usize, _wire: &mut Vec<u8>) -> Fed {
            let (mut used, mut plain) = (held, held);
            if !self.has_heard && used < bytes.len() {
                self.has_heard = true;
                used += 1;
            }
            while let Some(&length) = bytes.get(used) {
                let (start, end) = (used + 1, used + 1 + usize::from(length));
                if end > bytes.len() {
                    break;
                }
                bytes[start..end].iter_mut().for_each(|byte| *byte ^= 0xff);
                bytes.copy_within(start..end, plain);
                plain += end - start;
                used = end;
            }
            let end = None;
            Fed { used, plain, end }
        }

        fn standing(&self) -> Standing {
            match (self.has_heard, self.is_over) {
                (false, _) => Standing::Opening,
                (true, false) => Standing::Open,
                (true, true) => Standing::Closing,
            }
        }

        fn wrap(&mut self, wire: &mut Vec<u8>, from: usize) {
            let said = wire.split_off(from);
            for piece in said.chunks(3) {
                wire.push(piece.len() as u8);
                wire.extend(piece.iter().map(|byte| byte ^ 0xff));
            }
        }

        fn close(&mut self, wire: &mut Vec<u8>) {
            self.is_over = true;
            wire.push(0);
        }
    }

    /// Presents `wire` in pieces to a link whose session takes whole groups of `group` bytes.
    fn read<L: Layer>(pipe: &mut Pipe<L>, wire: &[u8], step: usize, group: usize) -> Vec<u8> {
        let (mut kept, mut heard, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for piece in wire.chunks(step) {
            kept.extend_from_slice(piece);
            let fed = pipe.receive(&mut kept, &mut out);
            let taken = fed.plain / group * group;
            heard.extend_from_slice(&kept[..taken]);
            let used = pipe.keep(&mut kept, &fed, taken);
            kept.drain(..used);
        }
        heard
    }

    fn said(layer: &mut impl Layer, words: &[&[u8]]) -> Vec<u8> {
        let mut wire = Vec::new();
        for word in words {
            let from = wire.len();
            wire.extend_from_slice(word);
            layer.wrap(&mut wire, from);
        }
        wire
    }

    #[test]
    fn plain_lends_what_was_read_and_leaves_what_was_said() {
        let mut pipe = Pipe::new(Plain);
        let mut bytes = *b"abcde";
        let mut wire = Vec::new();
        pipe.layer.open(&mut wire);
        let fed = pipe.receive(&mut bytes, &mut wire);
        assert_eq!((fed.used, fed.plain, fed.end), (5, 5, None));
        assert_eq!(pipe.keep(&mut bytes, &fed, 3), 3);
        assert_eq!(&bytes, b"abcde");
        assert_eq!(said(&mut pipe.layer, &[b"x", b"yz"]), b"xyz");
        pipe.layer.close(&mut wire);
        assert!(wire.is_empty() && pipe.layer.is_open());
    }

    #[test]
    fn a_session_that_leaves_half_a_packet_gets_it_again_in_front_of_what_follows() {
        let wire = [
            b"?".to_vec(),
            said(&mut Records::default(), &[b"0123456789ab"]),
        ]
        .concat();
        for step in 1..=wire.len() {
            for group in [1, 2, 3, 4, 6, 12] {
                let mut pipe = Pipe::new(Records::default());
                let heard = read(&mut pipe, &wire, step, group);
                assert_eq!(heard, b"0123456789ab", "step {step}, group {group}");
            }
        }
    }

    #[test]
    fn a_stack_opens_its_upper_layer_when_the_lower_one_is_open() {
        let mut stack = Stack::new(Records::default(), Records::default());
        let mut wire = Vec::new();
        stack.open(&mut wire);
        assert_eq!(wire, b"?");
        wire.clear();
        let fed = stack.feed(&mut b"!".to_vec(), 0, &mut wire);
        assert_eq!((fed.used, fed.plain), (1, 0));
        assert_eq!(wire, [1, b'?' ^ 0xff], "the upper greeting in a record");
        assert_eq!(stack.standing(), Standing::Opening);
    }

    #[test]
    fn over_plain_a_stack_opens_at_once_and_is_its_upper_layer() {
        let mut stack = Stack::new(Records::default(), Plain);
        let mut wire = Vec::new();
        stack.open(&mut wire);
        assert_eq!(wire, b"?");
        stack.upper.has_heard = true;
        assert_eq!(
            said(&mut stack, &[b"abcd"]),
            said(&mut Records::default(), &[b"abcd"])
        );
        stack.close(&mut wire);
        assert_eq!(stack.standing(), Standing::Closing);
    }

    #[test]
    fn plain_adds_nothing_to_a_layer() {
        assert_eq!(size_of::<Plain>(), 0);
        assert_eq!(size_of::<Stack<Records, Plain>>(), size_of::<Records>());
        assert_eq!(size_of::<Pipe<Plain>>(), 0);
    }
}
