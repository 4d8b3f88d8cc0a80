//! Command and control: a separate account, from Facts to a ledger that closes.

mod account;
mod close;
mod counts;
mod equations;
mod ledger;
mod leg;
mod record;
mod sets;

pub use account::CommandAccount;
pub(crate) use close::CommandsClosed;
pub use counts::{CommandCounts, CommandWindow, DeliveryCounts, QueriesDue};
pub use ledger::{CommandLedger, CommandSummary, CommandTimes, PresenceRow};
pub use leg::{Leg, LegCounts, LegSummary};
pub(crate) use record::CommandFilling;
pub(crate) use sets::{CommandSets, StreamCommands};

use muster_model::{Answering, Delivery, Presence, QueryOutcome};

/// Ends that a query can have; the index is [`query_at`].
pub const QUERIES: usize = 6;
/// Ends that an issued or withheld command can have; the index is [`delivery_at`].
pub const DELIVERIES: usize = 5;
/// Ends that an answer can have; the index is [`answering_at`].
pub const ANSWERINGS: usize = 7;
/// Places where a device can stand.
pub const PRESENCES: usize = Presence::ALL.len();

/// The place of a query's end in every table of them.
pub const fn query_at(outcome: &QueryOutcome) -> usize {
    match outcome {
        QueryOutcome::Received => 0,
        QueryOutcome::NoCommand => 1,
        QueryOutcome::Rejected(_) => 2,
        QueryOutcome::TimedOut => 3,
        QueryOutcome::Broken(_) => 4,
        QueryOutcome::InFlight => 5,
    }
}

/// The place of what the backend knows of a command in every table of it.
pub const fn delivery_at(delivery: &Delivery) -> usize {
    match delivery {
        Delivery::Delivered => 0,
        Delivery::Expired => EXPIRED,
        Delivery::Undeliverable(_) => UNDELIVERABLE,
        Delivery::Unknown => 3,
        Delivery::Withheld(_) => WITHHELD,
    }
}

/// The places of commands that the platform said the device cannot have.
pub(crate) const EXPIRED: usize = 1;
pub(crate) const UNDELIVERABLE: usize = 2;
/// The place of commands that were never issued.
pub(crate) const WITHHELD: usize = 4;
/// The place of commands that the platform took for a device.
pub(crate) const DELIVERED: usize = 0;

/// The place of an answer's end in every table of them.
pub const fn answering_at(outcome: &Answering) -> usize {
    match outcome {
        Answering::Answered => ANSWERED,
        Answering::OneWay => 1,
        Answering::Rejected(_) => 2,
        Answering::TimedOut => 3,
        Answering::Broken(_) => 4,
        Answering::InFlight => 5,
        Answering::Shed(_) => 6,
    }
}

/// The place of replies that the platform took.
pub(crate) const ANSWERED: usize = 0;

/// The place of a device's presence in every table of it.
pub const fn presence_at(presence: Presence) -> usize {
    presence as usize
}

/// Names of the ends in equations and in the facts file.
pub(crate) const QUERY_NAMES: [&str; QUERIES] = [
    "received_by_query",
    "no_command",
    "query_rejected",
    "query_timed_out",
    "query_broken",
    "query_in_flight",
];
pub(crate) const DELIVERY_NAMES: [&str; DELIVERIES] = [
    "delivered",
    "expired",
    "undeliverable",
    "unknown",
    "withheld",
];
pub(crate) const ANSWERING_NAMES: [&str; ANSWERINGS] = [
    "answered",
    "one_way",
    "answer_rejected",
    "answer_timed_out",
    "answer_broken",
    "answer_in_flight",
    "answer_shed",
];
