//! A handshake under way: what both sides of it have in common.

use std::fmt;

use muster_model::Micros;
use zeroize::Zeroizing;

use super::client::Client;
use super::crypto::Crypto;
use super::datagrams::Datagrams;
use super::flight::Flight;
use super::message::{Kind, put_message};
use super::reassembly::Reassembly;
use super::records::Records;
use super::secrets::{self, End, Master, Randoms};
use super::server::Server;
use super::settings::{Settings, Timing};
use super::suite::Suite;
use super::{Context, Fault, Session};

/// Most bytes of a record under keys that is kept because it came before its keys: more than a
/// Finished has with the longest connection id.
pub(super) const EARLY_MAX: usize = 512;

/// A handshake, until it is over and the peer is known to know that.
pub(super) struct Handshake<C: Crypto> {
    pub(super) common: Common,
    pub(super) side: Side<C>,
}

/// Secrets are in it.
impl<C: Crypto> fmt::Debug for Handshake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

/// The role of this end.
#[expect(
    clippy::large_enum_variant,
    reason = "a handshake is in memory of its own, and most are those of clients"
)]
pub(super) enum Side<C: Crypto> {
    Client(Client),
    Server(Server<C>),
}

/// A message that came, in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    pub(super) body: &'a [u8],
    /// Bytes of the transcript before it.
    pub(super) before: usize,
}

/// Result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    Wait,
    /// The flight is to be said.
    Say,
    /// The handshake is over.
    Over,
    /// The flight is to be said, and the handshake is over.
    SayOver,
}

impl<C: Crypto> Handshake<C> {
    /// Handles a message that is whole and in its place.
    pub(super) fn take(
        &mut self,
        records: &mut Records<C::Aead>,
        context: &mut Context<'_, C>,
        kind: Kind,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        let before = self.common.hear(kind, body, context.settings)?;
        let message = Message { kind, body, before };
        match &mut self.side {
            Side::Client(client) => client.take(&mut self.common, records, context, &message),
            Side::Server(server) => server.take(&mut self.common, records, context, &message),
        }
    }
}

/// State that both sides keep.
pub(super) struct Common {
    pub(super) reassembly: Reassembly,
    /// All messages that count, in their order, as if none had been cut.
    pub(super) transcript: Vec<u8>,
    pub(super) flight: Flight,
    /// The number of our next message.
    pub(super) next_message: u16,
    /// The number of the peer's message that is handled.
    pub(super) heard: u16,
    /// The number of our next record in the clear.
    pub(super) plain_sequence: u64,
    pub(super) randoms: Randoms,
    pub(super) suite: Option<Suite>,
    pub(super) session_id: Box<[u8]>,
    pub(super) master: Master,
    /// True if both ends have the extended master secret.
    pub(super) is_extended: bool,
    pub(super) is_resumed: bool,
    /// The client's identity, from its key or certificate.
    pub(super) identity: Box<[u8]>,
    /// True if connection ids were negotiated.
    pub(super) has_connection_id: bool,
    /// The connection id that we would like to see.
    pub(super) own_id: Option<Box<[u8]>>,
    /// True if the peer must not learn of a failure.
    pub(super) is_silent: bool,
    /// A record under keys that came before its keys, with its number.
    pub(super) early: Option<(u64, Box<[u8]>)>,
    pub(super) timer: Timer,
    /// Cause of the end at the timer's end; none for want of an answer.
    pub(super) doom: Option<Fault>,
}

impl Common {
    /// The peer's message of this number is first; ours begin with the number `own`.
    pub(super) fn new(first: u16, own: u16, settings: &Settings, now: Micros) -> Self {
        Self {
            reassembly: Reassembly::new(first, settings.handshake_max),
            transcript: Vec::new(),
            flight: Flight::default(),
            next_message: own,
            heard: first,
            plain_sequence: 0,
            randoms: Randoms::default(),
            suite: None,
            session_id: Box::default(),
            master: Zeroizing::new([0; 48]),
            is_extended: false,
            is_resumed: false,
            identity: Box::default(),
            has_connection_id: false,
            own_id: None,
            is_silent: false,
            early: None,
            timer: Timer::new(&settings.timing, now),
            doom: None,
        }
    }

    /// The peer's message joins the transcript; how many bytes were before it.
    fn hear(&mut self, kind: Kind, body: &[u8], settings: &Settings) -> Result<usize, Fault> {
        let before = self.transcript.len();
        if before + body.len() > 2 * settings.handshake_max {
            return Err(Fault::TooLong);
        }
        put_message(&mut self.transcript, kind, self.heard, body);
        Ok(before)
    }

    /// Our next message joins flight and transcript.
    pub(super) fn say(&mut self, kind: Kind, body: &[u8]) {
        let whole = self.flight.add(kind, self.next_message, body);
        self.transcript.extend_from_slice(whole);
        self.next_message = self.next_message.wrapping_add(1);
    }

