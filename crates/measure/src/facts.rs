//! The facts file: one line a fact, for a recount by others.
//!
//! Fields are separated by tabs; one that is not known is `-`. The first field is the kind and
//! determines the others:
//!
//! ```text
//! attempt  run device stream seq due_us taken_us sent_us ended_us state code resent own_us
//! arrival  run device stream seq due_us seen_us backend consumer integrity own_us
//! link     link at_us event detail by_us
//! query    run device stream seq due_us ended_us outcome code own_us
//! issue    run device stream seq due_us issued_us ended_us delivery code
//! presence run device stream seq due_us presence
//! receipt  run device stream seq at_us by_device by_stream integrity
//! answer   run device stream seq due_us sent_us ended_us outcome code own_us
//! reply    run device stream seq issued_us seen_us integrity
//! reception run device stream seq due_us seen_us by_device by_stream integrity
//! ```
//!
//! Instants are microseconds since T0. `state` is `accepted`, `rejected`, `timed_out`, `broken`,
//! `unacknowledged`, `in_flight` or `shed`; `code` is the wire code or the cause; `resent` is 0
//! or 1. `own_us` is the part of the time since due that may be our own, in microseconds; `by_us` is 1
//! if a try timed out while our own delay exceeded half of the time-out. `integrity` is `intact`, `corrupted` or `unchecked`. `event` is `connected` (detail: how
//! long it took, in microseconds), `returned` (detail: whether the platform still had the session, 0
//! or 1), `failed` or `disconnected` (detail: the cause). The words of
//! commands are those of the ledger of commands, such as `undeliverable` and `answer_rejected`, and
//! `presence` is `online`, `offline` or `reconnected`. The id of a command names the device that it
//! is for and the stream of kind `command` that takes it; `by_device` and `by_stream` say who got a
//! copy, and on which of its streams.

use std::fmt::{Display, Write};

use muster_model::{Attempt, Fact, Integrity, LinkEvent, LinkFact, MessageId, Micros, Outcome};

mod command;

use crate::State;

/// The first line of a facts file: its format and version.
pub const FACTS_HEADER: &str = "# muster-facts/2\n";

/// Appends the line of a fact, its newline included.
pub fn encode_fact(fact: &Fact, out: &mut String) {
    let line = match fact {
        Fact::Attempt(attempt) => of_attempt(attempt, Line::new("attempt", out)),
        Fact::Arrival(arrival) => Line::new("arrival", out)
            .id(arrival.id.as_ref())
            .instant(arrival.due)
            .instant(Some(arrival.seen))
            .field(arrival.backend.0)
            .field(arrival.consumer.0)
            .integrity(arrival.integrity)
            .field(arrival.own.get()),
        Fact::Link(link) => of_link(link, Line::new("link", out)),
        Fact::Command(command) => command::line(command, out),
        Fact::Reception(reception) => Line::new("reception", out)
            .id(reception.id.as_ref())
            .instant(reception.due)
            .instant(Some(reception.seen))
            .field(reception.subscriber.0)
            .field(reception.stream.0)
            .integrity(reception.integrity),
    };
    line.out.push('\n');
}

/// A line in the making: fields separated by tabs.
struct Line<'a> {
    out: &'a mut String,
}

impl<'a> Line<'a> {
    fn new(kind: &str, out: &'a mut String) -> Self {
        out.push_str(kind);
        Self { out }
    }

    fn field(self, value: impl Display) -> Self {
        write!(self.out, "\t{value}").expect("a string takes all text");
        self
    }

    fn instant(self, at: Option<Micros>) -> Self {
        match at {
            Some(at) => self.field(at.get()),
            None => self.field('-'),
        }
    }

    fn id(self, id: Option<&MessageId>) -> Self {
        match id {
            Some(id) => self
                .field(id.run.0)
                .field(id.device.0)
                .field(id.stream.0)
                .field(id.seq),
            None => self.field("-\t-\t-\t-"),
        }
    }

    fn integrity(self, integrity: Integrity) -> Self {
        self.field(match integrity {
            Integrity::Intact => "intact",
            Integrity::Corrupted => "corrupted",
            Integrity::Unchecked => "unchecked",
        })
    }
}

fn of_attempt<'a>(attempt: &Attempt, line: Line<'a>) -> Line<'a> {
    let line = line
        .id(Some(&attempt.id))
        .instant(Some(attempt.due))
        .instant(attempt.taken)
        .instant(attempt.sent)
        .instant(Some(attempt.ended))
        .field(State::from(&attempt.outcome).name());
    let line = match &attempt.outcome {
        Outcome::Rejected(reason) => line.field(reason),
        Outcome::Broken(cause) => line.field(cause),
        Outcome::Shed(cause) => line.field(cause),
        Outcome::Accepted | Outcome::TimedOut | Outcome::Unacknowledged | Outcome::InFlight => {
            line.field('-')
        }
    };
    line.field(u8::from(attempt.resent))
        .field(attempt.own.get())
}

