//! The lines of commands in the facts file.

use std::fmt::{self, Display, Write};

use muster_model::{
    Answer, Answering, Command, Delivery, Issue, Met, Micros, Query, QueryOutcome, Receipt, Reply,
};

use super::{integrity, write_id, write_instant};
use crate::command::{
    ANSWERING_NAMES, DELIVERY_NAMES, QUERY_NAMES, answering_at, delivery_at, query_at,
};

/// Appends the line of what happened to a query, a command or a reply.
pub(super) fn write(command: &Command, out: &mut String) -> fmt::Result {
    match command {
        Command::Query(query) => write_query(query, out),
        Command::Issue(issue) => write_issue(issue, out),
        Command::Met(met) => write_met(met, out),
        Command::Receipt(receipt) => write_receipt(receipt, out),
        Command::Answer(answer) => write_answer(answer, out),
        Command::Reply(reply) => write_reply(reply, out),
    }
}

fn write_query(query: &Query, out: &mut String) -> fmt::Result {
    write!(out, "query")?;
    write_id(Some(&query.id), out)?;
    write!(out, "\t{}\t{}", query.due.get(), query.ended.get())?;
    let name = QUERY_NAMES[query_at(&query.outcome)];
    match &query.outcome {
        QueryOutcome::Rejected(reason) => end_own(name, reason, query.own, out),
        QueryOutcome::Broken(cause) => end_own(name, cause, query.own, out),
        QueryOutcome::Received
        | QueryOutcome::NoCommand
        | QueryOutcome::TimedOut
        | QueryOutcome::InFlight => end_own(name, &'-', query.own, out),
    }
}

fn write_issue(issue: &Issue, out: &mut String) -> fmt::Result {
    write!(out, "issue")?;
    write_id(Some(&issue.id), out)?;
    write!(out, "\t{}", issue.due.get())?;
    write_instant(issue.issued, out)?;
    write!(out, "\t{}", issue.ended.get())?;
    let name = DELIVERY_NAMES[delivery_at(&issue.delivery)];
    match &issue.delivery {
        Delivery::Undeliverable(reason) => end(name, reason, out),
        Delivery::Withheld(cause) => end(name, cause, out),
        Delivery::Delivered | Delivery::Expired | Delivery::Unknown => end(name, &'-', out),
    }
}

fn write_met(met: &Met, out: &mut String) -> fmt::Result {
    write!(out, "presence")?;
    write_id(Some(&met.id), out)?;
    writeln!(out, "\t{}\t{}", met.due.get(), met.presence.name())
}

fn write_receipt(receipt: &Receipt, out: &mut String) -> fmt::Result {
    write!(out, "receipt")?;
    write_id(receipt.id.as_ref(), out)?;
    let (at, device, stream) = (receipt.at.get(), receipt.device.0, receipt.stream.0);
    let integrity = integrity(receipt.integrity);
    writeln!(out, "\t{at}\t{device}\t{stream}\t{integrity}")
}

fn write_answer(answer: &Answer, out: &mut String) -> fmt::Result {
    write!(out, "answer")?;
    write_id(Some(&answer.id), out)?;
    write!(out, "\t{}", answer.due.get())?;
    write_instant(answer.sent, out)?;
    write!(out, "\t{}", answer.ended.get())?;
    let name = ANSWERING_NAMES[answering_at(&answer.outcome)];
    match &answer.outcome {
        Answering::Rejected(reason) => end_own(name, reason, answer.own, out),
        Answering::Broken(cause) => end_own(name, cause, answer.own, out),
        Answering::Shed(cause) => end_own(name, cause, answer.own, out),
        Answering::Answered | Answering::OneWay | Answering::TimedOut | Answering::InFlight => {
            end_own(name, &'-', answer.own, out)
        }
    }
}

fn write_reply(reply: &Reply, out: &mut String) -> fmt::Result {
    write!(out, "reply")?;
    write_id(reply.id.as_ref(), out)?;
    write_instant(reply.issued, out)?;
    let (seen, integrity) = (reply.seen.get(), integrity(reply.integrity));
    writeln!(out, "\t{seen}\t{integrity}")
}

fn end(name: &str, code: &dyn Display, out: &mut String) -> fmt::Result {
    writeln!(out, "\t{name}\t{code}")
}

fn end_own(name: &str, code: &dyn Display, own: Micros, out: &mut String) -> fmt::Result {
    writeln!(out, "\t{name}\t{code}\t{}", own.get())
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, Integrity, MessageId, Presence, Reason, RunId, StreamId};

    use super::*;

    const ID: MessageId = MessageId {
        run: RunId(1),
        device: DeviceId(2),
        stream: StreamId(3),
        seq: 4,
    };

    fn check((command, line): &(Command, &str)) {
        let mut out = String::new();
        write(command, &mut out).unwrap();
        assert_eq!(out, format!("{line}\n"));
    }

    #[test]
    fn every_kind_of_fact_has_its_line() {
        let at = Micros;
        let cases = [
            (
                Command::Query(Query {
                    id: ID,
                    due: at(5),
                    taken: at(5),
                    ended: at(6),
                    outcome: QueryOutcome::Rejected(Reason::Mqtt(0x97)),
                    own: at(1),
                }),
                "query\t1\t2\t3\t4\t5\t6\tquery_rejected\t0x97\t1",
            ),
            (
                Command::Issue(Issue {
                    id: ID,
                    due: at(5),
                    ready: at(5),
                    issued: None,
                    ended: at(6),
                    delivery: Delivery::Withheld(muster_model::ShedCause::Offline),
                }),
                "issue\t1\t2\t3\t4\t5\t-\t6\twithheld\toffline",
            ),
            (
                Command::Met(Met {
                    id: ID,
                    due: at(5),
                    presence: Presence::Reconnected,
                }),
                "presence\t1\t2\t3\t4\t5\treconnected",
            ),
            (
                Command::Receipt(Receipt {
                    device: DeviceId(2),
                    stream: StreamId(3),
                    id: None,
                    at: at(7),
                    integrity: Integrity::Corrupted,
                }),
                "receipt\t-\t-\t-\t-\t7\t2\t3\tcorrupted",
            ),
            (
                Command::Answer(Answer {
                    id: ID,
                    due: at(7),
                    sent: Some(at(8)),
                    ended: at(9),
                    outcome: Answering::Answered,
                    own: at(2),
                }),
                "answer\t1\t2\t3\t4\t7\t8\t9\tanswered\t-\t2",
            ),
            (
                Command::Reply(Reply {
                    status: None,
                    stream: StreamId(3),
                    id: Some(ID),
                    issued: Some(at(5)),
                    seen: at(10),
                    integrity: Integrity::Intact,
                }),
                "reply\t1\t2\t3\t4\t5\t10\tintact",
            ),
        ];
        cases.iter().for_each(check);
    }
}
