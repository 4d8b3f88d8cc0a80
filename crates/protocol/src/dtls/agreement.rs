//! The state that both ends negotiate: what a later session resumes from.

use zeroize::Zeroizing;

use super::crypto::Crypto;
use super::protection::Keys;
use super::secrets::{self, End, Master, Randoms};
use super::settings::Settings;
use super::suite::{Cipher, Suite};
use super::{Connected, Fault, Session};

/// Values that both ends have agreed on so far.
pub(super) struct Agreement {
    pub(super) randoms: Randoms,
    suite: Option<Suite>,
    session_id: Box<[u8]>,
    master: Master,
    is_extended: bool,
    is_resumed: bool,
    has_connection_id: bool,
    /// The client's identity, from its key or certificate.
    pub(super) identity: Box<[u8]>,
}

impl Default for Agreement {
    fn default() -> Self {
        Self {
            randoms: Randoms::default(),
            suite: None,
            session_id: Box::default(),
            master: Zeroizing::new([0; 48]),
            is_extended: false,
            is_resumed: false,
            has_connection_id: false,
            identity: Box::default(),
        }
    }
}

impl Agreement {
    /// Notes the peer's hello: whether it has the extended master secret.
    pub(super) fn set_extended(
        &mut self,
        is_extended: bool,
        settings: &Settings,
    ) -> Result<(), Fault> {
        self.is_extended = is_extended;
        if settings.require_extended_master_secret && !is_extended {
            return Err(Fault::NoExtendedMasterSecret);
        }
        Ok(())
    }

    pub(super) const fn is_extended(&self) -> bool {
        self.is_extended
    }

    pub(super) const fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(super) const fn has_connection_id(&self) -> bool {
        self.has_connection_id
    }

    pub(super) const fn session_id(&self) -> &[u8] {
        &self.session_id
    }

    /// The suite, which is known once there is a ServerHello.
    pub(super) fn suite(&self) -> Result<Suite, Fault> {
        self.suite.ok_or(Fault::Unexpected)
    }

    pub(super) const fn agree_on_ids(&mut self) {
        self.has_connection_id = true;
    }

    /// The suite of a ServerHello and its name for the session.
    pub(super) fn choose(&mut self, suite: Suite, session_id: &[u8]) {
        self.suite = Some(suite);
        self.session_id = session_id.into();
    }

    pub(super) fn resume(&mut self, session: &Session) {
        self.is_resumed = true;
        self.choose(session.suite, &session.id);
        self.identity.clone_from(&session.identity);
        self.master.clone_from(&session.master);
    }

    /// The master secret of what both ends know; the transcript ends with ClientKeyExchange.
    pub(super) fn set_master<C: Crypto>(
        &mut self,
        crypto: &C,
        premaster: &[u8],
        transcript: &[u8],
    ) {
        let hash = self.is_extended.then(|| crypto.sha256(transcript));
        self.master = secrets::master(crypto, premaster, &self.randoms, hash.as_ref());
    }

    /// Keys of both directions, the client's first.
    pub(super) fn keys<C: Crypto>(
        &self,
        crypto: &C,
        cipher: Cipher,
    ) -> (Keys<C::Aead>, Keys<C::Aead>) {
        secrets::keys(crypto, &self.master, &self.randoms, cipher)
    }

    pub(super) fn verify_data<C: Crypto>(
        &self,
        crypto: &C,
        end: End,
        transcript: &[u8],
    ) -> [u8; secrets::VERIFY_DATA] {
        secrets::verify_data(crypto, &self.master, end, transcript)
    }

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

    pub(super) fn connected(&self) -> Result<Connected, Fault> {
        Ok(Connected {
            suite: self.suite()?,
            is_resumed: self.is_resumed,
            is_extended: self.is_extended,
            has_connection_id: self.has_connection_id,
        })
    }
}
