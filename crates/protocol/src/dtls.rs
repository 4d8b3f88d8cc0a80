//! DTLS 1.2 (RFC 6347, RFC 5246), both ends.
//!
//! A [`Dtls`] is one end of a session. The caller passes it the time and each received datagram, and it
//! appends what is to be sent. It knows no socket, no clock and no randomness: algorithms and random
//! bytes come from [`Crypto`], certificates from [`Certificates`].
//!
//! Spoken are the [suites](Suite) of CoAP's devices: with a shared key, with a shared key and an
//! ephemeral exchange, and with certificates; by AES-CCM with either tag and AES-GCM, always with
//! SHA-256. Also: cookies, fragments in any order, repeated flights, the window against replayed
//! records, the extended master secret (RFC 7627), connection ids (RFC 9146), resumption by session
//! id (RFC 5246 section 7.3) and, on the client, by ticket (RFC 5077). Nothing is negotiated twice:
//! a renegotiation is refused, and RFC 5746 is signalled.
//!
//! # Invalid input is discarded
//!
//! A record that does not open, is replayed, is cut short or has no place is discarded without a
//! word (RFC 6347 section 4.1.2.7) and counted. A message of the handshake that came whole and in its
//! place, and cannot be, ends the handshake with an alert. A client with a wrong key receives no
//! answer and times out, since its last message cannot be opened.
//!
//! # Memory
//!
//! The memory of a handshake is given back once it is over and, for the end that sent last, once a
//! message of the other end shows that it knows. Sealing and opening allocate nothing.
//!
//! # Session of a datagram
//!
//! The caller finds the session of a datagram: by address, or by connection id with [`peek`]. A
//! server asks [`greet`] about datagrams that are for none of its sessions.

mod agreement;
mod client;
mod crypto;
mod datagrams;
mod engine;
mod extension;
mod fault;
mod flight;
mod greet;
mod handshake;
mod hello;
mod incoming;
mod key_exchange;
mod message;
mod protection;
mod reassembly;
mod record;
mod records;
mod secrets;
mod server;
mod session;
mod settings;
mod step;
mod suite;
mod timer;
mod window;
mod wire;

use std::fmt;

use muster_model::Micros;

pub use client::{Opening, Psk};
pub use crypto::{Aead, Certificates, Crypto, Found, Keys, Peer, PublicKey, Sessions};
pub use datagrams::Datagrams;
pub use fault::{CertificateFault, Fault};
pub use greet::{Greeting, Welcome, greet, is_client_hello};
pub use hello::server_random;
pub use incoming::Incoming;
pub use record::{Content, RecordHeader, peek};
pub use session::Session;
pub use settings::{CookieSecret, DATAGRAM_MIN, Settings, Timing};
pub use suite::{Cipher, Group, KeyExchange, Suite};

use crate::layer::Standing;
use fault::alert;
use handshake::Handshake;
use records::Records;

/// Most bytes that one record carries (RFC 5246 section 6.2.1).
pub const PLAIN_MAX: usize = 1 << 14;

/// Resources of a call outside the session.
pub struct Context<'a, C> {
    /// Algorithms and randomness.
    pub crypto: &'a mut C,
    /// Settings of this end.
    pub settings: &'a Settings,
    /// Own and peers' certificates; none leaves the suites with certificates out.
    pub certificates: Option<&'a dyn Certificates>,
    /// A server's shared keys; none leaves the suites with them out.
    pub keys: Option<&'a dyn Keys>,
    /// A server's store of sessions; none resumes none.
    pub sessions: Option<&'a mut dyn Sessions>,
}

impl<C> fmt::Debug for Context<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("settings", self.settings)
            .finish_non_exhaustive()
    }
}

/// An event of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The handshake is over: the session above may speak.
    Connected(Connected),
    /// The session above of the peer said this, in one datagram.
    Data(&'a mut [u8]),
    /// The peer said goodbye; the session is over.
    Closed,
    /// The session never began, or cannot go on; it is over.
    Failed(Fault),
}

/// Result of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connected {
    /// The suite.
    pub suite: Suite,
    /// True if an earlier session was resumed.
    pub is_resumed: bool,
    /// True if both ends have the extended master secret.
    pub is_extended: bool,
    /// True if both ends have connection ids; that of one or both may be empty (RFC 9146 section
    /// 3).
    pub has_connection_id: bool,
}

/// Counters that no event reports, since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Flights that were said again.
    pub resent: u32,
    /// Records that do not open, have no place, or cannot be read.
    pub discarded: u32,
    /// Records that came again.
    pub replayed: u32,
}

/// One end of a DTLS session; the default is one that is over.
pub struct Dtls<C: Crypto> {
    handshake: Option<Box<Handshake<C>>>,
    records: Records<C::Aead>,
    session: Option<Box<Session>>,
    identity: Box<[u8]>,
    counts: Counts,
    standing: Standing,
}

/// Hides the keys.
impl<C: Crypto> fmt::Debug for Dtls<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dtls")
            .field("standing", &self.standing)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl<C: Crypto> Default for Dtls<C> {
    fn default() -> Self {
        Self {
            handshake: None,
            records: Records::default(),
            session: None,
            identity: Box::default(),
            counts: Counts::default(),
            standing: Standing::Over,
        }
    }
}

impl<C: Crypto> Dtls<C> {
    /// Returns its state between its beginning and its end.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns true if the session above may send.
    pub fn is_open(&self) -> bool {
        self.standing == Standing::Open
    }

    /// Returns the counters that no event reports.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the client's identity, from its key or certificate; empty on a client, and if
    /// nothing was proved.
    pub const fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// The connection id that the peer writes into its records; empty if it writes none.
    pub const fn own_id(&self) -> &[u8] {
        &self.records.own_id
    }

    /// The connection id that we write into our records.
    pub const fn peer_id(&self) -> &[u8] {
        &self.records.peer_id
    }

    /// Bytes that a record adds to what it carries; 0 before there are keys.
    pub fn overhead(&self) -> usize {
        self.records.overhead()
    }

    /// Returns the client's state for resuming this session, if the server gave it and
    /// [`Settings::resumption`] is set; taken once.
    pub fn take_session(&mut self) -> Option<Session> {
        self.session.take().map(|session| *session)
    }

    /// Turns what the session above said, `out[from..]`, into one record; whether it was. If the
    /// session is not open, or it is more than [`PLAIN_MAX`], or all numbers of the keys are used
    /// up, it is dropped.
    #[inline]
    pub fn wrap(&mut self, out: &mut Vec<u8>, from: usize) -> bool {
        if self.standing != Standing::Open || out.len() - from > PLAIN_MAX {
            out.truncate(from);
            return false;
        }
        self.records.seal(out, from, Content::Data).is_ok()
    }

    /// Says goodbye, once; from then on the session above may not speak. It is not said again, and
    /// whoever does not wait for the answer may drop the session at once. A handshake that is under
    /// way is left without a word.
    pub fn close(&mut self, out: &mut Datagrams) {
        match self.standing {
            Standing::Opening => self.end(),
            Standing::Open => {
                self.say_alert(alert::CLOSE_NOTIFY, false, out);
                self.handshake = None;
                self.standing = Standing::Closing;
            }
            Standing::Closing | Standing::Over => {}
        }
    }

    /// Returns when to call [`Dtls::expire`]; none if nothing is waited for.
    pub fn deadline(&self) -> Option<Micros> {
        self.handshake
            .as_ref()
            .map(|handshake| handshake.timer.deadline())
    }

    fn end(&mut self) {
        self.handshake = None;
        self.standing = Standing::Over;
    }
}