fn of_link<'a>(fact: &LinkFact, line: Line<'a>) -> Line<'a> {
    let line = line.field(fact.link.0).instant(Some(fact.at));
    let line = match &fact.event {
        LinkEvent::Connected { took } => line.field("connected").field(took.get()),
        LinkEvent::Returned { is_kept } => line.field("returned").field(u8::from(*is_kept)),
        LinkEvent::Failed(failure) => line.field("failed").field(failure),
        LinkEvent::Disconnected(cause) => line.field("disconnected").field(cause),
        LinkEvent::LastSent { cause, messages } => line
            .field("last-sent")
            .field(format_args!("{messages} {cause}")),
    };
    line.field(u8::from(fact.by_us))
}

#[cfg(test)]
mod tests {
    use muster_model::{
        Arrival, BackendId, Cause, ConnectFailure, ConsumerId, DeviceId, LinkId, MessageId, Reason,
        Reception, RunId, ShedCause, StreamId,
    };

    use super::*;

    const ID: MessageId = MessageId {
        run: RunId(1),
        device: DeviceId(2),
        stream: StreamId(3),
        seq: 4,
    };

    fn check(fact: Fact, line: &str) {
        let mut out = String::new();
        encode_fact(&fact, &mut out);
        assert_eq!(out, format!("{line}\n"));
    }

    fn attempt(outcome: Outcome, sent: Option<u64>) -> Fact {
        Fact::Attempt(Attempt {
            id: ID,
            due: Micros(5),
            taken: Some(Micros(6)),
            sent: sent.map(Micros),
            ended: Micros(8),
            outcome,
            resent: sent == Some(7),
            own: Micros(2),
        })
    }

    fn arrival(id: Option<MessageId>, due: Option<u64>, integrity: Integrity) -> Fact {
        Fact::Arrival(Arrival {
            id,
            due: due.map(Micros),
            seen: Micros(9),
            backend: BackendId(1),
            consumer: ConsumerId(12),
            integrity,
            own: Micros(3),
        })
    }

    fn link(event: LinkEvent) -> Fact {
        Fact::Link(LinkFact {
            link: LinkId(7),
            at: Micros(11),
            event,
            by_us: false,
        })
    }

    #[test]
    fn every_kind_of_fact_has_its_line() {
        check(
            attempt(Outcome::Accepted, Some(7)),
            "attempt\t1\t2\t3\t4\t5\t6\t7\t8\taccepted\t-\t1\t2",
        );
        check(
            attempt(Outcome::Rejected(Reason::Mqtt(0x97)), Some(6)),
            "attempt\t1\t2\t3\t4\t5\t6\t6\t8\trejected\t0x97\t0\t2",
        );
        check(
            attempt(Outcome::Shed(ShedCause::QueueFull), None),
            "attempt\t1\t2\t3\t4\t5\t6\t-\t8\tshed\tqueue-full\t0\t2",
        );
        check(
            attempt(Outcome::Broken(Cause::Reset), Some(6)),
            "attempt\t1\t2\t3\t4\t5\t6\t6\t8\tbroken\treset\t0\t2",
        );
        check(
            arrival(Some(ID), Some(5), Integrity::Intact),
            "arrival\t1\t2\t3\t4\t5\t9\t1\t12\tintact\t3",
        );
        check(
            arrival(None, None, Integrity::Corrupted),
            "arrival\t-\t-\t-\t-\t-\t9\t1\t12\tcorrupted\t3",
        );
        check(
            link(LinkEvent::Connected { took: Micros(3) }),
            "link\t7\t11\tconnected\t3\t0",
        );
        check(
            Fact::Reception(Reception {
                subscriber: DeviceId(8),
                stream: StreamId(5),
                id: Some(ID),
                due: Some(Micros(5)),
                seen: Micros(9),
                integrity: Integrity::Intact,
            }),
            "reception\t1\t2\t3\t4\t5\t9\t8\t5\tintact",
        );
        check(
            link(LinkEvent::Disconnected(Cause::PingUnanswered)),
            "link\t7\t11\tdisconnected\tping-unanswered\t0",
        );
        let (cause, messages) = (Cause::PeerDisconnect(Reason::Mqtt(0x99)), 12);
        check(
            link(LinkEvent::LastSent { cause, messages }),
            "link\t7\t11\tlast-sent\t12 disconnect-0x99\t0",
        );
        check(
            Fact::Link(LinkFact {
                link: LinkId(7),
                at: Micros(11),
                event: LinkEvent::Failed(ConnectFailure::TimedOut),
                by_us: true,
            }),
            "link\t7\t11\tfailed\ttimed-out\t1",
        );
        check(
            link(LinkEvent::Returned { is_kept: true }),
            "link\t7\t11\treturned\t1\t0",
        );
    }
}
