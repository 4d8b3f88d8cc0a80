//! Reports of a shard, and the account that is kept with them.

use muster_measure::{Account, Counts, SessionCounts};
use muster_model::{
    Answer, Answering, Attempt, Command, ConnectFailure, LinkEvent, LinkFact, LinkId, MessageId,
    Micros, Query, QueryOutcome, Reception, StreamId,
};

use crate::refusals::Refusals;
use crate::sink::Sink;

/// Facts, counts and refusals that a shard records.
#[derive(Debug)]
pub struct Recording<S> {
    sink: S,
    account: Account,
    refusals: Refusals,
}

impl<S: Sink> Recording<S> {
    pub(crate) fn new(sink: S, account: Account) -> Self {
        Self {
            sink,
            account,
            refusals: Refusals::default(),
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
        self.sink.link(&LinkFact {
            link,
            at,
            event: LinkEvent::Failed(failure),
            by_us,
        });
    }

    /// Something else happened to a link.
    pub(crate) fn link(&mut self, link: LinkId, at: Micros, event: LinkEvent) {
        self.sink.link(&LinkFact {
            link,
            at,
            event,
            by_us: false,
        });
    }
}
