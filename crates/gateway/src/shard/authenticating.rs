//! Enhanced authentication (MQTT 5 section 4.12) by the gateway's own method.
//!
//! The method is for tests, as simple as one with a challenge can be: whatever data come with the
//! CONNECT, the gateway answers with a challenge of sixteen bytes, and the client with these bytes
//! followed by the secret. A further authentication goes the same way.

use muster_model::mix;
use muster_net::{Io, Key};
use muster_protocol::mqtt::packet::{Auth, Connect};
use muster_protocol::mqtt::reason;

use super::Shard;
use super::opening::Opening;
use crate::config::Role;

/// Keeps challenges apart from other draws of the seed.
const CHALLENGE_STREAM: u64 = 0xa074_0000;
const CHALLENGE_BYTES: usize = 16;

/// A challenge that waits for its answer.
#[derive(Debug)]
pub(crate) struct Challenge {
    bytes: [u8; CHALLENGE_BYTES],
    /// What the CONNECT asked for; none on an open connection.
    opening: Option<Box<Opening>>,
}

impl Shard {
    /// Whether a link has to answer a challenge before it is opened, or why it is refused.
    pub(super) fn wants_challenge(&self, role: Role, connect: &Connect<'_>) -> Result<bool, u8> {
        let demand = self.shared.config.authentication.as_ref();
        let demand = demand.filter(|_| role == Role::Device);
        match (demand, connect.authentication_method()) {
            (None, None) => Ok(false),
            (Some(demand), Some(method)) if demand.method == method => Ok(true),
            (Some(_), None) => Err(reason::NOT_AUTHORIZED),
            (Some(_) | None, Some(_)) => Err(reason::BAD_AUTHENTICATION_METHOD),
        }
    }

    /// Asks for an answer; `opening` is what waits for it.
    pub(super) fn challenge(&mut self, io: &mut Io, key: Key, opening: Option<Box<Opening>>) {
        let seed = self.shared.config.seed ^ CHALLENGE_STREAM ^ key.index() as u64;
        let at = io.now().get();
        let mut bytes = [0; CHALLENGE_BYTES];
        let (first, second) = bytes.split_at_mut(CHALLENGE_BYTES / 2);
        first.copy_from_slice(&mix(seed, at).to_be_bytes());
        second.copy_from_slice(&mix(!seed, at).to_be_bytes());
        let Some(link) = self.link(key) else { return };
        let is_asked = link.server.challenge(&bytes, &mut link.out).is_ok();
        link.challenge = Some(Box::new(Challenge { bytes, opening }));
        self.mark_dirty(key);
        if !is_asked {
            self.end(io, key, true);
        }
    }

    /// A step of a client: its answer, or on an open connection the beginning of a further
    /// authentication.
    pub(super) fn authenticate(&mut self, io: &mut Io, key: Key, auth: &Auth<'_>) {
        if auth.reason == reason::REAUTHENTICATE {
            return self.challenge(io, key, None);
        }
        let challenge = self.link(key).and_then(|link| link.challenge.take());
        let Some(challenge) = challenge else {
            return self.expel(io, key, reason::PROTOCOL_ERROR);
        };
        let is_right = self.is_answer(&challenge, auth.data().unwrap_or_default());
        match (is_right, challenge.opening) {
            (true, Some(opening)) => {
                self.counts().authenticated.more();
                self.find_session(io, key, *opening);
            }
            (true, None) => self.confirm(io, key),
            (false, Some(_)) => self.refuse(io, key, reason::NOT_AUTHORIZED),
            (false, None) => self.expel(io, key, reason::NOT_AUTHORIZED),
        }
    }

    fn is_answer(&self, challenge: &Challenge, answer: &[u8]) -> bool {
        let demand = self.shared.config.authentication.as_ref();
        demand.is_some_and(|demand| {
            answer.strip_prefix(&challenge.bytes) == Some(demand.secret.as_bytes())
        })
    }

    fn confirm(&mut self, io: &mut Io, key: Key) {
        self.counts().authenticated.more();
        let Some(link) = self.link(key) else { return };
        let is_told = link.server.authenticated(&mut link.out).is_ok();
        self.mark_dirty(key);
        if !is_told {
            self.end(io, key, true);
        }
    }

    /// Ends an open connection and says why (MQTT-4.12.1-2).
    pub(super) fn expel(&mut self, io: &mut Io, key: Key, code: u8) {
        if let Some(link) = self.link(key) {
            link.server.disconnect(code, &mut link.out);
            self.end(io, key, true);
        }
    }
}
