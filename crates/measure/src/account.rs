//! The session's own account: what happened, counted where it happens.
//!
//! Shards, sessions and consumers keep it without looking at Facts; a [`crate::Recorder`] keeps a
//! second one of the same form from the Facts that it receives. The ledger compares the two.

use std::collections::BTreeMap;

use muster_model::{
    BackendId, Cause, ConnectFailure, Integrity, LinkEvent, LinkId, MessageId, Outcome, StreamId,
};
use serde::{Deserialize, Serialize};

use crate::checksummed_count::digest_of;
use crate::merge::merge_fields;
use crate::{
    ChecksummedCount, CommandAccount, LinkCounters, ReceptionAccount, RecorderPlan, State,
    TargetCounts, digest,
};

/// Everything that was counted where it happened, of one shard, one process or a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Per stream; the index is the `StreamId`.
    pub streams: Vec<StreamAccount>,
    /// Per backend; the index is the `BackendId`.
    pub backends: Vec<BackendAccount>,
    /// All links.
    pub links: LinkAccount,
    /// Per stream, its commands; the index is the `StreamId`.
    pub commands: Vec<CommandAccount>,
    /// Per stream of kind `receive`, what its subscribers got; the index is the `StreamId`.
    pub receptions: Vec<ReceptionAccount>,
}

/// The device side's counts of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamAccount {
    /// Messages that came due, counted when the engine or a closed loop made them due.
    pub scheduled: ChecksummedCount,
    /// Messages whose first transmission the kernel took, counted at the socket.
    pub sent: ChecksummedCount,
    /// Messages by final state, counted at the session; the index is [`State::index`].
    pub states: [ChecksummedCount; State::ALL.len()],
}

/// Copies that one backend received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackendAccount {
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// Copies whose id could be read, whoever's it is.
    pub read: ChecksummedCount,
    /// Copies without a readable id.
    pub unstamped: u64,
}

/// Counts of tries to connect and of links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkAccount {
    /// Tries to connect, counted at the socket.
    pub opened: u64,
    /// Tries that ended with a usable link.
    pub connected: ChecksummedCount,
    /// Links that were up before and that the platform has answered again, where their fleet goes
    /// offline.
    pub returned: ChecksummedCount,
    /// Tries that ended without one.
    pub failed: ChecksummedCount,
    /// Usable links that ended.
    pub disconnected: ChecksummedCount,
    /// Usable links at the end of the run, counted by walking them.
    pub open_at_end: u64,
    /// Counters that no event reports.
    pub counters: LinkCounters,
    /// Counts by the address that devices connect to, where it is one of several.
    pub targets: BTreeMap<String, TargetCounts>,
}

impl Account {
    /// An empty account for every stream and backend of the plan.
    pub fn new(plan: &RecorderPlan) -> Self {
        Self {
            streams: vec![StreamAccount::default(); plan.streams.len()],
            backends: vec![BackendAccount::default(); usize::from(plan.backends)],
            links: LinkAccount::default(),
            commands: vec![CommandAccount::default(); plan.streams.len()],
            receptions: vec![ReceptionAccount::default(); plan.streams.len()],
        }
    }

    /// The account of a stream's commands.
    ///
    /// # Panics
    /// If the plan has no such stream.
    pub fn command(&mut self, stream: StreamId) -> &mut CommandAccount {
        &mut self.commands[stream.index()]
    }

    /// The account of what a stream's subscribers got.
    ///
    /// # Panics
    /// If the plan has no such stream.
    pub fn reception(&mut self, stream: StreamId) -> &mut ReceptionAccount {
        &mut self.receptions[stream.index()]
    }

    /// A message came due: once for every message of a closed loop. Open streams may leave it
    /// out, for their schedule is counted by itself.
    pub fn scheduled(&mut self, id: &MessageId) {
        if let Some(stream) = self.streams.get_mut(id.stream.index()) {
            stream.scheduled.add(digest(id));
        }
    }

    /// The kernel took the last byte of a message's first transmission: once a message.
    pub fn sent(&mut self, id: &MessageId) {
        if let Some(stream) = self.streams.get_mut(id.stream.index()) {
            stream.sent.add(digest(id));
        }
    }

    /// A message reached its final state: once a message, also for what was shed and for what
    /// was still open at the end. `resent` says whether it went out more than once.
    pub fn ended(&mut self, id: &MessageId, outcome: &Outcome, resent: bool) {
        if let Some(stream) = self.streams.get_mut(id.stream.index()) {
            let digest = digest_of(digest(id), (outcome, resent));
            stream.states[State::from(outcome).index()].add(digest);
        }
    }

    /// A backend took in a copy, before anything of it was decoded.
    pub fn consumed(&mut self, backend: BackendId) {
        if let Some(account) = self.backends.get_mut(backend.index()) {
            account.consumed += 1;
        }
    }

    /// A backend decoded a copy: its id, if one could be read, and its integrity.
    pub fn read(&mut self, backend: BackendId, id: Option<&MessageId>, integrity: Integrity) {
        let Some(account) = self.backends.get_mut(backend.index()) else {
            return;
        };
        match id {
            Some(id) => account.read.add(digest_of(digest(id), integrity)),
            None => account.unstamped += 1,
        }
    }

    /// A try to connect began at the socket.
    pub fn opened(&mut self) {
        self.links.opened += 1;
    }

    /// A try to connect ended with a usable link.
    pub fn connected(&mut self, link: LinkId) {
        self.links.connected.add(digest_of(link.0.into(), ()));
    }

    /// The platform has answered the CONNECT of a link that was up before, whose fleet goes offline.
    pub fn returned(&mut self, link: LinkId, is_kept: bool) {
        let digest = digest_of(link.0.into(), is_kept);
        self.links.returned.add(digest);
    }

    /// A try to connect ended without a link.
    pub fn connect_failed(&mut self, link: LinkId, failure: &ConnectFailure) {
        self.links.failed.add(digest_of(link.0.into(), failure));
    }

    /// A usable link ended.
    pub fn disconnected(&mut self, link: LinkId, cause: &Cause) {
        let digest = digest_of(link.0.into(), cause);
        self.links.disconnected.add(digest);
    }

    /// A usable link was found by walking them at the end of the run.
    pub fn open_at_end(&mut self) {
        self.links.open_at_end += 1;
    }

    /// Counts a link event as the method of its kind does.
    pub(crate) fn link(&mut self, link: LinkId, event: &LinkEvent) {
        match event {
            LinkEvent::Connected { took: _ } => self.connected(link),
            LinkEvent::Returned { is_kept } => self.returned(link, *is_kept),
            LinkEvent::Failed(failure) => self.connect_failed(link, failure),
            LinkEvent::Disconnected(cause) => self.disconnected(link, cause),
            LinkEvent::LastSent { .. } => {}
        }
    }
}

impl StreamAccount {
    /// The count of one final state.
    pub fn state(&self, state: State) -> &ChecksummedCount {
        &self.states[state.index()]
    }
}

merge_fields! {
    Account { streams, backends, links, commands, receptions }
    StreamAccount { scheduled, sent, states }
    BackendAccount { consumed, read, unstamped }
    LinkAccount { opened, connected, returned, failed, disconnected, open_at_end, counters, targets }
}
