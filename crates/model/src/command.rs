//! Command and control: what backend and device report of queries, commands and replies.
//!
//! A command is named by a [`MessageId`] too: the device it is for, the stream of kind `command`
//! that takes it, and its number there.

use serde::{Deserialize, Serialize};

use crate::{Cause, DeviceId, Integrity, MessageId, Micros, Outcome, Reason, ShedCause, StreamId};

/// Delivery of a command as the backend knows it at the end (docs/semantics.md#commands).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Delivery {
    /// The platform took it for a device that it can reach.
    Delivered,
    /// The platform said that it was void before the device could have it.
    Expired,
    /// The platform said that the device cannot have it.
    Undeliverable(Reason),
    /// The platform said nothing.
    Unknown,
    /// Due and never issued.
    Withheld(ShedCause),
}

/// Outcome of the answer to a command on the device side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Answering {
    /// The platform took the reply.
    Answered,
    /// No reply is wanted.
    OneWay,
    /// The platform refused the reply.
    Rejected(Reason),
    /// The platform said nothing of the reply in time.
    TimedOut,
    /// The link ended before the platform took the reply.
    Broken(Cause),
    /// The reply was under way at the end of settling.
    InFlight,
    /// The reply was never sent.
    Shed(ShedCause),
}

/// Outcome of a device's query for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum QueryOutcome {
    /// A command came.
    Received,
    /// The platform took the query, and no command came while the device waited.
    NoCommand,
    /// The platform refused the query.
    Rejected(Reason),
    /// The platform said nothing in time.
    TimedOut,
    /// The link ended first.
    Broken(Cause),
    /// Open at the end of settling.
    InFlight,
}

/// State of a device when a command for it came due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Presence {
    /// Its link was up.
    Online,
    /// Its link was down, or nobody plays the device.
    Offline,
    /// Its link had come up again less than a second ago.
    Reconnected,
    /// Its link was up, and a query of the device under way, where a command comes in the answer to one
    /// and in no other way.
    Waiting,
}

/// A device asked for a command; reported once, when that is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The message that asked.
    pub id: MessageId,
    /// Due instant by the schedule.
    pub due: Micros,
    /// Instant at which the device took it up.
    pub taken: Micros,
    /// Instant at which the device had its answer, or gave up.
    pub ended: Micros,
    /// Its outcome.
    pub outcome: QueryOutcome,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// The backend issued a command; reported once, when its delivery is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The command.
    pub id: MessageId,
    /// Its due instant.
    pub due: Micros,
    /// From when on it could go: when it came due, or when the session could take it again. From
    /// there to `issued` the backend itself is late.
    pub ready: Micros,
    /// Instant at which it was handed to the socket; none if never.
    pub issued: Option<Micros>,
    /// Instant at which its delivery was final.
    pub ended: Micros,
    /// Its delivery.
    pub delivery: Delivery,
}

/// State of a device when a command for it came due, reported by the device side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// The command.
    pub id: MessageId,
    /// Its due instant.
    pub due: Micros,
    /// State of the device.
    pub presence: Presence,
}

/// One copy of a command reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The device.
    pub device: DeviceId,
    /// Its stream of commands.
    pub stream: StreamId,
    /// The command, if its id is credible.
    pub id: Option<MessageId>,
    /// Instant of arrival.
    pub at: Micros,
    /// Comparison with the bytes that were sent.
    pub integrity: Integrity,
}

/// A device answered a command; reported once, when that is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The command.
    pub id: MessageId,
    /// Due instant of the answer: the arrival of the command.
    pub due: Micros,
    /// Instant at which the kernel took the last byte of the reply; none if never, or if none is
    /// wanted.
    pub sent: Option<Micros>,
    /// Instant at which the device side reached the final state.
    pub ended: Micros,
    /// Final state.
    pub outcome: Answering,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// One copy of a reply reached the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The stream of the command; of one that cannot be read the first there is.
    pub stream: StreamId,
    /// The command it replies to, if its id is credible.
    pub id: Option<MessageId>,
    /// Instant of the command's issue, from the reply.
    pub issued: Option<Micros>,
    /// Result of the command by the device, as a status of HTTP; none where replies have none.
    pub status: Option<u16>,
    /// Instant at which the backend received it.
    pub seen: Micros,
    /// Comparison with the bytes that were sent.
    pub integrity: Integrity,
}

