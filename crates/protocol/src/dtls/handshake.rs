//! A handshake under way at either end, and its beginning.

use std::fmt;

use muster_model::Micros;

use super::client::{Client, Opening};
use super::crypto::Crypto;
use super::flight::Flight;
use super::greet::Welcome;
use super::message::{Kind, put_message};
use super::reassembly::Reassembly;
use super::records::Records;
use super::secrets::End;
use super::server::Server;
use super::settings::Settings;
use super::step::{Common, Message, Progress, Step};
use super::timer::Timer;
use super::{Context, Datagrams, Dtls, Fault};
use crate::layer::Standing;

/// Most bytes of a record under keys that is kept because it came before its keys: more than a
/// Finished has with the longest connection id.
pub(super) const EARLY_MAX: usize = 512;

/// A handshake, until it is over and the peer is known to know that.
pub(super) struct Handshake<C: Crypto> {
    pub(super) reassembly: Reassembly,
    /// A record under keys that came before its keys, with its number.
    pub(super) early: Option<(u64, Box<[u8]>)>,
    pub(super) timer: Timer,
    pub(super) common: Common,
    pub(super) side: Side<C>,
}

impl<C: Crypto> fmt::Debug for Handshake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "a handshake is boxed, and most are those of clients"
)]
pub(super) enum Side<C: Crypto> {
    Client(Client),
    Server(Server<C>),
}

impl<C: Crypto> Handshake<C> {
    /// The peer's message of this number is first.
    pub(super) fn new(
        (first, now): (u16, Micros),
        settings: &Settings,
        common: Common,
        side: Side<C>,
    ) -> Box<Self> {
        Box::new(Self {
            reassembly: Reassembly::new(first, settings.handshake_max),
            early: None,
            timer: Timer::new(&settings.timing, now),
            common,
            side,
        })
    }

    pub(super) fn take(
        &mut self,
        records: &mut Records<C::Aead>,
        context: &mut Context<'_, C>,
        sequence: u16,
        (kind, body): (Kind, &[u8]),
    ) -> Result<Progress, Fault> {
        let common = &mut self.common;
        let before = common.transcript.len();
        if before + body.len() > 2 * context.settings.handshake_max {
            return Err(Fault::TooLong);
        }
        put_message(&mut common.transcript, kind, sequence, body);
        let message = Message { kind, body, before };
        let mut step = Step {
            common,
            records,
            context,
        };
        match &mut self.side {
            Side::Client(client) => {
                if kind == Kind::ServerHello {
                    self.reassembly.keep_ahead(true);
                }
                client.take(&mut step, &message)
            }
            Side::Server(server) => server.take(&mut step, &message),
        }
    }
}

impl<C: Crypto> Dtls<C> {
    /// The client end of a new session; appends what it says first. Without randomness it says
    /// nothing, and its deadline is now: [`Dtls::expire`] reports that it has failed.
    pub fn client(
        now: Micros,
        opening: &Opening<'_>,
        context: &mut Context<'_, C>,
        out: &mut Datagrams,
    ) -> Self {
        let mut common = Common::new(End::Client, Flight::default(), opening.connection_id);
        let has_random = context.crypto.random(&mut common.agreement.randoms.client);
        // Others may shake hands by the same address, one after the other: what servers repeat
        // of the handshakes before is not to be taken for messages ahead of our ServerHello.
        let is_alone = common.own_id.as_ref().is_none_or(|id| id.is_empty());
        let mut client = Client::new(opening);
        client.name_session(context);
        client.hello(&mut common, context);
        let side = Side::Client(client);
        let mut handshake = Handshake::new((0, now), context.settings, common, side);
        handshake.reassembly.keep_ahead(is_alone);
        let mut this = Self {
            handshake: Some(handshake),
            standing: Standing::Opening,
            ..Self::default()
        };
        if has_random {
            this.begin(now, context, out);
        } else {
            this.doom(now, Fault::NoRandomness);
        }
        this
    }

    /// The server end of a new session with whoever was welcome; the datagram that [`greet`] saw is
    /// to be handed to it next. `connection_id` is what the client is to write into its records if
    /// it can; an empty one only agrees to write the client's. One of more than 255 bytes counts as none.
    ///
    /// [`greet`]: super::greet
    pub fn server(
        now: Micros,
        welcome: Welcome,
        context: &Context<'_, C>,
        connection_id: Option<&[u8]>,
    ) -> Self {
        let flight = Flight::new(welcome.message, welcome.record);
        let common = Common::new(End::Server, flight, connection_id);
        let side = Side::Server(Server::new());
        let first = (welcome.message, now);
        Self {
            handshake: Some(Handshake::new(first, context.settings, common, side)),
            standing: Standing::Opening,
            ..Self::default()
        }
    }
}
