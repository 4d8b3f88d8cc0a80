//! The answers to uplinks, whoever asked.

use muster_net::{Io, Key};
use muster_protocol::coap;
use muster_protocol::mqtt::{Pending, reason};

use super::Shard;
use super::coap::{PeerRef, QueryRef};
use super::link::Pause;
use super::uplink::Uplink;

/// Who sent an uplink, and what its answer needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asker {
    /// A client of MQTT; at QoS 0 it waits for nothing.
    Link { key: Key, pending: Option<Pending> },
    /// A peer of CoAP, whose request may wait for a command.
    Peer {
        peer: PeerRef,
        pending: coap::Pending,
        query: Option<QueryRef>,
    },
}

impl Asker {
    /// Whether an answer is waited for. A NON has one too, but nobody can tell whether it was lost.
    pub(super) const fn is_answered(&self) -> bool {
        match self {
            Self::Link { pending, .. } => pending.is_some(),
            Self::Peer { pending, .. } => pending.is_confirmable(),
        }
    }
}

impl Shard {
    /// Answers yes; `copies` is how many subscribers there were.
    pub(super) fn say_yes(&mut self, io: &mut Io, asker: Asker, copies: usize) {
        match asker {
            Asker::Link { key, pending } => self.accept(key, pending, copies),
            Asker::Peer {
                peer,
                pending,
                query: None,
            } => self.change(io, peer, pending),
            Asker::Peer {
                query: Some(query), ..
            } => self.wait_for_command(io, query),
        }
    }

    /// Answers yes, and once more.
    pub(super) fn say_yes_twice(&mut self, io: &mut Io, asker: Asker, copies: usize) {
        match asker {
            Asker::Link { key, pending } => {
                self.accept(key, pending, copies);
                self.answer_again(key, pending, self.acceptance(copies));
            }
            Asker::Peer {
                peer,
                pending,
                query,
            } => {
                self.forget_query(query);
                self.change_twice(io, peer, pending);
            }
        }
    }

    /// Prepares a late answer; none if none is waited for. Who asked by CoAP hears at once that the
    /// answer comes separately (RFC 7252 section 5.2.2).
    pub(super) fn put_off(&mut self, io: &mut Io, asker: Asker) -> Option<Asker> {
        match asker {
            Asker::Link { pending, .. } => pending.map(|_| asker),
            Asker::Peer {
                peer,
                pending,
                query,
            } => {
                self.forget_query(query);
                let pending = self.separate(io, peer, pending)?;
                let query = None;
                Some(Asker::Peer {
                    peer,
                    pending,
                    query,
                })
            }
        }
    }

    /// Answers no, with a code of the dialect.
    pub(super) fn say_no(&mut self, io: &mut Io, asker: Asker, code: u16) {
        match asker {
            Asker::Link { key, pending } => self.reject(io, key, pending, code),
            Asker::Peer {
                peer,
                pending,
                query,
            } => {
                self.forget_query(query);
                self.refuse_upload(io, peer, pending, code);
            }
        }
    }

    pub(super) fn leave_unanswered(&mut self, asker: Asker) {
        if asker.is_answered() {
            self.counts().unanswered.more();
        }
        if let Asker::Peer { query, .. } = asker {
            self.forget_query(query);
        }
    }

    /// By which socket an asker is heard: what to stop reading if it is to wait.
    pub(super) fn read_by(&mut self, asker: Asker) -> Option<Key> {
        match asker {
            Asker::Link { key, .. } => Some(key),
            Asker::Peer { peer, .. } => self.socket_of(peer),
        }
    }

    /// The uplinks of an asker that its next one is to overtake; none if it is gone.
    pub(super) fn overtaken_of(&mut self, asker: Asker) -> Option<&mut Vec<Uplink>> {
        match asker {
            Asker::Link { key, .. } => self.link(key).map(|link| &mut link.overtaken),
            Asker::Peer { peer, .. } => self.peer(peer).map(|peer| &mut peer.overtaken),
        }
    }

    pub(super) fn hold_back_asker(&mut self, io: &mut Io, asker: Asker) {
        if let Some(key) = self.read_by(asker) {
            self.hold_back(io, key);
        }
    }

    pub(super) fn reject_code(&self) -> u16 {
        let config = &self.shared.config;
        let reject = config.behaviour.reject;
        reject.map_or(config.dialect.server.refusal, |reject| reject.code)
    }

    pub(super) fn accept(&mut self, key: Key, pending: Option<Pending>, copies: usize) {
        if let Some(pending) = pending {
            self.answer(key, pending, self.acceptance(copies));
        }
    }

    /// The positive answer: with no subscriber a broker says so (MQTT 5 section 3.4.2.1).
    fn acceptance(&self, copies: usize) -> u8 {
        if copies == 0 && self.shared.config.dialect.is_broker {
            reason::NO_MATCHING_SUBSCRIBERS
        } else {
            reason::SUCCESS
        }
    }

    pub(super) fn answer(&mut self, key: Key, pending: Pending, reason: u8) {
        let Some(link) = self.link(key) else {
            return self.counts().unanswerable.more();
        };
        link.server.ack(pending, reason, &mut link.out);
        let is_v5 = link.is_v5();
        self.mark_dirty(key);
        self.counts().accepted.more();
        if reason == reason::NO_MATCHING_SUBSCRIBERS && is_v5 {
            self.counts().no_subscriber.more();
        }
    }

    fn answer_again(&mut self, key: Key, pending: Option<Pending>, reason: u8) {
        if let (Some(pending), Some(link)) = (pending, self.link(key)) {
            link.server.ack(pending, reason, &mut link.out);
            self.mark_dirty(key);
        }
    }

    /// Answers no. MQTT 3.1.1 has no way to say it but to close the connection (section 3.3.5
    /// there), and QoS 0 has no answer at all.
    pub(super) fn reject(&mut self, io: &mut Io, key: Key, pending: Option<Pending>, code: u16) {
        let code = u8::try_from(code).unwrap_or(reason::UNSPECIFIED_ERROR);
        let Some(pending) = pending else { return };
        let Some(link) = self.link(key) else {
            return self.counts().unanswerable.more();
        };
        if !link.is_v5() {
            self.counts().closed_links.more();
            return self.end(io, key, true);
        }
        link.server.ack(pending, code, &mut link.out);
        self.mark_dirty(key);
        self.counts().rejected.more();
    }

    pub(super) fn hold_back(&mut self, io: &mut Io, key: Key) {
        self.counts().held_back.more();
        self.pause(io, key, Pause::Room);
        self.waiting.push(key);
    }

    pub(super) fn resume_waiting(&mut self, io: &mut Io) {
        for key in std::mem::take(&mut self.waiting) {
            self.resume(io, key, Pause::Room);
        }
    }
}
