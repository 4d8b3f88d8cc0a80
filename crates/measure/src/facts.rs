//! The facts file: one line a fact, for a recount by others.
//!
//! Fields are separated by tabs; one that is not known is `-`. The first field is the kind and
//! tells the others:
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
//! copy, and by which of its streams.

use std::fmt::{self, Display, Write};

use muster_model::{
    Arrival, Attempt, Fact, Integrity, LinkEvent, LinkFact, MessageId, Micros, Outcome, Reception,
};

mod command;

use crate::State;

/// The first line of a facts file: its format and version.
pub const FACTS_HEADER: &str = "# muster-facts/2\n";

/// Appends the line of a fact, its newline included.
pub fn encode_fact(fact: &Fact, out: &mut String) {
    let written = match fact {
        Fact::Attempt(attempt) => write_attempt(attempt, out),
        Fact::Arrival(arrival) => write_arrival(arrival, out),
        Fact::Link(link) => write_link(link, out),
        Fact::Command(command) => command::write(command, out),
        Fact::Reception(reception) => write_reception(reception, out),
    };
    written.expect("a string takes all text");
}

fn write_attempt(attempt: &Attempt, out: &mut String) -> fmt::Result {
    write!(out, "attempt")?;
    write_id(Some(&attempt.id), out)?;
    write!(out, "\t{}", attempt.due.get())?;
    write_instant(attempt.taken, out)?;
    write_instant(attempt.sent, out)?;
    write!(
        out,
        "\t{}\t{}\t",
        attempt.ended.get(),
        State::from(&attempt.outcome).name()
    )?;
    match &attempt.outcome {
        Outcome::Rejected(reason) => write!(out, "{reason}")?,
        Outcome::Broken(cause) => write!(out, "{cause}")?,
        Outcome::Shed(cause) => write!(out, "{cause}")?,
        Outcome::Accepted | Outcome::TimedOut | Outcome::Unacknowledged | Outcome::InFlight => {
            write!(out, "-")?;
        }
    }
    let (resent, own) = (u8::from(attempt.resent), attempt.own.get());
    writeln!(out, "\t{resent}\t{own}")
}

fn write_arrival(arrival: &Arrival, out: &mut String) -> fmt::Result {
    write!(out, "arrival")?;
    write_id(arrival.id.as_ref(), out)?;
    write_instant(arrival.due, out)?;
    let integrity = integrity(arrival.integrity);
    let (seen, backend, consumer) = (arrival.seen.get(), arrival.backend.0, arrival.consumer.0);
    let own = arrival.own.get();
    writeln!(out, "\t{seen}\t{backend}\t{consumer}\t{integrity}\t{own}")
}

fn write_reception(reception: &Reception, out: &mut String) -> fmt::Result {
    write!(out, "reception")?;
    write_id(reception.id.as_ref(), out)?;
    write_instant(reception.due, out)?;
    let (subscriber, stream) = (reception.subscriber.0, reception.stream.0);
    let integrity = integrity(reception.integrity);
    let seen = reception.seen.get();
    writeln!(out, "\t{seen}\t{subscriber}\t{stream}\t{integrity}")
}

fn write_id(id: Option<&MessageId>, out: &mut String) -> fmt::Result {
    match id {
        Some(id) => write!(
            out,
            "\t{}\t{}\t{}\t{}",
            id.run.0, id.device.0, id.stream.0, id.seq
        ),
        None => write!(out, "\t-\t-\t-\t-"),
    }
}

fn integrity(integrity: Integrity) -> &'static str {
    match integrity {
        Integrity::Intact => "intact",
        Integrity::Corrupted => "corrupted",
        Integrity::Unchecked => "unchecked",
    }
}

fn write_link(fact: &LinkFact, out: &mut String) -> fmt::Result {
    let mut line = |event: &str, detail: &dyn Display| {
        writeln!(
            out,
            "link\t{}\t{}\t{event}\t{detail}\t{}",
            fact.link.0,
            fact.at.get(),
            u8::from(fact.by_us)
        )
    };
    match &fact.event {
        LinkEvent::Connected { took } => line("connected", &took.get()),
        LinkEvent::Returned { is_kept } => line("returned", &u8::from(*is_kept)),
        LinkEvent::Failed(failure) => line("failed", failure),
        LinkEvent::Disconnected(cause) => line("disconnected", cause),
        LinkEvent::LastSent { cause, messages } => {
            line("last-sent", &format_args!("{messages} {cause}"))
        }
    }
}

fn write_instant(at: Option<Micros>, out: &mut String) -> fmt::Result {
    match at {
        Some(at) => write!(out, "\t{}", at.get()),
        None => write!(out, "\t-"),
    }
}

#[cfg(test)]
mod tests {
    use muster_model::{
        BackendId, Cause, ConnectFailure, ConsumerId, DeviceId, LinkId, MessageId, Reason, RunId,
        ShedCause, StreamId,
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
