//! WebSocket (RFC 6455) as MQTT uses it (MQTT 5.0 section 6), both ends.
//!
//! A [`WebSocket`] is a [`Layer`]: it stands between a byte stream below, TCP or TLS, and an MQTT
//! session above. Packets need not be aligned with frames (MQTT-6.0.0-2): the payload of a data
//! frame is passed on as it comes and never collected, so that a frame of 100 MB costs no memory.
//! Only control frames are, 125 bytes at most, and the two heads of the handshake. What the
//! session says at once becomes one unfragmented binary frame.
//!
//! Pings are answered, pongs are ignored, a close frame is answered and ends the layer. No
//! extension is offered and none is taken.
//!
//! # Nonce and masking keys
//!
//! Both are values of [`mix`] of the seed that the caller gives and a counter: a frame's key is
//! made from the number of the frame. A seed serves one connection, so that no two connections
//! share their keys. The standard wants keys that a script's author cannot predict (section 10.3),
//! since a browser sends what strangers wrote; here nobody chooses the payload who does not also
//! own the seed, and a run can be made again byte by byte.
//!
//! # Example
//!
//! ```
//! use muster_protocol::layer::Layer;
//! use muster_protocol::websocket::{Upgrade, WebSocket};
//!
//! let mut client = WebSocket::client(&Upgrade::new("example.com", "/mqtt"), 42)?;
//! let mut server = WebSocket::server(Some("/mqtt"));
//! let (mut up, mut down) = (Vec::new(), Vec::new());
//!
//! client.open(&mut up);
//! assert_eq!(server.feed(&mut up, 0, &mut down).end, None);
//! up.clear();
//! assert_eq!(client.feed(&mut down, 0, &mut up).end, None);
//! assert!(client.is_open() && server.is_open());
//!
//! up.extend_from_slice(&[0xc0, 0]); // A session says PINGREQ.
//! client.wrap(&mut up, 0);
//! assert_eq!(up.len(), 2 + 4 + 2); // Head, masking key, payload.
//! let fed = server.feed(&mut up, 0, &mut down);
//! assert_eq!(up[..fed.plain], [0xc0, 0]);
//! # Ok::<(), muster_protocol::websocket::UpgradeError>(())
//! ```

mod client;
mod close;
mod fault;
mod frame;
mod http;
mod receive;
mod server;

use muster_model::mix;

pub use client::{Upgrade, UpgradeError};
pub use fault::Fault;

use crate::layer::{Ended, Fed, Layer, Standing};
use client::Asking;
use frame::ControlKind;
use receive::{Control, Cut, Reader};

/// The subprotocol of MQTT 3.1.1 and 5 (MQTT-6.0.0-3, MQTT-6.0.0-4).
pub const SUBPROTOCOL: &str = "mqtt";

/// Most bytes of a data frame that are taken unless said otherwise: the largest packet of MQTT,
/// with its fixed header (section 2.1.4).
pub const FRAME_MAX: u32 = 5 + 268_435_455;

/// First counter of nonces: behind those of the masking keys, which have 32 bits.
const NONCE: u64 = 1 << 32;

/// One end of a WebSocket connection.
#[derive(Debug)]
pub struct WebSocket {
    /// The handshake, until it is over.
    opening: Option<Box<Opening>>,
    seed: u64,
    reader: Reader,
    /// Number of masking keys used; those of a connection repeat after 2^32.
    keys: u32,
    standing: Standing,
}

/// A handshake under way.
#[derive(Debug)]
struct Opening {
    /// Received part of the peer's head.
    head: Vec<u8>,
    side: Side,
}

#[derive(Debug)]
enum Side {
    Client(Asking),
    /// The one path that is served, or any.
    Server(Option<Box<str>>),
}

