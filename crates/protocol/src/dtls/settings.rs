//! Settings of an end, shared by all its sessions.

use std::fmt;

use muster_model::Micros;
use zeroize::Zeroizing;

use super::suite::{Group, Suite};

/// Settings of an end. A shard or a server has one value for all its sessions.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Suites, in the order of preference. A suite is left out where what it needs is not there: a
    /// shared key, or certificates.
    pub suites: Vec<Suite>,
    /// Groups for suites with an ephemeral exchange, in the order of preference.
    pub groups: Vec<Group>,
    /// Retransmission and the end of patience.
    pub timing: Timing,
    /// Bytes of the largest datagram that a handshake makes, at least [`DATAGRAM_MIN`]: messages
    /// that are longer go in fragments. What the session above says is never cut.
    pub datagram_max: usize,
    /// Bytes of messages of the peer's handshake that came in pieces and are not whole yet, of all
    /// of them together; a whole handshake, both ends' messages, may have twice as many. Any number is
    /// possible: a shared key needs a few hundred, a chain of certificates a few thousand. A piece of a
    /// message for which there is no room counts as lost, so that a handshake with a message longer than
    /// this ends as [`Fault::TimedOut`]. A whole handshake that is longer than twice this fails as
    /// [`Fault::TooLong`], with the alert handshake_failure.
    ///
    /// [`Fault::TimedOut`]: super::Fault::TimedOut
    /// [`Fault::TooLong`]: super::Fault::TooLong
    pub handshake_max: usize,
    /// True if a peer without extended master secret is refused (RFC 7627 section 5).
    pub require_extended_master_secret: bool,
    /// True if a client keeps the state to resume its session ([`Dtls::take_session`]).
    ///
    /// [`Dtls::take_session`]: super::Dtls::take_session
    pub resumption: bool,
    /// A server's cookie secret; none opens a session at the first ClientHello.
    pub cookie_secret: Option<CookieSecret>,
    /// True if a server demands a certificate of its clients, in suites with certificates.
    pub client_certificate: bool,
}

/// Less than this leaves no room for a fragment with the longest connection id.
pub const DATAGRAM_MIN: usize = 400;

impl Default for Settings {
    /// All suites and groups; datagrams of at most 1,200 bytes, which pass everywhere (RFC 8085
    /// section 3.2); 16 KiB of handshake, far above a chain of three certificates.
    fn default() -> Self {
        Self {
            suites: Suite::ALL.to_vec(),
            groups: Group::ALL.to_vec(),
            timing: Timing::default(),
            datagram_max: 1_200,
            handshake_max: 16 * 1024,
            require_extended_master_secret: false,
            resumption: false,
            cookie_secret: None,
            client_certificate: false,
        }
    }
}

/// Times of retransmitting a flight (RFC 6347 section 4.2.4), and of giving up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// After so long without an answer; each time it doubles.
    pub first: Micros,
    /// Upper bound of the doubling.
    pub most: Micros,
    /// So long after its beginning a handshake has failed.
    pub give_up: Micros,
    /// Time that the end that sends last keeps its last flight, for a repetition if the other end has
    /// not received it; less if the other end shows earlier that it has.
    pub linger: Micros,
}

impl Default for Timing {
    /// 1 s and 60 s as RFC 6347 section 4.2.4.1 has them; a minute to give up and to linger.
    fn default() -> Self {
        Self {
            first: Micros::from_secs(1),
            most: Micros::from_secs(60),
            give_up: Micros::from_secs(60),
            linger: Micros::from_secs(60),
        }
    }
}

/// Secret of a server's cookies (RFC 6347 section 4.2.1): 32 bytes that only it knows.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieSecret(pub(super) Zeroizing<[u8; 32]>);

impl CookieSecret {
    /// A secret of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl fmt::Debug for CookieSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieSecret")
    }
}
