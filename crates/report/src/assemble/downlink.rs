//! The ledgers of what goes to the devices, as the result writes them.

use muster_measure::{
    CommandSummary, CommandsApart, DrainSummary, LatencyTable, LatencyView, ReceptionSummary,
};
use muster_model::{DeviceId, Micros};

use super::accounts::{lost_ids, of_device};
use crate::{
    CommandAccount, DrainAccount, Latencies, Names, QueriesDue, ReceiveAccount, SubscriberRow,
};

/// Commands and queries.
pub(super) fn commands(of: &CommandSummary, names: &Names<'_>) -> CommandAccount {
    let [queries_cold, queries_warm] = [&of.cold, &of.warm].map(|part| {
        let part = part.as_ref().filter(|_| has_queries(of));
        part.map(|part| queries_due(&part.queries))
    });
    CommandAccount {
        ledger: of.ledger.clone(),
        queries_cold,
        queries_warm,
        not_received_ids: lost_ids(&of.ledger.not_received, names),
        offline_queue: of.drain.as_ref().map(|drain| drained(drain, names)),
    }
}

/// Latencies with the legs of commands.
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
    let leg = |(view, lower): TwoTimes<'_>, has_any: bool| has_any.then(|| view.with_lower(lower));
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

/// Receptions of subscribers.
pub(super) fn receptions(of: &ReceptionSummary, names: &Names<'_>) -> ReceiveAccount {
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
    ReceiveAccount {
        ledger: ledger.clone(),
        end_to_end: of.end_to_end.as_ref().map(|view| view.figures.clone()),
        by_subscriber: rows.collect(),
        offline_queue: of.drain.as_ref().map(|drain| drained(drain, names)),
    }
}

/// Draining of what was kept for devices.
fn drained(of: &DrainSummary, names: &Names<'_>) -> DrainAccount {
    let ledger = &of.ledger;
    let device = |device: DeviceId| (names.device)(device);
    DrainAccount {
        ledger: ledger.clone(),
        began_s: ledger.began.map(Micros::as_secs_f64),
        ended_s: ledger.ended.map(Micros::as_secs_f64),
        rate: ledger.rate(),
        took: (of.took.figures.count > 0).then(|| of.took.figures.clone()),
        slowest: ledger.slowest.map(device),
    }
}