    /// The suite, which is known once there is a ServerHello.
    pub(super) fn suite(&self) -> Result<Suite, Fault> {
        self.suite.ok_or(Fault::Unexpected)
    }

    /// The master secret of what both ends know; the transcript ends with ClientKeyExchange.
    pub(super) fn set_master<C: Crypto>(&mut self, crypto: &C, premaster: &[u8]) {
        let hash = self.is_extended.then(|| crypto.sha256(&self.transcript));
        self.master = secrets::master(crypto, premaster, &self.randoms, hash.as_ref());
    }

    /// Records have keys from now on, made of the master secret.
    pub(super) fn set_keys<C: Crypto>(
        &self,
        crypto: &C,
        records: &mut Records<C::Aead>,
        us: End,
    ) -> Result<(), Fault> {
        let cipher = self.suite()?.cipher();
        let (client, server) = secrets::keys(crypto, &self.master, &self.randoms, cipher);
        match us {
            End::Client => records.set_keys(client, server),
            End::Server => records.set_keys(server, client),
        }
        Ok(())
    }

    /// Says change_cipher_spec and our Finished.
    pub(super) fn say_finished<C: Crypto>(&mut self, crypto: &C, us: End) {
        let data = secrets::verify_data(crypto, &self.master, us, &self.transcript);
        self.flight.change();
        self.say(Kind::Finished, &data);
    }

    /// Checks the peer's Finished.
    pub(super) fn check_finished<C: Crypto>(
        &self,
        crypto: &C,
        peer: End,
        message: &Message<'_>,
    ) -> Result<(), Fault> {
        let heard = &self.transcript[..message.before];
        let data = secrets::verify_data(crypto, &self.master, peer, heard);
        if secrets::is_same(&data, message.body) {
            Ok(())
        } else {
            Err(Fault::Finished)
        }
    }

    /// Returns the state to keep of the session that was negotiated.
    pub(super) fn session(&self, ticket: &[u8]) -> Option<Session> {
        let session = Session {
            id: self.session_id.clone(),
            ticket: ticket.into(),
            master: self.master.clone(),
            suite: self.suite?,
            is_extended: self.is_extended,
            identity: self.identity.clone(),
        };
        session.is_resumable().then_some(session)
    }

    /// Sends the flight.
    pub(super) fn send<C: Crypto>(
        &mut self,
        records: &mut Records<C::Aead>,
        settings: &Settings,
        out: &mut Datagrams,
    ) -> Result<(), Fault> {
        let sequence = &mut self.plain_sequence;
        self.flight
            .send(sequence, records, settings.datagram_max, out)
    }
}

/// Times of retransmitting a flight, and of the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    /// None before a first flight, and once nothing is waited for.
    again_at: Option<Micros>,
    interval: Micros,
    /// Before this the flight is not said again because the peer says its own again.
    quiet_until: Micros,
    /// Instant at which the handshake has failed or, once it is over, waiting ends.
    pub(super) end_at: Micros,
    pub(super) is_lingering: bool,
}

impl Timer {
    fn new(timing: &Timing, now: Micros) -> Self {
        Self {
            again_at: None,
            interval: timing.first,
            quiet_until: Micros::ZERO,
            end_at: later(now, timing.give_up),
            is_lingering: false,
        }
    }

    /// A new flight was said.
    pub(super) const fn said(&mut self, timing: &Timing, now: Micros) {
        self.interval = timing.first;
        self.again_at = Some(later(now, timing.first));
        self.be_quiet(timing, now);
    }

    /// The flight has just been said.
    const fn be_quiet(&mut self, timing: &Timing, now: Micros) {
        self.quiet_until = later(now, Micros(timing.first.0 / 2));
    }

    /// Returns true if the peer's repeated flight must be answered with ours. A flight that was
    /// just sent is still in flight: two ends that both wait would answer each other without end.
    pub(super) fn is_answer(&mut self, timing: &Timing, now: Micros) -> bool {
        let is_answer = now >= self.quiet_until;
        if is_answer {
            self.be_quiet(timing, now);
        }
        is_answer
    }

    /// The handshake is over, and its last flight was ours.
    pub(super) const fn linger(&mut self, timing: &Timing, now: Micros) {
        self.again_at = None;
        self.end_at = later(now, timing.linger);
        self.is_lingering = true;
    }

    pub(super) fn deadline(&self) -> Micros {
        self.again_at
            .map_or(self.end_at, |again| again.min(self.end_at))
    }

    /// Returns true if the flight must be sent again now, and sets the next time.
    pub(super) fn is_again(&mut self, timing: &Timing, now: Micros) -> bool {
        if self.again_at.is_none_or(|again| again > now) {
            return false;
        }
        let doubled = Micros(self.interval.0.saturating_mul(2));
        self.interval = doubled.min(timing.most).max(timing.first);
        self.again_at = Some(later(now, self.interval));
        self.be_quiet(timing, now);
        true
    }
}

const fn later(now: Micros, span: Micros) -> Micros {
    Micros(now.0.saturating_add(span.0))
}