/// One thing that happened to a query, a command or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A query is final.
    Query(Query),
    /// The backend knows the last of a command.
    Issue(Issue),
    /// A command came due while its device stood somewhere.
    Met(Met),
    /// A copy reached a device.
    Receipt(Receipt),
    /// A device's answer is final.
    Answer(Answer),
    /// A reply reached the backend.
    Reply(Reply),
}

/// Devices that a schedule of commands addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandTarget {
    /// Devices that the plan connects.
    Online,
    /// Devices that have just asked for a command.
    Waiting,
    /// Names that nobody plays, one for each device of the plan.
    Absent,
    /// Both, alternating.
    All,
}

/// Suffix that turns a device's name into that of its absent twin.
pub const ABSENT: &str = "-absent";

impl Delivery {
    /// Returns true if the platform reported that the device cannot have the command, so that no
    /// reply is owed.
    pub const fn excuses_the_reply(&self) -> bool {
        match self {
            Self::Delivered | Self::Unknown | Self::Withheld(_) => false,
            Self::Expired | Self::Undeliverable(_) => true,
        }
    }
}

impl CommandTarget {
    /// Returns true if a device's command of that number goes to its absent twin.
    ///
    /// Alternates from device to device, and for each device from one round to the next.
    pub const fn is_absent(self, device: DeviceId, seq: u32) -> bool {
        match self {
            Self::Online | Self::Waiting => false,
            Self::Absent => true,
            Self::All => device.0 % 2 != seq % 2,
        }
    }
}

impl Presence {
    /// Every one, in the order of the report.
    pub const ALL: [Presence; 4] = [
        Self::Online,
        Self::Offline,
        Self::Reconnected,
        Self::Waiting,
    ];

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Reconnected => "reconnected",
            Self::Waiting => "waiting",
        }
    }
}

impl Answering {
    /// The end of an answer whose reply ended so as a message.
    pub const fn of(outcome: Outcome) -> Self {
        match outcome {
            // Where no answer exists by design, sent is all there is.
            Outcome::Accepted | Outcome::Unacknowledged => Self::Answered,
            Outcome::Rejected(reason) => Self::Rejected(reason),
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Broken(cause) => Self::Broken(cause),
            Outcome::InFlight => Self::InFlight,
            Outcome::Shed(cause) => Self::Shed(cause),
        }
    }
}

impl QueryOutcome {
    /// The end of a query that ended so as a message without a command; none if it was never
    /// sent, and so was no query.
    pub const fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Accepted | Outcome::Unacknowledged => Some(Self::NoCommand),
            Outcome::Rejected(reason) => Some(Self::Rejected(reason)),
            Outcome::TimedOut => Some(Self::TimedOut),
            Outcome::Broken(cause) => Some(Self::Broken(cause)),
            Outcome::InFlight => Some(Self::InFlight),
            Outcome::Shed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By turns along the order in which commands are due, and each device in every other round.
    #[test]
    fn commands_to_all_go_to_devices_and_absent_names_by_turns() {
        let absent =
            |n: u32, devices: u32| CommandTarget::All.is_absent(DeviceId(n % devices), n / devices);
        for devices in [1, 99, 100] {
            for n in 1..devices {
                assert_ne!(
                    absent(n - 1, devices),
                    absent(n, devices),
                    "{n} of {devices}"
                );
            }
            for n in 0..devices {
                assert_ne!(
                    absent(n, devices),
                    absent(n + devices, devices),
                    "{n} of {devices}"
                );
            }
        }
        assert!(!absent(0, 100), "a device is the first");
        assert_eq!((0..72).filter(|n| absent(*n, 100)).count(), 36);
    }
}
