//! The ledgers of what goes to the devices, as the result writes them.

use muster_measure::{CommandSummary, CommandTimes, DrainSummary, LatencyView, ReceptionSummary};
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

/// The legs of commands next to the others, of one part of them.
pub(super) fn with_commands(
    latencies: Latencies,
    of: Option<&CommandSummary>,
    part: fn(&CommandSummary) -> Option<&CommandTimes>,
) -> Latencies {
    let Some((of, times)) = of.and_then(|of| Some((of, part(of)?))) else {
        return latencies;
    };
    let has_replies = of.ledger.received > of.ledger.one_way;
    let leg = |view: &LatencyView, lower: Option<&LatencyView>, has_any: bool| {
        has_any.then(|| view.with_lower(lower))
    };
    Latencies {
        command_request: leg(&times.request, Some(&times.request_lower), has_queries(of)),
        command_response: leg(&times.response, Some(&times.response_lower), has_replies),
        command_loop: leg(&times.round, None, has_replies),
        ..latencies
    }
}

fn has_queries(of: &CommandSummary) -> bool {
    of.ledger.queries > 0 || of.measured.request.figures.censored > 0
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
