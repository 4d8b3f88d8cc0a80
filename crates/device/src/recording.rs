//! Reports of a shard, and the account that is kept with them.

use muster_measure::{Account, Counts, SessionCounts, TargetCounts};
use muster_model::{
    Answer, Answering, Attempt, Command, ConnectFailure, LinkEvent, LinkFact, LinkId, MessageId,
    Micros, Outcome, Query, QueryOutcome, Reception, StreamId,
};

use rustc_hash::FxHashMap;

use crate::refusals::Refusals;
use crate::sink::Sink;

/// Facts, counts and refusals that a shard records.
#[derive(Debug)]
pub struct Recording<S> {
    sink: S,
    account: Account,
    refusals: Refusals,
    /// By address; empty where addresses are not distinguished.
    targets: Vec<TargetCounts>,
    /// The places of addresses of links that did not get theirs in turn: at most all links.
    placed: FxHashMap<u32, usize>,
}

impl<S: Sink> Recording<S> {
    pub(crate) fn new(sink: S, account: Account) -> Self {
        Self {
            sink,
            account,
            refusals: Refusals::default(),
            targets: Vec::new(),
            placed: FxHashMap::default(),
        }
    }

    /// Distinguishes this number of addresses: link n has the one at n modulo their number.
    pub fn count_by_target(&mut self, targets: usize) {
        self.targets = vec![TargetCounts::default(); targets];
    }

    /// A link connects to the address at this place from now on.
    pub fn place_at_target(&mut self, link: LinkId, place: usize) {
        if self.targets.len() <= place {
            self.targets.resize(place + 1, TargetCounts::default());
        }
        self.placed.insert(link.0, place);
    }

    /// The place of a link's address; none where addresses are not distinguished.
    pub fn target_of(&self, link: LinkId) -> Option<usize> {
        match self.placed.get(&link.0) {
            Some(place) => Some(*place),
            None => (link.0 as usize).checked_rem(self.targets.len()),
        }
    }

    /// Counts by address, in their order.
    pub fn targets(&self) -> &[TargetCounts] {
        &self.targets
    }

    /// True if addresses are distinguished.
    #[inline]
    pub(crate) fn counts_by_target(&self) -> bool {
        !self.targets.is_empty()
    }

    /// A message of a link reached its final state.
    pub(crate) fn ended_at_target(&mut self, link: LinkId, outcome: Outcome) {
        if let Some(place) = self.target_of(link) {
            self.targets[place].message(outcome);
        }
    }

    /// Sink that receives every fact.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Counts of the sessions' events, kept apart from the facts.
    pub fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    /// The refusals and notes that were reported once of each kind.
    pub fn refusals(&mut self) -> &mut Refusals {
        &mut self.refusals
    }

    /// All counters of a stream, of the second of `at`.
    #[inline]
    pub(crate) fn stream_counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.sink.counts(stream, at)
    }

    /// The counters of a stream's exchanges, of the second of `at`.
    #[inline]
    pub(crate) fn counts(&mut self, stream: StreamId, at: Micros) -> &mut SessionCounts {
        &mut self.stream_counts(stream, at).session
    }

    /// A message reached its final state.
    #[inline]
    pub(crate) fn attempt(&mut self, attempt: &Attempt) {
        let Attempt {
            id,
            outcome,
            resent,
            ..
        } = attempt;
        self.account.ended(id, outcome, *resent);
        self.sink.attempt(attempt);
    }

    /// Counts a command and passes it to the sink.
    pub(crate) fn command(&mut self, stream: StreamId, command: Command) {
        self.account.command(stream).count(&command);
        self.sink.command(&command);
    }

    /// A reply to a command that is final as soon as it is due.
    pub(crate) fn answered_at_once(&mut self, id: MessageId, now: Micros, outcome: Answering) {
        let answer = Answer {
            id,
            due: now,
            sent: None,
            ended: now,
            outcome,
            own: Micros::ZERO,
        };
        self.command(id.stream, Command::Answer(answer));
    }

    /// Reports the final state of a query that was sent; the message that asked has its own report.
    pub(crate) fn query(&mut self, attempt: &Attempt, has_command: bool) {
        let outcome = QueryOutcome::of(attempt.outcome).filter(|_| !has_command);
        let query = Query {
            id: attempt.id,
            due: attempt.due,
            taken: attempt.taken.unwrap_or(attempt.due),
            ended: attempt.ended,
            outcome: outcome.unwrap_or(QueryOutcome::Received),
            own: attempt.own,
        };
        self.command(attempt.id.stream, Command::Query(query));
    }

    /// A copy reached a device that subscribes to it.
    pub(crate) fn reception(&mut self, reception: &Reception) {
        self.account.reception(reception.stream).read(reception);
        self.sink.reception(reception);
    }

    /// A try to connect began at the socket.
    pub(crate) fn opened(&mut self, link: LinkId, now: Micros) {
        self.account.opened();
        self.sink.opened(link, now);
    }

    /// A try to connect failed.
    pub(crate) fn failed(
        &mut self,
        link: LinkId,
        at: Micros,
        failure: ConnectFailure,
        by_us: bool,
    ) {
        self.account.connect_failed(link, &failure);
        self.note_link(LinkFact {
            link,
            at,
            event: LinkEvent::Failed(failure),
            by_us,
        });
    }

    /// Something else happened to a link.
    pub(crate) fn link(&mut self, link: LinkId, at: Micros, event: LinkEvent) {
        self.note_link(LinkFact {
            link,
            at,
            event,
            by_us: false,
        });
    }

    fn note_link(&mut self, fact: LinkFact) {
        if let Some(place) = self.target_of(fact.link) {
            self.targets[place].link(&fact.event);
        }
        self.sink.link(&fact);
    }
}
