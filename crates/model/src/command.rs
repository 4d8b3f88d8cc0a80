//! Command and control: what backend and device tell of queries, commands and replies.
//!
//! A command is named by a [`MessageId`] too: the device it is for, the stream of kind `command`
//! that takes it, and its number there.

use serde::{Deserialize, Serialize};

use crate::{Cause, DeviceId, Integrity, MessageId, Micros, Outcome, Reason, ShedCause, StreamId};

/// What the backend knows of a command at the end (docs/semantics.md#commands).
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
    /// It came due and was never issued.
    Withheld(ShedCause),
}

/// How the answer to a command ended on the device side.
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

/// How a device's query for a command ended.
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

/// Where a device stood when a command for it came due.
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

/// A device asked for a command; told once, when that is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The message that asked.
    pub id: MessageId,
    /// When the schedule wanted it.
    pub due: Micros,
    /// When the device took it up.
    pub taken: Micros,
    /// When the device had its answer, or gave up.
    pub ended: Micros,
    /// How.
    pub outcome: QueryOutcome,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// The backend issued a command; told once, when it learns no more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Which command.
    pub id: MessageId,
    /// When it came due.
    pub due: Micros,
    /// From when on it could go: when it came due, or when the session could take it again. From
    /// there to `issued` the backend itself is late.
    pub ready: Micros,
    /// When it was handed to the socket; none if never.
    pub issued: Option<Micros>,
    /// When the backend knew the last of it.
    pub ended: Micros,
    /// What it knew.
    pub delivery: Delivery,
}

/// Where a device stood when a command for it came due, told by the device side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// Which command.
    pub id: MessageId,
    /// When it came due.
    pub due: Micros,
    /// Where the device stood.
    pub presence: Presence,
}

/// One copy of a command reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which device.
    pub device: DeviceId,
    /// Its stream of commands.
    pub stream: StreamId,
    /// Which command, as far as it may be believed.
    pub id: Option<MessageId>,
    /// When.
    pub at: Micros,
    /// Whether it is what was sent.
    pub integrity: Integrity,
}

/// A device answered a command; told once, when that is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which command.
    pub id: MessageId,
    /// When the answer was due: when the command came.
    pub due: Micros,
    /// When the kernel took the last byte of the reply; none if never, or if none is wanted.
    pub sent: Option<Micros>,
    /// When the device side reached the final state.
    pub ended: Micros,
    /// That state.
    pub outcome: Answering,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// One copy of a reply reached the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The stream of the command; of one that cannot be read the first there is.
    pub stream: StreamId,
    /// The command it replies to, as far as it may be believed.
    pub id: Option<MessageId>,
    /// When that was issued, as the reply tells.
    pub issued: Option<Micros>,
    /// What the device says became of the command, as a status of HTTP; none where replies do not tell.
    pub status: Option<u16>,
    /// When the backend got it.
    pub seen: Micros,
    /// Whether it is what was sent.
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

/// Which devices a schedule of commands is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandTarget {
    /// Devices that the plan connects.
    Online,
    /// Devices that have just asked for a command.
    Waiting,
    /// Names that nobody plays, one for each device of the plan.
    Absent,
    /// Both by turns.
    All,
}

/// What follows a device's name in that of its absent twin.
pub const ABSENT: &str = "-absent";

impl Delivery {
    /// Whether the platform said that the device cannot have the command, so that no reply is owed.
    pub const fn excuses_the_reply(&self) -> bool {
        match self {
            Self::Delivered | Self::Unknown | Self::Withheld(_) => false,
            Self::Expired | Self::Undeliverable(_) => true,
        }
    }
}

impl CommandTarget {
    /// Whether a device's command of that number goes to its absent twin.
    ///
    /// By turns from device to device, and for each device from one round to the next.
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
