//! Commands and subscribers in the summary.

use super::{by, listed};
use muster_model::{Micros, figure};

use crate::number::{count, known, per_second};
use crate::{CommandAccount, DrainAccount, Ledgers, QueriesDue, ReceiveAccount};

/// A label and what stands behind it.
type Line = (&'static str, Vec<String>);

/// Every line, in order; none where the scenario has neither.
pub(super) fn rows(ledgers: &Ledgers) -> Vec<Line> {
    let commands = ledgers.command.iter().flat_map(commands);
    let receive = ledgers.receive.iter().flat_map(|of| {
        let drain = of.offline_queue.iter().map(|of| drain(of, "messages"));
        std::iter::once(receive(of)).chain(drain)
    });
    commands.chain(receive).collect()
}

fn commands(of: &CommandAccount) -> Vec<Line> {
    let ledger = &of.ledger;
    let mut lines = queries(of);
    let undeliverable = format!("undeliverable{}", by(&ledger.undeliverable_by_status));
    let parts = [
        (ledger.delivered, "delivered", true),
        (ledger.expired, "expired", false),
        (ledger.undeliverable, undeliverable.as_str(), false),
        (ledger.unknown, "unknown", false),
        (ledger.withheld, "never issued", false),
    ];
    let mut issued = listed(format!("{} issued", count(ledger.issued)), &parts);
    issued.push(format!("residue {}", known(ledger.residue)));
    lines.push(("  commands", issued));
    let parts = [
        (ledger.one_way, "one-way", false),
        (ledger.answered, "answered", false),
        (ledger.answer_rejected, "rejected", false),
        (ledger.answer_timed_out, "timed out", false),
        (ledger.answer_broken, "broken", false),
        (ledger.answer_in_flight, "in flight", false),
        (ledger.answer_shed, "never sent", false),
        (ledger.received_again, "again", false),
        (ledger.received_damaged, "damaged", false),
        (ledger.received_foreign, "foreign", false),
    ];
    let mut received = listed(format!("{} received", count(ledger.received)), &parts);
    let missing = ledger.delivered_not_received.filter(|missing| *missing > 0);
    received.extend(missing.map(|n| format!("{} delivered and not received", count(n))));
    lines.push(("  received", received));
    if ledger.answered > 0 {
        let parts = [
            (ledger.replies_lost, "lost", true),
            (ledger.replies_outstanding, "outstanding", false),
            (Some(ledger.replies_again), "again", false),
        ];
        let is_plain = ledger
            .replies_by_status
            .keys()
            .all(|status| status == "200");
        let by_status = match is_plain {
            true => String::new(),
            false => by(&ledger.replies_by_status),
        };
        let arrived = format!("{} arrived{by_status}", known(ledger.replies_arrived));
        lines.push(("  replies", listed(arrived, &parts)));
    }
    let rows = ledger
        .by_presence
        .iter()
        .filter(|(_, row)| row.scheduled > 0);
    let rows: Vec<String> = rows
        .map(|(name, row)| {
            let (all, got) = (count(row.scheduled), count(row.received));
            format!("{name}: {got} of {all} received")
        })
        .collect();
    if rows.len() > 1 {
        lines.push(("  devices", rows));
    }
    lines.extend(of.offline_queue.iter().map(|of| drain(of, "commands")));
    lines
}

/// The queries that were sent; below them the cold ones and the others, where the scenario keeps them apart.
fn queries(of: &CommandAccount) -> Vec<Line> {
    let ledger = &of.ledger;
    let mut lines = Vec::new();
    if ledger.queries > 0 {
        let sent = QueriesDue {
            received_by_query: ledger.received_by_query,
            no_command: ledger.no_command,
            rejected: ledger.query_rejected,
            timed_out: ledger.query_timed_out,
            broken: ledger.query_broken,
            in_flight: ledger.query_in_flight,
            shed: 0,
        };
        let all = format!("{} sent", count(ledger.queries));
        lines.push(("  queries", ends(all, &sent)));
    }
    let apart = [("    cold", of.queries_cold), ("    warm", of.queries_warm)];
    let apart = apart.into_iter();
    lines.extend(apart.filter_map(|(label, part)| {
        let part = part?;
        let all = format!("{} due", count(part.total()));
        Some((label, ends(all, &part)))
    }));
    lines
}

/// Queries by their ends.
fn ends(all: String, of: &QueriesDue) -> Vec<String> {
    let parts = [
        (of.received_by_query, "with a command", true),
        (of.no_command, "without", true),
        (of.rejected, "rejected", false),
        (of.timed_out, "timed out", false),
        (of.broken, "broken", false),
        (of.in_flight, "in flight", false),
        (of.shed, "never sent", false),
    ];
    listed(all, &parts)
}

/// Draining of what was kept for devices that were offline.
fn drain(of: &DrainAccount, what: &str) -> Line {
    let ledger = &of.ledger;
    let unreturned = ledger.devices - ledger.returned;
    let parts = [
        (ledger.lost, "lost", true),
        (ledger.outstanding, "outstanding", false),
        (Some(ledger.duplicates), "duplicates", true),
        (Some(ledger.reordered), "out of order", true),
        (Some(unreturned), "devices not back", false),
        (Some(ledger.forgotten), "sessions forgotten", false),
        (Some(ledger.incomplete), "devices not drained", false),
    ];
    let (drained, expected) = (known(ledger.drained), known(ledger.expected));
    let first = format!(
        "{drained} of {expected} {what} for {} devices that were offline",
        count(ledger.devices)
    );
    let mut shown = listed(first, &parts);
    if let (Some(began), Some(ended)) = (of.began_s, of.ended_s) {
        let took = figure::time(Micros::from_secs_f64(ended - began));
        shown.push(format!("in {took} ({} /s)", per_second(of.rate)));
    }
    let longest = of.took.as_ref().and_then(|took| took.max_us);
    if let Some((slowest, longest)) = of.slowest.as_ref().zip(longest) {
        let longest = figure::time(Micros(longest));
        shown.push(format!("longest {longest} ({slowest})"));
    }
    ("  drained", shown)
}

fn receive(of: &ReceiveAccount) -> Line {
    let ledger = &of.ledger;
    let parts = [
        (ledger.lost, "lost", true),
        (ledger.outstanding, "outstanding", false),
        (ledger.duplicates, "duplicates", true),
        (ledger.duplicate_own, "own duplicates", false),
        (ledger.unexpected, "unexpected", false),
        (Some(ledger.corrupted), "corrupted", false),
        (Some(ledger.foreign), "foreign", false),
        (Some(ledger.unstamped), "unstamped", false),
    ];
    let first = format!(
        "{} arrived by {} subscriptions",
        count(ledger.arrived),
        count(ledger.subscribers)
    );
    let mut shown = listed(first, &parts);
    shown.push(format!("residue {}", known(ledger.residue)));
    ("  receive", shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_does_not_know_is_no_zero() {
        let mut commands = CommandAccount::default();
        commands.ledger.answered = 5;
        let ledgers = Ledgers {
            command: Some(commands),
            receive: Some(ReceiveAccount::default()),
            ..Ledgers::default()
        };
        let rows = rows(&ledgers);
        let row = |name: &str| {
            let found = rows.iter().find(|(known, _)| known.trim() == name);
            found.expect("the line is there").1.join(", ")
        };
        assert_eq!(row("replies"), "- arrived, - lost");
        assert_eq!(
            row("receive"),
            "0 arrived by 0 subscriptions, - lost, - duplicates, residue -"
        );
    }
}
