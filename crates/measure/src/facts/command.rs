//! The lines of commands in the facts file.

use muster_model::{Answer, Answering, Command, Delivery, Issue, Query, QueryOutcome};

use super::Line;
use crate::command::{
    ANSWERING_NAMES, DELIVERY_NAMES, QUERY_NAMES, answering_at, delivery_at, query_at,
};

/// The line of what happened to a query, a command or a reply.
pub(super) fn line<'a>(command: &Command, out: &'a mut String) -> Line<'a> {
    match command {
        Command::Query(query) => of_query(query, Line::new("query", out)),
        Command::Issue(issue) => of_issue(issue, Line::new("issue", out)),
        Command::Met(met) => Line::new("presence", out)
            .id(Some(&met.id))
            .instant(Some(met.due))
            .field(met.presence.name()),
        Command::Receipt(receipt) => Line::new("receipt", out)
            .id(receipt.id.as_ref())
            .instant(Some(receipt.at))
            .field(receipt.device.0)
            .field(receipt.stream.0)
            .integrity(receipt.integrity),
        Command::Answer(answer) => of_answer(answer, Line::new("answer", out)),
        Command::Reply(reply) => Line::new("reply", out)
            .id(reply.id.as_ref())
            .instant(reply.issued)
            .instant(Some(reply.seen))
            .integrity(reply.integrity),
    }
}

fn of_query<'a>(query: &Query, line: Line<'a>) -> Line<'a> {
    let line = line
        .id(Some(&query.id))
        .instant(Some(query.due))
        .instant(Some(query.ended))
        .field(QUERY_NAMES[query_at(&query.outcome)]);
    let line = match &query.outcome {
        QueryOutcome::Rejected(reason) => line.field(reason),
        QueryOutcome::Broken(cause) => line.field(cause),
        QueryOutcome::Received
        | QueryOutcome::NoCommand
        | QueryOutcome::TimedOut
        | QueryOutcome::InFlight => line.field('-'),
    };
    line.field(query.own.get())
}

fn of_issue<'a>(issue: &Issue, line: Line<'a>) -> Line<'a> {
    let line = line
        .id(Some(&issue.id))
        .instant(Some(issue.due))
        .instant(issue.issued)
        .instant(Some(issue.ended))
        .field(DELIVERY_NAMES[delivery_at(&issue.delivery)]);
    match &issue.delivery {
        Delivery::Undeliverable(reason) => line.field(reason),
        Delivery::Withheld(cause) => line.field(cause),
        Delivery::Delivered | Delivery::Expired | Delivery::Unknown => line.field('-'),
    }
}

fn of_answer<'a>(answer: &Answer, line: Line<'a>) -> Line<'a> {
    let line = line
        .id(Some(&answer.id))
        .instant(Some(answer.due))
        .instant(answer.sent)
        .instant(Some(answer.ended))
        .field(ANSWERING_NAMES[answering_at(&answer.outcome)]);
    let line = match &answer.outcome {
        Answering::Rejected(reason) => line.field(reason),
        Answering::Broken(cause) => line.field(cause),
        Answering::Shed(cause) => line.field(cause),
        Answering::Answered | Answering::OneWay | Answering::TimedOut | Answering::InFlight => {
            line.field('-')
        }
    };
    line.field(answer.own.get())
}

#[cfg(test)]
mod tests {
    use muster_model::{
        DeviceId, Integrity, MessageId, Met, Micros, Presence, Reason, Receipt, Reply, RunId,
        StreamId,
    };

    use super::*;

    const ID: MessageId = MessageId {
        run: RunId(1),
        device: DeviceId(2),
        stream: StreamId(3),
        seq: 4,
    };

    fn check((command, expected): &(Command, &str)) {
        let mut out = String::new();
        line(command, &mut out).out.push('\n');
        assert_eq!(out, format!("{expected}\n"));
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
