//! The ledgers of what goes to the devices, as the result writes them.

use muster_measure::{
    CommandSummary, CommandsApart, DrainSummary, LatencyTable, LatencyView, ReceptionSummary,
};
use muster_model::{DeviceId, Micros};

use super::accounts::{equation, lost_ids, of_device};
use crate::{
    CommandLedger, DrainLedger, Latencies, Latency, Names, PresenceRow, QueriesDue, ReceiveLedger,
    SubscriberRow,
};

/// Commands and queries.
pub(super) fn commands(of: &CommandSummary, names: &Names<'_>) -> CommandLedger {
    let [queries_cold, queries_warm] = [&of.cold, &of.warm].map(|part| {
        let part = part.as_ref().filter(|_| has_queries(of));
        part.map(|part| queries_due(&part.queries))
    });
    let (of, drain) = (&of.ledger, of.drain.as_ref());
    let rows = of.by_presence.iter().flatten().map(|(name, row)| {
        let row = PresenceRow {
            scheduled: row.scheduled,
            delivered: row.delivered,
            received: row.received,
            replies_arrived: row.replies_arrived,
        };
        (name.clone(), row)
    });
    CommandLedger {
        queries: of.queries,
        received_by_query: of.received_by_query,
        no_command: of.no_command,
        query_rejected: of.query_rejected,
        query_rejected_by_code: of.query_rejected_by_code.clone(),
        query_timed_out: of.query_timed_out,
        query_broken: of.query_broken,
        query_in_flight: of.query_in_flight,
        queries_cold,
        queries_warm,
        scheduled: of.scheduled,
        withheld: of.withheld,
        withheld_by_cause: of.withheld_by_cause.clone(),
        issued: of.issued,
        delivered: of.delivered,
        expired: of.expired,
        undeliverable: of.undeliverable,
        undeliverable_by_status: of.undeliverable_by_status.clone(),
        replies_by_status: of.replies_by_status.clone(),
        unknown: of.unknown,
        received: of.received,
        received_again: of.received_again,
        received_foreign: of.received_foreign,
        received_damaged: of.received_damaged,
        delivered_not_received: of.delivered_not_received,
        received_not_delivered: of.received_not_delivered,
        one_way: of.one_way,
        answered: of.answered,
        answer_rejected: of.answer_rejected,
        answer_rejected_by_code: of.answer_rejected_by_code.clone(),
        answer_timed_out: of.answer_timed_out,
        answer_broken: of.answer_broken,
        answer_in_flight: of.answer_in_flight,
        answer_shed: of.answer_shed,
        answer_shed_by_cause: of.answer_shed_by_cause.clone(),
        replies_arrived: of.replies_arrived,
        replies_lost: of.replies_lost,
        replies_outstanding: of.replies_outstanding,
        replies_unanswered: of.replies_unanswered,
        replies_again: of.replies_again,
        replies_foreign: of.replies_foreign,
        replies_damaged: of.replies_damaged,
        by_presence: rows.collect(),
        not_received_ids: lost_ids(&of.not_received, names),
        offline_queue: drain.map(|drain| drained(drain, names)),
        residue: of.residue,
        equations: of.equations.iter().map(equation).collect(),
    }
}

/// The legs of commands beside the others.
pub(super) fn with_commands(latencies: Latencies, of: Option<&CommandSummary>) -> Latencies {
    match of {
        Some(of) => {
            let request = (&of.request, Some(&of.request_lower));
            let response = (&of.response, Some(&of.response_lower));
            with_legs(latencies, of, [request, response, (&of.round, None)])
        }
        None => latencies,
    }
}

/// The same of those that are kept apart, or of the others.
pub(super) fn apart(
    latencies: Option<&LatencyTable>,
    of: Option<&CommandSummary>,
    part: fn(&CommandSummary) -> Option<&CommandsApart>,
) -> Option<Latencies> {
    let latencies = Latencies::from(latencies?);
    let found = of.and_then(|of| Some((of, part(of)?)));
    Some(match found {
        Some((of, part)) => {
            let request = (&part.request, Some(&part.request_lower));
            let response = (&part.response, Some(&part.response_lower));
            with_legs(latencies, of, [request, response, (&part.round, None)])
        }
        None => latencies,
    })
}

/// The times of a leg, and those without our own delay where it has such.
type TwoTimes<'a> = (&'a LatencyView, Option<&'a LatencyView>);

fn with_legs(
    latencies: Latencies,
    of: &CommandSummary,
    [request, response, round]: [TwoTimes<'_>; 3],
) -> Latencies {
    let has_replies = of.ledger.received > of.ledger.one_way;
    let leg = |(view, lower): TwoTimes<'_>, has_any: bool| {
        has_any.then(|| Latency::from(view).with_lower(lower))
    };
    Latencies {
        command_request: leg(request, has_queries(of)),
        command_response: leg(response, has_replies),
        command_loop: leg(round, has_replies),
        ..latencies
    }
}

fn has_queries(of: &CommandSummary) -> bool {
    of.ledger.queries > 0 || of.request.figures.censored > 0
}

fn queries_due(of: &muster_measure::QueriesDue) -> QueriesDue {
    let [
        received_by_query,
        no_command,
        rejected,
        timed_out,
        broken,
        in_flight,
    ] = of.ends;
    QueriesDue {
        received_by_query,
        no_command,
        rejected,
        timed_out,
        broken,
        in_flight,
        shed: of.shed,
    }
}

/// What subscribers got.
pub(super) fn receptions(of: &ReceptionSummary, names: &Names<'_>) -> ReceiveLedger {
    let ledger = &of.ledger;
    let rows = ledger.by_subscriber.iter().map(|row| {
        let own = SubscriberRow {
            expected: row.expected,
            arrived: row.arrived,
            again: row.again,
            lost: row.lost,
        };
        (of_device(row.stream, row.device, names), own)
    });
    ReceiveLedger {
        subscribers: ledger.subscribers,
        expected: ledger.expected,
        consumed: ledger.consumed,
        arrived: ledger.arrived,
        unexpected: ledger.unexpected,
        duplicates: ledger.duplicates,
        duplicate_own: ledger.duplicate_own,
        reordered: ledger.reordered,
        lost: ledger.lost,
        outstanding: ledger.outstanding,
        foreign: ledger.foreign,
        unstamped: ledger.unstamped,
        corrupted: ledger.corrupted,
        end_to_end: of.end_to_end.as_ref().map(Latency::from),
        by_subscriber: rows.collect(),
        truncated: ledger.truncated,
        offline_queue: of.drain.as_ref().map(|drain| drained(drain, names)),
        residue: ledger.residue,
        equations: ledger.equations.iter().map(equation).collect(),
    }
}

/// How what was kept for devices drained.
fn drained(of: &DrainSummary, names: &Names<'_>) -> DrainLedger {
    let ledger = &of.ledger;
    let device = |device: DeviceId| (names.device)(device);
    DrainLedger {
        devices: ledger.devices,
        returned: ledger.returned,
        forgotten: ledger.forgotten,
        expected: ledger.expected,
        drained: ledger.drained,
        lost: ledger.lost,
        outstanding: ledger.outstanding,
        duplicates: ledger.duplicates,
        reordered: ledger.reordered,
        incomplete: ledger.incomplete,
        began_s: ledger.began.map(Micros::as_secs_f64),
        ended_s: ledger.ended.map(Micros::as_secs_f64),
        rate: ledger.rate(),
        took: (of.took.figures.count > 0).then(|| Latency::from(&of.took)),
        slowest: ledger.slowest.map(device),
    }
}
