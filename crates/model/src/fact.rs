//! Facts about single messages and links, as a recorder receives them.

use serde::{Deserialize, Serialize};

use crate::{
    BackendId, Cause, Command, ConnectFailure, ConsumerId, LinkId, MessageId, Micros, Outcome,
    Reception,
};

/// The whole life of one message on the device side, reported once, when it is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The message.
    pub id: MessageId,
    /// Due instant by the schedule.
    pub due: Micros,
    /// Instant at which the engine picked it up; none if never.
    pub taken: Option<Micros>,
    /// Instant at which the kernel took the last byte of the first transmission; none if never
    /// sent.
    pub sent: Option<Micros>,
    /// Instant at which the device side reached the final state.
    pub ended: Micros,
    /// Final state.
    pub outcome: Outcome,
    /// True if the message was sent more than once (DUP), so that a second copy is our own.
    pub resent: bool,
    /// The part of `ended - due` that may be the generator's own; never more than that.
    pub own: Micros,
}

/// Comparison of the bytes that arrived with those that were sent, if the carrier allows it.
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
    /// The message; none if it carried no readable id.
    pub id: Option<MessageId>,
    /// Due instant, from its stamp or recomputed from the schedule; none if neither has it.
    pub due: Option<Micros>,
    /// Instant at which the backend received it.
    pub seen: Micros,
    /// Backend that counts it.
    pub backend: BackendId,
    /// Consumer session and partition that brought it.
    pub consumer: ConsumerId,
    /// Comparison with the bytes that were sent.
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

/// Event of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkEvent {
    /// The connection is usable: handshake, CONNACK and needed subscriptions done.
    Connected {
        /// From the first SYN of this try.
        took: Micros,
    },
    /// The platform has answered the CONNECT of a link that was up before; reported where its fleet
    /// goes offline.
    Returned {
        /// True if it still had the session, with all that it kept for the device.
        is_kept: bool,
    },
    /// The try to connect ended without a link.
    Failed(ConnectFailure),
    /// A connected link ended.
    Disconnected(Cause),
    /// The platform ended the link; it follows the end of the link that it belongs to.
    LastSent {
        /// Cause of the link's end.
        cause: Cause,
        /// Messages without an answer by design that were sent on it after the last packet that
        /// the platform sent before ending it; at least 1.
        messages: u32,
    },
}

/// One event of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFact {
    /// The link.
    pub link: LinkId,
    /// Instant of the event.
    pub at: Micros,
    /// The event.
    pub event: LinkEvent,
    /// True if a try may have timed out by our own delay, which exceeded half of the time-out.
    pub by_us: bool,
}

/// One thing that happened, reported once.
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
