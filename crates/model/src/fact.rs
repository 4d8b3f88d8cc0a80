//! All that a recorder hears of single messages and links.

use serde::{Deserialize, Serialize};

use crate::{
    BackendId, Cause, Command, ConnectFailure, ConsumerId, LinkId, MessageId, Micros, Outcome,
    Reception,
};

/// The whole life of one message on the device side, told once, when it is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which message.
    pub id: MessageId,
    /// When the schedule wanted it.
    pub due: Micros,
    /// When the engine picked it up; none if it never did.
    pub taken: Option<Micros>,
    /// When the kernel took the last byte of the first transmission; none if never sent.
    pub sent: Option<Micros>,
    /// When the device side reached the final state.
    pub ended: Micros,
    /// That state.
    pub outcome: Outcome,
    /// Whether the message went out more than once (DUP), so that a second copy is our own.
    pub resent: bool,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// Whether the bytes that arrived are the bytes that were sent, as far as the carrier tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Integrity {
    /// The check holds.
    Intact,
    /// The check does not hold.
    Corrupted,
    /// The carrier has no check.
    Unchecked,
}

/// One copy of a message, as a backend saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Which message; none if it carried no readable id.
    pub id: Option<MessageId>,
    /// When it was due, from its stamp or recomputed from the schedule; none if neither tells.
    pub due: Option<Micros>,
    /// When the backend got it.
    pub seen: Micros,
    /// Which account it belongs to.
    pub backend: BackendId,
    /// Which consumer session and partition brought it.
    pub consumer: ConsumerId,
    /// Whether it is what was sent.
    pub integrity: Integrity,
    /// The part of `seen - due` that may be the consumer's own; never more than that.
    pub own: Micros,
}

impl Attempt {
    /// The time from due to the final state: the upper of the two times of an answer.
    pub fn upper(&self) -> Micros {
        self.ended - self.due
    }

    /// The upper time without the generator's own part.
    pub fn lower(&self) -> Micros {
        self.upper() - self.own
    }
}

/// What became of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkEvent {
    /// The connection is usable: handshake, CONNACK and needed subscriptions done.
    Connected {
        /// From the first SYN of this try.
        took: Micros,
    },
    /// The platform has answered the CONNECT of a link that was up before; told where its fleet
    /// goes offline.
    Returned {
        /// Whether it still had the session, with all that it kept for the device.
        is_kept: bool,
    },
    /// The try to connect ended without a link.
    Failed(ConnectFailure),
    /// A connected link ended.
    Disconnected(Cause),
    /// The platform ended the link; it follows the end of the link that it belongs to.
    LastSent {
        /// How the link ended.
        cause: Cause,
        /// Messages without an answer by design that were sent on it after the last packet that
        /// the platform sent before ending it; at least 1.
        messages: u32,
    },
}

/// One event of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFact {
    /// Which link.
    pub link: LinkId,
    /// When.
    pub at: Micros,
    /// What.
    pub event: LinkEvent,
    /// Whether a try that timed out may have done so by our own delay: that exceeded half of the
    /// time-out.
    pub by_us: bool,
}

/// One thing that happened, told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A message reached its final state on the device side.
    Attempt(Attempt),
    /// A copy reached a backend.
    Arrival(Arrival),
    /// A link changed.
    Link(LinkFact),
    /// Something happened to a query, a command or a reply.
    Command(Command),
    /// A copy reached a subscriber among the devices.
    Reception(Reception),
}
