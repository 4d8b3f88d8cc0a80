//! Connection attempts by a schedule.
//!
//! An attempt is a message of kind `connect` that waits in the queue of its link, which is closed for it. It is sent with
//! the first bytes of the new connection, and ends once the link is up or failed.

use muster_model::{Cause, ConnectFailure, Micros, Outcome, ShedCause};

use super::Traffic;
use crate::session::Session;
use crate::sink::Sink;
use crate::slots::SlotId;

/// The attempt that waits on a link.
pub(crate) struct ConnectAttempt<'a, P: Session, S> {
    traffic: &'a mut Traffic<P, S>,
    id: SlotId,
}

impl<'a, P: Session, S: Sink> ConnectAttempt<'a, P, S> {
    /// The attempt on a link; none if no attempt waits there.
    pub(crate) fn of(traffic: &'a mut Traffic<P, S>, link: u32) -> Option<Self> {
        let fleets = &traffic.fleets;
        if !fleets.have_attempts() {
            return None;
        }
        let streams = fleets.class(link).streams.iter();
        let mut queues = streams.zip(fleets.first_queue(link)..);
        let (_, queue) = queues.find(|(stream, _)| stream.is_connect())?;
        let id = traffic.messages.first_queued(queue)?;
        Some(Self { traffic, id })
    }

    /// True once its connection has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.traffic.messages.get(self.id).sent.is_some()
    }

    /// Sheds an attempt that is not made: its link was connecting for another reason when it was due.
    pub(crate) fn miss(self, now: Micros) {
        let Self { traffic, id } = self;
        traffic.messages.stop_waiting(&traffic.fleets, id);
        traffic.finalise(id, now, Outcome::Shed(ShedCause::QueueFull));
    }

    /// Its connection begins.
    pub(crate) fn begin(self, now: Micros) {
        self.traffic.mark_sent(self.id, now);
    }

    /// The link is up, or failed.
    pub(crate) fn end(self, now: Micros, failure: Option<ConnectFailure>) {
        let Self { traffic, id } = self;
        traffic.messages.stop_waiting(&traffic.fleets, id);
        let outcome = failure.map_or(Outcome::Accepted, outcome_of);
        let outcome = match (outcome, traffic.messages.get(id).sent) {
            (Outcome::Shed(_), Some(_)) => Outcome::Broken(Cause::OwnLimit),
            (outcome, _) => outcome,
        };
        if !matches!(outcome, Outcome::Shed(_)) {
            // A connection that the kernel would not open was tried all the same.
            traffic.mark_sent(id, now);
        }
        traffic.finalise(id, now, outcome);
    }
}

/// The outcome of an attempt that failed.
fn outcome_of(failure: ConnectFailure) -> Outcome {
    match failure {
        ConnectFailure::Rejected(reason) | ConnectFailure::SubscribeRejected(reason) => {
            Outcome::Rejected(reason)
        }
        ConnectFailure::GeneratorLimit => Outcome::Shed(ShedCause::GeneratorLimit),
        ConnectFailure::RunEnded => Outcome::InFlight,
        ConnectFailure::TimedOut
        | ConnectFailure::AnnouncementUnanswered
        | ConnectFailure::SubscribeUnanswered => Outcome::TimedOut,
        ConnectFailure::Refused => Outcome::Broken(Cause::Reset),
        ConnectFailure::Closed => Outcome::Broken(Cause::PeerClosed),
        ConnectFailure::Malformed => Outcome::Broken(Cause::Malformed),
        ConnectFailure::Tls(failure) => Outcome::Broken(Cause::Tls(failure)),
        ConnectFailure::Dns
        | ConnectFailure::Unreachable
        | ConnectFailure::UpgradeRefused(_)
        | ConnectFailure::Unsendable => Outcome::Broken(Cause::Network),
    }
}