impl WebSocket {
    /// The client end; `seed` is for this connection only.
    ///
    /// # Errors
    /// [`UpgradeError`] if the request cannot be written.
    pub fn client(upgrade: &Upgrade<'_>, seed: u64) -> Result<Self, UpgradeError> {
        upgrade.check()?;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&mix(seed, NONCE).to_be_bytes());
        nonce[8..].copy_from_slice(&mix(seed, NONCE + 1).to_be_bytes());
        let side = Side::Client(Asking::new(upgrade, nonce));
        Ok(Self::new(side, seed, false))
    }

    /// The server end, which serves one path, or any.
    pub fn server(path: Option<&str>) -> Self {
        Self::new(Side::Server(path.map(Into::into)), 0, true)
    }

    fn new(side: Side, seed: u64, is_peer_masked: bool) -> Self {
        let head = Vec::new();
        Self {
            opening: Some(Box::new(Opening { head, side })),
            seed,
            reader: Reader::new(is_peer_masked, FRAME_MAX),
            keys: 0,
            standing: Standing::Opening,
        }
    }

    /// Takes data frames of at most `bytes`; without it, of at most [`FRAME_MAX`].
    pub const fn with_frame_max(mut self, bytes: u32) -> Self {
        self.reader.set_maximum(bytes);
        self
    }

    /// The masking key of the next frame; none on a server (section 5.1).
    #[inline]
    fn next_key(&mut self) -> Option<[u8; 4]> {
        if self.reader.is_masked() {
            return None;
        }
        let key = mix(self.seed, u64::from(self.keys)) as u32;
        self.keys = self.keys.wrapping_add(1);
        Some(key.to_be_bytes())
    }

    /// Reads all that came, up to the end if it is among it.
    #[inline]
    fn read(&mut self, cut: &mut Cut<'_>, wire: &mut Vec<u8>) -> Result<Option<Ended>, Fault> {
        if let Some(opening) = self.opening.take()
            && !self.shake(opening, cut, wire)?
        {
            return Ok(None);
        }
        while let Some(control) = self.reader.advance(cut)? {
            if let Some(end) = self.answer(&control, wire)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Goes on with the handshake; whether it is over.
    #[cold]
    fn shake(
        &mut self,
        mut opening: Box<Opening>,
        cut: &mut Cut<'_>,
        wire: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let head = &mut opening.head;
        let is_complete = match &opening.side {
            Side::Client(_) => http::collect(head, cut, http::is_no_answer)?,
            Side::Server(_) => http::collect(head, cut, http::is_no_request)?,
        };
        if !is_complete {
            self.opening = Some(opening);
            return Ok(false);
        }
        match &opening.side {
            Side::Client(asking) => asking.judge(head)?,
            Side::Server(path) => {
                let accept = server::judge(head, path.as_deref())?;
                server::put_switch(&accept, wire);
            }
        }
        self.standing = Standing::Open;
        Ok(true)
    }

    /// Answers a control frame; the end, if it is a close frame.
    #[cold]
    fn answer(&mut self, control: &Control, wire: &mut Vec<u8>) -> Result<Option<Ended>, Fault> {
        match control.kind {
            ControlKind::Pong => Ok(None),
            ControlKind::Ping => {
                let key = self.next_key();
                frame::put_control(ControlKind::Pong, control.body(), key, wire);
                Ok(None)
            }
            ControlKind::Close => {
                let code = close::read(control.body())?;
                self.say_goodbye(code, wire);
                Ok(Some(Ended::Closed(code)))
            }
        }
    }

    /// Says a close frame, unless one was said.
    fn say_goodbye(&mut self, code: Option<u16>, wire: &mut Vec<u8>) {
        if self.standing != Standing::Open {
            return;
        }
        self.standing = Standing::Closing;
        let code = code.map(u16::to_be_bytes);
        let body = code.as_ref().map_or(&[][..], |code| &code[..]);
        let key = self.next_key();
        frame::put_control(ControlKind::Close, body, key, wire);
    }

    /// Fails the connection (section 7.1.7): says why, where there is a way to say it.
    #[cold]
    fn fail(&mut self, fault: Fault, wire: &mut Vec<u8>) -> Ended {
        let is_server = self.reader.is_masked();
        if self.standing == Standing::Opening && is_server {
            server::put_refusal(fault, wire);
        }
        if let Some(code) = fault.close_code() {
            self.say_goodbye(Some(code), wire);
        }
        Ended::Failed(fault.into())
    }
}

/// A connection that is over.
impl Default for WebSocket {
    fn default() -> Self {
        Self {
            opening: None,
            seed: 0,
            reader: Reader::new(false, FRAME_MAX),
            keys: 0,
            standing: Standing::Over,
        }
    }
}

impl Layer for WebSocket {
    type Border = u32;

    fn open(&mut self, wire: &mut Vec<u8>) {
        if let Some(opening) = self.opening.as_mut()
            && let Side::Client(asking) = &mut opening.side
        {
            wire.append(&mut asking.request);
        }
    }

    #[inline]
    fn feed(&mut self, bytes: &mut [u8], held: usize, wire: &mut Vec<u8>) -> Fed {
        let used = bytes.len();
        if self.standing == Standing::Over {
            let (plain, end) = (held, None);
            return Fed { used, plain, end };
        }
        let mut cut = Cut::new(bytes, held);
        let read = self.read(&mut cut, wire);
        let plain = cut.plain();
        let end = read.unwrap_or_else(|fault| Some(self.fail(fault, wire)));
        if end.is_some() {
            self.standing = Standing::Over;
        }
        Fed { used, plain, end }
    }

    #[inline]
    fn standing(&self) -> Standing {
        self.standing
    }

    #[inline]
    fn wrap(&mut self, wire: &mut Vec<u8>, from: usize) {
        if self.standing != Standing::Open {
            wire.truncate(from);
        } else if wire.len() > from {
            let key = self.next_key();
            frame::wrap(wire, from, key);
        }
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        if self.standing == Standing::Opening {
            self.opening = None;
            self.standing = Standing::Over;
        }
        self.say_goodbye(Some(close::NORMAL), wire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_at_rest_keeps_at_most_64_bytes() {
        assert!(size_of::<WebSocket>() <= 64, "{}", size_of::<WebSocket>());
    }

    #[test]
    fn section_10_3_no_two_frames_and_no_two_connections_share_a_key() {
        let keys = |seed: u64| {
            let upgrade = Upgrade::new("h", "/");
            let mut client = WebSocket::client(&upgrade, seed).expect("it can be written");
            (0..1_000).map(|_| client.next_key()).collect::<Vec<_>>()
        };
        let mut all = [keys(1), keys(2)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2_000);
    }
}
