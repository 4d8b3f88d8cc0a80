//! The session's own account: what happened, counted where it happens.
//!
//! Shards, sessions and consumers keep it without looking at Facts; a [`crate::Recorder`] keeps a
//! second one of the same form from the Facts it is told. The ledger compares the two.

use muster_model::{
    BackendId, Cause, ConnectFailure, Integrity, LinkEvent, LinkId, MessageId, Outcome, StreamId,
};
use serde::{Deserialize, Serialize};

use crate::checksummed_count::{cause_key, digest_copy, digest_ended, digest_link, failure_key};
use crate::{ChecksummedCount, CommandAccount, ReceptionAccount, RecorderPlan, State, digest};

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
    /// MQTT acknowledgements of a packet id that was answered before.
    pub mqtt_again: u64,
    /// MQTT acknowledgements of a packet id that was never used.
    pub mqtt_unknown: u64,
    /// DTLS handshake flights that were sent again (RFC 6347 section 4.2.4).
    pub dtls_retransmitted: u64,
    /// Datagrams that are no CoAP message.
    pub coap_malformed: u64,
    /// CoAP answers to no open request.
    pub coap_stray: u64,
    /// Pings and requests from the platform; the device resets them.
    pub coap_unexpected: u64,
    /// CoAP responses that came again.
    pub coap_duplicates: u64,
    /// DTLS records that could not be decrypted, read or matched to a session.
    pub dtls_discarded: u64,
    /// DTLS records that came again (RFC 6347 section 4.1.2.6).
    pub dtls_replayed: u64,
    /// ICMP errors on our datagrams; several between two system calls count once.
    pub icmp_errors: u64,
    /// Datagrams that the kernel refused to send: no route, a firewall.
    pub datagrams_refused: u64,
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
            let digest = digest_ended(digest(id), outcome, resent);
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
            Some(id) => account.read.add(digest_copy(digest(id), integrity)),
            None => account.unstamped += 1,
        }
    }

    /// A try to connect began at the socket.
    pub fn opened(&mut self) {
        self.links.opened += 1;
    }

    /// A try to connect ended with a usable link.
    pub fn connected(&mut self, link: LinkId) {
        self.links.connected.add(digest_link(link, 0));
    }

    /// The platform has answered the CONNECT of a link that was up before, whose fleet goes offline.
    pub fn returned(&mut self, link: LinkId, is_kept: bool) {
        let digest = digest_link(link, 1 + u64::from(is_kept));
        self.links.returned.add(digest);
    }

    /// A try to connect ended without a link.
    pub fn connect_failed(&mut self, link: LinkId, failure: &ConnectFailure) {
        self.links
            .failed
            .add(digest_link(link, failure_key(failure)));
    }

    /// A usable link ended.
    pub fn disconnected(&mut self, link: LinkId, cause: &Cause) {
        self.links
            .disconnected
            .add(digest_link(link, cause_key(cause)));
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

    /// Adds what another shard or process counted; sums commute and associate.
    pub fn merge(&mut self, other: &Account) {
        grow(&mut self.streams, other.streams.len());
        grow(&mut self.backends, other.backends.len());
        for (mine, theirs) in self.streams.iter_mut().zip(&other.streams) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.backends.iter_mut().zip(&other.backends) {
            mine.consumed += theirs.consumed;
            mine.read.merge(&theirs.read);
            mine.unstamped += theirs.unstamped;
        }
        self.links.merge(&other.links);
        grow(&mut self.commands, other.commands.len());
        grow(&mut self.receptions, other.receptions.len());
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.receptions.iter_mut().zip(&other.receptions) {
            mine.merge(theirs);
        }
    }
}

impl StreamAccount {
    /// The tally of one final state.
    pub fn state(&self, state: State) -> &ChecksummedCount {
        &self.states[state.index()]
    }

    fn merge(&mut self, other: &StreamAccount) {
        self.scheduled.merge(&other.scheduled);
        self.sent.merge(&other.sent);
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.merge(theirs);
        }
    }
}

impl LinkAccount {
    fn merge(&mut self, other: &LinkAccount) {
        self.opened += other.opened;
        self.connected.merge(&other.connected);
        self.returned.merge(&other.returned);
        self.failed.merge(&other.failed);
        self.disconnected.merge(&other.disconnected);
        self.open_at_end += other.open_at_end;
        self.dtls_retransmitted += other.dtls_retransmitted;
        self.mqtt_again += other.mqtt_again;
        self.mqtt_unknown += other.mqtt_unknown;
        self.coap_malformed += other.coap_malformed;
        self.coap_stray += other.coap_stray;
        self.coap_unexpected += other.coap_unexpected;
        self.coap_duplicates += other.coap_duplicates;
        self.dtls_discarded += other.dtls_discarded;
        self.dtls_replayed += other.dtls_replayed;
        self.icmp_errors += other.icmp_errors;
        self.datagrams_refused += other.datagrams_refused;
    }
}

fn grow<T: Default + Clone>(list: &mut Vec<T>, len: usize) {
    if list.len() < len {
        list.resize(len, T::default());
    }
}
