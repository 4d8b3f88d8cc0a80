//! Reports of an agent's threads to the conductor.

use std::ops::Range;

use muster_measure::{Account, Identity, WindowDelta};
use muster_model::{DeviceId, LinkId, Micros};
use serde::{Deserialize, Serialize};

use crate::{ConsumerAbsence, ConsumerName, ConsumerRefusal, Progress, PushRefusal};

/// Interval between two reports of a thread.
pub const DISPATCH_EVERY: Micros = Micros::from_millis(250);

/// Dispatches of one thread that may wait for the conductor: a minute of them, so that a disk that
/// stands still for seconds reaches no device. Beyond it the thread waits as well, and reports
/// [`Diagnostic::unheard`].
pub const DISPATCHES_MAX: usize = (60_000_000 / DISPATCH_EVERY.get()) as usize;

/// News of one thread, sent some times a second.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Dispatch {
    /// Progress of its links or consumers.
    pub progress: Progress,
    /// Records since the last dispatch.
    pub windows: WindowDelta,
    /// Diagnostics since the last dispatch.
    pub diagnostics: Vec<Diagnostic>,
    /// Refusals by credentials since the last dispatch, at most [`REFUSED_MAX`]; empty where nobody wants
    /// them.
    pub refused: Vec<Refused>,
    /// All it leaves behind, with its last dispatch.
    pub handover: Option<Box<Handover>>,
}

/// Refusals of one shard between two dispatches: what is beyond them is refused again, and reported then.
pub const REFUSED_MAX: usize = 1_024;

/// Owner of credentials that the platform refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refused {
    /// A link, when it connected.
    Link(LinkId),
    /// A device, when it sent a request.
    Device(DeviceId),
}

/// Results of a thread at its end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handover {
    /// Ends and arrivals of messages.
    pub identity: Identity,
    /// Counters of its sessions and consumers.
    pub account: Account,
}

impl Dispatch {
    /// Adds what another shard of the thread reports.
    pub fn merge(&mut self, other: Self) {
        self.progress = Progress::united([self.progress, other.progress]);
        self.windows.merge(&other.windows);
        self.diagnostics.extend(other.diagnostics);
        self.refused.extend(other.refused);
        match (&mut self.handover, other.handover) {
            (Some(handover), Some(other)) => handover.merge(*other),
            (handover @ None, other) => *handover = other,
            (Some(_), None) => {}
        }
    }
}

impl Handover {
    /// Adds what another thread or process leaves behind.
    pub fn merge(&mut self, other: Self) {
        self.identity.merge(other.identity);
        self.account.merge(&other.account);
    }
}

/// A finding on the generator or its target that the report must contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Diagnostic {
    /// A limit of descriptors, ports, messages or buffers was reached: own fault.
    Limit(String),
    /// A consumer lost its connection, or could not have one, by a limit of ours: own fault.
    ConsumerAway(ConsumerAbsence),
    /// A consumer lost its connection, for a cause of the target's.
    ConsumerLost {
        /// The consumer, and the cause.
        absence: ConsumerAbsence,
        /// Last answer of its broker; if unknown, the instant of the loss.
        since: Micros,
    },
    /// A consumer is connected and subscribed again.
    ConsumerBack(ConsumerName),
    /// A consumer does not come up, or its commands are refused: reported once for each cause.
    ConsumerRefused(ConsumerRefusal),
    /// The application explained why it rejects messages; reported once for each code and shard.
    Rejecting(String),
    /// Messages that the target, as it said when it took the link, never takes.
    Unsendable(String),
    /// TLS or WebSocket could not be opened, or failed later; reported once for each cause.
    Handshake(String),
    /// The thread ended by an error.
    Failed(String),
    /// Number of further diagnostics, which are not listed.
    NotListed(u64),
    /// The target refused a device; reported once for each cause, with the first device.
    LinkRefused(String),
    /// The platform gave a reason string (MQTT 5) when it ended or refused a link: the first of each
    /// cause and shard.
    ReasonString {
        /// The cause, as the maps of causes name it.
        cause: String,
        /// The text.
        text: String,
    },
    /// A subscription was granted at a lower QoS than was asked for: the first one of each shard, and that
    /// of each consumer.
    LowerQos(String),
    /// Another client seems to use the client id of a device: the first device of each shard.
    TakenOver(String),
    /// A topic that a backend names was created.
    Topics(String),
    /// Lag of a consumer behind its broker.
    ConsumerLag(String),
    /// Notices of delivery that changed nothing.
    IdleNotices(String),
    /// Number of datagrams that a full receive buffer of ours dropped: own fault.
    ReceiveDrop(u64),
    /// Datagrams do not reach the target: nobody listens there, or the kernel has no way to it.
    Unreachable(String),
    /// The kernel granted a socket less of a receive buffer than it asked for.
    ReceiveBuffer(String),
    /// A topic that was there has other partitions than the scenario says.
    TopicsDiffer(String),
    /// Somebody added partitions to a topic that is consumed, deleted it, or created it anew, while the run went on.
    TopicsChanged(String),
    /// No topic of a tenant was there, so that the run created them all.
    NewTenant(String),
    /// Requests to a webhook were refused: the first of each cause, and at the end their number.
    PushRefused(PushRefusal),
    /// Requests to a webhook were refused, and none was accepted.
    NoPushAccepted(String),
    /// No request has come to a webhook.
    PushAbsent(String),
    /// The platform asks whether a webhook wants its messages.
    PushConfirmation(String),
}

impl Diagnostic {
    /// The thread had to wait for the one who conducts, and with it its devices or consumers.
    pub fn unheard() -> Self {
        let why = "nobody took the news of a thread for a minute: does a disk stand still?";
        Self::Limit(why.to_owned())
    }
}

/// The share of a run that one shard, process or machine carries: slice `index` of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Its index, from 0.
    pub index: u32,
    /// Number of slices.
    pub of: u32,
}

impl Slice {
    /// The whole.
    pub const WHOLE: Slice = Slice { index: 0, of: 1 };

    /// The part of `count` things, numbered from `first`, that falls into this slice; the slices
    /// of a whole are adjacent and differ in size by one at most.
    pub fn cut(self, first: u32, count: u32) -> Range<u32> {
        let at = |index: u32| {
            let place = u64::from(count) * u64::from(index) / u64::from(self.of.max(1));
            first + u32::try_from(place).unwrap_or(count)
        };
        at(self.index)..at(self.index + 1)
    }

    /// Slice `index` of `of` of this slice.
    pub fn part(self, index: u32, of: u32) -> Slice {
        Slice {
            index: self.index * of + index,
            of: self.of * of,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The slices of a whole cover it without gap or overlap.
        #[test]
        fn slices_cover_the_whole(first in 0u32..1_000_000, count in 0u32..3_000_000, of in 1u32..64) {
            let mut next = first;
            for index in 0..of {
                let range = Slice { index, of }.cut(first, count);
                prop_assert_eq!(range.start, next);
                next = range.end;
            }
            prop_assert_eq!(next, first + count);
        }
    }
}
