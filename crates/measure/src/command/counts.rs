//! One second of one stream's commands.

use muster_model::{Answering, Delivery, QueryOutcome, Reason, ShedCause};
use serde::{Deserialize, Serialize};

use super::{
    ANSWERINGS, DELIVERIES, Leg, LegCounts, PRESENCES, QUERIES, answering_at, delivery_at, query_at,
};
use crate::merge::merge_fields;
use crate::{CountBy, Distribution};

/// Counts of what happened to commands, by event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandCounts {
    /// Queries that ended, by their end.
    pub queries: [u64; QUERIES],
    /// Queries that were refused, by code.
    pub queries_rejected: CountBy<Reason>,
    /// Commands whose delivery became final at the backend, by delivery.
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
    /// The same, by the status that they carry.
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
}

merge_fields! {
    CommandCounts {
        queries, queries_rejected, issues, met, received, again, foreign, damaged, answers,
        answers_rejected, answers_shed, replies, replies_by_status, replies_again, replies_foreign,
        replies_damaged,
    }
    DeliveryCounts { ends, undeliverable, withheld }
    CommandWindow {
        counts, request, request_lower, request_censored, response, response_lower,
        response_censored, round, legs, queries, lateness,
    }
    QueriesDue { ends, shed }
}
