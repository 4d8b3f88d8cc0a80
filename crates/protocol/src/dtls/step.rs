//! One step of a handshake: the state and the means that both ends share.

use super::agreement::Agreement;
use super::crypto::Crypto;
use super::datagrams::Datagrams;
use super::extension::SIGNATURE_SCHEMES;
use super::flight::Flight;
use super::key_exchange::Signature;
use super::message::Kind;
use super::record::is_id;
use super::records::Records;
use super::secrets::{End, is_same, premaster};
use super::settings::Settings;
use super::suite::Suite;
use super::{Context, Fault};

/// A message that came, in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    pub(super) body: &'a [u8],
    /// Bytes of the transcript before it.
    pub(super) before: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    Wait,
    /// The flight is to be sent.
    Say,
    /// The handshake is over.
    Over,
    /// The flight is to be sent, and the handshake is over.
    SayOver,
}

/// State and means of one step of a handshake.
pub(super) struct Step<'s, 'c, C: Crypto> {
    pub(super) common: &'s mut Common,
    pub(super) records: &'s mut Records<C::Aead>,
    pub(super) context: &'s mut Context<'c, C>,
}

impl<C: Crypto> Step<'_, '_, C> {
    pub(super) fn suite(&self) -> Result<Suite, Fault> {
        self.common.agreement.suite()
    }

    /// Both ends write connection ids into their records: the peer this one, we ours.
    pub(super) fn agree_on_ids(&mut self, peer_id: &[u8]) {
        self.common.agreement.agree_on_ids();
        self.records.peer_id = peer_id.into();
        self.records.own_id = self.common.own_id.clone().unwrap_or_default();
    }

    /// Records have keys from now on, made of a shared key, an exchange, or both; the transcript
    /// ends with ClientKeyExchange.
    pub(super) fn exchange_keys(
        &mut self,
        psk: Option<&[u8]>,
        shared: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let premaster = premaster(psk, shared);
        let Common {
            agreement,
            transcript,
            ..
        } = &mut *self.common;
        agreement.set_master(&*self.context.crypto, &premaster, transcript);
        self.set_keys()
    }

    /// Records have keys from now on, made of the master secret.
    pub(super) fn set_keys(&mut self) -> Result<(), Fault> {
        let (agreement, crypto) = (&self.common.agreement, &*self.context.crypto);
        let (client, server) = agreement.keys(crypto, agreement.suite()?.cipher());
        match self.common.end {
            End::Client => self.records.set_keys(client, server),
            End::Server => self.records.set_keys(server, client),
        }
        Ok(())
    }

    pub(super) fn say_finished(&mut self) {
        let common = &mut *self.common;
        let crypto = &*self.context.crypto;
        let data = common
            .agreement
            .verify_data(crypto, common.end, &common.transcript);
        common.flight.change();
        common.say(Kind::Finished, &data);
    }

    pub(super) fn check_finished(&self, message: &Message<'_>) -> Result<(), Fault> {
        let peer = match self.common.end {
            End::Client => End::Server,
            End::Server => End::Client,
        };
        let received = &self.common.transcript[..message.before];
        let crypto = &*self.context.crypto;
        let data = self.common.agreement.verify_data(crypto, peer, received);
        let is_right = is_same(&data, message.body);
        is_right.then_some(()).ok_or(Fault::Finished)
    }

    /// Checks a signature of the peer with the key of its certificate.
    pub(super) fn check_signature(
        &self,
        leaf: &[u8],
        signature: Signature<'_>,
        signed: &[u8],
    ) -> Result<(), Fault> {
        let certificates = self.context.certificates.ok_or(Fault::Unexpected)?;
        let Signature { scheme, bytes } = signature;
        let is_right =
            SIGNATURE_SCHEMES.contains(&scheme) && certificates.verify(leaf, scheme, signed, bytes);
        is_right.then_some(()).ok_or(Fault::Signature)
    }
}

/// State that both ends keep.
pub(super) struct Common {
    end: End,
    pub(super) agreement: Agreement,
    /// All messages that count, in their order, as if none had been cut.
    pub(super) transcript: Vec<u8>,
    pub(super) flight: Flight,
    /// The connection id that we would like to see.
    pub(super) own_id: Option<Box<[u8]>>,
    /// True if the peer must not learn of a failure.
    pub(super) is_silent: bool,
}

impl Common {
    /// The state of one end; a connection id of more than 255 bytes counts as none.
    pub(super) fn new(end: End, flight: Flight, connection_id: Option<&[u8]>) -> Self {
        Self {
            end,
            agreement: Agreement::default(),
            transcript: Vec::new(),
            flight,
            own_id: connection_id.filter(|id| is_id(id)).map(Into::into),
            is_silent: false,
        }
    }

    pub(super) fn say(&mut self, kind: Kind, body: &[u8]) {
        let whole = self.flight.add(kind, body);
        self.transcript.extend_from_slice(whole);
    }

    pub(super) fn send<C: Crypto>(
        &mut self,
        records: &mut Records<C::Aead>,
        settings: &Settings,
        out: &mut Datagrams,
    ) -> Result<(), Fault> {
        self.flight.send(records, settings.datagram_max, out)
    }
}
