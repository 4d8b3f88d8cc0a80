//! A server's answer to strangers, which keeps nothing of them (RFC 6347 section 4.2.1).

use super::crypto::Crypto;
use super::hello::{ClientHello, put_verify_request};
use super::message::{Kind, first, put_message};
use super::record::{Content, put_plain};
use super::secrets::is_same;
use super::{Context, Datagrams};

const COOKIE: usize = 16;

/// Kind of an unknown peer's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// A ClientHello without a cookie of ours: it was answered with one.
    Answered,
    /// A ClientHello from where it says it is from: make a session with [`Dtls::server`] and hand
    /// it this datagram.
    ///
    /// [`Dtls::server`]: super::Dtls::server
    Welcome(Welcome),
    /// Anything else, such as a ClientHello in fragments; it is to be ignored.
    Ignored,
}

/// First numbers of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    pub(super) message: u16,
    pub(super) record: u64,
    random: [u8; 32],
}

impl Welcome {
    /// The random bytes of the ClientHello (RFC 5246 section 7.4.1.2): the same say that the client
    /// repeats itself, others that it begins anew.
    pub const fn random(&self) -> &[u8; 32] {
        &self.random
    }
}

/// Returns true if a datagram begins with a ClientHello in one piece, which [`greet`] must judge
/// wherever it comes from.
pub fn is_client_hello(datagram: &[u8]) -> bool {
    first(datagram, Kind::ClientHello).is_some()
}

/// Looks at a datagram that is for no session.
///
/// `peer` stands for the address it came from: any bytes, as long as they are the same for the same
/// address. Without [`Settings::cookie_secret`] whoever says ClientHello is welcome, wherever it
/// says it is from.
///
/// [`Settings::cookie_secret`]: super::Settings::cookie_secret
pub fn greet<C: Crypto>(
    context: &Context<'_, C>,
    datagram: &[u8],
    peer: &[u8],
    out: &mut Datagrams,
) -> Greeting {
    let Some((header, message)) = first(datagram, Kind::ClientHello) else {
        return Greeting::Ignored;
    };
    let (record, sequence, body) = (header.sequence, message.sequence, message.bytes);
    let Ok(hello) = ClientHello::read(body) else {
        return Greeting::Ignored;
    };
    let welcome = Welcome {
        message: sequence,
        record,
        random: hello.random,
    };
    let Some(secret) = &context.settings.cookie_secret else {
        return Greeting::Welcome(welcome);
    };
    let (before, rest) = body.split_at(hello.cookie_at);
    let behind = &rest[1 + hello.cookie.len()..];
    let length = (peer.len() as u64).to_be_bytes();
    let mut cookie = [0; COOKIE];
    let seed = [&length[..], peer, before, behind];
    context
        .crypto
        .prf(secret.0.as_slice(), b"cookie", &seed, &mut cookie);
    if is_same(&cookie, hello.cookie) {
        return Greeting::Welcome(welcome);
    }
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    put_verify_request(&mut request, &cookie);
    // Both numbers are the ClientHello's own.
    put_message(&mut answer, Kind::HelloVerifyRequest, sequence, &request);
    put_plain(out.buffer(), Content::Handshake, record, &answer);
    out.cut();
    Greeting::Answered
}
