//! One second of one stream's commands.

use muster_model::{Answering, Delivery, QueryOutcome, Reason, ShedCause};
use serde::{Deserialize, Serialize};

use super::{
    ANSWERINGS, DELIVERIES, Leg, LegCounts, PRESENCES, QUERIES, answering_at, delivery_at, query_at,
};
use crate::{CountBy, Distribution};

/// Counts of what happened to commands, by event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandCounts {
    /// Queries that ended, by their end.
    pub queries: [u64; QUERIES],
    /// Queries that were refused, by code.
    pub queries_rejected: CountBy<Reason>,
    /// Commands of which the backend learned the last, by what it was.
    pub issues: DeliveryCounts,
    /// Commands that came due, by where their device stood.
    pub met: [u64; PRESENCES],
    /// First copies at devices.
    pub received: u64,
    /// Further copies.
    pub again: u64,
    /// Copies that name no command of this run for the device that got them.
    pub foreign: u64,
    /// Copies whose id may not be believed.
    pub damaged: u64,
    /// Answers that ended, by their end.
    pub answers: [u64; ANSWERINGS],
    /// Replies that the platform refused, by code.
    pub answers_rejected: CountBy<Reason>,
    /// Replies that were never sent, by cause.
    pub answers_shed: CountBy<ShedCause>,
    /// First copies of replies at the backend.
    pub replies: u64,
    /// The same, by the status that they tell.
    pub replies_by_status: CountBy<Reason>,
    /// Further copies of replies.
    pub replies_again: u64,
    /// Replies that name no command of this run.
    pub replies_foreign: u64,
    /// Replies whose id may not be believed.
    pub replies_damaged: u64,
}

/// Counts of commands by the backend's knowledge of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliveryCounts {
    /// By the place of what it knows.
    pub ends: [u64; DELIVERIES],
    /// Undeliverable, by status.
    pub undeliverable: CountBy<Reason>,
    /// Never issued, by cause.
    pub withheld: CountBy<ShedCause>,
}

/// One stream's commands in one window. Latencies lie in the second in which they began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandWindow {
    /// Counts by event.
    pub counts: CommandCounts,
    /// From a query's due instant to its answer.
    pub request: Distribution,
    /// The same without our own delay: the lower times.
    pub request_lower: Distribution,
    /// The least that the others can have taken.
    pub request_censored: Distribution,
    /// From a command's receipt, when the reply is due, to the platform's answer to the reply.
    pub response: Distribution,
    /// The same without our own delay: the lower times.
    pub response_lower: Distribution,
    /// The least that the others can have taken.
    pub response_censored: Distribution,
    /// From a command's issue to its reply's arrival.
    pub round: Distribution,
    /// Each leg against the registered bounds, at the index of [`Leg`].
    pub legs: [LegCounts; Leg::ALL.len()],
    /// Queries, by due.
    pub queries: QueriesDue,
    /// From when a command could go to its issue, in the second in which it came due.
    pub lateness: Distribution,
}

/// Queries that came due, whatever became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueriesDue {
    /// Queries that were sent, by their end.
    pub ends: [u64; QUERIES],
    /// Queries that were never sent.
    pub shed: u64,
}

impl QueriesDue {
    /// Number of queries that were sent and had no end.
    pub fn in_flight(&self) -> u64 {
        self.ends[query_at(&QueryOutcome::InFlight)]
    }

    /// All of them.
    pub fn due(&self) -> u64 {
        self.ends.iter().sum::<u64>() + self.shed
    }

    /// Number of queries that received a command.
    pub fn with_command(&self) -> u64 {
        self.ends[query_at(&QueryOutcome::Received)]
    }

    fn merge(&mut self, other: &Self) {
        add_all(&mut self.ends, &other.ends);
        self.shed += other.shed;
    }
}

impl CommandCounts {
    pub(crate) fn count_query(&mut self, outcome: &QueryOutcome) {
        self.queries[query_at(outcome)] += 1;
        if let QueryOutcome::Rejected(reason) = outcome {
            self.queries_rejected.add(*reason, 1);
        }
    }

    pub(crate) fn count_answer(&mut self, outcome: &Answering) {
        self.answers[answering_at(outcome)] += 1;
        match outcome {
            Answering::Rejected(reason) => self.answers_rejected.add(*reason, 1),
            Answering::Shed(cause) => self.answers_shed.add(*cause, 1),
            Answering::Answered
            | Answering::OneWay
            | Answering::TimedOut
            | Answering::Broken(_)
            | Answering::InFlight => {}
        }
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Self) {
        add_all(&mut self.queries, &other.queries);
        self.queries_rejected.merge(&other.queries_rejected);
        self.issues.merge(&other.issues);
        add_all(&mut self.met, &other.met);
        self.received += other.received;
        self.again += other.again;
        self.foreign += other.foreign;
        self.damaged += other.damaged;
        add_all(&mut self.answers, &other.answers);
        self.answers_rejected.merge(&other.answers_rejected);
        self.answers_shed.merge(&other.answers_shed);
        self.replies += other.replies;
        self.replies_by_status.merge(&other.replies_by_status);
        self.replies_again += other.replies_again;
        self.replies_foreign += other.replies_foreign;
        self.replies_damaged += other.replies_damaged;
    }
}

impl DeliveryCounts {
    pub(crate) fn count(&mut self, delivery: &Delivery) {
        self.ends[delivery_at(delivery)] += 1;
        match delivery {
            Delivery::Undeliverable(reason) => self.undeliverable.add(*reason, 1),
            Delivery::Withheld(cause) => self.withheld.add(*cause, 1),
            Delivery::Delivered | Delivery::Expired | Delivery::Unknown => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        add_all(&mut self.ends, &other.ends);
        self.undeliverable.merge(&other.undeliverable);
        self.withheld.merge(&other.withheld);
    }
}

impl CommandWindow {
    /// Adds what another window counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.request.merge(&other.request);
        self.request_lower.merge(&other.request_lower);
        self.request_censored.merge(&other.request_censored);
        self.response.merge(&other.response);
        self.response_lower.merge(&other.response_lower);
        self.response_censored.merge(&other.response_censored);
        self.round.merge(&other.round);
        for (mine, theirs) in self.legs.iter_mut().zip(&other.legs) {
            mine.merge(theirs);
        }
        self.queries.merge(&other.queries);
        self.lateness.merge(&other.lateness);
    }
}

fn add_all(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}
